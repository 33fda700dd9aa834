"""`oneway reproduce`: the paper's evaluation again, with a verdict on every claim."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from oneway.cli.options import On, argument, option, switch
from oneway.cli.out_path import check_out_folder
from oneway.cli.output import (
    AsJson,
    make_table,
    note,
    on_interrupt,
    print_json,
    print_table,
    progress_bar,
)

_STYLES = {"holds": "green", "fails": "red", "mixed": "yellow"}


def reproduce(
    names: Annotated[
        list[str], argument("NAME...", "Figures to reproduce, or all; list says which there are.")
    ],
    seeds: Annotated[int | None, option("N", "How many seeds each.", "10", min=2)] = None,
    rounds: Annotated[int | None, option("N", "Rounds on SUSY.", "2000", min=8)] = None,
    peers: Annotated[
        int | None, option("N", "One more, larger network of async: 100000, say.", "none", min=1000)
    ] = None,
    out: Annotated[Path, option("FOLDER", "Where the page, the panels and the numbers go.")] = Path(
        "oneway-reproduction"
    ),
    on: On = "local",
    quick: Annotated[
        bool, switch("--quick", "A smoke run: two seeds, few rounds and rates.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the paper's evaluation again and judge each of its claims.

    Needs the data sets susy and occupancy, for privacy (loss against epsilon) also flights and
    adult, and for beyond (other methods, real trust networks) also advogato and epinions; its
    part networks (neural networks) needs digits and mnist, and is left out without PyTorch. async
    (an asynchronous network in virtual time: conditions, defaults, size, liars) needs no data.
    Interrupted, it goes on where it stopped when it is called again.
    """
    from oneway.paper import reproduce as paper

    if names == ["list"]:
        _list(as_json)
        return
    names, sentences = paper.without_former_names(names)
    for sentence in sentences:
        note(sentence)
    plan = paper.plan(names, seeds, rounds, quick, peers)
    check_out_folder(out, force=False, is_own=paper.is_reproduction, goes_on=True)
    interrupted = f"Interrupted: what was finished is kept in {out}; call again to go on."
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with on_interrupt(interrupted), progress_bar(*columns, TimeRemainingColumn()) as bar:
        task = bar.add_task("methods, worlds and seeds", total=None)
        outcome = paper.reproduce(
            plan, out, lambda done, total: bar.update(task, completed=done, total=total), on
        )
    if as_json:
        print_json({"claims": [asdict(c) for c in outcome.claims], "page": str(outcome.page)})
        return
    shown = make_table(
        "verdict",
        "claim",
        "settings",
        right=["settings"],
        wrapped="claim",
        title="The paper's claims",
    )
    for claim in outcome.claims:
        verdicts = [finding.verdict for finding in claim.findings]
        shown.add_row(
            f"[{_STYLES[claim.verdict]}]{claim.verdict}[/]",
            claim.text,
            f"{verdicts.count('holds')} of {len(verdicts)}",
        )
    print_table(shown)
    if outcome.markdown:
        typer.echo(outcome.markdown, nl=False)
    note(f"Page: {outcome.page}   panels (PNG, SVG, CSV): {out / 'panels'}")


def _list(as_json: bool) -> None:
    from oneway.paper.reproduce import CATALOGUE

    if as_json:
        print_json(CATALOGUE)
        return
    shown = make_table("name", "what it shows", "data it needs", wrapped="what it shows")
    for name, words in CATALOGUE.items():
        shown.add_row(name, *words)
    print_table(shown)
