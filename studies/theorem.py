"""The paper's theorems beside what is measured: bounds on regret and disagreement.

- R is the norm of the comparator, the best fixed model in hindsight. That is the only distance the
  proof uses: all nodes start at 0.
- G and sigma are measured along the run, at five rounds from the first to the last: a node's
  samples count as draws from the distribution they form together, so its expected gradient is the
  mean gradient over them, and sigma^2 their mean squared distance from it. The largest of all
  nodes and rounds counts. Measured only at some rounds, they are estimates.
- The certain bound needs no estimate: sigma is 0, since any fixed sequence of losses is allowed,
  and G is the largest gradient that was met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lib import Case, Report, Scope, run, table
from oneway.errors import ConfigError
from oneway.methods import Gradients, OnlinePushSum, State
from oneway.metrics import best_fixed_model
from oneway.models import LogisticRegression, Model
from oneway.records import Batch, Matrix
from oneway.simulator import simulate
from oneway.simulator.grid import require_complete
from oneway.streams import Stream
from oneway.topology import TrustGraph
from theory import (
    GraphConstants,
    Problem,
    disagreement_bound,
    graph_constants,
    printed_bound,
    printed_learning_rate,
    tight_bound,
)

NUM_CHECKPOINTS = 5
SAMPLES_PER_NODE = 1000
"""At most this many of a node's samples, evenly spread, enter its expected gradient."""


@dataclass
class Notes:
    """Gradients and estimates met by a run: all the proofs talk about."""

    estimates: list[Matrix] = field(default_factory=list)
    largest_gradient: float = 0.0
    squared_gradients: float = 0.0


@dataclass(frozen=True)
class WatchedPushSum(OnlinePushSum):
    """Push-sum as published, noting gradients in all rounds and estimates at checkpoints."""

    checkpoints: frozenset[int] = frozenset()
    notes: Notes = field(default_factory=Notes)

    def local_step(self, state: State, gradients: Gradients, rng: np.random.Generator) -> State:
        """Take notes, then descend."""
        squares = np.einsum("nd,nd->n", gradients.values, gradients.values)
        self.notes.squared_gradients += float(squares.sum())
        self.notes.largest_gradient = max(
            self.notes.largest_gradient, float(np.sqrt(squares.max()))
        )
        if gradients.index in self.checkpoints:
            self.notes.estimates.append(self.estimate(state))
        return super().local_step(state, gradients, rng)


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


def evaluate(
    constants: GraphConstants, problem: Problem, learning_rate: float | None = None
) -> list[StepSize]:
    """Step sizes and bounds for a problem whose constants are given."""
    rates = _rates(constants, problem, learning_rate)
    return [_step_size(name, rate, constants, problem) for name, rate in rates.items()]


def measure(
    constants: GraphConstants,
    model: Model,
    stream: Stream,
    graph: TrustGraph,
    learning_rate: float | None = None,
) -> list[StepSize]:
    """Run push-sum at each step size, and measure its regret beside the bounds.

    The step sizes follow from what is known beforehand (the gradients at 0 and at the comparator);
    the bounds from what the run at that step size met.

    Raises:
        ConfigError: If the best fixed model is 0, where every node starts.
        OnewayError: If a run diverges.
    """
    comparator = best_fixed_model(model, stream.features, stream.labels, stream.rows)
    radius = float(np.linalg.norm(comparator))
    if radius == 0:
        raise ConfigError(
            "the best fixed model is 0, where every node starts, so there is nothing to learn and "
            "no bound to evaluate; use other data"
        )
    foreseen = [np.tile(point, (stream.num_nodes, 1)) for point in (0 * comparator, comparator)]
    expected = _problem(model, stream, foreseen, radius)
    return [
        _measured_step(name, rate, constants, model, stream, graph, radius)
        for name, rate in _rates(constants, expected, learning_rate).items()
    ]


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
    name: str,
    rate: float,
    constants: GraphConstants,
    model: Model,
    stream: Stream,
    graph: TrustGraph,
    radius: float,
) -> StepSize:
    """Run at one rate, and evaluate the bounds with what the run met."""
    rounds = stream.num_rounds
    checkpoints = np.linspace(0, rounds - 1, NUM_CHECKPOINTS).astype(int).tolist()
    watched = WatchedPushSum(rate, checkpoints=frozenset(checkpoints))
    done = require_complete(
        simulate(watched, model, stream, graph, engine="reference", progress=False)
    )
    notes = watched.notes
    problem = _problem(model, stream, notes.estimates, radius)
    adversarial = replace(problem, gradient_bound=notes.largest_gradient, noise=0.0)
    return replace(
        _step_size(name, rate, constants, problem),
        measured=Measured(
            regret=float(done.regret()[-1]),
            certain_bound=tight_bound(constants, adversarial).at(rate),
            disagreement=constants.num_nodes * float(done.disagreement.mean()),
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
        if not len(rows):
            continue
        rows = rows[:: -(-len(rows) // SAMPLES_PER_NODE)]
        batch = Batch(
            stream.features[rows].astype(np.float64), stream.labels[rows].astype(np.float64)
        )
        for stack in estimates:
            gradients = model.gradients(np.tile(stack[node], (len(rows), 1)), batch)
            expected = gradients.mean(axis=0)
            largest = max(largest, float(np.linalg.norm(expected)))
            noise = max(noise, float(((gradients - expected) ** 2).sum(axis=1).mean()))
    return Problem(stream.num_rounds, largest, float(np.sqrt(noise)), radius)


def theorem(scope: Scope) -> Report:
    """Evaluate the paper's theorems on its main graphs, beside the measured regret."""
    cases = {
        "Room Occupancy": Case("occupancy", 20, 1.0, 10, 64 if scope.quick else None),
        "SUSY": Case("susy", 128, 1.0, 32, 64 if scope.quick else 1000),
    }
    parts = []
    for title, case in cases.items():
        for seed in scope.seeds:
            stream, graph = case.stream(seed), case.graph(seed)
            constants = graph_constants(graph.mixing())
            decay = constants.ergodicity
            rows = []
            for step in measure(constants, LogisticRegression(), stream, graph, 0.1):
                assert step.measured is not None
                numbers = (
                    step.learning_rate,
                    step.printed_bound,
                    step.tight_bound,
                    step.measured.certain_bound,
                    step.measured.regret,
                    step.measured.disagreement_bound,
                    step.measured.disagreement,
                    step.problem.gradient_bound,
                    step.problem.noise,
                )
                rows.append([step.name, *(f"{number:.4g}" for number in numbers)])
            parts.append(
                table(
                    [
                        f"{title}, seed {seed}: step size",
                        *("gamma", "printed bound", "tight bound", "certain bound", "regret"),
                        *("disagreement bound", "disagreement", "G", "sigma"),
                    ],
                    rows,
                    f"{case.num_nodes} nodes, at most {case.max_receivers} receivers, "
                    f"{stream.num_rounds:,} rounds. C = {decay.factor:.4g}, q = {decay.rate:.6g} "
                    f"({'proven' if decay.proven else 'an estimate'}), delta_min = "
                    f"{constants.mass_share:.4g}, C_1 = {constants.gradient_constant:.4g}, C_2 = "
                    f"{constants.noise_constant:.4g}; with the paper's n^-n, C_1 would be about "
                    f"1e{constants.worst_case_digits:.0f}.",
                )
            )
    return Report("The theorems, with numbers", [], [__doc__ or "", *parts])


if __name__ == "__main__":
    run(theorem, seeds=1)
