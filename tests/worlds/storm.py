"""A small network of protocol states over the memory transport, in which everything goes wrong."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from builders import replace

from oneway.protocol.audit import discrepancy, expected_holding, untracked
from oneway.protocol.compact import unpack
from oneway.protocol.incoming import mint
from oneway.protocol.layout import Layout
from oneway.protocol.lives import is_copied, lifted
from oneway.protocol.messages import Compact, Push, Superseded
from oneway.protocol.outgoing import answer, remind, report, say, supersede
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.stamps import RANDOM_BITS, first_stamp
from oneway.protocol.state import OutPhase, PeerState
from oneway.protocol.transitions import (
    descend,
    distrust,
    keep_mass,
    leave,
    presume_dead,
    push,
    receive_push,
    restart,
    trust,
)
from oneway.records import Segment
from oneway.testing.memory_network import MemoryNetwork
from oneway.transport.wire import decode, encode

TASK = b"the task of tests"
DIM = 3
PAYLOADS = (
    (),
    (
        Segment("numerator", "split"),
        Segment("parcel", "forwarded"),
        Segment("count", "forwarded", is_vector=False),
    ),
    (
        Segment("model", "copied"),
        Segment("tracker", "split", tracks="momentum"),
        Segment("weight", "split", is_vector=False),
    ),
)
"""What peers hold: push-sum's numerator; with parcels that are forwarded; with copied models."""
LONGEST = 0.05
"""The longest step that a peer takes."""
BOUNDS = (0.5, 1.5)
"""Between which masses a peer keeps itself."""


def packed_agrees(state: PeerState) -> bool:
    """Whether what is said of packed totals leads to those in the books; true at any moment."""
    return all(
        edge.packed.base == edge.acked
        and np.array_equal(unpack(state.layout, edge.confirmed, edge.packed), edge.sent)
        for edge in state.out.values()
        if edge.packed is not None
    )


def layout_of(seed: int, payload: int | None = None) -> Layout:
    """What peers hold in the schedule of a seed; vectors, which codes can say, in compact ones."""
    payload = PAYLOADS[seed % len(PAYLOADS) if payload is None else payload]
    return Layout.of(payload, dim=2 if is_compact(seed) else 1) if payload else Layout()


def is_compact(seed: int) -> bool:
    """Whether some peers make compact pushes in the schedule of a seed."""
    return seed % 2 == 1


def makes_compact(seed: int, index: int) -> bool:
    """Whether one peer makes compact pushes in the schedule of a seed: three of four do."""
    return is_compact(seed) and index % 4 != 3


def any_step(rng: random.Random, state: PeerState) -> np.ndarray:
    """A step for every segment; in a parcel, one that may be in it, and counted."""
    step = np.array([rng.gauss(0, 1) for _ in range(state.dim)])
    step *= 0.1 * min(1.0, state.mass)
    if state.layout.parcel is not None:
        steps, count = state.layout.parcel
        step[steps] *= min(1.0, LONGEST / np.linalg.norm(step[steps]))
        step[count] = -1.0
    return step


def kept(state: PeerState, rules: Rules) -> PeerState:
    """A state with its mass within bounds, as a runtime keeps it before a step and a push."""
    return keep_mass(state, BOUNDS) if state.is_sound(rules.radius) else state


@dataclass(frozen=True)
class Broken:
    """Rules of the protocol that can be left out, to show that the audit needs them."""

    sends_before_commit: bool = False
    saves_in_two_halves: bool = False


SOUND = Broken()


