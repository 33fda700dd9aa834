"""`oneway simulate`: one run, from flags or a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneway.cli.column_notes import show_columns
from oneway.cli.options import Allow, option, switch
from oneway.cli.out_path import Force, check_out_folder
from oneway.cli.output import AsJson, note, print_facts, print_json
from oneway.cli.settings_flags import read_given, with_flags
from oneway.errors import ConfigError
from oneway.files.output_folder import mark
from oneway.task.conditions import Conditions

if TYPE_CHECKING:
    from oneway.methods import Method
    from oneway.models import Model
    from oneway.simulator import Run

_PANEL = "Asynchronous network"


@with_flags(besides=Conditions)
def simulate(
    given: Mapping[str, Any],
    around: Mapping[str, Any],
    config: Annotated[
        Path | None,
        option("FILE", "TOML file with settings: the names of these flags, with _ for -."),
    ] = None,
    task: Annotated[
        Path | None, option("FILE", "The task.toml of peers: features, label, model, method.")
    ] = None,
    asynchronous: Annotated[
        bool,
        switch(
            "--async",
            "No rounds: clocks, delays, losses, faults and liars.",
            panel=_PANEL,
        ),
    ] = False,
    allow: Allow = None,
    personal: Annotated[
        bool,
        switch(
            "--personal/--no-personal",
            "What each node predicts with: its own mixture of the shared model and models that "
            "never leave it.",
            panel="Run",
        ),
    ] = True,
    regret: Annotated[
        bool, switch("--regret", "Compare with the best fixed model in hindsight.", panel="Run")
    ] = False,
    out: Annotated[
        Path | None, option("FOLDER", "Save the run there; Run.load reads it.", panel="Run")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Run one method on one stream and one graph."""
    from oneway import simulator, store
    from oneway.task.assembly import assemble

    if around and not asynchronous:
        raise ConfigError(
            f"{next(iter(around))} is for an asynchronous network, and this one has rounds; add "
            "--async, or leave it out"
        )
    conditions = Conditions(**around)
    settings = read_given(given, task, config, allow=allow)
    if asynchronous and settings.engine != "auto":
        raise ConfigError(
            f"engine is {settings.engine}, which is for a network with rounds; leave it or --async "
            "out"
        )
    if out is not None:
        check_out_folder(out, "simulate", force=force)
    parts = assemble(settings)
    show_columns(parts.table.notes, len(parts.table))
    if parts.method.exchange == "graph" and parts.graph.one_way_note:
        note(parts.graph.one_way_note)
    run = simulator.simulate(
        parts.method,
        parts.model,
        parts.stream,
        parts.graph,
        engine=settings.engine,
        conditions=conditions if asynchronous else None,
        seed=settings.seed,
        measure=True,
        personal=personal and _has_personal(parts.method, parts.model),
    )
    if not run.record.num_rounds:
        note("Interrupted before the first round was done.")
        raise typer.Exit(130)
    if run.complete:
        _ = run.alone_sums  # asked for here, to be shown and saved with the rest
    _ = run.measures
    final_regret = float(run.regret()[-1]) if regret else None
    if out is not None:
        run.save(out)
        mark(out, "simulate", store.FILES)
    if as_json:
        print_json(_numbers(run, final_regret) | {"privacy": settings.privacy.as_json()})
    else:
        facts = _facts(run, final_regret)
        if parts.method.payload:
            facts["privacy"] = settings.privacy.brief
        print_facts(_title(run), facts)
        if out is not None:
            note(f"Saved to {out}")
    if not run.complete:
        note("Interrupted: these are the rounds that were done.")
        raise typer.Exit(130)


def _has_personal(method: Method, model: Model) -> bool:
    """Whether nodes have anything to mix; a model that cannot be mixed is named."""
    from oneway.personal import link_of
    from oneway.simulator.driver import is_alone

    try:
        link_of(model)
    except ConfigError as error:
        note(str(error))
        return False
    return not is_alone(method)


def _numbers(run: Run, regret: float | None) -> dict[str, Any]:
    import msgspec

    from oneway.simulator.views import personal_numbers

    measures = run.measures if run.was_asked_for("measures") else None
    return {
        **personal_numbers(run),
        "average_loss": run.average_loss,
        "base_loss": run.base_loss,
        "alone_loss": run.alone_loss if run.was_asked_for("alone_sums") else None,
        "accuracy": run.accuracy if measures is None else measures.accuracy,
        "measures": msgspec.to_builtins(run.measures),
        "disagreement": float(run.disagreement[-1]),
        "smallest_mass": float(run.masses.min()),
        "regret": regret,
        "seconds": run.record.seconds,
        "complete": run.complete,
        "config": run.record.config,
        "versions": run.record.versions,
    }


def _title(run: Run) -> str:
    seconds = run.record.config.get("virtual_seconds")
    if seconds is None:
        return f"{run.record.method}, {run.record.num_rounds:,} rounds"
    spoken = f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.3g}"
    return f"{run.record.method}, {spoken} seconds of virtual time"


def _lived(config: Mapping[str, Any]) -> dict[str, str]:
    """What is known of an asynchronous network besides."""
    if "conditions" not in config:
        return {}
    return {
        "pushes": f"{config['pushes']:,}",
        "mass in flight": f"{config['mass_in_flight']:.3g} at the end",
    }


def _facts(run: Run, regret: float | None) -> dict[str, str]:
    from oneway.simulator.views import run_facts

    facts = run_facts(run) | _lived(run.record.config)
    if regret is not None:
        facts["regret"] = f"{regret:.4g} in all, against the best fixed model in hindsight"
    return facts
