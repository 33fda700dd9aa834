"""Payload exchange with matrices: what a round does to the segments of a method's state."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array, diags_array

from oneway.methods import Method, State
from oneway.records import Bools, Matrix, Vector

Mixing: TypeAlias = csr_array
"""`mixing[sender, receiver]`; rows sum to 1, or to less where a node lets go of the rest."""

LET_GO = 0.5
"""The share that a node without receivers lets go of: what it would hand to a single one."""


class Exchange:
    """Moves every segment of a payload along one mixing, by its kind.

    - split: `mixing.T @ segment`, the paper's W.
    - forwarded: the same without kept shares; a node without receivers keeps what it has, or lets
      go of it with its share of all else (`letting_go`).
    - copied: every receiver averages what its senders have with its own, all with equal weight.

    Attributes:
        matrices: By kind of segment `matrix[receiver, sender]`; empty where there is no graph.
    """

    def __init__(self, method: Method, mixing: Mixing | None) -> None:
        self._method = method
        self.matrices: dict[str, Mixing] = {}
        # For float32 segments: the product of a float64 matrix with them would be float64.
        self._of_other_kinds: dict[str, Mixing] = {}
        kinds = {segment.kind for segment in method.payload}
        if mixing is None:
            return
        if "split" in kinds:
            self.matrices["split"] = mixing.T.tocsr()
        if "forwarded" in kinds:
            self.matrices["forwarded"] = without_kept_shares(mixing).T.tocsr()
        if "copied" in kinds:
            self.matrices["copied"] = equal_averages(mixing)

    def apply(self, state: State) -> State:
        """The state after everybody has sent and received, once."""
        method = self._method
        if method.exchange == "none" or not method.payload:
            return state
        return replace(
            state,
            segments={
                segment.name: self._moved(segment.kind, state.segments[segment.name])
                for segment in method.payload
            },
        )

    def _moved(self, kind: str, segment: Matrix) -> Matrix:
        if self._method.exchange == "average":
            return np.broadcast_to(segment.mean(axis=0), segment.shape)
        matrix = self.matrices[kind]
        if segment.dtype != matrix.dtype:
            matrix = self._of_other_kinds.setdefault(kind, matrix.astype(segment.dtype))
        moved: Matrix = matrix @ segment
        return moved


def letting_go(mixing: Mixing, sinks: Bools) -> Mixing:
    """Shares by which some nodes, all without receivers, act as if they had one: nobody gets it."""
    factors = np.repeat(np.where(sinks, LET_GO, 1.0), np.diff(mixing.indptr))
    return csr_array((factors * mixing.data, mixing.indices, mixing.indptr), mixing.shape)


def keep_parcels(mixing: Mixing) -> Bools:
    """Which nodes keep what others forward: those that neither hand out anything nor let go."""
    return np.asarray(mixing.diagonal() > LET_GO) & (_handed_out(mixing) <= 0.0)


def without_kept_shares(mixing: Mixing) -> Mixing:
    """The shares of a forwarded segment: the diagonal is empty, but for who keeps all."""
    given = mixing - diags_array(mixing.diagonal(), format="csr")
    totals = _handed_out(mixing)
    scale = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0.0)
    return csr_array(diags_array(scale) @ given + diags_array(1.0 * keep_parcels(mixing)))


def _handed_out(mixing: Mixing) -> Vector:
    given = mixing - diags_array(mixing.diagonal(), format="csr")
    return np.asarray(given.sum(axis=1)).ravel()


def equal_averages(mixing: Mixing) -> Mixing:
    """`averages[receiver, sender]`: a receiver weighs its senders and itself alike."""
    links = csr_array(mixing.T)
    links.data = np.ones_like(links.data)
    links = csr_array((links + diags_array(np.ones(links.shape[0]))) > 0, dtype=np.float64)
    counts = np.asarray(links.sum(axis=1)).ravel()
    return csr_array(diags_array(1.0 / counts) @ links)