class Node:
    """One peer: what it knows, what it would still know after a crash, and its backups."""

    def __init__(self, network: MemoryNetwork, index: int, rng: random.Random, seed: int) -> None:
        self.layout = layout_of(seed)
        self.dim = self.layout.width or DIM
        self.key = bytes([index]) * 32
        self.rng = rng
        clip = rng.choice([np.inf, 0.3])
        compact = makes_compact(seed, index)
        secret = bytes([index + 100]) * 32
        self.rules = Rules(secret=secret, clip=clip, longest_step=LONGEST, compact=compact)
        self.endpoint = network.endpoint(self.key)
        self.endpoint.admit(None)
        self.current = PeerState.new(self.dim, rng.getrandbits(62) | 1, 1, self.layout)
        self.durable = self.current
        self.backups = [self.durable]
        self.questions: dict[tuple[bytes, int], Push] = {}
        self.trusted: set[bytes] = set()
        self.strikes: list[str] = []
        self.kinds: Counter[str] = Counter()

    def commit(self, broken: Broken = SOUND) -> None:
        """Make the current state durable; then, and only then, speak about it."""
        previous, self.durable = self.durable, self.current
        if broken.saves_in_two_halves and self.rng.random() < 0.1:
            # The crash falls between two writes: the holding is old, the edges are new.
            self.durable = replace(self.durable, holding=previous.holding)
        self.speak(self.durable)

    def speak(self, state: PeerState) -> None:
        for edge in state.out.values():
            self.endpoint.push(edge.receiver, encode(say(state, edge, self.rules), TASK))
        for (sender, _), question in self.questions.items():
            for reply in answer(state, sender, question, self.rules):
                self.endpoint.reply(sender, encode(reply, TASK))
        self.questions.clear()

    def heartbeat(self) -> None:
        """Say everything there is to say, so that whoever was restored finds out."""
        for edge in self.durable.in_.values():
            if edge.epoch:
                self.endpoint.reply(
                    edge.sender, encode(report(self.durable, edge, self.rules), TASK)
                )
        for end in self.durable.settled.values():
            if end.epoch:
                self.endpoint.push(
                    end.receiver, encode(remind(self.durable, end, self.rules), TASK)
                )

    def receive(self) -> None:
        """Take in all that was delivered."""
        while (arrival := self.endpoint.receive_now()) is not None:
            task, message = decode(arrival.frame)
            assert task == TASK
            if not isinstance(message, Compact) or message.packed.codes:
                self.kinds[type(message).__name__] += 1
            if isinstance(message, Superseded):
                assert not is_copied(self.current, message.newer, self.rules)
                self.current = lifted(self.current, message.newer, self.rules)
                continue
            if arrival.via == "push":
                done = receive_push(self.current, arrival.peer, message, self.rules)
                self.questions[arrival.peer, message.epoch] = message
            else:
                done = receive_reply(self.current, arrival.peer, message, self.rules)
            if done.is_older_life:
                self.questions.pop((arrival.peer, message.epoch), None)
                tell = self.endpoint.reply if arrival.via == "push" else self.endpoint.push
                tell(
                    arrival.peer,
                    encode(supersede(done.state, arrival.peer, message.life, self.rules), TASK),
                )
            if done.strike:
                self.strikes.append(done.strike.sentence)
            self.current = done.state
        for receiver in sorted(self.trusted):  # as a runtime does for those it trusts
            self.current = trust(self.current, receiver, self.rng.getrandbits(60))

    def learn_and_push(self) -> None:
        if not self.current.has_minted and self.rng.random() < 0.5:
            self.current = mint(self.current, np.zeros(self.dim))
        self.current = kept(self.current, self.rules)
        if self.current.mass > 0:
            self.current = descend(self.current, any_step(self.rng, self.current))
        self.push()

    def push(self) -> None:
        shares = {key: 0.5 / len(self.trusted) for key in sorted(self.trusted)}
        self.current = push(self.current, shares, self.rules)

    def start(self, saved: PeerState, boot: int) -> None:
        """Come back with a saved state: the last one after a crash, or an old backup."""
        self.questions.clear()
        while self.endpoint.receive_now() is not None:
            pass  # what was received and not committed is lost with the process
        self.current = restart(saved, boot)
        self.durable = self.current  # the new boot is durable before the first word


