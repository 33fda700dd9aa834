"""Compiled exchange of one part of a network: rows in, rows out, and sums in the order of nodes.

What a node does alone is `kernels.round_kernel` with nobody to exchange with. The functions here do
what that leaves: a part sums up what its nodes receive, from its own rows and from the ghost rows
behind them, with the senders of each receiver in the same order as in one process, so that the sums
have the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit, prange

from oneway.records import Matrix, Vector
from oneway.simulator.intrinsics import add_row, mix_row, squared_distance
from oneway.simulator.kernels import NUM_BLOCKS, block_start, ingredients


@cache
def gather_kernel(dim: int, width: int, parallel: bool) -> Callable[..., None]:
    """Compile the exchange for rows of one width.

    Returns:
        A function of (out, rows, indptr, senders, shares, is_model, moves_mass, bad, light) that
        sets `out[node]` to the shares of `rows[sender]` that node receives. If rows are models,
        their mass is 1 unless `moves_mass`, `bad[block]` becomes the first node whose estimate is
        not finite, or -1, and `light[block]` the first one with the smallest mass.
    """

    def gather(
        out: Any,
        rows: Any,
        indptr: Any,
        senders: Any,
        shares: Any,
        is_model: bool,
        moves_mass: bool,
        bad: Any,
        light: Any,
    ) -> None:
        num_nodes = len(out)
        origin = np.zeros(width)
        for block in prange(NUM_BLOCKS):
            bad[block] = -1
            light[block] = -1
            for node in range(block_start(block, num_nodes), block_start(block + 1, num_nodes)):
                mix_row(out, rows, senders, shares, indptr[node], indptr[node + 1], node, width)
                if not is_model:
                    continue
                if not moves_mass:
                    out[node, dim] = 1.0
                mass = out[node, dim]
                if light[block] < 0 or mass < out[light[block], dim]:
                    light[block] = node
                # While the row is at hand: what one process asks of all rows after a round.
                size = squared_distance(out, node, 1.0 / mass, origin, dim)
                if bad[block] < 0 and not math.isfinite(size):
                    bad[block] = node

    return _compiled(gather, parallel, dim, width)


@cache
def distance_kernel(dim: int, parallel: bool) -> Callable[..., None]:
    """Compile how far estimates are from a point.

    Returns:
        A function of (distances, rows, point) that sets `distances[node]` to the squared distance
        of `rows[node, :dim] / rows[node, dim]` from it.
    """

    def measure(distances: Any, rows: Any, point: Any) -> None:
        num_nodes = len(distances)
        for block in prange(NUM_BLOCKS):
            for node in range(block_start(block, num_nodes), block_start(block + 1, num_nodes)):
                distances[node] = squared_distance(rows, node, 1.0 / rows[node, dim], point, dim)

    return _compiled(measure, parallel, dim)


@cache
def total_kernel(width: int) -> Callable[[Matrix, Matrix], None]:
    """Compile a function of (total[1, width], rows) that adds up rows, one after the other."""

    def add_up(total: Any, rows: Any) -> None:
        for row in range(len(rows)):
            add_row(total, 0, 1.0, rows, row, 1.0, width)

    return _compiled(add_up, False, width)


@njit(cache=True, error_model="numpy", nogil=True)
def sum_in_order(values: Vector) -> float:
    """The sum from the first to the last, as the compiled rounds make it."""
    total = 0.0
    for value in values:
        total += value
    return total


@njit(cache=True, nogil=True)
def first_not_finite(values: Vector) -> int:
    """The first place whose value is not finite; -1 if there is none."""
    for place in range(len(values)):
        if not math.isfinite(values[place]):
            return place
    return -1


def block_bounds(num_nodes: int) -> list[int]:
    """Where the blocks begin in which one process adds up nodes, and where the last one ends."""
    return [int(block_start.py_func(block, num_nodes)) for block in range(NUM_BLOCKS + 1)]


def mean_of_totals(totals: Matrix, dim: int) -> Vector:
    """The network's mean from the totals of its blocks: numerator over mass, block by block."""
    mean: Vector = np.zeros(totals.shape[1])
    for total in totals:
        mean += total
    with np.errstate(divide="ignore", invalid="ignore"):
        mean[:dim] /= mean[dim]
    return mean


def _compiled(function: Callable[..., Any], parallel: bool, *sizes: int) -> Callable[..., Any]:
    # Named apart for Numba's disk cache, as the kernels of rounds are.
    told_apart = "_".join(map(str, (*sizes, int(parallel))))
    function.__qualname__ += f"_{told_apart}_{ingredients()}"
    compiled: Callable[..., Any] = njit(
        function, cache=True, error_model="numpy", parallel=parallel, nogil=True
    )
    return compiled
