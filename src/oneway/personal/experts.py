"""Linear experts of a node: learned from its own samples, never sent, so without noise.

*Alone* sees the features. *Adapted* also sees the score of the shared model, and starts by
believing it: factor 1 for that score, 0 for all else. So it learns how this node differs from the
network. Either comes as a pair of two geometries: AdaGrad by norm, as shared models learn
(`methods.auto_rate`), is steady where rows are few; AdaGrad by coordinate is quicker where features
differ in how often they matter. A mixture finds out which is better here.

All of a node is one array `[kind, geometry, score, input]`; the inputs of a score are the features,
the shared model's score (0 for *alone*) and 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from oneway.methods.auto_rate import AutoRate
from oneway.personal.links import Link
from oneway.records import Bools, Floats, Matrix, Vector

Kind = Literal["alone", "adapted"]

BY_COORDINATE = 0.1
"""The first step of AdaGrad by coordinate, in standardised inputs."""
FAR = 8.0
"""Shared scores count up to this far from 0 as an input."""
_TINY = 1e-300
"""Stands for a sum of squares of 0, whose gradients are 0 too."""
PARAMS, SQUARES, NORMS = "params", "squares", "norms"
"""Names of the memory: parameters, and sums of squared gradients by coordinate and by norm."""


@dataclass(frozen=True, eq=False)
class LinearExperts:
    """A pair of linear experts (by norm, by coordinate) for each kind; rows are nodes.

    Attributes:
        link: From scores to losses.
        num_features: Of a sample; 0 if experts see nothing but the shared scores.
        kinds: Which pairs there are.
        start: The constants that those alone start from, one for each score.
    """

    link: Link
    num_features: int
    kinds: tuple[Kind, ...]
    start: Vector

    def begin(self, num_nodes: int) -> dict[str, Matrix]:
        """Return the memory before the first sample, one row for each node."""
        params = np.zeros((len(self.kinds), 2, self.link.width, self.num_features + 2))
        for place, kind in enumerate(self.kinds):
            if kind == "alone":
                params[place, ..., -1] = self.start
            else:
                params[place, ..., -2] = 1.0
        return {
            PARAMS: np.tile(params.reshape(1, -1), (num_nodes, 1)),
            SQUARES: np.zeros((num_nodes, params.size // 2)),
            NORMS: np.zeros((num_nodes, len(self.kinds))),
        }

    def inputs(self, features: Floats, shared: Matrix) -> Matrix:
        """Return `[node, kind, score, input]`.

        Args:
            features: `[node, feature]`.
            shared: Scores of the shared model, `[node, score]`.
        """
        shape = (len(features), len(self.kinds), self.link.width, self.num_features + 2)
        rows = np.zeros(shape)
        rows[..., : self.num_features] = features[:, None, None, : self.num_features]
        rows[..., -1] = 1.0
        for place, kind in enumerate(self.kinds):
            if kind == "adapted":
                rows[:, place, :, -2] = as_input(shared)
        return rows

    def scores(self, memory: Mapping[str, Matrix], inputs: Matrix) -> Matrix:
        """Return the answers `[node, kind, geometry, score]`."""
        scores: Matrix = np.einsum("nkgsi,nksi->nkgs", self._pairs(memory), inputs)
        return scores

    def learn(
        self,
        memory: Mapping[str, Matrix],
        inputs: Matrix,
        scores: Matrix,
        labels: Floats,
        active: Bools | None = None,
    ) -> dict[str, Matrix]:
        """Return the memory after one sample of every active node; the others stay as they are.

        A step that leaves the finite numbers is not taken.
        """
        nodes = len(inputs)
        params = self._pairs(memory).copy()
        squares = memory[SQUARES].reshape(inputs.shape)
        norms = memory[NORMS]
        slopes = self.link.slopes(scores, labels[:, None, None])
        lengths: Matrix = np.einsum("nksi,nksi->nks", inputs, inputs)
        by_norm = slopes[:, :, 0] * self._limits(norms, lengths)[..., None]
        norms = norms + (by_norm * by_norm * lengths).sum(axis=2)
        by_norm *= self._rates(norms)[..., None]
        params[:, :, 0] -= by_norm[..., None] * inputs
        own = slopes[:, :, 1, :, None] * inputs
        squares = squares + own * own
        params[:, :, 1] -= BY_COORDINATE * own / np.sqrt(np.maximum(squares, _TINY))
        total = params.sum() + squares.sum() + norms.sum()
        after = {
            PARAMS: params.reshape(nodes, -1),
            SQUARES: squares.reshape(nodes, -1),
            NORMS: norms,
        }
        # A sum is finite only if all its terms are; the rest looks at them one by one.
        if active is None and math.isfinite(total):
            return after
        sound = np.all([np.isfinite(it).all(axis=1) for it in after.values()], axis=0)
        if active is not None:
            sound &= active
        return {name: np.where(sound[:, None], it, memory[name]) for name, it in after.items()}

    def _pairs(self, memory: Mapping[str, Matrix]) -> Matrix:
        """The parameters, `[node, kind, geometry, score, input]`."""
        params = memory[PARAMS]
        return params.reshape(len(params), len(self.kinds), 2, self.link.width, -1)

    @cached_property
    def rates(self) -> tuple[AutoRate, ...]:
        """How each kind chooses its rate by norm, as shared models do."""
        bend = self.link.curvature

        def suited(num_inputs: int) -> AutoRate:
            typical = None if bend is None else bend * (num_inputs + 1)
            return AutoRate().suited(typical, num_inputs)

        return tuple(suited(self.num_features + (kind == "adapted")) for kind in self.kinds)

    @cached_property
    def _rate_terms(self) -> tuple[Vector, Vector]:
        """The largest rate by norm and the reach of every kind."""
        most = [rate.most(self.num_features + 1) for rate in self.rates]
        return np.array(most), np.array([rate.reach for rate in self.rates])

    def _rates(self, norms: Matrix) -> Matrix:
        """The rate by norm, `[node, kind]`, as `AutoRate.rates` of every kind; norms may be 0."""
        most, reach = self._rate_terms
        rates: Matrix = np.minimum(most, reach / np.sqrt(norms))
        return rates

    def _limits(self, norms: Matrix, lengths: Matrix) -> Matrix:
        """By how much its own curvature shortens a sample's step, `[node, kind]`.

        The step rule `curvature` at mass 1. Of several scores the longest input counts.

        Args:
            norms: Sums of squared gradients, `[node, kind]`.
            lengths: Squared, of the inputs, `[node, kind, score]`.
        """
        if self.link.curvature is None:
            return np.ones_like(norms)
        longest = lengths.max(axis=2)
        limits: Matrix = 1.0 / (2.0 * self.link.curvature * longest * self._rates(norms))
        return np.minimum(1.0, limits)


def as_input(shared: Matrix) -> Matrix:
    """Return shared scores `[node, score]` as inputs: finite, centred, and not too far from 0.

    Of several scores only differences matter.
    """
    there = np.isfinite(shared)
    finite = shared if there.all() else np.where(there, shared, 0.0)
    if finite.shape[1] > 1:
        finite = finite - finite.mean(axis=1, keepdims=True)
    inputs: Matrix = np.minimum(np.maximum(finite, -FAR), FAR)
    return inputs
