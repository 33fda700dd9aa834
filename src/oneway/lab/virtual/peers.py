"""Peer in virtual time: its lives one after the other, its samples' clock, its sleep, its lies."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from msgspec.structs import replace

from oneway.lab.virtual.clock import World, peer_loop
from oneway.peer.home.config import PeerConfig
from oneway.peer.learner import Learner
from oneway.peer.node import Node
from oneway.peer.runtime import Runtime
from oneway.peer.store.snapshot import Journal, Snapshot
from oneway.protocol.fixed_point import ONE
from oneway.protocol.stamps import first_stamp
from oneway.protocol.state import Key, PeerState
from oneway.protocol.transitions import descend, restart
from oneway.records import Ints, Vector
from oneway.streams import Stream
from oneway.tables.rows import BadRow, Position, Row
from oneway.task.task import Task
from oneway.testing.memory_network import MemoryEndpoint

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
    world: World
    recorder: Recorder
    endpoint: Callable[[Key, str], MemoryEndpoint]
    answers: Callable[[float], object]


class Encoded(dict[str, object]):
    """The cells of a sample of which only the label is known, and what the others were encoded to.

    Attributes:
        features: All but the label, as the model sees them.
    """

    def __init__(self, label: str, value: object, features: Vector) -> None:
        super().__init__({label: value})
        self.features = features


class EncodedLearner(Learner):
    """The peer's own learner, of samples that are encoded already."""

    def encoded(self, x: Mapping[str, object]) -> Vector:
        """A sample as the model sees it."""
        assert isinstance(x, Encoded)
        return x.features


