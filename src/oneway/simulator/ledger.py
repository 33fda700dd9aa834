"""The numbers a run writes down, one entry a round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DivergenceError
from oneway.methods import Algorithm, OnlinePushSum
from oneway.records import Vector


@dataclass(frozen=True)
class Ledger:
    """Arrays that an engine fills as it goes."""

    loss_sums: Vector
    correct_counts: NDArray[np.int64]
    disagreement: Vector

    @classmethod
    def blank(cls, num_rounds: int) -> Ledger:
        """Room for this many rounds."""
        return cls(np.zeros(num_rounds), np.zeros(num_rounds, np.int64), np.zeros(num_rounds))


def divergence(
    algorithm: Algorithm, round_index: int, node: int, masses: Vector
) -> DivergenceError:
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
    rate = algorithm.rate(round_index)
    cappable = isinstance(algorithm, OnlinePushSum) and not algorithm.cap_step
    return DivergenceError(
        f"the run diverged in round {round_index} at node {node} (the smallest mass in the network "
        f"is {smallest:.3g}); use a smaller learning rate than {rate:.3g}, for example a "
        "tenth of it"
        + (
            ", or OnlinePushSum(cap_step=True), which shortens the steps of nodes with little mass"
            if cappable
            else ""
        ),
        round_index=round_index,
        node=node,
        smallest_mass=smallest,
    )
