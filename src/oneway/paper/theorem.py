"""Theorem evaluation: the bounds for a graph and, with data, the measured regret beside them.

Where the numbers of a measured problem come from:

- R is the norm of the comparator, the best fixed model in hindsight. That is the only distance the
  proof uses: all nodes start at 0.
- G and sigma are measured along the run, at five rounds from the first to the last: a node's
  samples count as draws from the distribution they form together, so its expected gradient is the
  mean gradient over them, and sigma^2 their mean squared distance from it. The largest of all
  nodes and rounds counts. Seen only at some rounds, they are estimates.
- The certain bound needs no estimate: sigma is 0, since any fixed sequence of losses is allowed,
  and G is the largest gradient that was met.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from oneway.errors import ConfigError
from oneway.metrics import best_fixed_model
from oneway.models import Model
from oneway.paper.methods import WatchedPushSum
from oneway.records import Batch, Matrix
from oneway.simulator import simulate
from oneway.streams import Stream
from oneway.task.assembly import DEFAULT_NODES, Parts, assemble, chosen_graph
from oneway.task.settings import Settings, read_settings
from oneway.theory import (
    GraphConstants,
    Problem,
    disagreement_bound,
    graph_constants,
    printed_bound,
    printed_learning_rate,
    tight_bound,
)

DEFAULT_ROUNDS = 1000
LOSSES = ("gradient_bound", "noise", "radius")
"""What is said about the losses without data, and measured with it."""
ABOUT_DATA = ("label", "owner", "adversarial", "model", "l2")
"""What says nothing without data."""
NUM_CHECKPOINTS = 5
SAMPLES_PER_NODE = 1000
"""At most so many of a node's samples, evenly spread, enter its expected gradient."""


@dataclass(frozen=True)
class Measured:
    """What a run at one learning rate did.

    Attributes:
        regret: Against the best fixed model in hindsight, over all nodes and rounds.
        certain_bound: The tight bound on it if no sample counts as random; no estimate enters.
        disagreement: Mean over the rounds of the summed squared distances from the network's mean.
        disagreement_bound: Lemma 8 with the gradients of the run.
    """

    regret: float
    certain_bound: float
    disagreement: float
    disagreement_bound: float


@dataclass(frozen=True)
class StepSize:
    """A learning rate, and what the theorems promise for it.

    Attributes:
        name: Where the rate comes from: the paper, the printed or tight bound it is best for, or
            the caller.
        learning_rate: gamma.
        problem: The losses, as given or as met by the run at this rate.
        printed_bound: On the regret, with the constants as printed.
        tight_bound: On the regret, without the factors the proof gives away.
        measured: What the run did; None without data.
    """

    name: str
    learning_rate: float
    problem: Problem
    printed_bound: float
    tight_bound: float
    measured: Measured | None = None


