"""The measurements of a run, one entry a round, and the error of a run that diverged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DivergenceError
from oneway.methods import Method
from oneway.methods.step_rules import Paper
from oneway.records import Vector
from oneway.simulator.personal_pass import PersonalPass, Seed
from oneway.simulator.tallying import Tallying

__all__ = ["Measurements", "Seed", "divergence", "rate_remedy", "without_gradients"]


@dataclass(frozen=True, eq=False)
class Measurements:
    """Arrays that an engine fills, and who else is told what shared models say.

    Attributes:
        tallying: Counts what shared models say; None if nothing is counted, or personal predictions
            are.
        personal: Predicts personally; None without.
        skipped_counts: Per round, the number of samples skipped for want of a finite gradient.
        lossless_counts: Per round, the number of predictions without a finite loss.
    """

    loss_sums: Vector
    correct_counts: NDArray[np.int64]
    disagreement: Vector
    skipped_counts: NDArray[np.int64]
    lossless_counts: NDArray[np.int64]
    tallying: Tallying | None = None
    personal: PersonalPass | None = None

    @classmethod
    def blank(
        cls,
        num_rounds: int,
        tallying: Tallying | None = None,
        personal: PersonalPass | None = None,
    ) -> Measurements:
        """Room for this many rounds."""
        correct, skipped, lossless = np.zeros((3, num_rounds), np.int64)
        losses, disagreement = np.zeros((2, num_rounds))
        return cls(losses, correct, disagreement, skipped, lossless, tallying, personal)


def divergence(method: Method, round_index: int, node: int, masses: Vector) -> DivergenceError:
    """The error of a run whose numbers are no longer finite."""
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
    remedy = rate_remedy(method, round_index)
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


def rate_remedy(method: Method, round_index: int) -> str:
    """What to change about the learning rate of a run that diverged."""
    if method.auto is not None:  # nodes choose their rates: there is none to make smaller
        return "scale features and labels to about unit size, or give a fixed rate such as 0.01"
    return f"use a smaller learning rate than {method.rate(round_index):.3g}, say a tenth of it"


def without_gradients(
    method: Method, count: int, round_index: int, node: int, masses: Vector
) -> DivergenceError:
    """The error of a run in which one node had no finite gradient `count` times in a row."""
    return DivergenceError(
        f"node {node} had no finite gradient for {count} samples in a row, the last in round "
        f"{round_index}; fix the loss where it divides by 0 or takes a logarithm of it, or "
        f"{rate_remedy(method, round_index)}",
        round_index=round_index,
        node=node,
        smallest_mass=float(masses.min()),
    )
