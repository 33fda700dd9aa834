"""A town of peers: nodes by name over the memory transport, in virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

import numpy as np
from builders import replace
from plain import PLAIN

from oneway.peer.home.config import PeerConfig, Receiver
from oneway.peer.home.limits import Limits
from oneway.peer.identity.card import Card
from oneway.peer.node import Frame, Node
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.audit import discrepancy, expected_holding
from oneway.protocol.fixed_point import mass_of
from oneway.protocol.layout import Layout
from oneway.protocol.messages import Life
from oneway.protocol.state import OutEdge, PeerState
from oneway.protocol.tags import NO_TAG
from oneway.protocol.transitions import restart
from oneway.tables import Number
from oneway.task.task import Task
from oneway.testing.memory_network import MemoryEndpoint, MemoryNetwork
from oneway.transport.wire import decode

TASK = Task("logistic", "y", (Number("u"), Number("v")), ("no", "yes"), intercept=False, **PLAIN)
SAMPLE = {"u": 1.0, "v": -2.0}
LIMITS = Limits(pushes_per_second=1000.0, clip="off")
BOOT = 1 << 20
MOST_ROUNDS = 1000


def key_of(name: str) -> bytes:
    """The key of the peer with a name."""
    return name.encode().ljust(32, b"-")


def life(boot: int = BOOT, leaving: bool = False) -> Life:
    """A life of a peer; its proof is for itself alone."""
    return Life(boot, 0, leaving, NO_TAG)


def config(name: str, receivers: Iterable[str] = (), **options: Any) -> PeerConfig:
    """What a peer is told: whom to send to, by name."""
    cards = [Card(key_of(other), "127.0.0.1", 7700, other) for other in receivers]
    options = {"limits": LIMITS, "anyone": True} | options
    return PeerConfig(
        name, "127.0.0.1:7700", receivers=tuple(Receiver(card) for card in cards), **options
    )


class Town:
    """Peers by name over the memory transport, as `{sender: receivers}`.

    Attributes:
        durable: The last committed snapshot of each peer.
        sent: All frames so far, each with the name of its sender.
        sees_links: Whether peers know which connections are up.
    """

    def __init__(
        self,
        edges: Mapping[str, Iterable[str]],
        task: Task = TASK,
        limits: Limits = LIMITS,
        sees_links: bool = False,
        tasks: Mapping[str, Task] | None = None,
    ) -> None:
        """Peers of one task, but for those that have another in `tasks`."""
        self.time = 100.0
        self.task, self.tasks = task, tasks or {}
        self.limits = limits
        self.sees_links = sees_links
        self.network = MemoryNetwork()
        self.nodes: dict[str, Node] = {}
        self.ends: dict[str, MemoryEndpoint] = {}
        self.durable: dict[str, Snapshot] = {}
        self.sent: list[tuple[str, Frame]] = []
        self.epochs = count(1)
        for index, (name, receivers) in enumerate(edges.items()):
            own = self.tasks.get(name, task)
            layout = Layout.of(own.build_method().payload, own.dim)
            state = PeerState.new(layout.width, ledger=index + 1, boot=BOOT, layout=layout)
            self.start(name, Snapshot(state), config(name, receivers, limits=limits))
            self.connect(name)

    def start(
        self, name: str, snapshot: Snapshot, settings: PeerConfig, key: bytes | None = None
    ) -> None:
        """Begin a life of a peer with a snapshot that is durable."""
        key = key or key_of(name)
        self.durable[name] = snapshot
        self.nodes[name] = Node(
            self.tasks.get(name, self.task),
            secret=key,
            config=settings,
            snapshot=snapshot,
            key=key,
            clock=lambda: self.time,
            wall_clock=lambda: 1.7e9 + self.time,
            new_epoch=lambda: next(self.epochs),
        )

    def connect(self, name: str, address: str | None = None) -> None:
        """Let a peer listen, and everybody dial everybody; but nobody dials another address."""
        self.ends[name] = self.network.endpoint(self.nodes[name].key, address)
        self.ends[name].admit(None)
        for one, end in self.ends.items():
            for other, its in self.ends.items():
                if one != other and end.key != its.key and its.address == its.key.hex():
                    end.dial(its.key, its.address)

    def power_off(self, name: str) -> Snapshot:
        """End a life at once, with whatever was under way; return what its disk has."""
        del self.nodes[name]
        self.ends.pop(name).crash()
        return self.durable[name]

    def power_on(
        self, name: str, snapshot: Snapshot, settings: PeerConfig, boot: int | None = None
    ) -> None:
        """Begin the next life of a peer; the boot is by the clock unless it is given."""
        boot = BOOT + (int(1e3 * self.time) << 20) if boot is None else boot
        anew = replace(snapshot, state=restart(snapshot.state, boot))
        self.start(name, anew, settings)
        self.connect(name)

    def state(self, name: str) -> PeerState:
        """What a peer knows at this moment."""
        return self.nodes[name].snapshot.state

    def edge(self, name: str) -> OutEdge:
        """The only edge of a peer to a receiver."""
        [edge] = self.state(name).out.values()
        return edge

    def states(self) -> list[PeerState]:
        """What all know that are up."""
        return [node.snapshot.state for node in self.nodes.values()]

    def send(self, name: str, frames: Iterable[Frame]) -> None:
        """Put frames of a peer in flight."""
        for frame in frames:
            self.sent.append((name, frame))
            end = self.ends[name]
            (end.push if frame.via == "push" else end.reply)(frame.peer, frame.content)

    def exchange(self) -> int:
        """Commit, send, deliver and receive until there is nothing to say; return the rounds."""
        for rounds in range(MOST_ROUNDS):
            for name, node in self.nodes.items():
                self.commit(name, node)
            if not self.network.in_flight:
                return rounds
            self.receive()
        raise AssertionError("they never stop talking")

    def receive(self) -> None:
        """Deliver what is in flight, one after the other; what needs no commit is said at once."""
        for _ in range(len(self.network.in_flight)):
            self.network.deliver(0)
            for name, node in self.nodes.items():
                while (arrival := self.ends[name].receive_now()) is not None:
                    node.take(arrival)
                    self.send(name, node.words())

    def commit(self, name: str, node: Node) -> None:
        """Make durable what a peer knows, and let it speak of it."""
        batch = node.begin()
        if batch is not None:
            self.durable[name] = batch.snapshot
            self.send(name, node.committed(batch))

    def pass_time(self, seconds: float) -> None:
        """Let time pass, do what is due, say what is overdue."""
        self.time += seconds
        for name, node in self.nodes.items():
            if self.sees_links:
                self.greet(name, node)
            node.tick()
            self.send(name, node.overdue())
        self.exchange()

    def greet(self, name: str, node: Node) -> None:
        """Tell a node which connections are up, as its runtime does."""
        links = self.ends[name].links
        connected = frozenset(key for key, link in links.items() if link.state == "connected")
        for key in connected - (node.connected or frozenset()):
            node.reached(key)
        node.connected = connected

    def learn(self, name: str, times: int = 1, label: str = "yes") -> None:
        """Learn from the sample, and let everybody speak."""
        for _ in range(times):
            self.time += 1e-3
            self.nodes[name].learn(SAMPLE, label)
            self.exchange()

    def strikes(self) -> int:
        """How many strikes anybody has given to anybody."""
        known = [node.guard.about(key) for node in self.nodes.values() for key in self.keys]
        return sum(record.strikes for record in known)

    @property
    def keys(self) -> set[bytes]:
        """Of all that are up."""
        return {node.key for node in self.nodes.values()}

    def check_books(self) -> None:
        """Nobody's own books are off by a unit, and nobody's mass is below zero."""
        for name in self.nodes:
            state = self.state(name)
            assert np.array_equal(state.holding, expected_holding(state)), name
            assert mass_of(state.holding) >= 0, name

    def check_exact(self) -> None:
        """Nothing is under way, lost or invented, to the last unit."""
        self.check_books()
        assert not discrepancy(self.states()).any()


def words(frames: Iterable[Frame]) -> list[Any]:
    """The messages in frames."""
    return [decode(frame.content)[1] for frame in frames]


def kinds(frames: Iterable[Frame]) -> list[type]:
    """The kinds of messages in frames."""
    return [type(word) for word in words(frames)]


def quiet(sees_links: bool = False, limits: Limits = LIMITS, **edges: Iterable[str]) -> Town:
    """A town whose peers have their unit of mass and open edges, and nothing to say."""
    town = Town(edges, limits=limits, sees_links=sees_links)
    town.exchange()
    for name in edges:
        town.nodes[name].ensure_minted()
    town.exchange()
    return town
