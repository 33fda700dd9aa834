"""`oneway demo`: five methods on real flights, a table, a chart and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from oneway.cli.output import (
    AsJson,
    note,
    print_json,
    print_table,
    progress_bar,
    require_writable,
)

if TYPE_CHECKING:
    from oneway.report.page import Row


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", epilog="Example: oneway demo --rounds 300 --out my-demo")(demo)


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the report, the chart and the runs.")
    ] = Path("oneway-demo"),
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="Only the first rounds of the year.", show_default="all"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the one-way graph.")] = 7,
    as_json: AsJson = False,
) -> None:
    """Airports predict late flights together over one-way trust, in under a minute.

    About 90 airports, the real flights of 2013, a random one-way graph, five methods, each at its
    best learning rate from a small grid.
    """
    from oneway.report import demo as flights
    from oneway.report.page import rows

    require_writable(out)
    try:
        with progress_bar(
            TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
        ) as bar:
            task = bar.add_task(
                f"five methods, {len(flights.RATES)} learning rates each", total=flights.NUM_RUNS
            )
            result = flights.flights_demo(seed, rounds, lambda: bar.advance(task))
    except KeyboardInterrupt:
        note("Interrupted: nothing was written.")
        raise typer.Exit(130) from None
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
        "at_edge": row.at_edge,
        "seconds": row.seconds,
    }


def _table(table: list[Row], title: str) -> Table:
    at_edge = any(row.at_edge for row in table)
    shown = Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption="* best at the edge of the grid of rates: a better one may lie beyond"
        if at_edge
        else None,
        caption_justify="left",
    )
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
