"""Is every unit of mass accounted for? Equality of whole numbers, not a tolerance."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from oneway.protocol.fixed_point import Fixed
from oneway.protocol.state import PeerState


def expected_holding(state: PeerState) -> Fixed:
    """What a peer must hold by its own books: the ledger identity, solved for `holding`."""
    books = state.minted - state.gradient_steps - state.clipped
    for heard in state.in_.values():
        books = books + heard.heard
    for edge in state.out.values():
        books = books - edge.counted
    for end in state.settled.values():
        books = books - end.total
    return books


def discrepancy(states: Iterable[PeerState]) -> Fixed:
    """Over a quiet network: the sum of what is held, minus what was ever brought in.

    All zeros if and only if nothing was lost and nothing invented. What is in flight is not
    added: that would make it true of any network.
    """
    return reduce(
        lambda total, amount: total + amount,
        (state.holding - (state.minted - state.gradient_steps - state.clipped) for state in states),
    )
