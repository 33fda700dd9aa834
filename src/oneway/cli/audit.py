"""`oneway audit`: attacks on purpose, and what they could read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import TextColumn

from oneway.cli.options import add_commands, option
from oneway.cli.out_path import Force, check_out_file
from oneway.cli.output import (
    AsJson,
    note,
    on_interrupt,
    print_facts,
    print_json,
    progress_bar,
)
from oneway.cli.settings_flags import read_given, with_flags

if TYPE_CHECKING:
    from oneway.audit.privacy import Audit

LEFT_OUT = ("engine", "precision")
_DEFAULTS = {"rounds": "2000; against a lab 500"}


def command_line() -> typer.Typer:
    """The commands under `oneway audit`."""
    app = typer.Typer(
        no_args_is_help=True,
        help="Attack a network on purpose.",
        epilog="Example: oneway audit privacy --data synthetic --epsilon 1",
    )
    app.callback()(lambda: None)
    add_commands(
        app,
        "oneway audit",
        {
            "privacy": (
                with_flags(privacy, leave_out=LEFT_OUT, defaults=_DEFAULTS),
                "--data synthetic --epsilon 1",
            )
        },
    )
    return app


def privacy(
    given: Mapping[str, Any],
    config: Annotated[Path | None, option("FILE", "TOML file with settings. Flags win.")] = None,
    task: Annotated[
        Path | None, option("FILE", "The task.toml of peers: features, label, model, method.")
    ] = None,
    against: Annotated[
        str, option("NAME", "What to attack: simulation, or lab (two real peers).", panel="Run")
    ] = "simulation",
    canaries: Annotated[
        int, option("N", "How many canaries the membership test has.", panel="Run")
    ] = 8000,
    out: Annotated[
        Path | None, option("FILE", "Write the report there, one HTML page.", panel="Run")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Try to read a sender's samples from what it sends, and measure what epsilon is at least."""
    from oneway.audit.page import write
    from oneway.audit.privacy import audit

    settings = read_given(given, task, config, note=note)
    if out is not None:
        check_out_file(out, force=force)
    with (
        on_interrupt("Interrupted: nothing is known."),
        progress_bar(TextColumn("{task.description}")) as bar,
    ):
        shown = bar.add_task("attacking", total=None)
        found = audit(
            settings,
            against,  # type: ignore[arg-type]
            canaries=canaries,
            tick=lambda what, done: bar.update(shown, description=f"{what}: {done:,} rounds"),
        )
    if out is not None:
        write(out, found)
    if as_json:
        print_json(found.numbers)
        return
    title = f"Privacy of {found.victim} with {found.settings.method}, against a {found.against}"
    print_facts(title, facts_of(found))
    if out is not None:
        note(f"Report: {out}")


def facts_of(found: Audit) -> dict[str, str]:
    """What people are told."""
    evidence, facts = found.evidence, {}
    for one in found.findings:
        score = one.score
        facts[one.attacker] = (
            f"read {score.rows_read_exactly:,} of {score.rows:,} samples exactly; nearest guess at "
            f"a median cosine of {score.cosine:.2f} (for samples it never had: "
            f"{score.cosine_by_chance:.2f})"
        )
    facts["membership"] = (
        f"{evidence.canaries:,} canaries (simulated): {evidence.false_alarms:.1%} false alarms, "
        f"{evidence.misses:.1%} misses"
    )
    facts["promised"] = found.settings.privacy.brief
    facts["measured"] = (
        f"epsilon is at least {evidence.epsilon_lower_bound:.3g} at delta {found.delta:g}, with "
        f"{evidence.confidence:.0%} confidence"
    )
    facts["verdict"] = {
        None: "nothing is promised",
        True: "the promise withstood these attacks",
        False: "the promise is BROKEN: more leaks than promised",
    }[found.is_kept]
    return facts
