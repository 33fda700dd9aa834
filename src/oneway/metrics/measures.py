"""Measures of a run: losses, accuracy and regret; mass and disagreement of its nodes.

Means are over samples: with owners of unequal wealth, a node without a sample in a round does not
count in it. When every node has a sample in every round that is the paper's mean over nodes and
rounds.
"""

from __future__ import annotations

import numpy as np

from oneway.errors import ComparatorError
from oneway.records import Ints, Matrix, NetworkState, RunRecord, Vector

_BLOCK_ENTRIES = 2**16
"""Numbers of a block that a core's own cache can hold."""


def losses(record: RunRecord) -> Vector:
    """Return per round the mean loss of the nodes with a sample; NaN in a round without any."""
    return _ratios(record.loss_sums, record.sample_counts)


def loss_curve(record: RunRecord) -> Vector:
    """Return after each round the mean loss of all samples so far; NaN before the first one."""
    return _ratios(np.cumsum(record.loss_sums), np.cumsum(record.sample_counts))


def average_loss(record: RunRecord) -> float:
    """Return the paper's measure, the mean loss over nodes and rounds; NaN without any sample."""
    return mean_loss(record.loss_sums, record.sample_counts)


def mean_loss(loss_sums: Vector, sample_counts: Ints) -> float:
    """Return the mean loss of all samples of a run, given per round; NaN without any sample."""
    num_samples = int(sample_counts.sum())
    return float(loss_sums.sum()) / num_samples if num_samples else float("nan")


def base_loss(record: RunRecord) -> float | None:
    """Return the mean loss of the running base rate; None if it was not measured."""
    return _mean_of(record.base_sums, record)


def alone_loss(record: RunRecord) -> float | None:
    """Return the mean loss of nodes that learn alone; None if it was not measured."""
    return _mean_of(record.alone_sums, record)


def baseline_curve(sums: Vector | None, record: RunRecord) -> Vector | None:
    """Return after each round the mean of a baseline over all samples so far; None without it."""
    if sums is None:
        return None
    return _ratios(np.cumsum(sums), np.cumsum(record.sample_counts))


def accuracy(record: RunRecord) -> float | None:
    """Return the fraction of predictions that were right when they were made.

    None if "right" has no meaning for the model or nothing was predicted.
    """
    num_samples = int(record.sample_counts.sum())
    if record.correct_counts is None or not num_samples:
        return None
    return float(record.correct_counts.sum()) / num_samples


def accuracy_curve(record: RunRecord) -> Vector | None:
    """Return after each round the fraction of all predictions so far that were right.

    NaN before the first sample; None if "right" has no meaning for the model.
    """
    if record.correct_counts is None:
        return None
    return _ratios(np.cumsum(record.correct_counts), np.cumsum(record.sample_counts))


def regret(record: RunRecord) -> Vector:
    """Return after each round the sum of the losses so far minus the best fixed model's.

    Raises:
        ComparatorError: The record does not hold the comparator's losses.
    """
    if record.comparator_sums is None:
        raise ComparatorError(
            f"the record of {record.method} has comparator_sums=None, but regret is measured "
            "against the best fixed model; compute its losses with comparator_sums() first"
        )
    return np.cumsum(record.loss_sums - record.comparator_sums)


def total_mass(state: NetworkState) -> float:
    """Return the sum of omega over the nodes, which push-sum never changes."""
    return float(state.masses.sum())


def network_mean(state: NetworkState) -> Vector:
    """Return the model the network agrees on in the end: z-bar, total numerator / total mass."""
    mean: Vector = state.numerators.sum(axis=0) / total_mass(state)
    return mean


def disagreement(state: NetworkState, estimates: Matrix | None = None) -> float:
    """Return the mean over the nodes of ||x_i - z-bar||^2, the paper's Theorem 3 without its sums.

    Args:
        state: State of all nodes.
        estimates: Estimates of the state, if already computed.

    >>> import numpy as np
    >>> disagreement(NetworkState(numerators=np.array([[1.0], [3.0]]), masses=np.ones(2)))
    1.0
    """
    estimates = state.estimates if estimates is None else estimates
    mean = network_mean(state)
    if estimates.dtype == np.float64:
        distances = estimates - mean
        return float(np.einsum("nd,nd->", distances, distances) / len(distances))
    # Networks are large: blocks avoid a copy of all estimates.
    mean, total = mean.astype(estimates.dtype), 0.0
    height = max(1, _BLOCK_ENTRIES // len(mean))
    for first in range(0, len(estimates), height):
        away = (estimates[first : first + height] - mean).ravel()
        total += float(away @ away)
    return total / len(estimates)


def disagreement_of_holders(state: NetworkState) -> float | None:
    """Return the disagreement of the nodes with mass; None if there is none.

    A peer that has just started, or has left, has no mass and so no model.
    """
    held = state.masses > 0
    if not held.any():
        return None
    return disagreement(NetworkState(state.numerators[held], state.masses[held]))


def _mean_of(sums: Vector | None, record: RunRecord) -> float | None:
    return None if sums is None else mean_loss(sums, record.sample_counts)


def _ratios(sums: Vector | Ints, counts: Ints) -> Vector:
    """Divide, leaving NaN where the count is 0."""
    ratios: Vector = np.full(len(sums), np.nan)
    np.divide(sums, counts, out=ratios, where=counts > 0)
    return ratios
