"""`oneway theory`: constants, step sizes and bounds of the paper's theorems for a graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from oneway.cli import flags
from oneway.cli.flags import setting
from oneway.cli.output import AsJson, note, print_facts, print_json, print_table

if TYPE_CHECKING:
    from oneway.paper.theorem import Evaluation

_EXAMPLE = "Example: oneway theory --nodes 16 --rounds 1000 --data synthetic"
_DEFAULT_ROUNDS = 1000


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("theory", epilog=_EXAMPLE)(theory)


def theory(
    graph: flags.Graph = None,
    nodes: flags.Nodes = None,
    max_receivers: flags.MaxReceivers = None,
    density: flags.Density = None,
    largest_component: flags.LargestComponent = None,
    seed: flags.Seed = None,
    rounds: Annotated[
        int | None,
        setting("Losses", "N", f"{_DEFAULT_ROUNDS}; with data, all", "T, the number of rounds."),
    ] = None,
    gradient_bound: Annotated[
        float | None, setting("Losses", "G", "1", "Largest norm of an expected gradient.")
    ] = None,
    noise: Annotated[
        float | None,
        setting("Losses", "SIGMA", "1", "Root mean square distance of a gradient from that."),
    ] = None,
    radius: Annotated[
        float | None, setting("Losses", "R", "1", "Distance of the best model from the start.")
    ] = None,
    learning_rate: Annotated[
        float | None, setting("Losses", "RATE", "", "Evaluate this step size as well.")
    ] = None,
    data: Annotated[
        str | None,
        setting(
            "Data",
            "NAME",
            "",
            "Measure G, sigma, R and the regret on flights, occupancy, susy, synthetic or a file.",
        ),
    ] = None,
    label: flags.Label = None,
    owner: flags.Owner = None,
    adversarial: flags.Adversarial = None,
    model: flags.Model = None,
    l2: flags.L2 = None,
    as_json: AsJson = False,
) -> None:
    """What the paper's theorems promise for a graph and, with --data, what is measured.

    The table has a row for each step size: as printed in the paper; best for the bound as printed;
    best for the tight bound, which keeps the factors that the printed proof gives away.

    Without data, G, sigma and R are what you say. With data they are measured: R is the norm of the
    best fixed model in hindsight, G and sigma are the largest expected gradient and noise of any
    node at five rounds of the run, where a node's samples count as draws from one distribution.
    """
    from oneway.errors import ConfigError
    from oneway.paper import theorem
    from oneway.task.settings import read_settings
    from oneway.theory import Problem

    constants = {"gradient_bound": gradient_bound, "noise": noise, "radius": radius}
    about_data = {
        "data": data,
        "label": label,
        "owner": owner,
        "adversarial": adversarial,
        "model": model,
        "l2": l2,
    }
    given: dict[str, Any] = {
        "graph": graph,
        "nodes": nodes,
        "max_receivers": max_receivers,
        "density": density,
        "largest_component": largest_component,
        "seed": seed,
        "rounds": rounds,
        **about_data,
    }
    unfit = about_data if data is None else constants
    for name, value in unfit.items():
        if value is not None:
            flag = f"--{name.replace('_', '-')} {value}"
            reason = "says nothing without --data" if data is None else "is measured with --data"
            raise ConfigError(f"{flag} {reason}; leave one of them out")
    settings = read_settings(
        None, {name: value for name, value in given.items() if value is not None}
    )
    if data is None:
        losses = {name: 1.0 if value is None else value for name, value in constants.items()}
        problem = Problem(rounds or _DEFAULT_ROUNDS, **losses)
        result = theorem.evaluate(settings, problem, learning_rate)
    else:
        try:
            result = theorem.measure(settings, learning_rate)
        except KeyboardInterrupt:
            note("Interrupted: nothing was measured.")
            raise typer.Exit(130) from None
    if as_json:
        print_json(_as_dict(result))
        return
    print_facts("The paper's theorems on this graph", _facts(result))
    print_table(_table(result))
    note("Where these formulas differ from the printed ones, and why: docs/errata.md")


def _facts(result: Evaluation) -> dict[str, str]:
    constants, problem = result.constants, result.steps[0].problem
    mixing = constants.ergodicity
    certainty = "for all k" if mixing.proven else f"an estimate, from k up to {mixing.num_powers:,}"
    facts = {
        "nodes": f"{constants.num_nodes:,}",
        "rounds": f"{problem.num_rounds:,}",
        "C, q": f"{mixing.factor:.4g}, {mixing.rate:.6g}: after k rounds of mixing no share is off "
        f"by more than C q^k, {certainty}",
        "delta_min": f"{constants.mass_share:.4g} of all mass; no node ever holds less than "
        f"{constants.smallest_mass:.4g}, where 1 is an equal share",
        "C_1, C_2": f"{constants.gradient_constant:.4g}, {constants.noise_constant:.4g}; with the "
        f"paper's n^-n, C_1 would be about 1e{constants.worst_case_digits:.0f}",
    }
    if result.steps[0].measured is None:
        return facts | {
            "G, sigma": f"{problem.gradient_bound:.4g}, {problem.noise:.4g}, as given",
            "R": f"{problem.radius:.4g}, as given",
        }
    gradients = _range(step.problem.gradient_bound for step in result.steps)
    noises = _range(step.problem.noise for step in result.steps)
    return facts | {
        "G": f"{gradients}, the largest expected gradient of a node, at five rounds of each run",
        "sigma": f"{noises}, the largest noise of a node's gradients, at the same rounds",
        "R": f"{problem.radius:.4g}, the norm of the best fixed model in hindsight, from 0",
        "certain": "the tight bound if no sample counts as random: sigma = 0, and G is the largest "
        "gradient met",
    }


def _range(values: Iterable[float]) -> str:
    shown = [f"{value:.4g}" for value in sorted(values)]
    return shown[0] if shown[0] == shown[-1] else f"{shown[0]} to {shown[-1]}"


def _table(result: Evaluation) -> Table:
    with_data = result.steps[0].measured is not None
    table = Table(
        title="Bounds on the regret" + (", and what it was" if with_data else ""),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("step size", no_wrap=True)
    for heading in ("gamma", "printed", "tight", *(("certain", "measured") if with_data else ())):
        table.add_column(heading, justify="right", no_wrap=True)
    for step in result.steps:
        values = [step.learning_rate, step.printed_bound, step.tight_bound]
        if step.measured is not None:
            values += [step.measured.certain_bound, step.measured.regret]
        table.add_row(step.name, *(f"{value:.4g}" for value in values))
    return table


def _as_dict(result: Evaluation) -> dict[str, Any]:
    constants = result.constants
    return {
        "num_nodes": constants.num_nodes,
        "ergodicity": asdict(constants.ergodicity),
        "smallest_mass": constants.smallest_mass,
        "delta_min": constants.mass_share,
        "C_1": constants.gradient_constant,
        "C_2": constants.noise_constant,
        "step_sizes": [asdict(step) for step in result.steps],
    }