class Disk:
    """What survives a crash: the last snapshot that was committed before it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.is_gone = snapshot, False

    def commit(self, snapshot: Snapshot) -> None:
        """Make a snapshot durable, unless the life that says so has ended."""
        if not self.is_gone:
            self.snapshot = snapshot


class LyingNode(Node):
    """A peer that pushes a model of its own whatever it receives; its mass is honest.

    By its own books it took a step there, so that an audit finds nothing: push-sum cannot tell a
    lie from a sample.
    """

    def __init__(self, *arguments: Any, lie: Vector, **options: Any) -> None:
        self._lie = lie
        super().__init__(*arguments, **options)

    def learn(
        self, x: Mapping[str, object] | Vector, y: object, position: Position | None = None
    ) -> float:
        """Do as if a sample had been learned from."""
        self.ensure_minted()
        self._pace.stepped(self.learner.mixes, self.clock())
        self.push_if_due()
        return 0.0

    def push_if_due(self) -> None:
        """Push the lie, where others push what they hold."""
        with self.lock:
            self._set(self._lied(self.snapshot.state))
            super().push_if_due()

    def _lied(self, state: PeerState) -> PeerState:
        place = state.layout.model
        if state.leaving or state.mass <= 0 or place == slice(0, 0):  # nothing is sent
            return state
        step = np.zeros(state.dim)
        weight = state.mass if place not in state.layout.copied else 1.0
        step[place] = state.holding[place] / ONE - weight * self._lie
        return descend(state, step) if np.rint(ONE * step).any() else state


class VirtualPeer:
    """One participant: what survives its crashes, and the runtime of its present life.

    Attributes:
        index, key: Which one it is.
        config: What it is told.
        disk: What it would find after a crash.
        node, endpoint: Of its present life, or of the last one.
        asleep_since: When it fell asleep; infinite while it is awake.
        commits: How many there were.
        clipped: How many pushes that would have moved it too far it met.
    """

    node: Node
    endpoint: MemoryEndpoint

    def __init__(
        self,
        index: int,
        key: Key,
        learner: Learner,
        dues: Vector,
        here: Surroundings,
        lie: Vector | None,
    ) -> None:
        self.index, self.key = index, key
        self.config: PeerConfig | None = None
        self.asleep_since = math.inf
        self.clipped = 0
        self._here, self._learner, self._lie = here, learner, lie
        self._stamps = count(self._stamp())
        layout = learner.layout
        self.disk = Disk(Snapshot(PeerState.new(layout.width, 1 + index, self._stamp(), layout)))
        self._clock = min(here.world.now, 0.0)
        self._loop = peer_loop(here.world, index, self._clock)
        self._runtime: Runtime | None = None
        self._life: asyncio.Task[None] | None = None
        self._rows: Ints = here.stream.rows[:, index]
        self._next = 0
        # When its samples come, by a clock that stands still while it sleeps or is down.
        self._dues = dues

    # What it is like now.

    @property
    def is_up(self) -> bool:
        """Whether its process runs, awake or not."""
        return self._life is not None and not self._life.done()

    @property
    def is_awake(self) -> bool:
        """Whether it does anything at all."""
        return self.is_up and not self._loop.is_still

    @property
    def has_left(self) -> bool:
        """Whether it has handed over all, and its process has ended."""
        return self._life is not None and self._life.done()

    @property
    def is_liar(self) -> bool:
        """Whether it does not learn."""
        return self._lie is not None

    @property
    def known(self) -> Snapshot:
        """What it knows: in its process, or on its disk."""
        return self.node.snapshot if self.is_up else self.disk.snapshot

    @property
    def estimate(self) -> Vector:
        """Its momentary model."""
        if self.is_up:
            return self.node.estimate
        stored = self._learner.stored_estimate(self.disk.snapshot)
        return self._learner.start if stored is None else stored

    # What happens to it.

    def begin(self, config: PeerConfig, address: str) -> None:
        """Begin a life with what the disk has."""
        here = self._here
        self.config = config
        self._loop = peer_loop(here.world, self.index, self._clock)
        make = Node if self._lie is None else partial(LyingNode, lie=self._lie)
        loop = self._loop
        self.node = make(
            here.task,
            self.key[::-1],
            config,
            self.disk.snapshot,
            key=self.key,
            learner=self._learner,
            clock=lambda: UPTIME + loop.time(),
            wall_clock=lambda: EPOCH + here.world.now,
            new_epoch=self._stamps.__next__,
        )
        with loop.entered():
            self.endpoint = here.endpoint(self.key, address)
            runtime = Runtime(
                None, self.node, self.disk, self.endpoint, samples=self._samples(self.node)
            )
        self._runtime = runtime
        self._life = loop.create_task(runtime.run(), name=f"peer {self.index}")
        self._life.add_done_callback(partial(self._ended, self.disk))

    def follow(self, config: PeerConfig) -> None:
        """Do as a configuration says from now on."""
        self.config = config
        if self.is_up:
            assert self._runtime is not None
            self._runtime.follow(config)

    def crash(self) -> None:
        """End a life at once; what the disk has is left."""
        assert self._life is not None
        saved = self.disk.snapshot
        self.count_life()
        self.disk.is_gone = True
        self.endpoint.crash()
        self._life.cancel()
        self._life = None
        # The next life is told apart from this one before its first word.
        self.disk = Disk(replace(saved, state=restart(saved.state, self._stamp())))
        if not self.is_liar:
            self._next = saved.journal.position.num_rows
        # Its samples wait for it: the clock of its next life goes on from here.
        self._clock = self._loop.time()

    def sleep(self) -> None:
        """Do nothing, hear nothing."""
        self.asleep_since = self._here.world.now
        self._loop.stand_still()

    def wake(self) -> None:
        """Go on where it was."""
        self.asleep_since = math.inf
        self._loop.go_on()

    def stop(self) -> None:
        """End its process, with everything durable, as soon as time goes on."""
        if self._loop.is_still:
            self.wake()
        if self.is_up:
            assert self._runtime is not None
            self._runtime.stop()

    def count_life(self) -> None:
        """Count what is known only as long as a life lasts."""
        if self._life is not None:
            self.clipped += sum(it.clipped for it in self.node.guard.known.values())

    def _ended(self, disk: Disk, life: asyncio.Task[None]) -> None:
        """A life is over; only one that crashed may end with an error."""
        error = None if life.cancelled() else life.exception()
        if error is not None and not disk.is_gone:
            self._here.world.failures.append(error)

    # Its samples.

    async def _samples(self, node: Node) -> AsyncGenerator[Row | BadRow, None]:
        """The samples from the next one on, each when it is due."""
        here, loop = self._here, self._loop
        while self._next < len(self._rows):
            place = self._next
            wait = float(self._dues[place]) - loop.time()
            if wait > 0.0:
                await asyncio.sleep(wait)
            if node.config.paused or node.config.leaving:
                return
            self._next += 1
            row = int(self._rows[place])
            if row < 0:
                continue
            features = np.asarray(here.stream.features[row], np.float64)
            label = here.answers(float(here.stream.labels[row]))
            position = Position(place + 1, place, place + 1, place + 1)
            before, moment = node.snapshot.journal, here.world.now
            yield Row(Encoded(here.task.label, label, features), place, position)
            self._record(place, moment, before, node.snapshot.journal)

    def _record(self, place: int, moment: float, before: Journal, after: Journal) -> None:
        if self.is_liar:
            return
        if after.skipped > before.skipped:
            self._here.recorder.refused.append((place, self.index))
        elif after.samples > before.samples:
            loss = after.loss_sum - before.loss_sum
            right = after.correct - before.correct
            self._here.recorder.note(place, self.index, moment, loss, right)

    def _stamp(self) -> int:
        """A number that grows with time, as that of a real peer."""
        return first_stamp(int(1e9 * (EPOCH + self._here.world.now)), self.index)
