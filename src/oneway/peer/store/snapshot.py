"""Snapshot, the unit of durability: the protocol's state, and what goes with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from oneway.peer.store.history import History, with_sample
from oneway.protocol.state import Key, PeerState
from oneway.records import Vector
from oneway.tables.rows import START, Position


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


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """One atomic, durable unit.

    Attributes:
        state: What the protocol must never forget.
        journal: What was learned from.
        contacts: Where receivers are, by key.
        history: How the loss went; it ends with the last sample that the journal counts.
        memory: The private state of the method, by name; an array that changes is a new object.
    """

    state: PeerState
    journal: Journal = Journal()
    contacts: Mapping[Key, Contact] = msgspec.field(default_factory=dict)
    history: History = msgspec.field(default_factory=History)
    memory: Mapping[str, Vector] = msgspec.field(default_factory=dict)

    def with_sample(
        self,
        state: PeerState,
        memory: Mapping[str, Vector],
        loss: float,
        correct: bool,
        time: float,
        position: Position | None = None,
    ) -> Snapshot:
        """What was learned from a sample, counted; without a position it is not of the stream."""
        before = self.journal
        journal = Journal(
            before.samples + 1,
            before.loss_sum + loss,
            before.correct + correct,
            before.skipped,
            position or before.position,
        )
        history = with_sample(self.history, loss, correct, time)
        return Snapshot(state, journal, self.contacts, history, memory)

    def with_skipped(self, position: Position | None = None) -> Snapshot:
        """Count a sample that could not be used."""
        journal, place = self.journal, position or self.journal.position
        counted = dataclasses.replace(journal, skipped=journal.skipped + 1, position=place)
        return replace(self, journal=counted)
