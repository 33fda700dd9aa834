"""`oneway demo`: five methods on real flights, a table, a chart and a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from oneway.cli.output import AsJson, note, print_json, print_table
from oneway.experiments import flights
from oneway.report.page import Row, rows


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", epilog="Example: oneway demo --rounds 300 --out my-demo")(demo)


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the report, the chart and the runs.")
    ] = Path("oneway-demo"),
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Only the first rounds of the year.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the one-way graph.")] = flights.DEFAULT_SEED,
    as_json: AsJson = False,
) -> None:
    """Airports predict late flights together over one-way trust, in under a minute.

    About 90 airports, the real flights of 2013, a random one-way graph, five methods, each at its
    best learning rate from a small grid.
    """
    console = Console(file=sys.stderr)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console,
        transient=True,
    ) as progress:  # fmt: skip
        task = progress.add_task(
            f"five methods, {len(flights.RATES)} learning rates each", total=flights.NUM_RUNS
        )
        result = flights.flights_demo(seed, rounds, lambda: progress.advance(task))
    comparison = flights.describe(result)
    table = rows(comparison)
    written = flights.write(out, comparison)
    if as_json:
        print_json(
            {
                "methods": {row.name: _numbers(row) for row in table},
                "facts": comparison.facts,
                "report": str(written),
            }
        )
        return
    print_table(_table(table, comparison.title))
    note(f"Report: {written}   chart: {out / 'loss.png'}   runs: {out / 'runs'}")


def _numbers(row: Row) -> dict[str, object]:
    return {
        "average_loss": row.average_loss,
        "accuracy": row.accuracy,
        "disagreement": row.disagreement,
        "learning_rate": row.learning_rate,
        "seconds": row.seconds,
    }


def _table(table: list[Row], title: str) -> Table:
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("method", no_wrap=True)
    for heading in ("loss", "accuracy", "disagreement", "rate", "seconds"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for row in table:
        shown.add_row(
            row.title,
            f"{row.average_loss:.4f}",
            "-" if row.accuracy is None else f"{row.accuracy:.2%}",
            f"{row.disagreement:.2g}",
            f"{row.learning_rate:g}{'*' if row.at_edge else ''}",
            f"{row.seconds:.2f}",
            style="bold" if row.name == "ops" else "",
        )
    return shown
