"""Release plan: in which rounds whose batch is full, and with which noise, known before the rounds.

Which node has a sample in which round is the stream's, so a batch's end does not depend on what is
learned. The plan is made for pieces of the stream of a fixed length: however an engine stops and
goes on, the same numbers are drawn in the same order, those of `oneway.methods.batches`: round by
round, and in a round by node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from oneway.methods import Batches
from oneway.privacy.banded_noise import coefficients
from oneway.records import Ints, Matrix, Vector

_MEMORY = 16_000_000
"""Bytes that the noise of one piece may take, and its counts as well."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Rounds `first` to `last` (excluded), and what is released in them.

    Attributes:
        releases: `releases[round, node]`, -1 where no batch is full, else a row of `noise`.
        noise: `[release, dim]`, ready to be added to a sum; without rows if there is none.
    """

    first: int
    last: int
    releases: NDArray[np.int32]
    noise: Matrix


class ReleasePlan:
    """The releases of a run, to be asked for from the first round on, in order.

    Args:
        batches: How many samples make a batch, and its noise.
        rows: Those of the stream, `rows[round, node]`.
        dim: The length of a gradient.
        rng: Of the run; the noise is drawn from it.
    """

    def __init__(self, batches: Batches, rows: Ints, dim: int, rng: np.random.Generator) -> None:
        self._batches, self._rows, self._dim, self._rng = batches, rows, dim, rng
        num_nodes = rows.shape[1]
        self._counts = np.zeros(num_nodes, np.int64)
        # Per node a ring of its last draws, and how many there were.
        self._past = np.zeros((num_nodes, batches.band if batches.noise else 0, dim))
        self._num_drawn = np.zeros(num_nodes, np.int64)
        # In this many batches of rounds a node has that many releases, and perhaps one more.
        releases_per_node = _MEMORY // (8 * dim * num_nodes) - 1
        self._length = max(1, min(releases_per_node * batches.samples, _MEMORY // (8 * num_nodes)))
        self._piece = Piece(0, 0, np.zeros((0, num_nodes), np.int32), np.zeros((0, dim)))

    def pieces(self, first: int, last: int) -> Iterator[Piece]:
        """Cover rounds `first` to `last` (excluded); they follow those that were asked for."""
        while first < last:
            if first == self._piece.last:
                self._piece = self._plan(first)
            planned = self._piece
            assert planned.first <= first < planned.last
            end = min(last, planned.last)
            here = planned.releases[first - planned.first : end - planned.first]
            yield Piece(first, end, here, planned.noise)
            first = end

    def _plan(self, first: int) -> Piece:
        has_sample = self._rows[first : first + self._length] >= 0
        counts = np.cumsum(has_sample, axis=0, dtype=np.int64)
        counts += self._counts
        counts %= self._batches.samples
        full = has_sample & (counts == 0)
        self._counts = counts[-1].copy()
        nodes = np.nonzero(full)[1]
        releases = np.full(full.shape, -1, np.int32)
        releases[full] = np.arange(len(nodes))
        noise = np.zeros((0, self._dim))
        if self._batches.noise:
            noise = self._rng.standard_normal((len(nodes), self._dim))
            _take_back(noise, nodes, coefficients(self._batches.band), self._past, self._num_drawn)
            noise *= self._batches.clip * self._batches.noise
        return Piece(first, first + len(full), releases, noise)


@njit(cache=True)
def _take_back(drawn: Matrix, nodes: Ints, weights: Vector, past: Matrix, num_drawn: Ints) -> None:
    """Turn each draw of a node into sum over k of weights[k] * its draw k releases ago."""
    band, dim = past.shape[1:]
    for release in range(len(drawn)):
        node = nodes[release]
        for column in range(dim):
            past[node, num_drawn[node] % band, column] = drawn[release, column]
        for before in range(1, min(band, num_drawn[node] + 1)):
            place = (num_drawn[node] - before) % band
            for column in range(dim):
                drawn[release, column] += weights[before] * past[node, place, column]
        num_drawn[node] += 1
