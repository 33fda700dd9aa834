"""`oneway simulate`: one run, from flags or a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneway.cli.column_notes import show_columns
from oneway.cli.options import option, switch
from oneway.cli.out_path import Force, check_out_folder
from oneway.cli.output import AsJson, note, print_facts, print_json
from oneway.cli.settings_flags import read_given
from oneway.errors import ConfigError

if TYPE_CHECKING:
    from oneway.simulator import Run

_PANEL = "Asynchronous network"


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
            "Events instead of rounds: clocks, delays, losses and faults of peers.",
            panel=_PANEL,
        ),
    ] = False,
    level: Annotated[
        str | None,
        option(
            "NAME",
            "exact: the peers' own code, for thousands; fast: compiled, for 100,000.",
            "fast",
            panel=_PANEL,
        ),
    ] = None,
    regret: Annotated[
        bool, switch("--regret", "Compare with the best fixed model in hindsight.", panel="Run")
    ] = False,
    out: Annotated[
        Path | None, option("FOLDER", "Save the run there; Run.load reads it.", panel="Run")
    ] = None,
    checkpoint: Annotated[
        str | None,
        option(
            "FOLDER",
            "Write now and then all that is needed to go on there, and go on if it is there.",
            panel="Run",
        ),
    ] = None,
    checkpoint_seconds: Annotated[
        float, option("S", "Seconds between two checkpoints.", panel="Run")
    ] = 60.0,
    divided: Annotated[
        str | None,
        typer.Option(
            "--parts",
            metavar="N",
            help="Engine ray: how many parts, or a file with the part of each node.",
            show_default="one for each machine",
            rich_help_panel="Run",
        ),
    ] = None,
    disagreement_every: Annotated[
        int | None, option("N", "Engine ray: measure it every so many rounds.", "10", panel="Run")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Run one method on one stream and one graph."""
    from oneway import simulator, store
    from oneway.asynchronous.conditions import Conditions
    from oneway.asynchronous.simulate import simulate_async
    from oneway.task.assembly import assemble
    from oneway.task.settings import Settings

    used = [*around, *(["level"] if level is not None else [])]
    if used and not asynchronous:
        raise ConfigError(
            f"{used[0]} is for an asynchronous network, and this one has rounds; add --async, or "
            "leave it out"
        )
    rounds_only = {
        "checkpoint": checkpoint,
        "parts": divided,
        "disagreement_every": disagreement_every,
    }
    for name, value in rounds_only.items():
        if asynchronous and value is not None:
            raise ConfigError(
                f"{name} is for a network with rounds, and this one has none; leave it or --async "
                "out"
            )
    conditions = Conditions(**around)
    settings = read_given(given, task, config, note=note)
    for name in ("engine", "precision"):
        value = getattr(settings, name)
        if asynchronous and value != getattr(Settings, name):
            raise ConfigError(
                f"{name} is {value}, which is for a network with rounds, and this one has none; "
                "leave it or --async out"
            )
    if out is not None:
        check_out_folder(out, force=force, is_own=store.is_run)
    parts = assemble(settings)
    show_columns(parts.table.notes, len(parts.table))
    about = parts.method, parts.model, parts.stream, parts.graph
    if asynchronous:
        chosen: Any = level or "fast"
        run = simulate_async(*about, conditions=conditions, level=chosen, seed=settings.seed)
    else:
        run = simulator.simulate(
            *about,
            engine=settings.engine,
            precision=settings.precision,
            seed=settings.seed,
            measure=True,
            parts=int(divided) if divided and divided.lstrip("-").isdigit() else divided,
            disagreement_every=disagreement_every,
            checkpoint=checkpoint,
            checkpoint_seconds=checkpoint_seconds,
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
    if as_json:
        print_json(_numbers(run, final_regret) | {"privacy": settings.privacy.said()})
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


def _numbers(run: Run, regret: float | None) -> dict[str, Any]:
    import msgspec

    return {
        "average_loss": run.average_loss,
        "base_loss": run.base_loss,
        "alone_loss": run.alone_loss if run.was_asked_for("alone_sums") else None,
        "accuracy": run.accuracy,
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
        return f"{run.record.algorithm}, {run.record.num_rounds:,} rounds"
    spoken = f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.3g}"
    return f"{run.record.algorithm}, {spoken} seconds of virtual time"


def _traffic(config: Mapping[str, Any]) -> dict[str, str]:
    """What peers did and said, of an asynchronous run."""
    from oneway.files.memory import spoken_bytes

    if "traffic" not in config:
        return {}
    known = config["traffic"]
    trip = known["mean_round_trip"]
    told = {
        "samples": f"{known['samples']:,}",
        "messages": f"{known['messages']:,}, {known['messages_lost']:,} of them lost, "
        f"{spoken_bytes(known['bytes_sent'])}",
        "pushes": f"{known['pushes']:,}, and {known['repeats']:,} again for want of an answer; "
        f"{known['clipped']:,} clipped, {known['waited']:,} had to wait",
        "round trip": "unknown" if trip is None else f"{1e3 * trip:,.3g} ms on average",
        "events": f"{known['events']:,}",
        "mass in flight": f"{config['mass_in_flight']:.3g} at the end",
    }
    happened = ("crashes", "sleeps", "joined", "left", "presumed_dead", "rejected")
    told |= {name.replace("_", " "): f"{known[name]:,}" for name in happened if known[name]}
    if config["exact_books"] is not None:
        is_exact = "exact, to the last unit" if config["exact_books"] else "NOT exact"
        told["books"] = is_exact
    return told


def _facts(run: Run, regret: float | None) -> dict[str, str]:
    from oneway.simulator.views import run_facts

    facts = run_facts(run) | _traffic(run.record.config)
    if regret is not None:
        facts["regret"] = f"{regret:.4g} in all, against the best fixed model in hindsight"
    return facts
