"""Snapshot, the unit of durability: the protocol's state, and what goes with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from oneway.methods.base import UNFINISHED
from oneway.peer.groups import Groups
from oneway.peer.store.average import ModelAverage
from oneway.peer.store.history import History, with_sample
from oneway.protocol.state import Key, PeerState
from oneway.records import Matrix, Vector
from oneway.tables.rows import START, Position

if TYPE_CHECKING:
    from oneway.peer.learner import Lesson


@dataclass(frozen=True, slots=True)
class Journal:
    """What was learned from, counted since the peer was made.

    Attributes:
        samples: Samples learned from.
        loss_sum: The sum of the losses of its predictions, each made before it was learned from.
        correct: How many predictions were right, where that has a meaning.
        skipped: Samples that could not be used.
        position: Where to go on in the stream after a restart.
        forgotten: Samples that were learned from in a life that a restored backup does not
            remember: they are in what receivers have heard, and in no other number here.
        remembered: Where the backup stood in the stream before `position` was set right.
        uncounted: Whether nothing of the stream was used since then, and whose the rows in between
            are was not counted.
    """

    samples: int = 0
    loss_sum: float = 0.0
    correct: int = 0
    skipped: int = 0
    position: Position = START
    forgotten: int = 0
    remembered: Position = START
    uncounted: bool = False

    @property
    def learned(self) -> int:
        """Samples learned from in all lives, those that are forgotten included."""
        return self.samples + self.forgotten


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
        groups: How many samples of each group were learned from, if the task limits that.
        measures: What was measured of the predictions, by name, and the memory of the experts that
            never leave the peer.
        average: Of the last estimates, to predict with; None before the first one.
    """

    state: PeerState
    journal: Journal = Journal()
    contacts: Mapping[Key, Contact] = msgspec.field(default_factory=dict)
    history: History = msgspec.field(default_factory=History)
    memory: Mapping[str, Vector] = msgspec.field(default_factory=dict)
    groups: Groups = msgspec.field(default_factory=dict)
    measures: Mapping[str, Matrix] = msgspec.field(default_factory=dict)
    average: ModelAverage | None = None

    def with_sample(
        self,
        lesson: Lesson,
        time: float,
        position: Position | None = None,
        groups: Groups | None = None,
    ) -> Snapshot:
        """What was learned from a sample, counted; without a position it is not of the stream."""
        before, measured = self.journal, lesson.measured
        loss, correct = measured.loss, bool(measured.correct)
        journal = Journal(
            before.samples + 1,
            before.loss_sum + loss,
            before.correct + correct,
            before.skipped,
            position or before.position,
            before.forgotten,
            before.remembered,
            before.uncounted and position is None,
        )
        baselines = (measured.shared_loss, measured.alone_loss, measured.base_loss)
        history = with_sample(self.history, loss, correct, time, *baselines)
        counts = self.groups if groups is None else groups
        return Snapshot(
            lesson.state,
            journal,
            self.contacts,
            history,
            lesson.memory,
            counts,
            measured.arrays,
            self.average,
        )

    def with_forgotten(self, learned: int, position: Position) -> Snapshot:
        """Go on after so many samples, in all lives, and after a place in the stream.

        A peer that had no stream has no place to go on from.
        """
        journal = self.journal
        forgotten = journal.forgotten + learned - journal.learned
        anew = dataclasses.replace(journal, forgotten=forgotten)
        if position.num_rows:
            # Told by one receiver after the other, the backup stood where the first one found it.
            before = journal.remembered if journal.uncounted else journal.position
            anew = dataclasses.replace(anew, position=position, remembered=before, uncounted=True)
        return replace(self, journal=anew)

    def with_noted(self, groups: Groups) -> Snapshot:
        """With whose rows a forgotten life had learned; it is not to be noted again."""
        journal = dataclasses.replace(self.journal, uncounted=False)
        return replace(self, journal=journal, groups=groups)

    def without_unfinished(self) -> Snapshot:
        """Drop the samples of a batch that is not full.

        They were pushed in a forgotten life, or will never be: the peer leaves.
        """
        kept = {name: it for name, it in self.memory.items() if name not in UNFINISHED}
        return replace(self, memory=kept)

    def with_skipped(self, position: Position | None = None) -> Snapshot:
        """Count a sample that could not be used."""
        journal, place = self.journal, position or self.journal.position
        counted = dataclasses.replace(
            journal,
            skipped=journal.skipped + 1,
            position=place,
            uncounted=journal.uncounted and position is None,
        )
        return replace(self, journal=counted)
