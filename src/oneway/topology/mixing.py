"""Mixing matrices: the shares nodes hand on, `mixing[sender, receiver]`, rows sum to 1.

This is the paper's W. A node decides its own row alone and needs to know nobody else's.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from oneway.errors import MixingError
from oneway.records import Ints, Matrix, Vector

Mixing: TypeAlias = "sparse.csr_array[np.float64, tuple[int, int]]"
"""Shares as `mixing[sender, receiver]`."""

MixingLike: TypeAlias = "Matrix | sparse.sparray[Any, Any] | sparse.spmatrix[Any] | ArrayLike"
"""Shares as users have them: any scipy sparse array, or a small dense one."""

ROW_SUM_TOLERANCE = 1e-9


def row_stochastic(
    indptr: Ints,
    receivers: Ints,
    weights: Vector | None = None,
    kept_shares: Vector | None = None,
) -> Mixing:
    """Every node keeps a share and splits the rest among its receivers.

    Without kept shares a node with k receivers keeps 1 / (k + 1); without weights the rest is split
    evenly. A node without receivers keeps everything in any case.
    """
    num_receivers = np.diff(indptr)
    even = 1 / (num_receivers + 1)
    if kept_shares is None and weights is None:
        kept, shares = even, np.repeat(even, num_receivers)
    else:
        kept = even if kept_shares is None else np.where(num_receivers == 0, 1.0, kept_shares)
        parts = np.ones(len(receivers)) if weights is None else weights
        shares = np.repeat(1 - kept, num_receivers) * _normalised(indptr, parts)
    return _with_kept(indptr, receivers, shares, kept)


def metropolis(indptr: Ints, receivers: Ints) -> Mixing:
    """Metropolis weights: symmetric, so rows and columns sum to 1; every edge must go both ways.

    Two partners with k and l partners each exchange 1 / (1 + max(k, l)) and keep the rest.
    """
    num_nodes = len(indptr) - 1
    num_partners = np.diff(indptr)
    senders = np.repeat(np.arange(num_nodes), num_partners)
    shares = 1 / (1 + np.maximum(num_partners[senders], num_partners[receivers]))
    given = np.bincount(senders, weights=shares, minlength=num_nodes)
    kept = np.asarray(1.0 - given, dtype=np.float64)
    return _with_kept(indptr, receivers, shares, kept)


def check_kept_share(kept_share: ArrayLike, num_nodes: int) -> Vector:
    """One kept share in 0..1 per node, from one for all or one each."""
    try:
        given = np.asarray(kept_share, dtype=np.float64)
    except (TypeError, ValueError):
        raise MixingError(
            f"kept_share is {kept_share!r}; give one number from 0 to 1, or one for each node"
        ) from None
    if given.shape not in ((), (num_nodes,)):
        raise MixingError(
            f"kept_share has shape {given.shape}; give one number, or one for each of the "
            f"{num_nodes} nodes"
        )
    shares = np.broadcast_to(given, num_nodes)
    bad = np.flatnonzero(~((shares >= 0) & (shares <= 1)))
    if bad.size:
        raise MixingError(
            f"node {bad[0]} is to keep {shares[bad[0]]:g} of its mass; a kept share must be from "
            "0 to 1"
        )
    return shares


def check_mixing(mixing: MixingLike) -> Mixing:
    """The mixing as a sparse float64 array in canonical form, if it is a valid one.

    Raises:
        MixingError: If it is not square, a share is negative or not finite, or a row does not sum
            to 1 within 1e-9.
    """
    try:
        given: Any = mixing if sparse.issparse(mixing) else np.asarray(mixing, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MixingError(
            f"the mixing cannot be read as a matrix of numbers ({error}); give "
            "shares[sender, receiver], dense or sparse"
        ) from error
    if len(given.shape) != 2 or given.shape[0] != given.shape[1] or given.shape[0] == 0:
        raise MixingError(
            f"the mixing has shape {given.shape}; it must be square, with one row and one column "
            "per node"
        )
    shares = _canonical(sparse.csr_array(given, dtype=np.float64, copy=True))
    bad = np.flatnonzero(~(np.isfinite(shares.data) & (shares.data >= 0)))
    if bad.size:
        sender = np.searchsorted(shares.indptr, bad[0], side="right") - 1
        raise MixingError(
            f"node {sender} hands {shares.data[bad[0]]:g} of its mass to node "
            f"{shares.indices[bad[0]]}; a share must be finite and at least 0"
        )
    totals: Vector = np.asarray(shares.sum(axis=1))
    off = np.flatnonzero(np.abs(totals - 1) > ROW_SUM_TOLERANCE)
    if off.size:
        total = totals[off[0]]
        remedy = f"divide its row by {total:.10g}" if total else "let it keep what it has"
        raise MixingError(
            f"node {off[0]} hands out {total:.10g} of its mass; its shares must sum to 1, {remedy}"
        )
    return shares


def _normalised(indptr: Ints, parts: Vector) -> Vector:
    """Divide by the sum over each node's edges; through the largest, so that nothing overflows."""
    num_receivers = np.diff(indptr)
    occupied = indptr[:-1][num_receivers > 0]
    if not occupied.size:
        return parts
    counts = num_receivers[num_receivers > 0]
    scaled: Vector = parts / np.repeat(np.maximum.reduceat(parts, occupied), counts)
    scaled /= np.repeat(np.add.reduceat(scaled, occupied), counts)
    return scaled


def _with_kept(indptr: Ints, receivers: Ints, shares: Vector, kept: Vector) -> Mixing:
    """The shares that are handed out, and on the diagonal what is kept."""
    num_nodes = len(kept)
    # scipy goes by the wider type of both, and that of `indptr` is seldom needed.
    if len(receivers) + num_nodes < 2**31:
        indptr = indptr.astype(np.int32)
    handed_out = sparse.csr_array((shares, receivers, indptr), shape=(num_nodes, num_nodes))
    return _canonical(handed_out + sparse.diags_array(kept, format="csr"))


def _canonical(mixing: Any) -> Mixing:
    """Sorted columns, each once, no stored zeros."""
    result: Mixing = sparse.csr_array(mixing)
    result.sum_duplicates()
    result.eliminate_zeros()
    return result
