"""The rounds of a linear model as one compiled loop nest.

All a node holds is one row: numerator, then mass, then padding to whole vectors, so that one pass
over the edges mixes both; where parcels travel, parcel and count are a second row, made alike.
`round_kernel` compiles a function for one shape of problem; Numba keeps the machine code on disk.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit, prange

from oneway.records import Matrix
from oneway.simulator import intrinsics, softplus
from oneway.simulator.intrinsics import (
    LANES,
    add_row,
    dot_rows,
    mix_row,
    prefetch_row,
    squared_distance,
)
from oneway.simulator.softplus import soften

LOGISTIC, RIDGE, HINGE = range(3)
"""Which loss of the score a kernel is compiled for."""
ALONG_GRAPH, AVERAGE, ALONE = range(3)
"""How a round ends: models travel along the edges, to everybody, to nobody."""
NUM_BLOCKS = 16
"""Nodes are handled in this many blocks, whatever the number of cores, so that every sum is made in
the same order and results do not depend on the number of cores."""
_AHEAD = 24
"""Samples lie anywhere in the table; each is asked for this many samples before it is needed."""
_NODES_AHEAD = 2
"""So do senders in a large network; their rows are asked for this many receivers before."""
_CACHE_LINE = 64


def row_width(dim: int) -> int:
    """Length of a node's row: `dim` parameters and the mass, padded to whole vectors."""
    return -(-(dim + 1) // LANES) * LANES


def empty_rows(num_nodes: int, dim: int) -> Matrix:
    """Rows of zeros that begin at a cache line, as none of NumPy's own of this size does."""
    width = row_width(dim)
    spare = np.zeros(num_nodes * width + _CACHE_LINE // 8)
    begin = -spare.ctypes.data % _CACHE_LINE // 8
    rows: Matrix = spare[begin : begin + num_nodes * width].reshape(num_nodes, width)
    return rows


@njit(inline="always")
def block_start(block: int, num_nodes: int) -> int:
    """The first node of a block; blocks are made of whole vectors of nodes."""
    num_groups = (num_nodes + LANES - 1) // LANES
    return min(LANES * (block * num_groups // NUM_BLOCKS), num_nodes)


@njit(inline="always")
def plain_loss(kind: int, score: float, label: float) -> tuple[float, float]:
    """The loss of a score and its derivative, for the losses that need no exponential."""
    if kind == RIDGE:
        return 0.5 * (score - label) ** 2, score - label
    margin = label * score
    return max(1.0 - margin, 0.0), (-label if margin < 1.0 else 0.0)


@njit(inline="always")
def deposited_fraction(mass: float, count: float, amount: float, by_count: bool) -> float:
    """As `oneway.methods.Relay.fractions`: how much of a parcel enters the numerator."""
    bearable = amount * max(mass, 0.0)
    if not by_count:
        return min(1.0, bearable)
    root = math.sqrt(max(count, 0.0))
    return bearable / root if root > bearable else 1.0


_MODULES = (intrinsics, softplus)


@cache
def ingredients() -> str:
    """A name for the source code that kernels are compiled from besides this file."""
    sources = (Path(inspect.getfile(module)).read_bytes() for module in _MODULES)
    return hashlib.sha256(b"".join(sources)).hexdigest()[:12]


@cache
def round_kernel(
    num_features: int,
    intercept: bool,
    kind: int,
    itemsize: int,
    parallel: bool,
    limited: bool,
    batched: bool = False,
    relayed: bool = False,
    auto: bool = False,
    late: bool = False,
) -> Callable[..., tuple[int, int]]:
    """Compile the rounds for one shape of problem.

    Args:
        num_features: Features per sample.
        intercept: Whether a constant feature 1 follows them.
        kind: LOGISTIC, RIDGE or HINGE.
        itemsize: Bytes per stored feature.
        parallel: Use all cores inside a round. Same results; pays for large networks only.
        limited: Whether the step is limited by the curvature of the sample.
        batched: Whether gradients are clipped and summed, and a step is made of a full batch.
        relayed: Whether steps go into a parcel that is deposited bit by bit, as in `Relay`.
        auto: Whether nodes choose their rates, as in `oneway.methods.AutoRate`; only if `batched`.
        late: Whether nodes learn from other samples than they predict: those whose label has come.

    The step is `rate * min(cap, mass)`, or the rate itself if `cap` is 0; and if `limited`, at most
    `stable * mass` over the largest curvature, `bend` times the squared sample plus l2. If
    `batched`, what that limit shortens the step by is a factor of the gradient, inside `clip`. If
    `relayed`, the mass in all this is 1. If `auto`, the rate is `min(ceiling, reach / sqrt(s))`
    with the node's own `squares` s, to which that of the batch is added before its step.

    Returns:
        A function of (held, spare, features, labels, rows, known_rows, indptr, senders, shares,
        rates, l2, exchange, moves_mass, lowest, highest, mixes, cap, stable, bend, clip, sums,
        releases, noise, parcels, spare_parcels, parcel_indptr, parcel_senders, parcel_shares,
        amount, by_count, squares, reach, ceiling, loss_sums, correct_counts, disagreement, said)
        that runs
        `len(rows)` rounds of `mixes` exchanges on `held[node, row_width]`, using `spare` of the
        same shape, and returns the first (round, node) whose loss or estimate is not finite, or
        (-1, -1). After an odd number of exchanges the state is in `spare`. Unless `late`,
        `known_rows` are `rows`. Masses are kept from `lowest` to `highest`.
        Only if `batched`, `sums[node, dim]` are the unfinished batches, and `releases[round, node]`
        and `noise` those of a `release_plan.Piece`. Only if `relayed`, `parcels` are rows as
        `held`, with the count in place of the mass, and travel along edges of their own. Unless
        `said` is empty, `said[round, node]` becomes the score that was predicted with.
    """
    dim = num_features + intercept
    width = row_width(dim)
    row_bytes = 8 * width
    sample_bytes = num_features * itemsize

    def rounds(
        held: Any,
        spare: Any,
        features: Any,
        labels: Any,
        rows: Any,
        known_rows: Any,
        indptr: Any,
        senders: Any,
        shares: Any,
        rates: Any,
        l2: float,
        exchange: int,
        moves_mass: bool,
        lowest: float,
        highest: float,
        mixes: int,
        cap: float,
        stable: float,
        bend: float,
        clip: float,
        sums: Any,
        releases: Any,
        noise: Any,
        parcels: Any,
        spare_parcels: Any,
        parcel_indptr: Any,
        parcel_senders: Any,
        parcel_shares: Any,
        amount: float,
        by_count: bool,
        squares: Any,
        reach: float,
        ceiling: float,
        loss_sums: Any,
        correct_counts: Any,
        disagreement: Any,
        said: Any,
    ) -> tuple[int, int]:
        num_rounds, num_nodes = rows.shape
        upcoming = known_rows.reshape(-1)
        padded = num_nodes + LANES
        scores, margins, losses, slopes, distances = np.zeros((5, padded))
        unread = np.zeros(padded if late else 0)
        right = np.zeros(num_nodes, np.int64)
        totals = np.zeros((NUM_BLOCKS, width))
        mean, origin = np.zeros(width), np.zeros(width)
        gradients = np.zeros((NUM_BLOCKS, dim))

        for t in range(num_rounds):
            # Suffer the loss and descend: z -= step * gradient(z / omega).
            for block in prange(NUM_BLOCKS):
                first, last = block_start(block, num_nodes), block_start(block + 1, num_nodes)
                if late:
                    # What is predicted now, and learned from when its label comes.
                    for node in range(first, last):
                        row = rows[t, node]
                        if row >= 0:
                            guess: float = dot_rows(held, node, features, row, num_features)
                            if intercept:
                                guess += held[node, dim - 1]
                            scores[node] = guess / held[node, dim]
                            margins[node] = scores[node] * labels[row]
                            if len(said) > 0:
                                said[t, node] = scores[node]
                    if kind == LOGISTIC:
                        for group in range(first, last, LANES):
                            soften(margins, losses, slopes, group)
                    for node in range(first, last):
                        row = rows[t, node]
                        if row < 0:
                            losses[node] = 0.0
                            right[node] = 0
                            continue
                        label = np.float64(labels[row])
                        told = losses[node]
                        if kind != LOGISTIC:
                            told, _ = plain_loss(kind, scores[node], label)
                        size: float = dot_rows(held, node, held, node, dim)
                        mass = held[node, dim]
                        losses[node] = told + 0.5 * l2 * size / mass**2
                        right[node] = (scores[node] >= 0.0) == (label > 0.0)
                for node in range(first, last):
                    later = t * num_nodes + node + _AHEAD
                    if later < upcoming.size and upcoming[later] >= 0:
                        prefetch_row(features, upcoming[later], sample_bytes)
                        prefetch_row(labels, upcoming[later], 1)
                    row = known_rows[t, node]
                    if row >= 0:
                        score: float = dot_rows(held, node, features, row, num_features)
                        if intercept:
                            score += held[node, dim - 1]
                        scores[node] = score / held[node, dim]
                        margins[node] = scores[node] * labels[row]
                if kind == LOGISTIC:
                    for group in range(first, last, LANES):
                        if late:
                            soften(margins, unread, slopes, group)
                        else:
                            soften(margins, losses, slopes, group)
                for node in range(first, last):
                    row = known_rows[t, node]
                    if row < 0:
                        if not late:
                            losses[node] = 0.0
                            right[node] = 0
                        continue
                    mass = held[node, dim]
                    label = np.float64(labels[row])
                    if kind == LOGISTIC:
                        loss, slope = losses[node], label * slopes[node]
                    else:
                        loss, slope = plain_loss(kind, scores[node], label)
                    if not late:
                        losses[node] = (
                            loss + 0.5 * l2 * dot_rows(held, node, held, node, dim) / mass**2
                        )
                        right[node] = (scores[node] >= 0.0) == (label > 0.0)
                    # One of the step rules of `oneway.methods.step_rules`.
                    bearing = 1.0 if relayed else mass
                    share = min(cap, bearing) if cap > 0.0 else 1.0
                    rate = rates[t]
                    if auto:
                        rate = min(ceiling, reach / math.sqrt(squares[node]))
                    step = rate * share
                    if batched:
                        # As `oneway.methods.batches` does it; nobody else uses this block's row.
                        for c in range(dim):
                            gradients[block, c] = 0.0
                        add_row(gradients, block, 1.0, held, node, l2 / mass, dim)
                        add_row(gradients, block, 1.0, features, row, slope, num_features)
                        if intercept:
                            gradients[block, dim - 1] += slope
                        factor = 1.0
                        if limited:
                            bulk: float = dot_rows(features, row, features, row, num_features)
                            limit = stable * bearing / (bend * (bulk + intercept) + l2)
                            factor = min(rate, limit) / step if step > 0.0 else 0.0
                        length = factor * math.sqrt(
                            dot_rows(gradients, block, gradients, block, dim)
                        )
                        if length > clip:
                            factor *= clip / length
                        add_row(sums, node, 1.0, gradients, block, factor, dim)
                        if releases[t, node] >= 0:
                            if len(noise) > 0:
                                add_row(sums, node, 1.0, noise, releases[t, node], 1.0, dim)
                            if auto:
                                squares[node] += dot_rows(sums, node, sums, node, dim)
                                step = share * min(ceiling, reach / math.sqrt(squares[node]))
                            if relayed:
                                add_row(parcels, node, 1.0, sums, node, step, dim)
                                parcels[node, dim] += 1.0
                            else:
                                add_row(held, node, 1.0, sums, node, -step, dim)
                            for c in range(dim):
                                sums[node, c] = 0.0
                        continue
                    if limited:
                        square: float = dot_rows(features, row, features, row, num_features)
                        step = min(step, stable * bearing / (bend * (square + intercept) + l2))
                    if relayed:
                        add_row(parcels, node, 1.0, held, node, step * l2 / mass, dim)
                        add_row(parcels, node, 1.0, features, row, step * slope, num_features)
                        if intercept:
                            parcels[node, dim - 1] += step * slope
                        parcels[node, dim] += 1.0
                        continue
                    shrink = 1.0 - step * l2 / mass
                    move = -step * slope
                    add_row(held, node, shrink, features, row, move, num_features)
                    if intercept:
                        held[node, dim - 1] = shrink * held[node, dim - 1] + move

            for mix in range(mixes):
                if relayed:
                    # Every node deposits, also one that had no sample: `Relay.before_push`.
                    for block in prange(NUM_BLOCKS):
                        for node in range(
                            block_start(block, num_nodes), block_start(block + 1, num_nodes)
                        ):
                            fraction = deposited_fraction(
                                held[node, dim],
                                parcels[node, dim],
                                amount,
                                by_count,
                            )
                            add_row(held, node, 1.0, parcels, node, -fraction, dim)
                            for c in range(width):
                                parcels[node, c] *= 1.0 - fraction
                # Push and sum; the total of each block is what the network's mean needs.
                for block in prange(NUM_BLOCKS):
                    for c in range(width):
                        totals[block, c] = 0.0
                    for node in range(
                        block_start(block, num_nodes), block_start(block + 1, num_nodes)
                    ):
                        if exchange == ALONG_GRAPH:
                            if parallel:
                                ahead = min(node + _NODES_AHEAD, num_nodes - 1)
                                for k in range(indptr[ahead], indptr[ahead + 1]):
                                    prefetch_row(held, senders[k], row_bytes)
                            begin, end = indptr[node], indptr[node + 1]
                            mix_row(spare, held, senders, shares, begin, end, node, width)
                            if not moves_mass:
                                spare[node, dim] = 1.0
                            mass = spare[node, dim]
                            outside = mass < lowest or mass > highest
                            if outside and mass > 0.0 and mix == mixes - 1:
                                # As `oneway.methods.Method.bounded`: the estimate stays.
                                bounded_mass = min(max(mass, lowest), highest)
                                factor = bounded_mass / mass
                                for c in range(dim):
                                    spare[node, c] *= factor
                                spare[node, dim] = bounded_mass
                        else:
                            for c in range(width):
                                spare[node, c] = held[node, c]
                        if relayed:
                            begin, end = parcel_indptr[node], parcel_indptr[node + 1]
                            mix_row(
                                spare_parcels, parcels, parcel_senders, parcel_shares,
                                begin, end, node, width)  # fmt: skip
                        add_row(totals, block, 1.0, spare, node, 1.0, width)
                held, spare = spare, held
                parcels, spare_parcels = spare_parcels, parcels
            for c in range(width):
                mean[c] = 0.0
                for block in range(NUM_BLOCKS):
                    mean[c] += totals[block, c]
            for c in range(dim):
                mean[c] /= mean[dim]

            # How far the estimates are from the mean; a server hands the mean itself to everybody.
            for block in prange(NUM_BLOCKS):
                for node in range(block_start(block, num_nodes), block_start(block + 1, num_nodes)):
                    if exchange == AVERAGE:
                        for c in range(dim):
                            held[node, c] = mean[c]
                    inverse = 1.0 / held[node, dim]
                    distances[node] = squared_distance(held, node, inverse, mean, dim)

            loss_sum, distance_sum, num_right = 0.0, 0.0, 0
            for node in range(num_nodes):
                loss_sum += losses[node]
                distance_sum += distances[node]
                num_right += right[node]
                if not late and len(said) > 0:
                    said[t, node] = scores[node]
            loss_sums[t] = loss_sum
            correct_counts[t] = num_right
            disagreement[t] = distance_sum / num_nodes
            if not (math.isfinite(loss_sum) and math.isfinite(distance_sum)):
                for node in range(num_nodes):
                    if not math.isfinite(losses[node]):
                        return t, node
                # One infinite row makes the mean and so every distance infinite: ask the rows.
                for node in range(num_nodes):
                    inverse = 1.0 / held[node, dim]
                    if not math.isfinite(squared_distance(held, node, inverse, origin, dim)):
                        return t, node
                return t, 0
        return -1, -1

    # Numba's disk cache tells kernels apart by their name, this file's date and what the closure
    # holds, but neither by how they were compiled nor by the other files they are made of. And of
    # two processes that compile kernels of one name at once, one may be stored as the other.
    shape = (num_features, intercept, kind, itemsize, limited, batched, relayed, auto, late)
    told_apart = "_".join(str(int(it)) for it in (*shape, parallel))
    rounds.__qualname__ += f"_{told_apart}_{ingredients()}"
    compiled: Callable[..., tuple[int, int]] = njit(
        rounds, cache=True, error_model="numpy", parallel=parallel, nogil=True
    )
    return compiled
