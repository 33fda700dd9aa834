"""`oneway simulate`: one run, from flags or a TOML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from oneway.cli.output import AsJson, note, print_facts, print_json
from oneway.experiments.simulation import read_settings, run_settings
from oneway.simulator import Run

_EXAMPLE = "Example: oneway simulate --data synthetic --nodes 16 --max-receivers 4 --rounds 500"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate", epilog=_EXAMPLE)(simulate)


def simulate(
    config: Annotated[
        Path | None, typer.Option(help="TOML file with these settings; flags override it.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="flights, occupancy, susy, synthetic, or a CSV/Parquet/LIBSVM file."),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Label column of a file.")] = None,
    owner: Annotated[str | None, typer.Option(help="Column whose values are the nodes.")] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Number of nodes.")] = None,
    adversarial: Annotated[
        float | None, typer.Option(help="Fraction dealt by cluster, not at random.")
    ] = None,
    resample: Annotated[
        int | None, typer.Option(min=1, help="Draw this many rows with replacement.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Only the first rounds.")] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            help="random, ring, complete, erdos-renyi, scale-free, advogato, epinions, or a file."
        ),
    ] = None,
    max_receivers: Annotated[
        int | None, typer.Option(min=1, help="Of the random graph: most receivers of a node.")
    ] = None,
    density: Annotated[
        float | None, typer.Option(help="Of the Erdos-Renyi graph: probability of an edge.")
    ] = None,
    largest_component: Annotated[
        bool | None, typer.Option("--largest-component", help="Keep the largest strong component.")
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="ops, dol-symm, dol-asymm, col or local.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="gamma.")] = None,
    schedule: Annotated[str | None, typer.Option(help="constant or inverse-sqrt.")] = None,
    cap_step: Annotated[
        bool | None,
        typer.Option("--cap-step", help="Of ops: shorten the steps of nodes with little mass."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="logistic, ridge, hinge or softmax.")] = None,
    l2: Annotated[float | None, typer.Option(help="Weight of the squared norm.")] = None,
    intercept: Annotated[bool | None, typer.Option(help="Learn a constant, too.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of graph and dealing.")] = None,
    engine: Annotated[str | None, typer.Option(help="auto, reference or fast.")] = None,
    regret: Annotated[
        bool, typer.Option("--regret", help="Compare with the best fixed model in hindsight.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Save the run into this folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run one method on one stream and one graph."""
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
    run = run_settings(read_settings(config, overrides))
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
