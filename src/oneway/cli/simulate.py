"""`oneway simulate`: one run, from flags or a TOML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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


def _setting(panel: str, metavar: str, default: str, text: str) -> Any:
    """A flag for a setting; the default is shown only, it is `Settings` that has it."""
    return typer.Option(
        metavar=metavar, help=text, show_default=default or False, rich_help_panel=panel
    )


def _switch(panel: str, name: str, text: str) -> Any:
    return typer.Option(name, metavar="", help=text, show_default=False, rich_help_panel=panel)


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
        _setting(
            "Data",
            "NAME",
            "flights",
            "flights, occupancy, susy, synthetic, or a file: .csv, .parquet, .libsvm.",
        ),
    ] = None,
    label: Annotated[
        str | None, _setting("Data", "COLUMN", "", "What to predict, in a CSV or Parquet file.")
    ] = None,
    owner: Annotated[
        str | None,
        _setting("Data", "COLUMN", "", "Every value of this column is a node and owns its rows."),
    ] = None,
    nodes: Annotated[
        int | None,
        _setting("Data", "N", "20, or as the graph file says", "Nodes to deal the rows to."),
    ] = None,
    adversarial: Annotated[
        float | None,
        _setting("Data", "SHARE", "0", "Share of the rows dealt by cluster, not at random: 0..1."),
    ] = None,
    resample: Annotated[
        int | None, _setting("Data", "N", "", "Draw this many rows with replacement.")
    ] = None,
    rounds: Annotated[int | None, _setting("Data", "N", "all", "Only the first rounds.")] = None,
    graph: Annotated[
        str | None,
        _setting(
            "Graph",
            "NAME",
            "random",
            "random, ring, complete, erdos-renyi, scale-free, advogato, epinions, or an edge list.",
        ),
    ] = None,
    max_receivers: Annotated[
        int | None,
        _setting("Graph", "N", "10", "Random graph: every node sends to 1 up to this many."),
    ] = None,
    density: Annotated[
        float | None, _setting("Graph", "P", "0.1", "Erdos-Renyi graph: probability of an edge.")
    ] = None,
    largest_component: Annotated[
        bool | None,
        _switch("Graph", "--largest-component", "Keep only the largest strong component."),
    ] = None,
    algorithm: Annotated[
        str | None, _setting("Method", "NAME", "ops", "ops, dol-symm, dol-asymm, col or local.")
    ] = None,
    learning_rate: Annotated[
        float | None, _setting("Method", "RATE", "0.1", "The length of a step, gamma.")
    ] = None,
    schedule: Annotated[
        str | None,
        _setting("Method", "NAME", "constant", "constant, or inverse-sqrt: RATE / sqrt(round)."),
    ] = None,
    cap_step: Annotated[
        bool | None,
        _switch("Method", "--cap-step", "ops: shorter steps where there is little mass."),
    ] = None,
    model: Annotated[
        str | None, _setting("Method", "NAME", "logistic", "logistic, ridge, hinge or softmax.")
    ] = None,
    l2: Annotated[
        float | None, _setting("Method", "X", "0.0001", "Weight of the squared norm in the loss.")
    ] = None,
    intercept: Annotated[
        bool | None, _switch("Method", "--intercept/--no-intercept", "Learn a constant (default).")
    ] = None,
    seed: Annotated[int | None, _setting("Run", "N", "0", "Of the graph and the dealing.")] = None,
    engine: Annotated[
        str | None, _setting("Run", "NAME", "auto", "auto, reference or fast.")
    ] = None,
    regret: Annotated[
        bool, _switch("Run", "--regret", "Compare with the best fixed model in hindsight.")
    ] = False,
    out: Annotated[
        Path | None, _setting("Run", "FOLDER", "", "Save the run there; Run.load reads it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run one method on one stream and one graph."""
    from oneway import store
    from oneway.experiments.settings import read_settings
    from oneway.experiments.simulation import run_settings

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
    run = run_settings(settings)
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
