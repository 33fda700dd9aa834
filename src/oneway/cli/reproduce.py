"""`oneway reproduce`: the paper's evaluation again, with a verdict on every claim."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
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
    from oneway.paper.verdict import Claim


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce", epilog="Example: oneway reproduce list")(reproduce)


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...", help="Figures to reproduce, or all; list says which there are."
        ),
    ],
    seeds: Annotated[
        int | None, typer.Option(min=2, help="How many seeds each.", show_default="10")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=8, help="Rounds on SUSY.", show_default="2000")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the page, the panels and the numbers.")
    ] = Path("oneway-reproduction"),
    quick: Annotated[
        bool,
        typer.Option("--quick", metavar="", help="A smoke run: two seeds, few rounds and rates."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the paper's evaluation again and judge each of its claims.

    Needs the data sets susy and occupancy, and for the figure trust also advogato and epinions.
    Interrupted, it goes on where it stopped when it is called again.
    """
    from oneway.paper import reproduce as experiment

    if names == ["list"]:
        _list(as_json)
        return
    plan = experiment.plan(names, seeds, rounds, quick)
    require_writable(out)
    try:
        with progress_bar(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TimeRemainingColumn(),
        ) as bar:  # fmt: skip
            task = bar.add_task("methods, worlds and seeds", total=None)
            outcome = experiment.reproduce(
                plan, out, lambda done, total: bar.update(task, completed=done, total=total)
            )
    except KeyboardInterrupt:
        note(f"Interrupted: what was finished is kept in {out}; call again to go on.")
        raise typer.Exit(130) from None
    if as_json:
        print_json(
            {"claims": [asdict(claim) for claim in outcome.claims], "page": str(outcome.page)}
        )
        return
    print_table(_table(outcome.claims))
    note(f"Page: {outcome.page}   panels (PNG, SVG, CSV): {out / 'panels'}")


def _list(as_json: bool) -> None:
    from oneway.paper.reproduce import CONTENTS

    if as_json:
        print_json(CONTENTS)
        return
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("name", "what it shows", "data it needs"):
        shown.add_column(heading)
    for name, (what, needs) in CONTENTS.items():
        shown.add_row(name, what, needs)
    print_table(shown)


def _table(claims: list[Claim]) -> Table:
    shown = Table(title="The paper's claims", title_justify="left", box=box.SIMPLE_HEAD)
    shown.add_column("verdict", no_wrap=True)
    shown.add_column("claim")
    shown.add_column("settings", justify="right", no_wrap=True)
    styles = {"holds": "green", "fails": "red", "mixed": "yellow"}
    for claim in claims:
        good = sum(finding.verdict == "holds" for finding in claim.findings)
        shown.add_row(
            f"[{styles[claim.verdict]}]{claim.verdict}[/]",
            claim.text,
            f"{good} of {len(claim.findings)}",
        )
    return shown
