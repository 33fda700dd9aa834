"""One peer without its network and its disk: what it knows, what is durable, what it would say.

The runtime brings in frames and samples, makes snapshots durable and sends what `committed` and
`overdue` return. All methods are quick, may be called from any thread, and never wait for either.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from oneway.errors import WireError
from oneway.peer.foreigners import Foreigners
from oneway.peer.guard import Guard
from oneway.peer.home.config import PeerConfig
from oneway.peer.learner import Learner
from oneway.peer.samples.row import Position
from oneway.peer.store.history import with_sample
from oneway.peer.store.snapshot import Contact, Snapshot
from oneway.peer.talk import Talk, Word
from oneway.protocol.absorbing import Absorbed
from oneway.protocol.fixed_point import ratio
from oneway.protocol.messages import Data, Gone, Push, Reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import LIVE, EdgeId, Key, OutPhase, PeerState
from oneway.protocol.transitions import (
    distrust,
    leave,
    mint,
    presume_dead,
    push,
    receive_push,
    receive_reply,
    trust,
)
from oneway.records import Vector
from oneway.records.status import REPEATED
from oneway.task.task import Task
from oneway.transport.base import Arrival
from oneway.transport.wire import Body, Foreign, decode, encode

RECENT = 200
"""Samples that the recent loss is a mean of."""

IDLE_SECONDS = 0.05
"""A peer without samples passes on what it received this often, as long as that moves it."""

REOPEN_SECONDS = 60.0
"""After a receiver closed an edge itself, this long until the next attempt."""

MOVED = 1e-6
"""A change of the estimate, relative to its size, that is worth passing on."""


@dataclass(frozen=True, eq=False)
class Batch:
    """What to make durable, and the questions that may be answered once it is."""

    snapshot: Snapshot
    questions: Mapping[EdgeId, Push]


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes to send: a push over one's own connection, or a reply over the other's."""

    peer: Key
    via: str
    content: bytes


