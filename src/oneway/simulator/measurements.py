"""The numbers a run writes down, one entry a round, and the error of a run that diverged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DivergenceError
from oneway.methods import Method
from oneway.methods.step_rules import Paper
from oneway.records import Vector
from oneway.simulator.snapshots import Snapshot, copy_into
from oneway.simulator.tallying import Tallying

Seed: TypeAlias = int | Sequence[int]
"""Of all that is random in a run."""


_PER_ROUND = (
    "loss_sums",
    "correct_counts",
    "disagreement",
    "skipped_counts",
    "lossless_counts",
)


@dataclass(frozen=True)
class Measurements:
    """Arrays that an engine fills as it goes, and a tally of predictions if one is wanted.

    Attributes:
        skipped_counts: Per round, how many samples were not learned from as they have no finite
            gradient.
        lossless_counts: Per round, how many predictions have no finite loss.
    """

    loss_sums: Vector
    correct_counts: NDArray[np.int64]
    disagreement: Vector
    skipped_counts: NDArray[np.int64]
    lossless_counts: NDArray[np.int64]
    tallying: Tallying | None = None

    @classmethod
    def blank(cls, num_rounds: int, tallying: Tallying | None = None) -> Measurements:
        """Room for this many rounds."""
        correct, skipped, lossless = np.zeros((3, num_rounds), np.int64)
        losses, disagreement = np.zeros((2, num_rounds))
        return cls(losses, correct, disagreement, skipped, lossless, tallying)

    def snapshot(self, done: int) -> Snapshot:
        """What was written down in so many rounds."""
        arrays = {name: getattr(self, name)[:done] for name in _PER_ROUND}
        return arrays | ({} if self.tallying is None else self.tallying.snapshot())

    def restore(self, snapshot: Snapshot, done: int) -> None:
        """Go on from what was written down in so many rounds."""
        copy_into({name: getattr(self, name)[:done] for name in _PER_ROUND}, snapshot)
        if self.tallying is not None:
            self.tallying.restore(snapshot)


def divergence(method: Method, round_index: int, node: int, masses: Vector) -> DivergenceError:
    """The sentence for a run that left the finite numbers."""
    smallest = float(masses.min())
    if smallest == 0:
        empty = int(masses.argmin())
        return DivergenceError(
            f"node {empty} has no mass left after round {round_index}: it keeps nothing and nobody "
            "sends to it; let it keep a share, or give it a sender in every round",
            round_index=round_index,
            node=empty,
            smallest_mass=0.0,
        )
    remedy = f"use a smaller learning rate than {method.rate(round_index):.3g}, say a tenth of it"
    by_mass = method.has_mass and type(method).step_masses is Method.step_masses
    if by_mass and isinstance(method.rule, Paper):
        remedy += ", or the step 'capped', which shortens the steps of nodes with little mass"
    return DivergenceError(
        f"the run diverged in round {round_index} at node {node} (the smallest mass in the network "
        f"is {smallest:.3g}); {remedy}",
        round_index=round_index,
        node=node,
        smallest_mass=smallest,
    )


def without_gradients(count: int, round_index: int, node: int, masses: Vector) -> DivergenceError:
    """The sentence for a run in which so many samples of a node in a row taught nothing."""
    return DivergenceError(
        f"node {node} had no finite gradient for {count} samples in a row, the last in round "
        f"{round_index}; mend the loss where it divides by 0 or takes a logarithm of it, or use a "
        "smaller learning rate",
        round_index=round_index,
        node=node,
        smallest_mass=float(masses.min()),
    )
