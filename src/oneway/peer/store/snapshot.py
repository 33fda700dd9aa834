"""What one commit makes durable: the protocol's state, and what goes with it sample by sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from oneway.peer.samples.row import START, Position
from oneway.peer.store.history import History
from oneway.protocol.state import Key, PeerState


@dataclass(frozen=True, slots=True)
class Journal:
    """What was learned from, counted since the peer was made.

    Attributes:
        samples: Samples learned from.
        loss_sum: The sum of their losses, each suffered before it was learned from.
        correct: How many predictions were right, where that has a meaning.
        skipped: Samples that could not be used.
        position: Where to go on in the stream after a restart.
    """

    samples: int = 0
    loss_sum: float = 0.0
    correct: int = 0
    skipped: int = 0
    position: Position = START


@dataclass(frozen=True, slots=True)
class Contact:
    """Where a receiver is, kept after trust in it ended: it may still have to be told so."""

    name: str
    address: str


@dataclass(frozen=True, eq=False, slots=True)
class Snapshot:
    """One atomic, durable unit.

    Attributes:
        state: What the protocol must never forget.
        journal: What was learned from.
        contacts: Where receivers are, by key.
        history: How the loss went; it ends with the last sample that the journal counts.
    """

    state: PeerState
    journal: Journal = Journal()
    contacts: Mapping[Key, Contact] = field(default_factory=dict)
    history: History = field(default_factory=History)
