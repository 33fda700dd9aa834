"""`oneway audit`: attacks on purpose, and what they could read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from rich.progress import TextColumn

from oneway.cli.lazy_group import LazyGroup, make_group
from oneway.cli.options import Allow, option, switch
from oneway.cli.out_path import Force, check_out_file, write_out_file
from oneway.cli.output import (
    AsJson,
    note,
    on_interrupt,
    print_facts,
    print_json,
    progress_bar,
)
from oneway.cli.settings_flags import read_given, with_flags

LEFT_OUT = ("engine",)
_DEFAULTS = {"rounds": "2000, or 200 with --virtual"}


def command_line() -> LazyGroup:
    """The commands under `oneway audit`."""
    table = {"privacy": ("oneway.cli.audit:privacy", "--data synthetic --epsilon 1")}
    return make_group("oneway audit", table, _audit, example="privacy --data synthetic --epsilon 1")


def _audit() -> None:
    """Attack a network on purpose."""


@with_flags(leave_out=LEFT_OUT, defaults=_DEFAULTS)
def privacy(
    given: Mapping[str, Any],
    config: Annotated[Path | None, option("FILE", "TOML file with settings. Flags win.")] = None,
    task: Annotated[
        Path | None, option("FILE", "The task.toml of peers: features, label, model, method.")
    ] = None,
    canaries: Annotated[
        int | None,
        option(
            "N",
            "How many canaries the membership test has.",
            panel="Run",
            default="8000, or 800 with --virtual",
        ),
    ] = None,
    virtual: Annotated[
        bool,
        switch("--virtual", "Attack peers in virtual time, by their messages.", panel="Run"),
    ] = False,
    out: Annotated[
        Path | None, option("FILE", "Write the report there, as Markdown.", panel="Run")
    ] = None,
    allow: Allow = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Try to read a sender's samples from its pushes, and measure a lower bound of epsilon."""
    from oneway.privacy.audit import TITLE, audit, facts_of, page_of

    settings = read_given(given, task, config, allow=allow)
    if out is not None:
        check_out_file(out, TITLE.encode(), force=force)
    with (
        on_interrupt("Interrupted: nothing is known."),
        progress_bar(TextColumn("{task.description}")) as bar,
    ):
        shown = bar.add_task("attacking", total=None)
        found = audit(
            settings,
            canaries=canaries,
            virtual=virtual,
            tick=lambda what, done: bar.update(shown, description=f"{what}: {done:,} rounds"),
        )
    if out is not None:
        write_out_file(out, page_of(found), force=force)
    if as_json:
        print_json(found.numbers)
        return
    print_facts(f"Privacy of {found.victim} with {found.settings.method}", facts_of(found))
    if out is not None:
        note(f"Report: {out}")
