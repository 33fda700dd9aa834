"""`oneway simulate`: one run, from flags or a TOML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneway.cli import flags
from oneway.cli.flags import setting, switch
from oneway.cli.output import (
    AsJson,
    note,
    print_facts,
    print_json,
    require_writable,
)

if TYPE_CHECKING:
    from oneway.simulator import Run

_EXAMPLE = "Example: oneway simulate --data synthetic --nodes 16 --rounds 500"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate", epilog=_EXAMPLE)(simulate)


def simulate(
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file with settings: the names of these flags, with _ for -. Flags win.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        setting(
            "Data",
            "NAME",
            "flights",
            "flights, occupancy, susy, synthetic, or a file: .csv, .parquet, .libsvm.",
        ),
    ] = None,
    label: flags.Label = None,
    owner: flags.Owner = None,
    nodes: flags.Nodes = None,
    adversarial: flags.Adversarial = None,
    resample: Annotated[
        int | None, setting("Data", "N", "", "Draw this many rows with replacement.")
    ] = None,
    rounds: Annotated[int | None, setting("Data", "N", "all", "Only the first rounds.")] = None,
    graph: flags.Graph = None,
    max_receivers: flags.MaxReceivers = None,
    density: flags.Density = None,
    largest_component: flags.LargestComponent = None,
    algorithm: Annotated[
        str | None, setting("Method", "NAME", "ops", "ops, dol-symm, dol-asymm, col or local.")
    ] = None,
    learning_rate: Annotated[
        float | None, setting("Method", "RATE", "0.1", "The length of a step, gamma.")
    ] = None,
    schedule: Annotated[
        str | None,
        setting("Method", "NAME", "constant", "constant, or inverse-sqrt: RATE / sqrt(round)."),
    ] = None,
    cap_step: Annotated[
        bool | None,
        switch("Method", "--cap-step", "ops: shorter steps where there is little mass."),
    ] = None,
    model: flags.Model = None,
    l2: flags.L2 = None,
    intercept: Annotated[
        bool | None, switch("Method", "--intercept/--no-intercept", "Learn a constant (default).")
    ] = None,
    seed: flags.Seed = None,
    engine: Annotated[
        str | None, setting("Run", "NAME", "auto", "auto, reference or fast.")
    ] = None,
    regret: Annotated[
        bool, switch("Run", "--regret", "Compare with the best fixed model in hindsight.")
    ] = False,
    out: Annotated[
        Path | None, setting("Run", "FOLDER", "", "Save the run there; Run.load reads it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run one method on one stream and one graph."""
    from oneway import store
    from oneway.simulator import simulate as run_simulation
    from oneway.task.assembly import assemble
    from oneway.task.settings import read_settings

    given: dict[str, Any] = {
        "data": data,
        "label": label,
        "owner": owner,
        "nodes": nodes,
        "adversarial": adversarial,
        "resample": resample,
        "rounds": rounds,
        "graph": graph,
        "max_receivers": max_receivers,
        "density": density,
        "largest_component": largest_component,
        "algorithm": algorithm,
        "learning_rate": learning_rate,
        "schedule": schedule,
        "cap_step": cap_step,
        "model": model,
        "l2": l2,
        "intercept": intercept,
        "seed": seed,
        "engine": engine,
    }
    overrides = {name: value for name, value in given.items() if value is not None}
    settings = read_settings(config, overrides)
    if out is not None:
        require_writable(out)
        store.check(out)
    parts = assemble(settings)
    run = run_simulation(
        parts.algorithm, parts.model, parts.stream, parts.graph, engine=settings.engine
    )
    if not run.record.num_rounds:
        note("Interrupted before the first round was done.")
        raise typer.Exit(130)
    final_regret = float(run.regret()[-1]) if regret else None
    if out is not None:
        run.save(out)
    if as_json:
        print_json(_numbers(run, final_regret))
    else:
        print_facts(
            f"{run.record.algorithm}, {run.record.num_rounds:,} rounds", _facts(run, final_regret)
        )
        if out is not None:
            note(f"Saved to {out}")
    if not run.complete:
        note("Interrupted: these are the rounds that were done.")
        raise typer.Exit(130)


def _numbers(run: Run, regret: float | None) -> dict[str, Any]:
    return {
        "average_loss": run.average_loss,
        "accuracy": run.accuracy,
        "disagreement": float(run.disagreement[-1]),
        "smallest_mass": float(run.masses.min()),
        "regret": regret,
        "seconds": run.record.seconds,
        "complete": run.complete,
        "config": run.record.config,
        "versions": run.record.versions,
    }


def _facts(run: Run, regret: float | None) -> dict[str, str]:
    facts = {"average loss": f"{run.average_loss:.4f}"}
    if run.accuracy is not None:
        facts["accuracy"] = f"{run.accuracy:.2%}"
    facts["disagreement"] = f"{run.disagreement[-1]:.3g} at the end"
    facts["masses"] = f"{run.masses.min():.3g} to {run.masses.max():.3g}"
    if regret is not None:
        facts["regret"] = f"{regret:.4g} in all, against the best fixed model in hindsight"
    facts["nodes"] = f"{len(run.masses):,}"
    facts["engine"] = f"{run.record.config['engine']}, {run.record.seconds:.2f} s"
    return facts
