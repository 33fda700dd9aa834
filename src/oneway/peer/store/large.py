"""Large models: what a commit leaves out, because the books tell it, or a crash may cost it.

What is held is the sum of all that came, minus the sum of all that went (the ledger identity), and
each of these is stored: so it is computed when a store is read, and only a checksum of it is
written. What predictions are made with and compared to, the settled model and the network that is
alone, is no part of the books: it is written now and then, and when a store is closed. A crash
costs what these took in since.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from oneway.peer.measuring import ALONE
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.audit import expected_holding
from oneway.protocol.fixed_point import Fixed
from oneway.protocol.state import PeerState

LARGE = 50_000
"""Amounts of so many numbers are large."""

PUT_OFF = 64
"""Commits after which what was put off is written."""

_AMOUNTS = ("minted", "gradient_steps", "clipped", "owed")
"""The arrays that a peer has once, besides what it holds."""


def is_large(dim: int) -> bool:
    """Whether arrays of so many numbers are too large to be written without need."""
    return dim >= LARGE


def stored_amounts(state: PeerState) -> dict[str, Fixed]:
    """The arrays that a peer has once, by name, as far as they are written."""
    amounts = {name: getattr(state, name) for name in _AMOUNTS}
    return amounts if is_large(state.dim) else {"holding": state.holding, **amounts}


def checksum(state: PeerState) -> bytes:
    """By which what is held is known again; empty where it is stored."""
    return np.sum(state.holding).tobytes() if is_large(state.dim) else b""


def with_holding(state: PeerState, amounts: Mapping[str, Fixed], known_by: bytes) -> PeerState:
    """A state as it was stored, with what it holds.

    Raises:
        ValueError: That is not what its books say.
    """
    expected = expected_holding(state)
    stored = amounts.get("holding")
    if stored is None:
        is_right = is_large(state.dim) and known_by == np.sum(expected).tobytes()
    else:
        is_right = np.array_equal(stored, expected)
    if not is_right:
        raise ValueError("what it holds is not what its books say")
    return replace(state, holding=expected)


def put_off(before: Snapshot, after: Snapshot) -> Snapshot:
    """A snapshot with what need not be written yet as it was before; itself if all need be."""
    if not is_large(after.state.dim) or before.average is None:
        return after
    earlier = {name: it for name, it in before.measures.items() if name.startswith(ALONE)}
    if not earlier.keys() <= after.measures.keys() or before.state.boot != after.state.boot:
        return after
    return replace(after, average=before.average, measures={**after.measures, **earlier})
