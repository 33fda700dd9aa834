"""Peer state machine: applies samples and frames, decides what to commit and what to send.

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
from oneway.peer.conduct import ConductLog, Mismatches
from oneway.peer.home.config import PeerConfig
from oneway.peer.learner import Learner
from oneway.peer.send_schedule import SendSchedule, Word
from oneway.peer.store.snapshot import Contact, Snapshot
from oneway.protocol import transitions
from oneway.protocol.incoming import Absorbed
from oneway.protocol.messages import Data, Gone, Push, Reply
from oneway.protocol.state import LIVE, EdgeId, Key, OutPhase, PeerState
from oneway.records import Vector
from oneway.records.status import REPEATED
from oneway.tables.rows import Position
from oneway.task.task import Task
from oneway.transport.base import Arrival
from oneway.transport.wire import decode, encode

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
    """One peer without its network and its disk.

    Attributes:
        task: What all peers learn.
        learner: Its model and method.
        lock: Held while anything below changes; to read several of them as of one moment.
        snapshot: What is known at this moment, durable or not.
        config: What this peer is told now.
        rules: The same, as far as the protocol goes.
        disk_problem: Why the last commit failed, as a sentence; empty if it did not.
        last_skipped: Why the last sample that could not be used could not; empty if none.
        last_sample: When the last sample was learned from in this life, if any was.
        guard: Who behaved how.
        answered: When each receiver last answered in this life.
        pushed: When each sender last pushed in this life.
        schedule: What is said when, and since when it waits for an answer.
        recent_losses: Of the last `RECENT` samples.
        clock: Seconds that only grow; all moments here are by it.
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
        rng: np.random.Generator | None = None,
    ) -> None:
        """Begin with a durable snapshot (`restart` was applied before it was committed).

        By the `secret` it recognises its own totals. `wall_clock` counts from 1970, for the
        history; `new_epoch` draws random names for edges, `rng` is for the method.
        """
        self.task = task
        self.lock = threading.RLock()
        self.disk_problem = ""
        self.last_skipped = ""
        self.last_sample: float | None = None
        self.guard = ConductLog(config.limits.max_strikes, clock, self.name_of)
        self.answered: dict[Key, float] = {}
        self.pushed: dict[Key, float] = {}
        self.recent_losses: deque[float] = deque(maxlen=RECENT)
        self.started = clock()
        self._secret = secret
        self.clock = clock
        self._wall_clock = wall_clock
        self._new_epoch = new_epoch
        self.learner = Learner(task, rng)
        self.snapshot = self._durable = replace(
            snapshot,
            state=replace(snapshot.state, layout=self.learner.layout),
            memory=snapshot.memory or self.learner.first_memory(),
        )
        self._questions: dict[EdgeId, Push] = {}
        self._reopen_at: dict[Key, float] = {}
        self._mismatches = Mismatches(task, self.guard)
        self._to_tell: list[Word] = []
        self._estimate: Vector = self.learner.start
        self._estimated: Snapshot | None = None
        self._pushed_estimate = self._estimate
        self._last_push = -math.inf
        self._has_news = False
        self.rules = config.limits.rules(task, secret)
        self.schedule = SendSchedule(self.rules, snapshot.state.dim, self.started)
        self.follow(config)

    # What it knows.

    @property
    def estimate(self) -> Vector:
        """The model to predict with: the last sound one."""
        with self.lock:
            known = self.snapshot
            if known is not self._estimated and known.state.is_sound(self.rules.radius, 0.0):
                self._estimate = self.learner.estimate(known.state, known.memory, self.rules)
                self._estimated = known
            return self._estimate

    @property
    def is_drained(self) -> bool:
        """Whether a leaving peer has handed over everything, and knows that it arrived."""
        state = self._durable.state
        waits = any(edge.waits for edge in state.out.values())
        return state.leaving and not waits and not state.layout.booked(state.holding).any()

    @property
    def is_restless(self) -> bool:
        """Whether something waits: to be said, to be answered, to be pushed or handed over."""
        with self.lock:
            state = self.snapshot.state
            waits = any(edge.waits for edge in state.out.values())
            if waits or self.has_words or state.leaving:
                return True
            # Who has nobody to push to, or no mass to push, has nothing to wait for.
            could = bool(self._shares) and state.is_sound(self.rules.radius, self.rules.mass_floor)
            return could and self._may_push and (self._has_news or self._has_moved())

    def name_of(self, key: Key) -> str:
        """What to call a peer."""
        contact = self.snapshot.contacts.get(key)
        return contact.name if contact else self.config.name_of(key)

    # What its owner wants.

    def follow(self, config: PeerConfig) -> None:
        """Do as the configuration says from now on."""
        with self.lock:
            self.config = config
            self.guard.max_strikes = config.limits.max_strikes
            self.rules = self.schedule.rules = config.limits.rules(self.task, self._secret)
            self._shares = config.shares if self.learner.exchanges else {}
            state = self.snapshot.state
            named = {peer.key: Contact(peer.name, peer.address) for peer in config.receivers}
            for edge in list(state.out.values()):
                if edge.receiver not in named and edge.phase in LIVE:
                    state = transitions.distrust(state, edge.receiver)
            if config.leaving and not state.leaving:
                state = transitions.leave(state)
            contacts = {**self.snapshot.contacts, **named}
            if contacts != self.snapshot.contacts:
                self.snapshot = replace(self.snapshot, contacts=contacts)
            self._set(state)
            self._open_edges()

    def learn(self, x: Mapping[str, object], y: object, position: Position | None = None) -> float:
        """Learn from a sample at once; return the loss suffered before.

        Raises:
            DataError: The sample cannot be used; nothing has changed.
        """
        with self.lock:
            before, params = self.snapshot, self.estimate
            seen = before.journal.samples
            lesson = self.learner.learn(
                self._minted(), before.memory, params, x, y, seen, self.rules
            )
            right, now = bool(lesson.correct), self._wall_clock()
            self.snapshot = before.with_sample(
                lesson.state, lesson.memory, lesson.loss, right, now, position
            )
            self.recent_losses.append(lesson.loss)
            self.last_sample = self.clock()
            self._has_news = True
            self.push_if_due()
            return lesson.loss

    def skip(self, reason: str, position: Position | None = None) -> None:
        """Count a sample that could not be used."""
        with self.lock:
            self.snapshot = self.snapshot.with_skipped(position)
            self.last_skipped = reason

    def ensure_minted(self) -> None:
        """Bring the unit of mass now, at the model to begin with, unless it was brought before."""
        with self.lock:
            self._set(self._minted())

    # What time brings.

    def push_if_due(self) -> None:
        """Push, if there is something new and the last push is long enough ago."""
        with self.lock:
            if not self._may_push:
                return
            now, state = self.clock(), self.snapshot.state
            since = now - self._last_push
            news = self._has_news or state.leaving or (since >= IDLE_SECONDS and self._has_moved())
            if not news or since < 1.0 / self.config.limits.pushes_per_second:
                return
            if state.layout.copied and not (self._has_news or state.leaving):
                state = self.learner.adopt_average(state, self.rules)
            after = transitions.push(state, self._shares, self.rules)
            if after is not state:
                self._set(after)
                self._last_push, self._has_news = now, False
                self._pushed_estimate = self.estimate

    def tick(self) -> None:
        """Whatever is due by now: a push, a new edge, a verdict of death."""
        with self.lock:
            now, state = self.clock(), self.snapshot.state
            for edge_id, edge in list(state.out.items()):
                silent = now - self.answered.get(edge.receiver, self.started)
                waits = edge.in_flight or edge.phase is OutPhase.CLOSING
                dead = edge.phase is OutPhase.DEAD
                if waits and not dead and silent > self.config.limits.presume_dead_after:
                    state = transitions.presume_dead(state, edge_id)
            self._set(state)
            self._open_edges()
            self.push_if_due()

    def reached(self, peer: Key) -> None:
        """A peer is there, perhaps after a long time: what it has not answered is said soon."""
        with self.lock:
            self.schedule.answered(peer, self.clock())

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
            if task != self.task.fingerprint or not isinstance(message, Push | Reply):
                told = self._mismatches.meet(peer, message, self.clock())
                if told is not None:
                    self._to_tell.append((peer, "reply" if arrival.via == "push" else "push", told))
                return
            self.guard.agrees(peer)
            before = self.snapshot.state
            if arrival.via == "push" and isinstance(message, Push):
                self.pushed[peer] = self.clock()
                self.reached(peer)
                self._questions[peer, message.epoch] = message
                done = transitions.receive_push(before, peer, message, self.rules)
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
        return self.snapshot is not self._durable or bool(self._questions)

    def begin(self) -> Batch | None:
        """What to commit now; None if there is nothing to commit and nothing to answer."""
        with self.lock:
            if not self.has_work:
                return None
            batch = Batch(self.snapshot, self._questions)
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
            state = batch.snapshot.state
            return self._frames(self.schedule.news(state, batch.questions, self.clock()))

    def failed(self, batch: Batch, problem: str) -> None:
        """A batch could not be made durable: say nothing of it, push nothing more, try again."""
        with self.lock:
            self.disk_problem = problem
            self._questions = {**batch.questions, **self._questions}

    def overdue(self) -> list[Frame]:
        """What must be said again."""
        with self.lock:
            told, self._to_tell = self._to_tell, []
            return self._frames([*told, *self.schedule.overdue(self._durable.state, self.clock())])

    # Details.

    def _set(self, state: PeerState) -> None:
        if state is not self.snapshot.state:
            self.snapshot = replace(self.snapshot, state=state)

    def _minted(self) -> PeerState:
        """The state with its unit of mass, at the first model unless it was brought before."""
        state = self.snapshot.state
        if state.has_minted or state.leaving:
            return state
        return transitions.mint(state, state.layout.start(self.learner.start, state.dim))

    def _open_edges(self) -> None:
        now, state = self.clock(), self.snapshot.state
        for receiver in self._shares:
            if now >= self._reopen_at.get(receiver, now):
                state = transitions.trust(state, receiver, self._new_epoch())
        self._set(state)

    @property
    def _may_push(self) -> bool:
        return not (self.config.paused or self.disk_problem)

    def _has_moved(self) -> bool:
        estimate = self.estimate
        moved = float(np.linalg.norm(estimate - self._pushed_estimate))
        return moved > MOVED * (1.0 + float(np.linalg.norm(estimate)))

    def _take_reply(self, receiver: Key, message: Reply) -> Absorbed:
        now = self.clock()
        self.answered[receiver] = now
        self.schedule.answered(receiver, now)
        before = self.snapshot.state
        done = transitions.receive_reply(before, receiver, message, self.rules)
        edge_id = (receiver, message.epoch)
        edge = before.out.get(edge_id)
        if edge is not None and edge_id not in done.state.out:
            closed_by_them = edge.phase in LIVE and not isinstance(message, Gone)
            self._reopen_at[receiver] = now + REOPEN_SECONDS if closed_by_them else now
        return done

    def _frames(self, words: Iterable[Word]) -> list[Frame]:
        fingerprint = self.task.fingerprint
        return [Frame(peer, via, encode(word, fingerprint)) for peer, via, word in words]
