"""The rounds of a linear model as one compiled loop nest.

All a node holds is one row: numerator, then mass, then padding to whole vectors, so that one pass
over the edges mixes both. `round_kernel` compiles a function for one shape of problem; Numba keeps
the machine code on disk, so a shape is compiled once per machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit, prange

from oneway.simulator.intrinsics import LANES, mix_row, prefetch_row

LOGISTIC, RIDGE, HINGE = range(3)
"""Which loss of the score a kernel is compiled for."""
ALONG_GRAPH, AVERAGE, ALONE = range(3)
"""How a round ends: models travel along the edges, to everybody, to nobody."""
NUM_BLOCKS = 16
"""Nodes are handled in this many blocks, whatever the number of cores, so that every sum is made in
the same order and results do not depend on the machine."""
_AHEAD = 12
"""Samples lie anywhere in the table; each is asked for this many samples before it is needed."""
_MATH = {"contract", "reassoc", "nsz"}
"""May fuse and reorder; must keep infinities and NaN, which show that a run diverges."""


def row_width(dim: int) -> int:
    """Length of a node's row: `dim` parameters and the mass, padded to whole vectors."""
    return -(-(dim + 1) // LANES) * LANES


@njit(inline="always")
def _loss_and_slope(kind: int, score: float, label: float) -> tuple[float, float]:
    """The loss of a score and its derivative, stable for any score."""
    if kind == LOGISTIC:
        margin = label * score
        tail = math.exp(-abs(margin))
        loss = math.log1p(tail) + max(-margin, 0.0)
        return loss, -label * (tail if margin > 0 else 1.0) / (1.0 + tail)
    if kind == RIDGE:
        return 0.5 * (score - label) ** 2, score - label
    margin = label * score
    return max(1.0 - margin, 0.0), (-label if margin < 1.0 else 0.0)


@cache
def round_kernel(
    num_features: int, intercept: bool, kind: int, itemsize: int, parallel: bool
) -> Callable[..., tuple[int, int]]:
    """Compile the rounds for one shape of problem.

    Args:
        num_features: Features per sample.
        intercept: Whether a constant feature 1 follows them.
        kind: LOGISTIC, RIDGE or HINGE.
        itemsize: Bytes per stored feature.
        parallel: Use all cores inside a round. Same results; pays for large networks only.

    Returns:
        A function of (held, spare, features, labels, rows, indptr, senders, shares, rates, l2,
        exchange, moves_mass, cap_step, loss_sums, correct_counts, disagreement) that runs
        `len(rows)` rounds on `held[node, row_width]`, using `spare` of the same shape, and returns
        the first (round, node) whose loss or estimate is not finite, or (-1, -1). After an odd
        number of rounds the state is in `spare`.
    """
    dim = num_features + intercept
    width = row_width(dim)
    sample_bytes = num_features * itemsize

    def rounds(
        held: Any,
        spare: Any,
        features: Any,
        labels: Any,
        rows: Any,
        indptr: Any,
        senders: Any,
        shares: Any,
        rates: Any,
        l2: float,
        exchange: int,
        moves_mass: bool,
        cap_step: bool,
        loss_sums: Any,
        correct_counts: Any,
        disagreement: Any,
    ) -> tuple[int, int]:
        num_rounds, num_nodes = rows.shape
        upcoming = rows.reshape(-1)
        losses = np.zeros(num_nodes)
        right = np.zeros(num_nodes, np.int64)
        distances = np.zeros(num_nodes)
        partial = np.zeros((NUM_BLOCKS, width))
        mean = np.zeros(width)

        for t in range(num_rounds):
            # Suffer the loss and descend: z -= step * gradient(z / omega).
            for block in prange(NUM_BLOCKS):
                for node in range(
                    block * num_nodes // NUM_BLOCKS, (block + 1) * num_nodes // NUM_BLOCKS
                ):
                    later = t * num_nodes + node + _AHEAD
                    if later < upcoming.size and upcoming[later] >= 0:
                        prefetch_row(features, upcoming[later], sample_bytes)
                        prefetch_row(labels, upcoming[later], 1)
                    row = rows[t, node]
                    if row < 0:
                        losses[node] = 0.0
                        right[node] = 0
                        continue
                    mass = held[node, dim]
                    score = held[node, dim - 1] if intercept else 0.0
                    squares = 0.0
                    for c in range(num_features):
                        score += held[node, c] * np.float64(features[row, c])
                    for c in range(dim):
                        squares += held[node, c] * held[node, c]
                    score /= mass
                    label = np.float64(labels[row])
                    loss, slope = _loss_and_slope(kind, score, label)
                    losses[node] = loss + 0.5 * l2 * squares / (mass * mass)
                    right[node] = (score >= 0.0) == (label > 0.0)
                    step = rates[t] * (min(1.0, mass) if cap_step else 1.0)
                    shrink = 1.0 - step * l2 / mass
                    move = -step * slope
                    for c in range(num_features):
                        held[node, c] = shrink * held[node, c] + move * np.float64(features[row, c])
                    if intercept:
                        held[node, dim - 1] = shrink * held[node, dim - 1] + move

            # Push and sum; the total of each block is what the network's mean needs.
            for block in prange(NUM_BLOCKS):
                for c in range(width):
                    partial[block, c] = 0.0
                for node in range(
                    block * num_nodes // NUM_BLOCKS, (block + 1) * num_nodes // NUM_BLOCKS
                ):
                    if exchange == ALONG_GRAPH:
                        mix_row(
                            spare, held, senders, shares,
                            indptr[node], indptr[node + 1], node, width,
                        )  # fmt: skip
                        if not moves_mass:
                            spare[node, dim] = 1.0
                    else:
                        for c in range(width):
                            spare[node, c] = held[node, c]
                    for c in range(width):
                        partial[block, c] += spare[node, c]
            for c in range(width):
                mean[c] = 0.0
                for block in range(NUM_BLOCKS):
                    mean[c] += partial[block, c]
            for c in range(dim):
                mean[c] /= mean[dim]
            held, spare = spare, held

            # How far the estimates are from the mean; a server hands the mean itself to everybody.
            for block in prange(NUM_BLOCKS):
                for node in range(
                    block * num_nodes // NUM_BLOCKS, (block + 1) * num_nodes // NUM_BLOCKS
                ):
                    distance = 0.0
                    if exchange == AVERAGE:
                        for c in range(dim):
                            held[node, c] = mean[c]
                    inverse = 1.0 / held[node, dim]
                    for c in range(dim):
                        difference = held[node, c] * inverse - mean[c]
                        distance += difference * difference
                    distances[node] = distance

            loss_sum, distance_sum, num_right = 0.0, 0.0, 0
            for node in range(num_nodes):
                loss_sum += losses[node]
                distance_sum += distances[node]
                num_right += right[node]
            loss_sums[t] = loss_sum
            correct_counts[t] = num_right
            disagreement[t] = distance_sum / num_nodes
            if not (math.isfinite(loss_sum) and math.isfinite(distance_sum)):
                for node in range(num_nodes):
                    if not (math.isfinite(losses[node]) and math.isfinite(distances[node])):
                        return t, node
        return -1, -1

    # Numba's disk cache tells kernels apart by their name and by what the closure holds, but not by
    # how they were compiled; without this, serial and parallel code would replace each other.
    rounds.__qualname__ += "_parallel" if parallel else "_serial"
    compiled: Callable[..., tuple[int, int]] = njit(
        rounds, cache=True, fastmath=_MATH, error_model="numpy", parallel=parallel, nogil=True
    )
    return compiled
