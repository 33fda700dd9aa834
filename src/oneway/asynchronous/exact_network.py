"""Network of peers in virtual time: who is there, which connections are up, what goes wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from oneway.asynchronous.exact_nodes import Counts
from oneway.asynchronous.virtual_links import Chance, EventQueue, VirtualLinks
from oneway.asynchronous.virtual_peer import Recorder, Surroundings, VirtualPeer
from oneway.models import Model
from oneway.peer.home.config import PeerConfig, Receiver, Sender
from oneway.peer.home.limits import Limits
from oneway.peer.identity.card import Card
from oneway.peer.learner import Learner
from oneway.protocol.audit import discrepancy
from oneway.protocol.fixed_point import ONE, Fixed, mass_of
from oneway.protocol.state import Key, PeerState
from oneway.records import Matrix, Vector
from oneway.records.status import REPEATED
from oneway.streams import Stream
from oneway.task.conditions import Conditions, Roles, lies
from oneway.task.task import Task
from oneway.testing.memory_network import Datagram, MemoryNetwork

_PORT = 7700
FOUNDING_SECONDS = 3.0
_FOUNDING_TRIPS = 10
"""Time that founders have to open their edges: seconds, and a number of the longest delays."""
_HANDSHAKE = 4
"""Messages that go back and forth before a connection is up."""


class ExactNetwork:
    """All peers of a run, and what happens to them.

    Attributes:
        peers: By index.
        queue: Of all events.
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
        self.queue, self.counts = EventQueue(), Counts()
        self.recorder = Recorder(stream.num_rounds, num_nodes)
        self._conditions, self._mixing = conditions, mixing
        self._roles = Roles.draw(conditions, num_nodes, self._seconds, seed)
        self._limits = limits_of(conditions)
        self._chance = Chance(np.random.default_rng([seed, 0xA5]))
        self._keys = [_bytes(f"{seed} {index}") for index in range(num_nodes)]
        indices = {key: index for index, key in enumerate(self._keys)}
        network = MemoryNetwork(self._limits.frame_for(task.layout.width))
        self._patience = 3.0 * network.limits.heartbeat
        self._reconnect = network.limits.reconnect_max
        self.links = VirtualLinks(
            network, indices, self.queue, conditions, self._chance, self._deliver
        )
        self._network = network
        encoder = task.encoder
        here = Surroundings(
            task,
            stream,
            self.queue,
            network,
            self.links,
            self._chance,
            self.recorder,
            self.counts,
            conditions.commit,
            conditions.poisson,
            (lambda label: label) if encoder.kind == "number" else encoder.label_name,
        )
        start = model.init(stream.dim, np.random.default_rng(seed)).astype(np.float64)
        told = lies(self._roles.liars, len(start), conditions.lie, seed)
        self.peers = [
            VirtualPeer(
                index,
                self._keys[index],
                _learner(task, start, seed, index),
                conditions.rate * float(self._roles.speeds[index]),
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

    def count_life(self, peer: VirtualPeer) -> None:
        """Count what is known only as long as a life lasts."""
        if peer.runtime is None:
            return
        counts = self.counts
        counts["commits"] += peer.runtime.commits
        for conduct in peer.node.guard.known.values():
            counts["clipped"] += conduct.clipped
            counts["rejected"] += conduct.rejected.total() - conduct.rejected[REPEATED]

    @property
    def lost(self) -> int:
        """Messages that never arrived."""
        return self.links.lost + self.counts["unheard"]

    # What happens.

    def pause(self) -> None:
        """Let nobody learn or push any more, but those who leave; all are up and awake."""
        self._ending = True
        for peer in self.peers:
            if not self._present[peer.index]:
                continue
            if not peer.is_up and not (peer.runtime and peer.runtime.drained):
                self._restart(peer)
            elif peer.is_up and not peer.is_awake:
                self._wake(peer)
            if peer.is_up:
                assert peer.config is not None
                peer.follow(replace(peer.config, paused=True))

    def _begin(self) -> None:
        conditions, roles = self._conditions, self._roles
        founders = [peer for peer in self.peers if self._present[peer.index]]
        # Time begins when they know each other: nobody sleeps or crashes before.
        self.queue.now = -FOUNDING_SECONDS - _FOUNDING_TRIPS * conditions.delay.quantiles[-1]
        for peer in founders:
            self._start(peer, founder=True)
        self.queue.run_until(0.0)
        for peer in self.peers:
            if self._present[peer.index]:
                peer.resume_samples()
            else:
                self._after(float(roles.joins[peer.index]), peer, self._join)
            if roles.leaves[peer.index] < math.inf:
                self._after(float(roles.leaves[peer.index]), peer, self._leave)
            if roles.sleepers[peer.index]:
                # At first as many are asleep as later on.
                is_awake = self._chance() * (conditions.awake + conditions.asleep)
                gap = self._chance.exponential(conditions.awake)
                self._after(gap if is_awake < conditions.awake else 0.0, peer, self._sleep)
            if conditions.crashes:
                self._crash_later(peer)

    def _after(self, seconds: float, peer: VirtualPeer, what: Any) -> None:
        self.queue.at(self.queue.now + seconds, peer.index, partial(what, peer))

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

    def _start(self, peer: VirtualPeer, *, founder: bool = False) -> None:
        config = self._config(peer.index) if peer.config is None else peer.config
        peer.begin(config, f"n{peer.index}:{_PORT}", founder=founder)
        for receiver in self._receivers[peer.index][0]:
            self._check_link_later(peer.index, receiver)
        self._check_links_to(peer, self._reconnect * self._chance())

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

    def _crash_later(self, peer: VirtualPeer) -> None:
        self._after(self._chance.exponential(1.0 / self._conditions.crashes), peer, self._crash)

    def _crash(self, peer: VirtualPeer) -> None:
        if self._ending:
            return
        self._crash_later(peer)
        if peer.is_awake:
            self.counts["crashes"] += 1
            self.count_life(peer)
            peer.crash()
            self._check_links_to(peer, 0.0)
            self._after(self._conditions.down, peer, self._restart)

    def _restart(self, peer: VirtualPeer) -> None:
        if peer.runtime is None:
            self._start(peer)

    def _sleep(self, peer: VirtualPeer) -> None:
        if self._ending:
            return
        if peer.is_awake:
            self.counts["sleeps"] += 1
            peer.sleep()
            self._after(self._patience, peer, partial(self._check_links_to, after=0.0))
        self._after(self._chance.exponential(self._conditions.asleep), peer, self._wake)

    def _wake(self, peer: VirtualPeer) -> None:
        if peer.is_up and not peer.is_awake:
            peer.wake()
            self._check_links_to(peer, self._reconnect * self._chance())
        if not self._ending:
            self._after(self._chance.exponential(self._conditions.awake), peer, self._sleep)

    def _deliver(self, receiver: int, datagram: Datagram) -> None:
        peer = self.peers[receiver]
        if not peer.is_awake:
            self.counts["unheard"] += 1
            return
        self._network.in_flight.append(datagram)
        self._network.deliver(-1)
        assert peer.runtime is not None
        peer.runtime.arrived()

    # Connections.

    def _check_links_to(self, peer: VirtualPeer, after: float) -> None:
        """Let those who send to a peer notice, after a while, whether it is there."""
        for sender in self._senders[peer.index][0]:
            self._check_link_later(sender, peer.index, after)

    def _check_link_later(self, sender: int, receiver: int, after: float = 0.0) -> None:
        trips = sum(float(self._conditions.delay.draw(self._chance())) for _ in range(_HANDSHAKE))
        self.queue.at(
            self.queue.now + after + trips, sender, partial(self._check_link, sender, receiver)
        )

    def _check_link(self, sender: int, receiver: int) -> None:
        runtime, other = self.peers[sender].runtime, self.peers[receiver]
        if runtime is None or not self._present[receiver]:
            return
        asleep = self.queue.now - other.asleep_since
        if other.is_up and asleep < self._patience:
            runtime.connected.add(other.key)
        else:
            runtime.connected.discard(other.key)


def limits_of(conditions: Conditions) -> Limits:
    """How far peers trust the network under these conditions."""
    return Limits(
        window="auto" if conditions.window is None else conditions.window,
        clip="off" if math.isinf(conditions.clip) else conditions.clip,
        presume_dead_after=conditions.presume_dead_after,
    )


def _learner(task: Task, start: Vector, seed: int, index: int) -> Learner:
    rng, normals = (np.random.default_rng([seed, index, what]) for what in (1, 2))
    learner = Learner(task, rng, normals=normals, measures=False)
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
