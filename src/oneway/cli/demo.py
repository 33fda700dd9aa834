"""`oneway demo`: every method on real flights, a table, a chart and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from oneway.cli.options import option
from oneway.cli.output import (
    AsJson,
    make_table,
    note,
    on_interrupt,
    print_json,
    print_table,
    progress_bar,
    require_writable,
)

if TYPE_CHECKING:
    from oneway.report.comparison import Comparison


def demo(
    out: Annotated[Path, option("FOLDER", "Where the report, the chart and the runs go.")] = Path(
        "oneway-demo"
    ),
    rounds: Annotated[
        int | None, option("N", "Only the first rounds of the year.", "all", min=1)
    ] = None,
    seed: Annotated[int, option("N", "Seed of the one-way graph.", min=0)] = 7,
    as_json: AsJson = False,
) -> None:
    """Airports predict late flights together over one-way trust, in under a minute.

    About 90 airports, the real flights of 2013, a random one-way graph, every method at its
    best learning rate from a small grid.
    """
    from oneway.report import demo as flights
    from oneway.report.comparison import write

    require_writable(out)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with on_interrupt("Interrupted: nothing was written."), progress_bar(*columns) as bar:
        task = bar.add_task("every method at every learning rate", total=flights.num_runs())
        comparison = flights.flights_demo(seed, rounds, lambda: bar.advance(task))
    written = write(out, comparison)
    if as_json:
        print_json(
            {
                "methods": {name: tuned.numbers for name, tuned in comparison.ranked.items()},
                "facts": comparison.facts,
                "report": str(written),
            }
        )
        return
    print_table(_table(comparison))
    note(f"Report: {written}   chart: {out / 'loss.png'}   runs: {out / 'runs'}")


def _table(comparison: Comparison) -> Table:
    from oneway.report.labels import label_of

    numbers = ("loss", "accuracy", "disagreement", "rate", "seconds")
    starred = any(tuned.at_edge for tuned in comparison.results.values())
    why = "* best at the edge of the grid of rates: a better one may lie beyond"
    below = why if starred else ""
    shown = make_table("method", *numbers, right=numbers, title=comparison.title, below=below)
    for name, tuned in comparison.ranked.items():
        run = tuned.run
        shown.add_row(
            label_of(name).title,
            f"{run.average_loss:.4f}",
            "-" if run.accuracy is None else f"{run.accuracy:.2%}",
            f"{run.disagreement[-1]:.2g}",
            f"{tuned.learning_rate:g}{'*' if tuned.at_edge else ''}",
            f"{run.record.seconds:.2f}",
            style="bold" if name == "ops" else "",
        )
    return shown
