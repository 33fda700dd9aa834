"""Network of peers in virtual time: who is there, what is under way, and what goes wrong."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from random import Random
from typing import Any, Self

import numpy as np

from oneway.errors import OnewayError
from oneway.lab.virtual.clock import World
from oneway.lab.virtual.peers import EncodedLearner, Recorder, Surroundings, VirtualPeer
from oneway.models import Model
from oneway.peer.home.config import PeerConfig, Receiver, Sender
from oneway.peer.home.limits import Limits
from oneway.peer.identity.card import Card
from oneway.peer.runtime import JOIN_SECONDS
from oneway.protocol.audit import discrepancy
from oneway.protocol.fixed_point import ONE, Fixed, mass_of
from oneway.protocol.state import Key, PeerState
from oneway.records import Matrix, Vector
from oneway.streams import Stream
from oneway.task.conditions import Conditions, Roles, absences, lies, moments
from oneway.task.task import Task
from oneway.testing.memory_network import Datagram, MemoryEndpoint, MemoryNetwork

_PORT = 7700
FOUNDING_SECONDS = 3.0
_FOUNDING_TRIPS = 10
"""Time that founders have to open their edges: seconds, and a number of the longest delays."""


class VirtualWire(MemoryNetwork):
    """The memory network, over which messages take as long, or are lost, as the conditions say.

    Every edge draws for itself: the order in which a peer sends does not matter, as that of sets
    differs from process to process.

    Args:
        max_frame: The longest message.
        world: Where messages wait.
        conditions: Delay and loss.
        seed: Of what is drawn.
        peer_of: The peer with a key.

    Attributes:
        messages, lost, bytes_sent: Of all messages; those that nobody heard are lost.
    """

    def __init__(
        self,
        max_frame: int,
        world: World,
        conditions: Conditions,
        seed: int,
        peer_of: Callable[[Key], VirtualPeer],
    ) -> None:
        super().__init__(max_frame)
        self.messages = self.lost = self.bytes_sent = 0
        self._world, self._conditions = world, conditions
        self._seed, self._peer_of = seed, peer_of
        self._chances: dict[tuple[Key, Key], Random] = {}

    def send(self, datagram: Datagram) -> None:
        """Put a datagram on its way."""
        self.messages += 1
        self.bytes_sent += len(datagram.frame)
        way = datagram.sender, datagram.receiver
        chance = self._chances.get(way)
        if chance is None:
            name = f"{self._seed} {datagram.sender.hex()} {datagram.receiver.hex()}"
            chance = self._chances[way] = Random(name)
        lost, delay = chance.random(), float(self._conditions.delay.draw(chance.random()))
        if lost < self._conditions.loss:
            self.lost += 1
            return
        receiver = self._peer_of(datagram.receiver)
        self._world.at(self._world.now + delay, receiver.index, partial(self._hear, datagram))

    def is_silent(self, listener: MemoryEndpoint) -> bool:
        """Whether who listens sleeps for longer than a connection bears."""
        asleep = self._world.now - self._peer_of(listener.key).asleep_since
        return asleep > 3.0 * self.limits.heartbeat

    def _hear(self, datagram: Datagram) -> None:
        if self._peer_of(datagram.receiver).is_awake:
            self.arrive(datagram)
        else:
            self.lost += 1


class VirtualNetwork:
    """All peers of a run, and what happens to them.

    Attributes:
        peers: By index.
        world: All events.
        wire: What is under way.
        counts: What happened how often, by name.
        recorder: What samples cost.
    """

    def __init__(
        self,
        task: Task,
        model: Model,
        stream: Stream,
        mixing: Any,
        conditions: Conditions,
        seed: int,
    ) -> None:
        num_nodes, self._seconds = stream.num_nodes, conditions.duration(stream.num_rounds)
        self.world, self.counts = World(conditions.commit), Counter[str]()
        # Founders have opened their edges, and waited for each other's models, when time begins.
        trips = _FOUNDING_TRIPS * float(conditions.delay.quantiles[-1])
        self.world.now = -FOUNDING_SECONDS - JOIN_SECONDS - trips
        self.recorder = Recorder(stream.num_rounds, num_nodes)
        self._conditions, self._mixing = conditions, mixing
        self._roles = Roles.draw(conditions, num_nodes, self._seconds, seed)
        self._limits = limits_of(conditions)
        self._seed = seed
        self._keys = [_bytes(f"{seed} {index}") for index in range(num_nodes)]
        indices = {key: index for index, key in enumerate(self._keys)}
        self.wire = VirtualWire(
            self._limits.frame_for(task.layout.width),
            self.world,
            conditions,
            seed,
            lambda key: self.peers[indices[key]],
        )
        encoder = task.encoder
        here = Surroundings(
            task,
            stream,
            self.world,
            self.recorder,
            self.wire.endpoint,
            (lambda label: label) if encoder.kind == "number" else encoder.label_name,
        )
        start = model.init(stream.dim, np.random.default_rng(seed)).astype(np.float64)
        told = lies(self._roles.liars, len(start), conditions.lie, seed)
        dues = moments(conditions, self._roles, stream.num_rounds, seed)
        self.peers = [
            VirtualPeer(
                index,
                self._keys[index],
                _learner(task, start, seed, index),
                dues[:, index],
                here,
                told.get(index),
            )
            for index in range(num_nodes)
        ]
        self._cards = [
            Card(key, f"n{index}", _PORT, f"peer{index}") for index, key in enumerate(self._keys)
        ]
        self._receivers = _rows_of(mixing, num_nodes)
        self._senders = _rows_of(None if mixing is None else mixing.T.tocsr(), num_nodes)
        self._present = self._roles.joins <= 0.0
        self._ending = False
        self._begin()

    # What it is like.

    def states(self) -> list[PeerState]:
        """What all know that ever came, on their disks if they are down."""
        return [self.peers[index].known.state for index in np.flatnonzero(self._present)]

    def discrepancy(self) -> Fixed:
        """What is held and not owed, minus what was ever brought in; of what is in the books."""
        states = self.states()
        return states[0].layout.booked(discrepancy(states))

    @property
    def mass_in_flight(self) -> float:
        """What was handed over and not taken in, less what peers owe: they hold that twice."""
        brought = sum(mass_of(it.minted) - mass_of(it.clipped) for it in self.states())
        return (brought - sum(mass_of(it.holding) for it in self.states())) / ONE

    def holdings(self) -> tuple[Matrix, Vector]:
        """Numerators and masses of all; zeros for a peer that has not joined, or has left."""
        masses: Vector = np.array([peer.known.state.mass for peer in self.peers])
        estimates = np.array([peer.estimate for peer in self.peers])
        return estimates * masses[:, None], masses

    def disagreement(self) -> float:
        """The mean squared distance of those who are there and learn from what they hold."""
        here = [it for it in self.peers if it.is_awake and not it.is_liar]
        masses = np.array([peer.known.state.mass for peer in here])
        here = [peer for peer, mass in zip(here, masses, strict=True) if mass > 0]
        if not here:
            return 0.0
        estimates, masses = np.array([peer.estimate for peer in here]), masses[masses > 0]
        mean = masses @ estimates / masses.sum()
        return float(((estimates - mean) ** 2).sum(axis=1).mean())

    @property
    def is_quiet(self) -> bool:
        """Whether nothing waits for an answer, or to be made durable."""
        return all(
            not (peer.node.has_work or any(it.waits for it in peer.known.state.out.values()))
            for peer in self.peers
            if peer.is_up
        )

    # What happens.

    def pause(self) -> None:
        """Let nobody learn or push any more, but those who leave; all are up and awake."""
        self._ending = True
        for peer in self.peers:
            if not self._present[peer.index]:
                continue
            if not peer.is_up and not peer.has_left:
                self._restart(peer)
            elif peer.is_up and not peer.is_awake:
                peer.wake()
            if peer.is_up:
                assert peer.config is not None
                peer.follow(replace(peer.config, paused=True))

    def __enter__(self) -> Self:
        """Nothing: the peers run already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop every peer, so that no task is left half done."""
        self._ending = True
        for peer in self.peers:
            peer.stop()
        with suppress(OnewayError):
            self.world.run_until(self.world.now + 1.0 + self.world.commit)

    def _begin(self) -> None:
        conditions, roles = self._conditions, self._roles
        founders = [peer for peer in self.peers if self._present[peer.index]]
        for peer in founders:
            self._start(peer)
        self.world.run_until(0.0)
        for peer in self.peers:
            if not self._present[peer.index]:
                self._after(float(roles.joins[peer.index]), peer, self._join)
            if roles.leaves[peer.index] < math.inf:
                self._after(float(roles.leaves[peer.index]), peer, self._leave)
        for away in absences(conditions, roles, self._seconds, self._seed):
            peer = self.peers[away.node]
            begin, end = self._sleep, self._wake
            if away.is_crash:
                begin, end = self._crash, self._restart
            self._after(away.begins, peer, begin)
            self._after(away.ends, peer, end)

    def _after(self, seconds: float, peer: VirtualPeer, what: Any) -> None:
        self.world.at(self.world.now + seconds, peer.index, partial(what, peer))

    def _config(self, index: int, *, leaving: bool = False) -> PeerConfig:
        """What a peer is told: those of its receivers and senders that are there."""
        receivers, weights = self._receivers[index]
        config = PeerConfig(
            f"peer{index}",
            f"n{index}:{_PORT}",
            leaving=leaving,
            limits=self._limits,
            receivers=tuple(
                Receiver(self._cards[it], float(weight))
                for it, weight in zip(receivers, weights, strict=True)
                if self._present[it]
            ),
            senders=tuple(
                Sender(self._keys[it], f"peer{it}")
                for it in self._senders[index][0]
                if self._present[it]
            ),
        )
        if not config.receivers:
            return config
        return replace(config, keep=float(self._mixing[index, index]))

    def _start(self, peer: VirtualPeer) -> None:
        config = self._config(peer.index) if peer.config is None else peer.config
        peer.begin(config, f"n{peer.index}:{_PORT}")

    def _join(self, peer: VirtualPeer) -> None:
        self.counts["joined"] += 1
        self._present[peer.index] = True
        others = {*self._receivers[peer.index][0], *self._senders[peer.index][0]}
        for index in sorted(others):
            other = self.peers[index]
            if self._present[index] and other.config is not None:
                anew = self._config(index, leaving=other.config.leaving)
                other.follow(anew)
        self._start(peer)

    def _leave(self, peer: VirtualPeer) -> None:
        if peer.config is not None and not self._ending:
            peer.follow(replace(peer.config, leaving=True))

    def _crash(self, peer: VirtualPeer) -> None:
        if peer.is_awake and not self._ending:
            self.counts["crashes"] += 1
            peer.crash()

    def _restart(self, peer: VirtualPeer) -> None:
        if self._present[peer.index] and not peer.is_up and not peer.has_left:
            self._start(peer)

    def _sleep(self, peer: VirtualPeer) -> None:
        if peer.is_awake and not self._ending:
            self.counts["sleeps"] += 1
            peer.sleep()

    def _wake(self, peer: VirtualPeer) -> None:
        if peer.is_up and not peer.is_awake:
            peer.wake()


def limits_of(conditions: Conditions) -> Limits:
    """How far peers trust the network under these conditions."""
    return Limits(
        window="auto" if conditions.window is None else conditions.window,
        clip="off" if math.isinf(conditions.clip) else conditions.clip,
        presume_dead_after=conditions.presume_dead_after,
    )


def _learner(task: Task, start: Vector, seed: int, index: int) -> EncodedLearner:
    rng, normals = (np.random.default_rng([seed, index, what]) for what in (1, 2))
    learner = EncodedLearner(task, rng, normals=normals, measures=False)
    learner.start = start
    return learner


def _bytes(text: str) -> Key:
    return blake2b(text.encode(), digest_size=32, person=b"virtual peer").digest()


def _rows_of(mixing: Any, num_nodes: int) -> list[tuple[list[int], list[float]]]:
    """Of every row its columns and values, the diagonal aside."""
    if mixing is None:
        return [([], [])] * num_nodes
    rows = []
    for row in range(num_nodes):
        place = slice(mixing.indptr[row], mixing.indptr[row + 1])
        columns, values = mixing.indices[place].tolist(), mixing.data[place].tolist()
        kept = [(c, v) for c, v in zip(columns, values, strict=True) if c != row and v > 0]
        rows.append(([c for c, _ in kept], [v for _, v in kept]))
    return rows
