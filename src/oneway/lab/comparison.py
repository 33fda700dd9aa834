"""What the simulator makes of the same graph, samples and order; and what learning alone would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from oneway.lab.methods import learned_from, run_method
from oneway.lab.problem import Problem
from oneway.peer.store.snapshot import Journal
from oneway.simulator import Run
from oneway.streams.stream import Stream


@dataclass(frozen=True)
class Comparison:
    """Average loss over all samples, each suffered before it was learned from."""

    together: float
    simulated: float
    alone: float


def compare(
    problem: Problem, journals: Sequence[Journal], runs: Mapping[str, Run] | None = None
) -> Comparison | None:
    """Compare what peers suffered with the simulator, on the very samples they learned from.

    Args:
        problem: What the peers were made for.
        journals: What each has learned from; of peers that joined later, nothing counts.
        runs: Simulations on these samples, by method, if there are some already.

    Returns:
        None if nothing was learned from.

    Raises:
        DivergenceError: If the simulation leaves the finite numbers.
    """
    stream = samples_of(problem, journals)
    if stream is None:
        return None
    known = runs or {}
    together, alone = (
        known[name] if name in known else run_method(name, problem, stream)
        for name in ("ops", "local")
    )
    own = journals[: problem.graph.num_nodes]
    return Comparison(
        together=sum(journal.loss_sum for journal in own) / stream.num_samples,
        simulated=together.average_loss,
        alone=alone.average_loss,
    )


def samples_of(problem: Problem, journals: Sequence[Journal]) -> Stream | None:
    """The samples that the peers of a problem learned from, in order; None if there are none."""
    counts = np.array([journal.samples for journal in journals[: problem.graph.num_nodes]])
    return learned_from(problem.stream, counts) if counts.any() else None
