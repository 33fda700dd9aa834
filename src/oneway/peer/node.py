"""Peer state machine: applies samples and frames, decides what to commit and what to send.

The runtime brings in frames and samples, makes snapshots durable and sends what `committed` and
`overdue` return. All methods are quick, may be called from any thread, and never wait for either.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import is_

import numpy as np
from msgspec.structs import replace

from oneway.export import PersonalModel
from oneway.peer.conduct import ConductLog
from oneway.peer.groups import GroupCounter, Groups, added
from oneway.peer.home.config import PeerConfig
from oneway.peer.inbox import Answers, Inbox
from oneway.peer.inflow import Inflow, handed_on
from oneway.peer.learner import Learner
from oneway.peer.push_pace import PushPace
from oneway.peer.send_schedule import SendSchedule, Word
from oneway.peer.store.average import with_estimate
from oneway.peer.store.large import is_large
from oneway.peer.store.snapshot import Contact, Snapshot
from oneway.peer.stream_progress import ProgressSeal, ToldProgress, unanswered
from oneway.protocol import transitions
from oneway.protocol.incoming import mint
from oneway.protocol.pace import DRAINED
from oneway.protocol.rules import Rules
from oneway.protocol.state import LIVE, InEdge, Key, OutPhase, PeerState, Told
from oneway.protocol.tags import digest_of
from oneway.records import Vector
from oneway.tables.rows import Position
from oneway.task.task import Task
from oneway.transport.base import Arrival, Via
from oneway.transport.wire import encode

RECENT = 200
"""Samples that the recent loss is a mean of."""


@dataclass(frozen=True, eq=False)
class Commit:
    """What to make durable, and what may be answered once it is."""

    snapshot: Snapshot
    answers: Answers

    @property
    def is_large(self) -> bool:
        """Whether there is something to prepare that takes long."""
        return is_large(self.snapshot.state.dim)

    def prepare(self) -> None:
        """Compute, while the disk writes, the digests that what is said of large totals needs."""
        for edge in self.snapshot.state.out.values():
            if edge.phase is OutPhase.OPEN:
                digest_of(edge.sent)


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes to send: a push over one's own connection, or a reply over the other's."""

    peer: Key
    via: Via
    content: bytes


class Estimates:
    """Computes the estimate of a snapshot, once for each state, memory and rules."""

    def __init__(self, learner: Learner) -> None:
        """Begin with the learner's first model."""
        self._learner = learner
        self._last = learner.start
        self._of: tuple[object, ...] = (None,) * 5

    def momentary(self, snapshot: Snapshot, rules: Rules) -> Vector:
        """The model that a snapshot stands for; if it stands for none, the last that one did."""
        state, memory = snapshot.state, snapshot.memory
        basis = (*self._learner.basis(state, memory), rules)
        is_new = not all(map(is_, basis, self._of))
        if is_new and state.is_sound(rules.radius):
            self._last = self._learner.estimate(state, memory, rules)
            self._of = basis
        return self._last

    def settled(self, snapshot: Snapshot, rules: Rules) -> Vector:
        """The average of the last estimates; the momentary one before the first."""
        if snapshot.average is None:
            return self.momentary(snapshot, rules)
        return snapshot.average.params

    def stored(self, snapshot: Snapshot, rules: Rules, momentary: bool) -> Vector:
        """The settled or the momentary model of this snapshot alone, or else the first one."""
        average, state = snapshot.average, snapshot.state
        if state.is_sound(rules.radius) and (momentary or average is None):
            return self._learner.estimate(state, snapshot.memory, rules)
        return self._learner.start if average is None else average.params

    def averaged(self, snapshot: Snapshot, rules: Rules, since: Snapshot | None = None) -> Snapshot:
        """The snapshot with its estimate in the average; as it is if it stands for none.

        With `since`, only if something that changes a model has come in since that snapshot.
        """
        state = snapshot.state
        is_same = since is not None and state.in_ is since.state.in_
        if is_same or not state.is_sound(rules.radius):
            return snapshot
        estimate = self.momentary(snapshot, rules)
        return replace(snapshot, average=with_estimate(snapshot.average, estimate))


