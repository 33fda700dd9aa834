"""Is every unit of mass accounted for? Equality of whole numbers, not a tolerance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from oneway.protocol.fixed_point import Fixed, mass_of
from oneway.protocol.state import Key, PeerState


@dataclass(frozen=True, slots=True)
class Books:
    """What one peer can say about mass, in units: enough to audit a network while it runs.

    Running totals wrap like those they come from: a difference is right after `wrapped`.

    Attributes:
        held: omega.
        brought: What it brought into the network, and what it owes: that is in the network twice.
        sent: What its ledger counts as handed over, by receiver: over all edges, those included
            that have ended.
        heard: What it took in, by sender: over all edges, those included that have ended.
    """

    held: int
    brought: int
    sent: Mapping[Key, int]
    heard: Mapping[Key, int]

    @property
    def owed(self) -> int:
        """What must be held by what came and went."""
        return wrapped(self.brought + sum(self.heard.values()) - sum(self.sent.values()))

    @property
    def balances(self) -> bool:
        """Whether what is held is what must be; true of every peer, at any moment."""
        return self.held == self.owed


def wrapped(units: int) -> int:
    """A sum or a difference of numbers that may have wrapped, as 64 bits hold it.

    >>> wrapped((-(2**63) + 1) - (2**63 - 1))
    2
    """
    return (units + 2**63) % 2**64 - 2**63


def books_of(state: PeerState) -> Books:
    """The mass that a peer holds, and where it came from and went, peer by peer.

    Like `expected_holding`, but of mass alone, and without adding up what came from whom.
    """
    heard: dict[Key, int] = {}
    for edge in state.in_.values():
        heard[edge.sender] = wrapped(heard.get(edge.sender, 0) + mass_of(edge.heard))
    sent: dict[Key, int] = {}
    handed_over = [(edge.receiver, edge.counted) for edge in state.out.values()]
    handed_over += [(end.receiver, end.total) for end in state.settled.values()]
    for receiver, amount in handed_over:
        sent[receiver] = wrapped(sent.get(receiver, 0) + mass_of(amount))
    brought = mass_of(state.minted) - mass_of(state.gradient_steps) - mass_of(state.clipped)
    brought += mass_of(state.owed)
    return Books(mass_of(state.holding), wrapped(brought), sent, heard)


def expected_holding(state: PeerState) -> Fixed:
    """What a peer must hold by its own books: the ledger identity, solved for `holding`."""
    moved = np.zeros_like(state.holding)
    for heard in state.in_.values():
        moved = moved + heard.heard
    for edge in state.out.values():
        moved = moved - edge.counted
    for end in state.settled.values():
        moved = moved - end.total
    brought = state.minted - state.gradient_steps - state.clipped + state.owed
    return brought + state.layout.booked(moved)


def untracked(states: Iterable[PeerState], place: slice) -> Fixed:
    """Over a quiet network: what a segment adds up to, minus the momenta that it tracks.

    A peer's momentum is the sum of all that it added to its tracker: whoever leaves takes it back.
    All zeros if and only if the trackers of all add up to the momenta of those who stay.
    """
    return reduce(
        lambda total, amount: total + amount,
        (
            (state.holding - state.owed + state.clipped)[place]
            + (0 if state.leaving else state.gradient_steps[place])
            for state in states
        ),
    )


def discrepancy(states: Iterable[PeerState]) -> Fixed:
    """Over a quiet network: the sum of what is held and not owed, minus what was ever brought in.

    All zeros if and only if nothing was lost and nothing invented. What is in flight is not
    added: that would make it true of any network.
    """
    return reduce(
        lambda total, amount: total + amount,
        (
            state.holding - state.owed - (state.minted - state.gradient_steps - state.clipped)
            for state in states
        ),
    )