@dataclass(frozen=True)
class Evaluation:
    """The theorems on one graph."""

    constants: GraphConstants
    steps: list[StepSize]

    @property
    def is_measured(self) -> bool:
        """Whether there are runs beside the bounds."""
        return self.steps[0].measured is not None

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        constants = self.constants
        return {
            "num_nodes": constants.num_nodes,
            "ergodicity": asdict(constants.ergodicity),
            "smallest_mass": constants.smallest_mass,
            "delta_min": constants.mass_share,
            "C_1": constants.gradient_constant,
            "C_2": constants.noise_constant,
            "step_sizes": [asdict(step) for step in self.steps],
        }

    def as_facts(self) -> dict[str, str]:
        """The graph and the losses, for people."""
        constants, problem = self.constants, self.steps[0].problem
        decay = constants.ergodicity
        certainty = (
            "for all k" if decay.proven else f"an estimate, from k up to {decay.num_powers:,}"
        )
        facts = {
            "nodes": f"{constants.num_nodes:,}",
            "rounds": f"{problem.num_rounds:,}",
            "C, q": f"{decay.factor:.4g}, {decay.rate:.6g}: after k rounds of mixing no share is "
            f"off by more than C q^k, {certainty}",
            "delta_min": f"{constants.mass_share:.4g} of all mass; no node ever holds less than "
            f"{constants.smallest_mass:.4g}, where 1 is an equal share",
            "C_1, C_2": f"{constants.gradient_constant:.4g}, {constants.noise_constant:.4g}; with "
            f"the paper's n^-n, C_1 would be about 1e{constants.worst_case_digits:.0f}",
        }
        if not self.is_measured:
            return facts | {
                "G, sigma": f"{problem.gradient_bound:.4g}, {problem.noise:.4g}, as given",
                "R": f"{problem.radius:.4g}, as given",
            }
        gradients = _range(step.problem.gradient_bound for step in self.steps)
        noises = _range(step.problem.noise for step in self.steps)
        return facts | {
            "G": f"{gradients}, the largest expected gradient of a node, at five rounds of each "
            "run",
            "sigma": f"{noises}, the largest noise of a node's gradients, at the same rounds",
            "R": f"{problem.radius:.4g}, the norm of the best fixed model in hindsight, from 0",
            "certain": "the tight bound if no sample counts as random: sigma = 0, and G is the "
            "largest gradient met",
        }


def theorems(given: Mapping[str, Any]) -> Evaluation:
    """Evaluate the theorems for the flags of `oneway theory`; with data, measure them too.

    Args:
        given: Settings, and possibly `learning_rate` and the numbers of `LOSSES`.

    Raises:
        OnewayError: See `evaluate` and `measure`; or a flag does not fit the presence of data.
        KeyboardInterrupt: If a run was interrupted.
    """
    with_data = "data" in given
    for name in LOSSES if with_data else ABOUT_DATA:
        if name in given:
            reason = "is measured with --data" if with_data else "says nothing without --data"
            flag = f"--{name.replace('_', '-')} {given[name]}"
            raise ConfigError(f"{flag} {reason}; leave one of them out")
    rate = given.get("learning_rate")
    if isinstance(rate, str):
        raise ConfigError(
            f"--learning-rate is {rate}; the theorems are about numbers: give one, or leave it out"
        )
    apart = ("learning_rate", *LOSSES)
    settings = read_settings(None, {k: v for k, v in given.items() if k not in apart})
    if with_data:
        return measure(settings, rate)
    losses = {name: given.get(name, 1.0) for name in LOSSES}
    return evaluate(settings, Problem(settings.rounds or DEFAULT_ROUNDS, **losses), rate)


def evaluate(settings: Settings, problem: Problem, learning_rate: float | None) -> Evaluation:
    """Evaluate constants, step sizes and bounds for a problem whose constants are given.

    Args:
        settings: Only what concerns the graph counts.
        problem: The constants of the losses.
        learning_rate: A further learning rate to evaluate.

    Raises:
        OnewayError: If a setting does not fit, or the graph has no constants.
    """
    graph = chosen_graph(settings, settings.nodes or DEFAULT_NODES)
    constants = graph_constants(graph.mixing())
    rates = _rates(constants, problem, learning_rate)
    return Evaluation(
        constants, [_step_size(name, rate, constants, problem) for name, rate in rates.items()]
    )