class Node:
    """One peer without its network and its disk.

    Attributes:
        key: Its own public key.
        task: What all peers learn.
        learner: Its model and method.
        lock: Held while anything below changes; to read several of them as of one moment.
        snapshot: What is known at this moment, durable or not.
        durable: What was known at the last commit.
        config: What this peer is told now.
        rules: The same, as far as the protocol goes.
        disk_problem: Why the last commit failed, as a sentence; empty if it did not.
        disk_problem_since: When the first of the commits failed that failed in a row, if any did.
        personal_note: What there is to know about personal predictions, in sentences, or empty.
        last_skipped: Why the last sample that could not be used could not; empty if none.
        last_sample: When the last sample was learned from in this life, if any was.
        guard: Who behaved how.
        inbox: What came from whom, and when.
        connected: The receivers whose connection is up; None if that is not known.
        schedule: What is said when, and since when it waits for an answer.
        recent_losses: Of the last `RECENT` samples.
        clock: Seconds that only grow; all moments here are by it.
        started: When this life began.
        each_sample_once: Whether the stream waits until receivers have told how far it had come.
    """

    def __init__(
        self,
        task: Task,
        secret: bytes,
        config: PeerConfig,
        snapshot: Snapshot,
        *,
        key: Key,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        new_epoch: Callable[[], int],
        rng: np.random.Generator | None = None,
        learner: Learner | None = None,
    ) -> None:
        """Begin with a durable snapshot (`restart` was applied before it was committed).

        `key` is its own; by the `secret` it recognises its own totals. `wall_clock` counts from
        1970, for the history; `new_epoch` makes stamps to name edges by, `rng` is for the method.
        A `learner` that is given has all that is random from elsewhere.
        """
        self.key, self.task = key, task
        self.lock = threading.RLock()
        self.disk_problem = self.last_skipped = ""
        self.disk_problem_since = 0.0
        self.last_sample: float | None = None
        self.guard = ConductLog(config.limits.max_strikes, clock, self.name_of)
        self._seal = ProgressSeal(secret, task.fingerprint)
        self.connected: frozenset[Key] | None = None
        self.recent_losses: deque[float] = deque(maxlen=RECENT)
        self.started = clock()
        self._secret = secret
        self.clock, self.wall_clock, self.new_stamp = clock, wall_clock, new_epoch
        self.learner = learner or Learner(task, rng, config.privacy)
        steps = snapshot.journal.samples // self.learner.samples_per_step
        heaviest = self.learner.mass_bounds[1]
        self.inflow = Inflow(task.longest_step, steps, self.clock(), heaviest)
        self.inbox = Inbox(key, task, self.guard, clock, self.inflow, ToldProgress(self._seal))
        self.each_sample_once = bool(self.learner.as_learned.privacy)
        progress = self._seal.seal(snapshot.journal)
        self.groups = GroupCounter(self.learner.as_learned.privacy, secret)
        measures, self.personal_note = self.learner.measures_resumed(snapshot.measures)
        self.snapshot = self.durable = replace(
            snapshot,
            measures=measures,
            state=replace(snapshot.state, layout=self.learner.layout, progress=progress),
            memory=self.learner.resumed(snapshot.memory),
        )
        self._estimates = Estimates(self.learner)
        self._pace = PushPace(self.learner.start, self.started)
        self._regains = False
        self._pace.learns = snapshot.journal.samples > 0
        self.rules = config.limits.rules(task, secret)
        self.schedule = SendSchedule(key, self.rules, snapshot.state.dim, self.started)
        self.follow(config)

    # What it knows.

    @property
    def estimate(self) -> Vector:
        """The model to learn with, which jumps: the last sound one."""
        with self.lock:
            return self._estimates.momentary(self.snapshot, self.rules)

    @property
    def settled(self) -> Vector:
        """The model to predict with: the average of the last estimates."""
        with self.lock:
            return self._estimates.settled(self.snapshot, self.rules)

    def personal_model(self, **origin: object) -> PersonalModel | None:
        """What predicts for its owner: the mixture of this moment; None if the shared model does.

        The shared expert is the estimate of this moment, with which the mixture was measured.
        """
        with self.lock:
            return self.learner.personal(self.estimate, self.snapshot.measures, **origin)

    def durable_model(self, *, momentary: bool) -> tuple[Vector, int]:
        """The model to hand out, settled or momentary, and how many samples it was learned from.

        Only what is durable: after a crash the noise of a later batch would be drawn anew, and who
        has seen both would know more than was promised.
        """
        with self.lock:
            known = self.durable
            return self._estimates.stored(known, self.rules, momentary), known.journal.learned

    @property
    def is_drained(self) -> bool:
        """Whether a leaving peer has handed over everything, and knows that it arrived."""
        return _is_drained(self.durable.state)

    @property
    def stopped(self) -> str:
        """Reason to stop, or an empty string."""
        return self.inbox.copies.why_to_stop(self.config.name, self.name_of)

    @property
    def unanswered(self) -> list[Key]:
        """The receivers that must first tell how far the stream had come before this life."""
        if not self.each_sample_once:
            return []
        age = self.clock() - self.started
        return unanswered(self.snapshot.state, age, self.config.limits.presume_dead_after)

    @property
    def unheard(self) -> list[Key]:
        """The senders that have not confirmed yet that they know that this peer leaves."""
        return _unheard(self.durable.state) if self.snapshot.state.leaving else []

    @property
    def is_restless(self) -> bool:
        """Whether something waits: to be said, to be answered, to be pushed or handed over."""
        with self.lock:
            state = self.snapshot.state
            if self.has_words or state.leaving or any(it.waits for it in state.out.values()):
                return True
            # Without receivers, or without mass, there is nothing to wait for.
            could = bool(self._shares) and state.is_sound(self.rules.radius)
            return could and self._may_push and self._pace.has_news(self.estimate, state)

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
            self.inbox.listed = {sender.key for sender in config.senders} | named.keys()
            for edge in list(state.out.values()):
                if edge.receiver not in named and edge.phase in LIVE:
                    state = transitions.distrust(state, edge.receiver)
                    self._regains = state.mass < DRAINED
            if config.leaving and not state.leaving:
                state = transitions.leave(state)
                self.snapshot = self.snapshot.without_unfinished()  # it will never be full
            elif state.leaving and not config.leaving:
                state = transitions.stay(state)
            if (contacts := {**self.snapshot.contacts, **named}) != self.snapshot.contacts:
                self.snapshot = replace(self.snapshot, contacts=contacts)
            self._set(state)
            self._open_edges()

    def learn(
        self, x: Mapping[str, object] | Vector, y: object, position: Position | None = None
    ) -> float:
        """Learn from a sample at once, or from one that is encoded.

        Returns the loss of the personal prediction that was made before.

        Raises:
            DataError: The sample cannot be used; nothing has changed.
        """
        with self.lock:
            before = self.snapshot
            if self.last_sample is None and self.unanswered:
                before = before.without_unfinished()  # it was perhaps pushed already
            groups = before.groups
            if not isinstance(x, np.ndarray):
                groups = self.groups.counted(groups, x)
            lesson = self.learner.learn(self._minted(), before, self.estimate, x, y, self.rules)
            learned = before.with_sample(lesson, self.wall_clock(), position, groups)
            if lesson.released and not self._shares and learned.state.is_sound(self.rules.radius):
                # With the step and not with a push, so that no clock decides what is learned.
                learned = replace(learned, state=transitions.let_go(learned.state, 0.0))
            self.snapshot = self._estimates.averaged(learned, self.rules)
            self.recent_losses.append(lesson.measured.loss)
            self.last_sample, self._pace.learns = self.clock(), True
            if lesson.released:  # an unfinished batch is nobody else's business
                moved = self._pace.moved(self.estimate, self.snapshot.state)
                self._pace.stepped(self.learner.mixes, self.last_sample, moved)
                self.inflow.stepped(lesson.step, self.last_sample)
                if lesson.deposited:
                    self.inflow.deposited(lesson.deposited, lesson.state.mass, self.last_sample)
                if not self._shares:
                    self.inflow.handed_on(1.0)
            self.push_if_due()
            return lesson.measured.loss

    def skip(self, reason: str, position: Position | None = None) -> None:
        """Count a sample that could not be used."""
        with self.lock:
            self.snapshot = self.snapshot.with_skipped(position)
            self.last_skipped = reason

    def note_forgotten(self, noted: Groups) -> None:
        """Add how many rows of each group were learned in a forgotten life; once."""
        with self.lock:
            self.snapshot = self.snapshot.with_noted(added(self.snapshot.groups, noted))

    def ensure_minted(self) -> None:
        """Bring the unit of mass now, at the model to begin with, unless it was brought before."""
        with self.lock:
            self._set(self._minted())

    # What time brings.

    def push_if_due(self) -> None:
        """Push, if there is something new and the last push is long enough ago."""
        with self.lock:
            now, state = self.clock(), self.snapshot.state
            shortest = 1.0 / self.config.limits.pushes_per_second
            if not (self._may_push and self._pace.is_due(self.estimate, state, now, shortest)):
                return
            ready, memory, deposited = self._kept_mass(state), self.snapshot.memory, 0.0
            if not (self._pace.has_stepped or state.leaving):
                ready, memory, deposited = self.learner.before_push(ready, memory, self.rules)
            shares = {key: it for key, it in self._shares.items() if not self.held_back(key)}
            after = transitions.push(ready, shares, self.rules)
            if not shares:
                self._pace.has_stepped = False  # what arrives after it is deposited here, too
                after = self._without_receivers(after)
            if after is ready and (ready is state or not self._may_deposit(state)):
                return
            self._pace.last = now
            if deposited:
                self.inflow.deposited(deposited, ready.mass, now)
            self.inflow.handed_on(handed_on(ready, after))
            self.snapshot = replace(self.snapshot, state=after, memory=memory)
            if after is not ready:
                if self._regains:
                    regained = transitions.recover(after)
                    self._regains, after = regained is not after, regained
                self._set(replace(after, progress=self._seal.seal(self.snapshot.journal)))
                if shares or not self._shares:
                    self._pace.pushed(self.estimate)

    def _without_receivers(self, state: PeerState) -> PeerState:
        """The state of a peer that can hand over nothing, for now or for good.

        Of steps that wait in a parcel a little would be deposited again and again. Who receives and
        sends to nobody also lets go of the mass that it would hand to one receiver: see
        `Method.lets_go`. Who is alone keeps its mass, for those whom it meets.
        """
        if not state.is_sound(self.rules.radius):
            return state  # nothing was deposited
        hears = any(edge.seq and not edge.closed for edge in state.in_.values())
        share = 1.0 - self.config.keep if hears and not self._shares else 0.0
        return transitions.let_go(state, share)

    def _may_deposit(self, state: PeerState) -> bool:
        """Whether a parcel is worth a commit without a push."""
        is_sound = state.is_sound(self.rules.radius)
        return is_sound and self._pace.has_parcel(self.estimate, state)

    def held_back(self, receiver: Key) -> str:
        """Why nothing is handed to a receiver at the moment; empty if it is."""
        if self.connected is not None and receiver not in self.connected:
            return "the link is down"
        if self.schedule.is_overdue(receiver, self.clock()):
            return "its answers are overdue"
        return ""

    def tick(self) -> None:
        """Whatever is due by now: a push, a new edge, a verdict of death."""
        with self.lock:
            now, state = self.clock(), self.snapshot.state
            patience, answered = self.config.limits.presume_dead_after, self.inbox.answered
            for edge_id in self.schedule.given_up(state, answered, self.started, now, patience):
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
            self._set(self.inbox.take(self.snapshot.state, arrival, self.rules))
            if self.inbox.told.is_ahead_of(self.snapshot):  # this is a backup that was restored
                self.snapshot = self.inbox.told.caught_up(self.snapshot).without_unfinished()
            self.reached(arrival.peer)
            if arrival.via == "reply" and self._pace.pushes_due:
                self.push_if_due()  # it may have made room, and shares a commit with the answer

    # What is to be made durable, and then said.

    @property
    def has_words(self) -> bool:
        """Whether there is something to say that needs no commit."""
        return bool(self.inbox.words)

    @property
    def has_work(self) -> bool:
        """Whether there is something to commit or to answer."""
        return not self.is_on_disk or self.inbox.has_answers

    @property
    def is_on_disk(self) -> bool:
        """Whether everything that is known is durable."""
        return self.snapshot is self.durable

    def begin(self) -> Commit | None:
        """What to commit now; None if there is nothing to commit and nothing to answer."""
        with self.lock:
            if not self.has_work:
                return None
            # What came in, however much it was, counts once: a flood costs no more than a commit.
            self.snapshot = self._estimates.averaged(self.snapshot, self.rules, self.durable)
            return Commit(self.snapshot, self.inbox.take_answers())

    def is_durable(self, commit: Commit) -> bool:
        """Whether a commit has nothing that is not durable already."""
        return commit.snapshot is self.durable

    def committed(self, commit: Commit) -> list[Frame]:
        """What may be said now that a commit is durable."""
        with self.lock:
            self.durable = commit.snapshot
            self.disk_problem, self.disk_problem_since = "", 0.0
            state = commit.snapshot.state
            answers, now = commit.answers, self.clock()
            words = [*self.schedule.news(state, answers.questions, now), *answers.receipts]
            words += self.schedule.endings(state, answers.ends)
            return self._frames(words)

    def failed(self, commit: Commit, problem: str) -> None:
        """A commit could not be made durable: say nothing of it, push nothing more, try again."""
        with self.lock:
            self.disk_problem = problem
            self.disk_problem_since = self.disk_problem_since or self.wall_clock()
            self.inbox.put_back(commit.answers)

    def words(self) -> list[Frame]:
        """What to say at once, over the connection that was just heard from."""
        with self.lock:
            words, self.inbox.words = self.inbox.words, []
            return self._frames(words)

    def overdue(self) -> list[Frame]:
        """What must be said again."""
        with self.lock:
            return self._frames(self.schedule.overdue(self.durable.state, self.clock()))

    def _set(self, state: PeerState) -> None:
        if state is not self.snapshot.state:
            self.snapshot = replace(self.snapshot, state=state)

    def _minted(self) -> PeerState:
        """The state with its unit of mass and within bounds; at first, at the first model."""
        state = self.snapshot.state
        if state.leaving:
            return state
        if not state.has_minted:
            state = mint(state, state.layout.start(self.learner.start, state.dim))
        return self._kept_mass(state)

    def _kept_mass(self, state: PeerState) -> PeerState:
        """The state with its mass within bounds, as a simulation keeps it after every exchange.

        Before a step or a push and not with every inflow: what was handed out may come back.
        """
        if not state.is_sound(self.rules.radius):
            return state
        return transitions.keep_mass(state, self.learner.mass_bounds)

    def _open_edges(self) -> None:
        now, state = self.clock(), self.snapshot.state
        for receiver in self._shares:
            if now >= self.inbox.reopen_at.get(receiver, now):
                state = transitions.trust(state, receiver, self.new_stamp())
        self._set(state)

    @property
    def _may_push(self) -> bool:
        return not (self.config.paused or self.disk_problem)

    def _frames(self, words: Iterable[Word]) -> list[Frame]:
        return [Frame(peer, via, encode(word, self.task.fingerprint)) for peer, via, word in words]


def _is_drained(state: PeerState) -> bool:
    """Whether a leaving peer has handed over everything, and knows that it arrived."""
    if not state.leaving or state.layout.booked(state.holding).any():
        return False
    waits = any(edge.waits and edge.seq for edge in state.out.values())
    return not waits and all(edge.told is not Told.NOBODY for edge in _heard_edges(state))


def _unheard(state: PeerState) -> list[Key]:
    """The senders that have not confirmed yet that they know that a leaving peer leaves."""
    edges = [edge for edge in _heard_edges(state) if edge.told is not Told.SENDER]
    return list(dict.fromkeys(edge.sender for edge in edges))


def _heard_edges(state: PeerState) -> list[InEdge]:
    return [edge for edge in state.in_.values() if edge.seq]