@dataclass
class World:
    """Six peers, a seed, and a schedule of everything that can go wrong."""

    seed: int
    num_peers: int = 6
    broken: Broken = SOUND
    backups: bool = True
    lost_disks: bool = False
    num_lost_disks: int = 0
    rng: random.Random = field(init=False)
    now: int = 10

    def __post_init__(self) -> None:
        self.layout = layout_of(self.seed)
        self.rng = random.Random(self.seed)
        self.network = MemoryNetwork()
        self.nodes = [
            Node(self.network, index, self.rng, self.seed) for index in range(self.num_peers)
        ]
        # Each schedule has its own weather: how often each thing happens.
        self.weather = {
            self.step_of_learning: 4.0,
            self.delivery: 12.0,
            self.loss: self.rng.choice([0.0, 1.0, 6.0]),
            self.repetition: self.rng.choice([0.0, 1.0, 3.0]),
            self.commit: 6.0,
            self.heartbeat: self.rng.choice([0.05, 0.5]),
            self.crash: self.rng.choice([0.0, 0.1, 0.5]),
            self.backup: 0.5,
            self.restored_backup: self.rng.choice([0.0, 0.05, 0.2]) * self.backups,
            self.change_of_trust: self.rng.choice([0.0, 0.1, 0.5]),
            self.verdict_of_death: self.rng.choice([0.0, 0.05, 0.3]),
            self.farewell: self.rng.choice([0.0, 0.005]),
            self.lost_disk: 0.1 * self.lost_disks,
        }
        for node in self.nodes:
            for other in self.nodes:
                node.endpoint.dial(other.key, other.endpoint.address)
            node.trusted = set(self.others(node, self.rng.randint(1, 3)))
            if self.rng.random() < 0.7:
                node.current = mint(node.current, np.zeros(node.dim))
            node.receive()
            node.commit()

    def others(self, node: Node, count: int) -> list[bytes]:
        return self.rng.sample([other.key for other in self.nodes if other is not node], count)

    def storm(self, num_steps: int) -> None:
        """Let things happen in an order that only the seed knows."""
        events: list[Callable[[Node], None]] = self.rng.choices(
            list(self.weather), list(self.weather.values()), k=num_steps
        )
        for event in events:
            self.now += 1
            event(self.rng.choice(self.nodes))

    def calm(self, max_rounds: int = 200) -> None:
        """No more faults and nothing new: let everybody say and hear what there is."""
        leavers = {node.key for node in self.nodes if node.current.leaving}
        for node in self.nodes:
            node.trusted -= leavers  # they would close every new edge at once
            if not node.current.has_minted and not node.current.leaving:
                node.current = mint(node.current, np.zeros(node.dim))
        quiet = 0
        for _ in range(max_rounds):
            before = [facts(node.current) for node in self.nodes]
            for node in self.nodes:
                if node.current.leaving:
                    node.push()
                node.commit(self.broken)
                node.heartbeat()
            self.network.deliver_all()
            for node in self.nodes:
                node.receive()
            # A question of this round is answered in the next one, and the answer heard after it.
            quiet = quiet + 1 if [facts(node.current) for node in self.nodes] == before else 0
            if quiet == 3:
                return

    @property
    def stuck(self) -> list[str]:
        """Edges that did not come to rest."""
        return [
            f"{node.key[0]} -> {edge.receiver[0]}: {edge.phase}, {edge.in_flight} in flight"
            for node in self.nodes
            for edge in node.current.out.values()
            if edge.phase is not OutPhase.OPEN or edge.in_flight
        ]

    @property
    def error(self) -> np.ndarray:
        """What the network holds minus what was brought in: zeros if mass is exact."""
        return discrepancy(node.current for node in self.nodes)

    @property
    def untracked(self) -> list[int]:
        """What the trackers add up to, minus the momenta of those who have not left."""
        states = [node.current for node in self.nodes]
        return [
            wrong
            for place in self.layout.momenta.values()
            for wrong in untracked(states, place).tolist()
        ]

    @property
    def disagreeing_edges(self) -> list[str]:
        """Open edges whose receiver does not hold exactly what was handed over."""
        by_key = {node.key: node.current for node in self.nodes}
        return [
            f"{node.key[0]} -> {edge.receiver[0]}"
            for node in self.nodes
            for edge in node.current.out.values()
            if not np.array_equal(edge.sent, by_key[edge.receiver].in_[node.key, edge.epoch].heard)
        ]

    @property
    def books_balance(self) -> bool:
        """Whether the ledger identity holds inside every peer."""
        return all(
            np.array_equal(node.current.holding, expected_holding(node.current))
            for node in self.nodes
        )

    @property
    def packed_agrees(self) -> bool:
        """Whether what peers say of packed totals leads to those in their books."""
        return all(packed_agrees(node.current) for node in self.nodes)

    @property
    def strikes(self) -> list[str]:
        """Accusations; everybody in this world is honest."""
        return [strike for node in self.nodes for strike in node.strikes]

    # What can happen.

    def step_of_learning(self, node: Node) -> None:
        node.learn_and_push()
        if self.broken.sends_before_commit:
            node.speak(node.current)
        else:
            node.commit(self.broken)

    def delivery(self, node: Node) -> None:
        if self.network.in_flight:
            # Any message, not the oldest: this is reordering.
            self.network.deliver(self.rng.randrange(len(self.network.in_flight)))
        node.receive()

    def loss(self, node: Node) -> None:
        if self.network.in_flight:
            self.network.drop(self.rng.randrange(len(self.network.in_flight)))

    def repetition(self, node: Node) -> None:
        if self.network.in_flight:
            self.network.duplicate(self.rng.randrange(len(self.network.in_flight)))

    def commit(self, node: Node) -> None:
        node.receive()
        node.commit(self.broken)

    def heartbeat(self, node: Node) -> None:
        node.heartbeat()

    def crash(self, node: Node) -> None:
        node.start(node.durable, self.clock())

    def backup(self, node: Node) -> None:
        node.backups.append(node.durable)

    def restored_backup(self, node: Node) -> None:
        node.start(self.rng.choice(node.backups), self.clock())

    def change_of_trust(self, node: Node) -> None:
        if len(node.trusted) > 1 and self.rng.random() < 0.5:
            revoked = self.rng.choice(sorted(node.trusted))
            node.trusted.discard(revoked)
            node.current = distrust(node.current, revoked)
        else:
            node.trusted.update(self.others(node, 1))

    def verdict_of_death(self, node: Node) -> None:
        edges = [name for name, edge in node.current.out.items() if edge.phase is not OutPhase.DEAD]
        if edges:
            node.current = presume_dead(node.current, self.rng.choice(edges))

    def farewell(self, node: Node) -> None:
        if sum(other.current.leaving for other in self.nodes) < self.num_peers - 2:
            node.current = leave(node.current)

    def lost_disk(self, node: Node) -> None:
        if not node.current.leaving:
            self.num_lost_disks += 1
            ledger = self.rng.getrandbits(62) | 1
            node.backups = [PeerState.new(node.dim, ledger, boot=1, layout=self.layout)]
            node.start(node.backups[0], self.clock())

    def clock(self) -> int:
        """The stamp of a start, on a machine whose clock may have been set back."""
        now = self.now if self.rng.random() < 0.8 else self.rng.randrange(self.now)
        return first_stamp(now << RANDOM_BITS, self.rng.getrandbits(RANDOM_BITS))


def facts(state: PeerState) -> object:
    """What must no longer change in a network at rest."""
    edges = [(name, edge.phase, edge.session, edge.seq) for name, edge in state.out.items()]
    heard = [(name, edge.session, edge.seq, edge.closed) for name, edge in state.in_.items()]
    return state.holding.tolist(), edges, heard, len(state.settled)
