"""Peer in virtual time: its lives one after the other, its samples' clock, its sleep."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np
from msgspec.structs import replace

from oneway.asynchronous.exact_nodes import CountedNode, Counts, LyingNode
from oneway.asynchronous.virtual_links import Chance, EventQueue, VirtualLinks
from oneway.asynchronous.virtual_runtime import VirtualRuntime
from oneway.errors import DataError
from oneway.peer.home.config import PeerConfig
from oneway.peer.learner import Learner
from oneway.peer.runtime import TICK_SECONDS
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.stamps import first_stamp
from oneway.protocol.state import Key, PeerState
from oneway.protocol.transitions import restart
from oneway.records import Ints, Vector
from oneway.streams import Stream
from oneway.tables.rows import Position
from oneway.task.task import Task
from oneway.testing.memory_network import MemoryNetwork

EPOCH = 1_700_000_000.0
"""When virtual time begins, in seconds since 1970: stamps are as long as real ones."""
UPTIME = 1e6
"""What a machine's clock says then."""


class Recorder:
    """Loss and moment of every sample; a sample that is learned again after a crash counts once.

    Attributes:
        refused: Round and node of every sample that a peer refused.
    """

    def __init__(self, num_rounds: int, num_nodes: int) -> None:
        self._moments = np.full((num_rounds, num_nodes), np.nan)
        self._losses = np.zeros((num_rounds, num_nodes))
        self._right = np.zeros((num_rounds, num_nodes), np.int8)
        self.refused: list[tuple[int, int]] = []

    def note(self, place: int, node: int, moment: float, loss: float, right: int) -> None:
        """Record the loss of a node's sample before it was learned from."""
        self._moments[place, node] = moment
        self._losses[place, node] = loss
        self._right[place, node] = right

    def binned(self, seconds: float, bins: int) -> tuple[Vector, Ints, Ints]:
        """Sum of losses, number of samples and of right predictions in each of `bins` bins."""
        known = self._moments <= seconds
        places = np.minimum((bins / seconds * self._moments[known]).astype(np.int64), bins - 1)

        losses, right = np.zeros(bins), np.zeros(bins, np.int64)
        np.add.at(losses, places, self._losses[known])
        np.add.at(right, places, self._right[known])
        return losses, np.bincount(places, minlength=bins), right

    def learned(self) -> Ints:
        """Number of rounds of the stream that each node got through."""
        known = ~np.isnan(self._moments)
        last: Ints = len(known) - known[::-1].argmax(axis=0)
        return np.where(known.any(axis=0), last, 0)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What all peers of a run share."""

    task: Task
    stream: Stream
    queue: EventQueue
    network: MemoryNetwork
    links: VirtualLinks
    chance: Chance
    recorder: Recorder
    counts: Counts
    commit: float
    poisson: bool
    answers: Callable[[float], object]


class VirtualPeer:
    """One participant: what survives its crashes, and the runtime of its present life.

    Attributes:
        index, key: Which one it is.
        config: What it is told.
        snapshot: What its disk has.
        runtime: Its present life; None while it is down, or before it has come.
        asleep_since: When it fell asleep; infinite while it is awake.
    """

    def __init__(
        self,
        index: int,
        key: Key,
        learner: Learner,
        rate: float,
        surroundings: Surroundings,
        lie: Vector | None,
    ) -> None:
        self.index, self.key = index, key
        self.config: PeerConfig | None = None
        self.runtime: VirtualRuntime | None = None
        self.asleep_since = math.inf
        self._here, self._learner, self._lie = surroundings, learner, lie
        self._slept = 0.0
        self._stamps = count(self._stamp())
        layout = learner.layout
        state = PeerState.new(layout.width, 1 + index, self._stamp(), layout)
        self.snapshot = Snapshot(state)
        self._rows: Ints = surroundings.stream.rows[:, index]
        self._period = 1.0 / rate
        self._due = self._next = 0
        self._timer, self._next_at, self._remaining = 0, math.inf, self._first_gap()

    # What it is like now.

    @property
    def is_up(self) -> bool:
        """Whether its process runs, awake or not."""
        return self.runtime is not None and not self.runtime.over

    @property
    def is_awake(self) -> bool:
        """Whether it does anything at all."""
        return self.is_up and self.asleep_since == math.inf

    @property
    def is_liar(self) -> bool:
        """Whether it does not learn."""
        return self._lie is not None

    @property
    def node(self) -> CountedNode:
        """The state machine of its present life."""
        assert self.runtime is not None
        assert isinstance(self.runtime.node, CountedNode)
        return self.runtime.node

    @property
    def known(self) -> Snapshot:
        """What it knows: in its process, or on its disk."""
        return self.snapshot if self.runtime is None else self.runtime.node.snapshot

    @property
    def estimate(self) -> Vector:
        """Its momentary model."""
        if self.runtime is not None:
            return self.runtime.node.estimate
        stored = self._learner.stored_estimate(self.snapshot)
        return self._learner.start if stored is None else stored

    def clock(self) -> float:
        """Seconds that it was awake: a monotonic clock stands still while a laptop sleeps."""
        now = self._here.queue.now
        return UPTIME + min(now, self.asleep_since) - self._slept

    # What happens to it.

    def begin(self, config: PeerConfig, address: str, *, founder: bool = False) -> None:
        """Begin a life with what the disk has."""
        here = self._here
        self.config = config
        make = CountedNode if self._lie is None else partial(LyingNode, lie=self._lie)
        node = make(
            here.task,
            self.key[::-1],
            config,
            self.snapshot,
            key=self.key,
            learner=self._learner,
            counts=here.counts,
            clock=self.clock,
            wall_clock=lambda: EPOCH + here.queue.now,
            new_epoch=self._stamps.__next__,
        )
        endpoint = here.network.endpoint(self.key, address)
        self.runtime = VirtualRuntime(
            node,
            endpoint,
            here.queue,
            self.index,
            partial(here.links.send, endpoint),
            self._learn_next,
            here.commit,
        )
        self.follow(config)
        self.runtime.start(founder=founder, after=TICK_SECONDS * here.chance())
        if not founder:
            self.resume_samples()

    def follow(self, config: PeerConfig) -> None:
        """Do as a configuration says from now on."""
        self.config = config
        if self.is_up:
            assert self.runtime is not None
            self.runtime.node.follow(config)
            endpoint = self.runtime.endpoint
            endpoint.admit(frozenset(sender.key for sender in config.senders))
            for receiver in config.receivers:
                endpoint.dial(receiver.key, receiver.address)
            if config.leaving or config.paused:
                self.stop_samples()
            self.runtime.follow()

    def crash(self) -> None:
        """End a life at once; what the disk has is left."""
        assert self.runtime is not None
        self._pause_samples()
        self.runtime.over = True
        self.runtime.endpoint.crash()
        saved = self.runtime.node.durable
        # The next life is told apart from this one before its first word.
        boot = self._stamp()
        self.snapshot = replace(saved, state=restart(saved.state, boot))
        if not self.is_liar:
            self._next = saved.journal.position.num_rows
        self.runtime = None

    def sleep(self) -> None:
        """Do nothing, hear nothing."""
        assert self.runtime is not None
        self._pause_samples()
        self.asleep_since = self._here.queue.now
        self.runtime.sleep()

    def wake(self) -> None:
        """Go on where it was."""
        assert self.runtime is not None
        self._slept += self._here.queue.now - self.asleep_since
        self.asleep_since = math.inf
        self.runtime.wake()
        self.resume_samples()

    def resume_samples(self) -> None:
        """Let samples come, from where they were."""
        if self._due < len(self._rows) and self._remaining < math.inf:
            self._set_timer(self._remaining)

    def stop_samples(self) -> None:
        """Let no more samples come."""
        self._timer += 1
        self._remaining, self._next_at = math.inf, math.inf
        self._due = self._next

    # Its samples.

    def _first_gap(self) -> float:
        if self._here.poisson:
            return self._here.chance.exponential(self._period)
        return self._period * self._here.chance()

    def _pause_samples(self) -> None:
        self._timer += 1
        if self._next_at < math.inf:
            self._remaining = self._next_at - self._here.queue.now
        self._next_at = math.inf

    def _set_timer(self, gap: float) -> None:
        queue = self._here.queue
        self._timer += 1
        self._next_at = queue.now + gap
        queue.at(self._next_at, self.index, partial(self._sample_due, self._timer))

    def _sample_due(self, timer: int) -> None:
        if timer != self._timer or self.runtime is None:
            return
        self._due += 1
        if self._due < len(self._rows):
            here = self._here
            gap = here.chance.exponential(self._period) if here.poisson else self._period
            self._set_timer(gap)
        else:
            self._remaining = self._next_at = math.inf
        self.runtime.learn()

    def _learn_next(self) -> bool:
        """Learn from the next sample that is due; False if there is none."""
        while self._next < self._due:
            place = self._next
            self._next += 1
            row = int(self._rows[place])
            if row < 0:
                continue
            node = self.node
            if isinstance(node, LyingNode):
                node.lie()
            else:
                self._learn_from(node, place, row)
            return True
        return False

    def _learn_from(self, node: CountedNode, place: int, row: int) -> None:
        here = self._here
        position = Position(place + 1, place, place + 1, place + 1)
        features = np.asarray(here.stream.features[row], np.float64)
        label = here.answers(float(here.stream.labels[row]))
        before = node.snapshot.journal.correct
        try:
            loss = node.learn(features, label, position)
        except DataError as error:
            node.skip(str(error), position)
            here.recorder.refused.append((place, self.index))
            return
        right = node.snapshot.journal.correct - before
        here.recorder.note(place, self.index, here.queue.now, loss, right)

    def _stamp(self) -> int:
        """A number that grows with time, as that of a real peer."""
        return first_stamp(int(1e9 * (EPOCH + self._here.queue.now)), self.index)