class Node:
    """The mind of a peer.

    Attributes:
        task: What all peers learn.
        lock: Held while anything below changes; to read several of them as of one moment.
        config: What this peer is told now.
        rules: The same, as far as the protocol goes.
        disk_problem: Why the last commit failed, as a sentence; empty if it did not.
        last_skipped: Why the last sample that could not be used could not; empty if none.
        last_sample: When the last sample was learned from in this life, if any was.
        guard: Who behaved how.
        answered: When each receiver last answered in this life.
        pushed: When each sender last pushed in this life.
        lagging: Edges with something in flight: up to where it is acknowledged, and since when.
        recent_losses: Of the last `RECENT` samples.
        started: When this life began.
    """

    def __init__(
        self,
        task: Task,
        secret: bytes,
        config: PeerConfig,
        snapshot: Snapshot,
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        new_epoch: Callable[[], int],
    ) -> None:
        """Begin with a durable snapshot (`restart` was applied before it was committed).

        Args:
            task: What all peers learn.
            secret: By which this peer recognises its own totals.
            config: What this peer is told; `follow` brings changes.
            snapshot: The state to begin with.
            clock: Seconds that only grow.
            wall_clock: Seconds since 1970, to say when a sample was learned from.
            new_epoch: Random numbers that name new edges.
        """
        self.task = task
        self.lock = threading.RLock()
        self.disk_problem = ""
        self.last_skipped = ""
        self.last_sample: float | None = None
        self.guard = Guard(config.limits.max_strikes, clock, self.name_of)
        self.answered: dict[Key, float] = {}
        self.pushed: dict[Key, float] = {}
        self.lagging: dict[EdgeId, tuple[int, float]] = {}
        self.recent_losses: deque[float] = deque(maxlen=RECENT)
        self.started = clock()
        self._secret = secret
        self._clock = clock
        self._wall_clock = wall_clock
        self._new_epoch = new_epoch
        self._learner = Learner(task)
        self._current = self._durable = snapshot
        self._questions: dict[EdgeId, Push] = {}
        self._reopen_at: dict[Key, float] = {}
        self._foreigners = Foreigners(task, self.guard)
        self._to_tell: list[Frame] = []
        self._estimate: Vector = np.zeros(snapshot.state.dim)
        self._pushed_estimate = self._estimate
        self._last_push = -math.inf
        self._has_news = False
        self._adopt(config)
        self._talk = Talk(self.rules, snapshot.state.dim, self.started)
        self.follow(config)

    # What it knows.

    @property
    def now(self) -> float:
        """The time of this node's clock."""
        return self._clock()

    @property
    def snapshot(self) -> Snapshot:
        """What is known at this moment, durable or not."""
        return self._current

    @property
    def estimate(self) -> Vector:
        """The model to predict with: the last sound one."""
        with self.lock:
            state = self._current.state
            if state.is_sound(self.rules.radius, 0.0):
                self._estimate = ratio(state.holding)
            return self._estimate

    @property
    def is_drained(self) -> bool:
        """Whether a leaving peer has handed over everything, and knows that it arrived."""
        state = self._durable.state
        at_rest = all(edge.phase is OutPhase.DEAD or edge.is_at_rest for edge in state.out.values())
        return state.leaving and at_rest and not state.holding.any()

    @property
    def is_restless(self) -> bool:
        """Whether something waits: to be said, to be answered, to be pushed or handed over."""
        with self.lock:
            state = self._current.state
            if self.has_words or state.leaving:
                return True
            if any(
                not edge.is_at_rest and edge.phase is not OutPhase.DEAD
                for edge in state.out.values()
            ):
                return True
            # Who has nobody to push to, or no mass to push, has nothing to wait for.
            could = bool(self._shares) and state.is_sound(self.rules.radius, self.rules.mass_floor)
            return could and self._may_push and (self._has_news or self._has_moved())

    def name_of(self, key: Key) -> str:
        """What to call a peer."""
        contact = self._current.contacts.get(key)
        return contact.name if contact else self.config.name_of(key)

    # What its owner wants.

    def follow(self, config: PeerConfig) -> None:
        """Do as the configuration says from now on."""
        with self.lock:
            self._adopt(config)
            self._talk.rules = self.rules
            state = self._current.state
            trusted = {receiver.key for receiver in config.receivers}
            for edge in list(state.out.values()):
                if edge.receiver not in trusted and edge.phase in LIVE:
                    state = distrust(state, edge.receiver)
            if config.leaving and not state.leaving:
                state = leave(state)
            contacts = {
                **self._current.contacts,
                **{peer.key: Contact(peer.name, peer.address) for peer in config.receivers},
            }
            if contacts != self._current.contacts:
                self._current = replace(self._current, contacts=contacts)
            self._set(state)
            self._open_edges()

    def learn(self, x: Mapping[str, object], y: object, position: Position | None = None) -> float:
        """Learn from a sample at once; return the loss suffered before.

        Raises:
            DataError: The sample cannot be used; nothing has changed.
        """
        with self.lock:
            journal = self._current.journal
            lesson = self._learner.learn(self._minted(), self.estimate, x, y, journal.samples)
            journal = replace(
                journal,
                samples=journal.samples + 1,
                loss_sum=journal.loss_sum + lesson.loss,
                correct=journal.correct + bool(lesson.correct),
                position=journal.position if position is None else position,
            )
            history = with_sample(
                self._current.history, lesson.loss, bool(lesson.correct), self._wall_clock()
            )
            self._current = replace(
                self._current, state=lesson.state, journal=journal, history=history
            )
            self.recent_losses.append(lesson.loss)
            self.last_sample = self._clock()
            self._has_news = True
            self.push_if_due()
            return lesson.loss

    def skip(self, reason: str, position: Position | None = None) -> None:
        """Count a sample that could not be used."""
        with self.lock:
            journal = self._current.journal
            place = journal.position if position is None else position
            journal = replace(journal, skipped=journal.skipped + 1, position=place)
            self._current = replace(self._current, journal=journal)
            self.last_skipped = reason

    def predict(self, x: Mapping[str, object]) -> str | float:
        """The label expected for a sample."""
        return self._learner.predict(self.estimate, x)

    def probabilities(self, x: Mapping[str, object]) -> dict[str, float]:
        """How probable each class is."""
        return self._learner.probabilities(self.estimate, x)

    def ensure_minted(self) -> None:
        """Bring the unit of mass now, at a model of zeros, unless it was brought before."""
        with self.lock:
            self._set(self._minted())

    # What time brings.

    def push_if_due(self) -> None:
        """Push, if there is something new and the last push is long enough ago."""
        with self.lock:
            if not self._may_push:
                return
            now, state = self._clock(), self._current.state
            since = now - self._last_push
            news = self._has_news or state.leaving or (since >= IDLE_SECONDS and self._has_moved())
            if not news or since < 1.0 / self.config.limits.pushes_per_second:
                return
            after = push(state, self._shares, self.rules)
            if after is not state:
                self._set(after)
                self._last_push, self._has_news = now, False
                self._pushed_estimate = self.estimate

    def tick(self) -> None:
        """Whatever is due by now: a push, a new edge, a verdict of death."""
        with self.lock:
            now, state = self._clock(), self._current.state
            for edge_id, edge in list(state.out.items()):
                silent = now - self.answered.get(edge.receiver, self.started)
                waits = edge.in_flight or edge.phase is OutPhase.CLOSING
                dead = edge.phase is OutPhase.DEAD
                if waits and not dead and silent > self.config.limits.presume_dead_after:
                    state = presume_dead(state, edge_id)
            self._set(state)
            self._open_edges()
            self.push_if_due()

    def reached(self, peer: Key) -> None:
        """A peer is there, perhaps after a long time: what it has not answered is said soon."""
        with self.lock:
            self._talk.answered(peer, self._clock())

    def take(self, arrival: Arrival) -> None:
        """Take in a frame from the network."""
        with self.lock:
            peer = arrival.peer
            if self.guard.is_quarantined(peer):
                self.guard.count(peer, "quarantined")
                return
            try:
                task, message = decode(arrival.frame)
            except WireError as error:
                self.guard.strike(peer, "undecodable", str(error))
                return
            if task != self.task.fingerprint or isinstance(message, Foreign):
                self._meet_foreigner(arrival, message)
                return
            self.guard.agrees(peer)
            before = self._current.state
            if arrival.via == "push" and isinstance(message, Push):
                done = self._take_push(peer, message)
            elif arrival.via == "reply" and isinstance(message, Reply):
                done = self._take_reply(peer, message)
            else:
                self.guard.strike(peer, "out of place", "it answers what was not asked")
                return
            if done.strike is not None:
                self.guard.strike(peer, done.strike.kind, done.strike.sentence)
            elif isinstance(message, Data) and done.state is before:
                self.guard.count(peer, REPEATED)
            if done.clipped:
                self.guard.clip(peer, done.clipped)
            self._set(done.state)

    # What is to be made durable, and then said.

    @property
    def has_words(self) -> bool:
        """Whether there is something to say that needs no commit."""
        return bool(self._to_tell)

    @property
    def has_work(self) -> bool:
        """Whether there is something to commit or to answer."""
        return self._current is not self._durable or bool(self._questions)

    def begin(self) -> Batch | None:
        """What to commit now; None if there is nothing to commit and nothing to answer."""
        with self.lock:
            if not self.has_work:
                return None
            batch = Batch(self._current, self._questions)
            self._questions = {}
            return batch

    def is_durable(self, batch: Batch) -> bool:
        """Whether a batch has nothing that is not durable already."""
        return batch.snapshot is self._durable

    def committed(self, batch: Batch) -> list[Frame]:
        """What may be said now that a batch is durable."""
        with self.lock:
            self._durable = batch.snapshot
            self.disk_problem = ""
            now = self._clock()
            self._note_lags(batch.snapshot.state, now)
            return self._frames(self._talk.news(batch.snapshot.state, batch.questions, now))

    def failed(self, batch: Batch, problem: str) -> None:
        """A batch could not be made durable: say nothing of it, push nothing more, try again."""
        with self.lock:
            self.disk_problem = problem
            self._questions = {**batch.questions, **self._questions}

    def overdue(self) -> list[Frame]:
        """What must be said again."""
        with self.lock:
            told, self._to_tell = self._to_tell, []
            words = self._talk.overdue(self._durable.state, self._clock())
            return told + self._frames(words)

    # Details.

    def _set(self, state: PeerState) -> None:
        if state is not self._current.state:
            self._current = replace(self._current, state=state)

    def _minted(self) -> PeerState:
        """The state with its unit of mass, at a model of zeros unless it was brought before."""
        state = self._current.state
        if state.has_minted or state.leaving:
            return state
        return mint(state, np.zeros(state.dim))

    def _adopt(self, config: PeerConfig) -> None:
        limits = config.limits
        self.config = config
        self.guard.max_strikes = limits.max_strikes
        self.rules = Rules(
            secret=self._secret,
            window=limits.window_for(self.task.dim),
            mass_cap=self.task.mass_cap,
            radius=self.task.radius,
            clip=limits.clip or math.inf,
        )
        total = sum(receiver.weight for receiver in config.receivers)
        self._shares = {
            receiver.key: (1.0 - config.keep) * receiver.weight / total
            for receiver in config.receivers
        }

    def _open_edges(self) -> None:
        now, state = self._clock(), self._current.state
        for receiver in self._shares:
            if now >= self._reopen_at.get(receiver, now):
                state = trust(state, receiver, self._new_epoch())
        self._set(state)

    @property
    def _may_push(self) -> bool:
        return not (self.config.paused or self.disk_problem)

    def _has_moved(self) -> bool:
        estimate = self.estimate
        moved = float(np.linalg.norm(estimate - self._pushed_estimate))
        return moved > MOVED * (1.0 + float(np.linalg.norm(estimate)))

    def _take_push(self, sender: Key, message: Push) -> Absorbed:
        self.pushed[sender] = self._clock()
        self.reached(sender)
        self._questions[sender, message.epoch] = message
        return receive_push(self._current.state, sender, message, self.rules)

    def _take_reply(self, receiver: Key, message: Reply) -> Absorbed:
        now = self._clock()
        self.answered[receiver] = now
        self._talk.answered(receiver, now)
        before = self._current.state
        done = receive_reply(before, receiver, message, self.rules)
        edge_id = (receiver, message.epoch)
        edge = before.out.get(edge_id)
        if edge is not None and edge_id not in done.state.out:
            closed_by_them = edge.phase in LIVE and not isinstance(message, Gone)
            self._reopen_at[receiver] = now + REOPEN_SECONDS if closed_by_them else now
        return done

    def _meet_foreigner(self, arrival: Arrival, message: Body) -> None:
        told = self._foreigners.meet(arrival.peer, message, self._clock())
        if told is not None:
            back = "reply" if arrival.via == "push" else "push"
            self._to_tell.append(Frame(arrival.peer, back, encode(told, self.task.fingerprint)))

    def _note_lags(self, durable: PeerState, now: float) -> None:
        """Remember since when each edge waits for an acknowledgement."""
        for edge_id, edge in durable.out.items():
            known = self.lagging.get(edge_id)
            if edge.in_flight == 0:
                self.lagging.pop(edge_id, None)
            elif known is None or edge.acked != known[0]:
                self.lagging[edge_id] = (edge.acked, now)
        for gone in self.lagging.keys() - durable.out.keys():
            del self.lagging[gone]

    def _frames(self, words: Iterable[Word]) -> list[Frame]:
        fingerprint = self.task.fingerprint
        return [Frame(peer, via, encode(word, fingerprint)) for peer, via, word in words]
