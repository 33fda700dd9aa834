"""`oneway demo`: every method on real flights, a table, a chart and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from oneway.cli.options import option
from oneway.cli.out_path import Force, check_out_folder
from oneway.cli.output import (
    AsJson,
    note,
    on_interrupt,
    print_facts,
    print_json,
    progress_bar,
)
from oneway.display.terminal_table import TerminalTable, print_table

if TYPE_CHECKING:
    from oneway.report.comparison import Comparison

_FOLDER = Path("oneway-demo")
"""Refreshed by every demo that is told no other."""


def demo(
    out: Annotated[
        Path | None,
        option("FOLDER", "Where the report, the chart and the runs go.", str(_FOLDER)),
    ] = None,
    rounds: Annotated[
        int | None, option("N", "Only the first rounds of the year.", "all", min=1)
    ] = None,
    seed: Annotated[int, option("N", "Seed of the one-way graph.", min=0)] = 7,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Aircraft predict late flights together over one-way trust, in under a minute.

    About 100 aircraft, their real flights of 2013, a random one-way graph: what a user gets with
    the defaults of a new task, privacy included, and beside it every method that the fast engine
    runs at its best learning rate from a small grid.
    """
    from oneway.report import demo as flights
    from oneway.report.comparison import COMMAND, write
    from oneway.simulator.views import personal_numbers

    folder = out or _FOLDER
    check_out_folder(folder, COMMAND, force=force, refresh=out is None)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with on_interrupt("Interrupted: nothing was written."), progress_bar(*columns) as bar:
        task = bar.add_task("every method at every learning rate", total=flights.num_runs())
        comparison = flights.flights_demo(seed, rounds, lambda: bar.advance(task))
    written = write(folder, comparison)
    assert comparison.user is not None
    if as_json:
        print_json(
            {
                **personal_numbers(comparison.user),
                "alone": comparison.user.alone_loss,
                "user_result": comparison.user_result,
                "methods": {name: tuned.numbers for name, tuned in comparison.ranked.items()},
                "result": comparison.result,
                "base_loss": comparison.base_loss,
                "facts": comparison.facts,
                "report": str(written),
            }
        )
        return
    print_facts(
        "What a user gets: the defaults of a new task, epsilon 8",
        {name: f"{loss:.4f}, {meaning}" for name, loss, meaning in comparison.user_rows},
    )
    console = Console(highlight=False)
    console.print(Text(comparison.user_result + "\n"))
    print_table(_table(comparison))
    note(f"Report: {written}; chart and runs are in the same folder.")
    console.print(Text(comparison.result))


def _table(comparison: Comparison) -> TerminalTable:
    from oneway.methods import DEFAULT_METHOD
    from oneway.methods.base import label_of

    numbers = ("loss", "labels late", "accuracy", "ROC AUC", "rate")
    starred = any(tuned.at_edge for tuned in comparison.results.values())
    why = "* best at the edge of the grid of rates: a better one may lie beyond"
    below = "labels late: the loss if the outcome is known when a flight has landed"
    below += f"\n{why}" if starred else ""
    shown = TerminalTable(
        ("method", *numbers),
        right=numbers,
        drop=("rate", "ROC AUC", "labels late"),
        title=comparison.title,
        below=below,
    )
    for name, tuned in comparison.ranked.items():
        run = tuned.run
        shown.add_row(
            label_of(name).title,
            f"{run.average_loss:.4f}",
            "-" if tuned.late_loss is None else f"{tuned.late_loss:.4f}",
            "-" if run.accuracy is None else f"{run.accuracy:.2%}",
            "-" if tuned.roc_auc is None else f"{tuned.roc_auc:.4f}",
            f"{tuned.learning_rate:g}{'*' if tuned.at_edge else ''}",
            style="bold" if name == DEFAULT_METHOD else "",
        )
    if comparison.base_loss is not None:
        shown.add_row("Base rate", f"{comparison.base_loss:.4f}", *[""] * (len(numbers) - 1))
    return shown