def measure(settings: Settings, learning_rate: float | None) -> Evaluation:
    """Evaluate the theorems, run push-sum at each step size, and measure its regret.

    The step sizes follow from what is known beforehand (the gradients at 0 and at the comparator);
    the bounds from what the run at that step size met.

    Args:
        settings: As for a simulation with ops.
        learning_rate: A further learning rate to run.

    Raises:
        OnewayError: If a setting does not fit, the graph has no constants, or a run diverges.
        KeyboardInterrupt: If a run was interrupted.
    """
    # With a number for the rate, whatever it is, models start from zeros, as the paper's do.
    parts = assemble(replace(settings, learning_rate=1.0))
    model, stream = parts.model, parts.stream
    constants = graph_constants(parts.graph.mixing())
    comparator = best_fixed_model(model, stream.features, stream.labels, stream.rows)
    radius = float(np.linalg.norm(comparator))
    if radius == 0:
        raise ConfigError(
            "the best fixed model is 0, where every node starts, so there is nothing to learn and "
            "no bound to evaluate; use other data"
        )
    foreseen = [np.tile(point, (stream.num_nodes, 1)) for point in (0 * comparator, comparator)]
    expected = _problem(model, stream, foreseen, radius)
    rates = _rates(constants, expected, learning_rate)
    return Evaluation(
        constants,
        [_measured_step(name, rate, constants, parts, radius) for name, rate in rates.items()],
    )


def _rates(constants: GraphConstants, problem: Problem, given: float | None) -> dict[str, float]:
    rates = {
        "as printed": printed_learning_rate(constants, problem),
        "best, printed": printed_bound(constants, problem).best_learning_rate,
        "best, tight": tight_bound(constants, problem).best_learning_rate,
    }
    return rates if given is None else {**rates, "given": given}


def _step_size(name: str, rate: float, constants: GraphConstants, problem: Problem) -> StepSize:
    return StepSize(
        name,
        rate,
        problem,
        printed_bound=printed_bound(constants, problem).at(rate),
        tight_bound=tight_bound(constants, problem).at(rate),
    )


def _measured_step(
    name: str, rate: float, constants: GraphConstants, parts: Parts, radius: float
) -> StepSize:
    """Run at one rate, and evaluate the bounds with what the run met."""
    rounds = parts.stream.num_rounds
    checkpoints = np.linspace(0, rounds - 1, NUM_CHECKPOINTS).astype(int).tolist()
    watched = WatchedPushSum(rate, checkpoints=frozenset(checkpoints))
    run = simulate(watched, parts.model, parts.stream, parts.graph, engine="reference")
    if not run.complete:
        raise KeyboardInterrupt
    notes = watched.notes
    problem = _problem(parts.model, parts.stream, notes.estimates, radius)
    adversarial = replace(problem, gradient_bound=notes.largest_gradient, noise=0.0)
    nodes = constants.num_nodes
    return replace(
        _step_size(name, rate, constants, problem),
        measured=Measured(
            regret=float(run.regret()[-1]),
            certain_bound=tight_bound(constants, adversarial).at(rate),
            disagreement=nodes * float(run.disagreement.mean()),
            disagreement_bound=disagreement_bound(
                constants, rate, notes.squared_gradients / rounds
            ),
        ),
    )


def _problem(model: Model, stream: Stream, estimates: Sequence[Matrix], radius: float) -> Problem:
    """Measure G and sigma where the nodes are; see the top of this file."""
    largest, noise = 0.0, 0.0
    for node in range(stream.num_nodes):
        rows = stream.rows[:, node]
        rows = rows[rows >= 0]
        rows = rows[:: -(-len(rows) // SAMPLES_PER_NODE)] if len(rows) else rows
        if not len(rows):
            continue
        batch = Batch(
            stream.features[rows].astype(np.float64), stream.labels[rows].astype(np.float64)
        )
        for stack in estimates:
            gradients = model.gradients(np.tile(stack[node], (len(rows), 1)), batch)
            expected = gradients.mean(axis=0)
            largest = max(largest, float(np.linalg.norm(expected)))
            noise = max(noise, float(((gradients - expected) ** 2).sum(axis=1).mean()))
    return Problem(stream.num_rounds, largest, float(np.sqrt(noise)), radius)


def _range(values: Iterable[float]) -> str:
    shown = [f"{value:.4g}" for value in sorted(values)]
    return shown[0] if shown[0] == shown[-1] else f"{shown[0]} to {shown[-1]}"
