"""A lab: the peers of a problem as real processes on this machine, and what can be done to them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import networkx as nx
import numpy as np
from msgspec.structs import astuple

from oneway.errors import ConfigError, OnewayError
from oneway.files.output_folder import MARKER
from oneway.lab.audit import Audit, audit, num_unsettled
from oneway.lab.peer_folders import TASK_FILE, PeerFolder, make_peer, make_peers
from oneway.lab.peer_process import Observation, PeerProcess, niceness, peer_command
from oneway.lab.ports import Ports
from oneway.lab.problem import Problem
from oneway.peer.identity.card import check_name
from oneway.peer.identity.keys import key_text
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.state import Key, OutPhase
from oneway.records import Ints
from oneway.records.network import Command
from oneway.sentences import listed, nearest, shown
from oneway.store import RESULT, RUNS
from oneway.transport import Faults

STOP_SECONDS = 15.0
DRAIN_SECONDS = 60.0
POLL_SECONDS = 0.1
_FILES = (MARKER, RESULT, RUNS, TASK_FILE)
"""Names in a lab's folder that are no peers."""

CONNECTED = "every running peer reaches every other one again, so mass flows back"
FEW = "fewer than two peers run, so nothing flows"

Edge = tuple[str, str]
"""A sender and a receiver, by name."""


class Lab:
    """Real peers on loopback. Leave it with `close`, or use it in a `with` block.

    Peers are known by name, and in the order of the nodes of the problem's graph, those that joined
    later after them. A peer that is killed stays down until `restart`, for good if it never comes.
    What is done to a peer returns a sentence that says so, and is among the events. What cannot be
    done, also to a name that no peer has, is a ConfigError that says why, and changes nothing.

    Attributes:
        problem: What the peers were made for.
        peers: Their folders and processes.
        events: What was done to them, in sentences.
        loss: The share of messages that are lost on purpose.
        is_rewired: Whether trust has been changed, or a newcomer has joined.
        finishing: Whether a command asked for the end.
        dealt: The rows of the table that peers got, newcomers included.
    """

    def __init__(
        self,
        folder: Path,
        problem: Problem,
        *,
        rate: float = 0.0,
        forgiving: bool = False,
        transport: str = "zeromq",
        seed: int = 0,
    ) -> None:
        """Make the peers' folders; `start` starts them.

        Args:
            folder: A new or empty folder.
            problem: What is learned, by whom.
            rate: Samples per second of each peer; 0 for as many as it can.
            forgiving: Whether a peer that ends by itself is an event, and down like one that was
                killed; otherwise it is an error.
            transport: How the peers' messages travel, as it is registered.
            seed: Of what `add_peer` leaves open.
        """
        if not 0.0 <= rate < float("inf"):
            raise ConfigError(f"rate is {rate:g} samples per second; it must be 0 or more")
        self.problem = problem
        self.events: list[str] = []
        self.loss = 0.0
        self.is_rewired = False
        self.finishing = False
        self.dealt = set(np.unique(problem.stream.rows).tolist()) - {-1}
        self._rng = random.Random(seed)
        self._flow = CONNECTED
        self._folder = folder
        self._transport = transport
        self._forgiving = forgiving
        self._began = time.monotonic()
        self._ports = Ports()
        try:
            made = make_peers(folder, problem, self._ports.reserve, transport)
        except BaseException:
            self._ports.close()
            raise
        # On a busy machine processes start one after the other: no peer learns before all are up.
        self._waits_for_all = True
        self._how_to_run = (rate, peer_command(), niceness(len(made)))
        self.peers = [PeerProcess(peer.home, *self._how_to_run) for peer in made]
        for peer in self.peers:
            peer.change(lambda config: replace(config, paused=True))

    # Life and death.

    def start(self) -> None:
        """Start every peer that does not run."""
        for peer in self.peers:
            if not peer.is_running:
                peer.start()
        self.note(f"{len(self.peers)} peers were started")

    def kill(self, name: str) -> str:
        """End a peer with SIGKILL, in the middle of whatever it does."""
        [peer] = self._known(name)
        if not peer.is_running:
            raise ConfigError(f"{name} is down already; restart it first")
        peer.kill()
        return self.note(f"{name} was killed")

    def restart(self, name: str) -> str:
        """Start a peer that is down."""
        self._known(name)[0].start()
        return self.note(f"{name} was started again")

    def stop(self) -> None:
        """Stop every peer cleanly; those that do not end in time are killed."""
        for peer in self.peers:
            peer.ask_to_stop()
        deadline = time.monotonic() + STOP_SECONDS
        for peer in self.peers:
            if not peer.wait(deadline - time.monotonic()):
                peer.kill()
                self.note(f"{peer.name} did not stop and was killed")

    def close(self) -> None:
        """Leave no process behind, and give the ports back."""
        try:
            self.stop()
        finally:
            for peer in self.peers:
                peer.kill()
            self._ports.close()

    def __enter__(self) -> Self:
        """Start the peers."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind."""
        self.close()

    # What there is to see.

    @property
    def seconds(self) -> float:
        """Since the lab was made."""
        return time.monotonic() - self._began

    def running(self) -> list[str]:
        """The peers whose process lives."""
        return [peer.name for peer in self.peers if peer.is_running]

    @property
    def down(self) -> set[bytes]:
        """The keys of the peers that were killed, or ended by themselves, and are not back."""
        return {peer.key for peer in self.peers if peer.was_killed or peer.ended_by_itself}

    def pid(self, name: str) -> int | None:
        """The id of a peer's process; None if it is down."""
        return self._known(name)[0].pid

    def observe(self) -> list[Observation]:
        """Every peer at this moment; once all are up for the first time, they begin to learn.

        Raises:
            OnewayError: If a peer exits unexpectedly and the lab is not forgiving; with the last
                line of its log.
        """
        for peer in self.peers:
            if peer.ended_by_itself and not self._forgiving:
                raise OnewayError(f"{peer.failure}; see {peer.log_path}")
            if peer.ended_by_itself and not peer.end_was_noted:
                peer.end_was_noted = True
                self.note(peer.failure)
        seen = [peer.observe() for peer in self.peers]
        if self._waits_for_all and all(peer.state in ("paused", "down") for peer in seen):
            self._waits_for_all = False
            for member in self.peers:
                member.change(lambda config: replace(config, paused=False))
        return seen

    def snapshots(self) -> dict[bytes, Snapshot]:
        """What every peer's store holds, by public key; peers that never had one are left out.

        Raises:
            StoreError: If a store is damaged.
        """
        found = {peer.key: peer.snapshot() for peer in self.peers}
        return {key: snapshot for key, snapshot in found.items() if snapshot is not None}

    def note(self, sentence: str) -> str:
        """Add a sentence to the events, and return it."""
        self.events.append(f"{self.seconds:.1f} s: {sentence}")
        return sentence

    # Trust and faults; running peers follow within a moment.

    def set_loss(self, loss: float) -> str:
        """Let every peer lose this share of the messages it sends, newcomers included."""
        if not 0.0 <= loss <= 1.0:
            raise ConfigError(f"the loss is {loss:g}; it must be a share from 0 to 1, as 0.2")
        for peer in self.peers:
            _change_faults(peer, lambda faults: replace(faults, loss=loss))
        self.loss = loss
        return self.note(f"from now on {100 * loss:g}% of the messages are lost")

    def cut(self, one: str, other: str) -> str:
        """Let nothing pass between two peers."""
        first, second = self._known(one, other)
        trust = TrustEdges.of(self.peers)
        if one == other or not {(one, other), (other, one)} & set(trust.edges):
            raise ConfigError(
                f"neither of {one} and {other} sends to the other, so there is no line to cut; "
                "choose two peers with an edge"
            )
        if trust.is_cut(one, other):
            raise ConfigError(f"the line between {one} and {other} is cut already; heal it first")
        # At the end that admits the other: it still knows it when trust between them has ended,
        # and can undo the cut.
        turned = not _admits(first, second) and _admits(second, first)
        at, against = (second, first) if turned else (first, second)
        _change_cuts(at, lambda cut: cut | {against.name})
        return self.note(f"the line between {one} and {other} was cut")

    def heal(self, one: str, other: str) -> str:
        """Undo `cut`."""
        first, second = self._known(one, other)
        if not TrustEdges.of(self.peers).is_cut(one, other):
            raise ConfigError(
                f"the line between {one} and {other} is not cut; there is nothing to heal"
            )
        _change_cuts(first, lambda cut: cut - {other})
        _change_cuts(second, lambda cut: cut - {one})
        return self.note(f"the line between {one} and {other} was healed")

    def trust(self, sender: str, receiver: str) -> str:
        """Let one peer send to another, which admits it, with the weight that is usual for it."""
        giver, taker = self._known(sender, receiver)
        if sender == receiver:
            raise ConfigError(f"{sender} cannot send to itself; choose another receiver")
        if (sender, receiver) in TrustEdges.of(self.peers).edges:
            raise ConfigError(f"{sender} sends to {receiver} already; choose another receiver")
        _let_send(giver, taker)
        self.is_rewired = True
        return self.note(f"{sender} now sends to {receiver}")

    def distrust(self, sender: str, receiver: str) -> str:
        """Let one peer send nothing more to another; what did not arrive comes back."""
        giver, taker = self._known(sender, receiver)
        known = [to for of, to in TrustEdges.of(self.peers).edges if of == sender]
        if receiver not in known:
            raise ConfigError(
                f"{sender} does not send to {receiver}; it sends to {listed(known) or 'nobody'}"
            )
        giver.change(lambda config: config.without_receiver(taker.name))
        self.is_rewired = True
        return self.note(f"{sender} no longer sends to {receiver}")

    def add_peer(
        self, name: str = "", receivers: Sequence[str] = (), senders: Sequence[str] = ()
    ) -> str:
        """Let a newcomer join; a name, samples, and edges if none are given, are chosen here."""
        name = self._new_name(name)
        receivers, senders = list(dict.fromkeys(receivers)), list(dict.fromkeys(senders))
        if not receivers and not senders:
            known = self.running() or [peer.name for peer in self.peers]
            receivers, senders = [self._rng.choice(known)], [self._rng.choice(known)]
        takers, givers = self._known(*receivers), self._known(*senders)
        rows = self._new_rows()
        allow = self.problem.task.code_names
        made = make_peer(
            self._folder / name,
            self._ports.reserve(),
            self.problem.table,
            rows,
            transport=self._transport,
            allow=allow,
        )
        self.dealt.update(rows.tolist())
        peer = PeerProcess(made.home, *self._how_to_run)
        # If the others still wait for each other, the newcomer waits with them.
        waits = self._waits_for_all
        peer.change(lambda config: replace(config, paused=waits))
        _change_faults(peer, lambda faults: replace(faults, loss=self.loss))
        self.peers.append(peer)
        for taker in takers:
            _let_send(peer, taker)
        for giver in givers:
            _let_send(giver, peer)
        peer.start()
        self.is_rewired = True
        sends = f", sends to {listed(receivers)}" if receivers else ""
        hears = f", hears from {listed(senders)}" if senders else ""
        return self.note(f"{name} joined with {len(rows):,} samples{sends}{hears}")

    def _new_name(self, name: str) -> str:
        taken = {peer.name.lower(): peer.name for peer in self.peers}
        if not name:
            numbers = (f"peer{number}" for number in range(len(taken) + 1))
            return next(name for name in numbers if name not in taken)
        if (known := taken.get(name.lower())) is not None:
            raise ConfigError(f"the name {name} is taken by the peer {known}; choose another name")
        if name.lower() in _FILES:
            raise ConfigError(f"{name} is a file of the lab itself; choose another name")
        return check_name(name)

    def _new_rows(self) -> Ints:
        """As many rows as the median founder has; new ones, if there are enough."""
        problem = self.problem
        count = int(np.median((problem.stream.rows >= 0).sum(axis=0)))
        free = np.setdiff1d(np.arange(len(problem.table)), list(self.dealt))
        pool = free if len(free) >= count else np.arange(len(problem.table))
        rng = np.random.default_rng(self._rng.getrandbits(64))
        rows: Ints = rng.choice(pool, size=count, replace=len(pool) < count)
        return rows

    # Commands.

    def carry_out(self, command: Command) -> str:
        """Call the method that is named like the command's tag; returns what was done.

        Raises:
            OnewayError: If it cannot be done; says why.
        """
        said: str = getattr(self, str(type(command).__struct_config__.tag))(*astuple(command))
        self._note_flow()
        return said

    def finish(self) -> str:
        """Ask for the end."""
        self.finishing = True
        return "the lab is finishing"

    def _note_flow(self) -> None:
        """Say where mass gathers from now on, if that has changed."""
        trust = TrustEdges.of(self.peers)
        edges = [edge for edge in trust.edges if not trust.is_cut(*edge)]
        running = self.running()
        said = flow_sentence(dead_ends(running, edges), len(running))
        if said != self._flow:
            self._flow = said
            self.note(said)

    # The end.

    def drain(
        self, seconds: float = DRAIN_SECONDS, meanwhile: Callable[[], None] = lambda: None
    ) -> bool:
        """Let everything arrive: all faults end, no peer learns or pushes any more.

        Args:
            seconds: How long to wait for it.
            meanwhile: Called again and again while waiting.

        Returns:
            Whether the peers that run came to rest within so many seconds.
        """
        for peer in self.peers:
            peer.change(lambda config: replace(config, paused=True, faults=Faults()))
        self.loss = 0.0
        self.note("the peers were paused, to let everything arrive")
        deadline = time.monotonic() + seconds
        quiescence = Quiescence()
        while not (
            quiescence.seen_in(self.observe(), self.down)
            and num_unsettled(self.snapshots(), self.down) == 0
        ):
            if time.monotonic() >= deadline:
                self.note(f"the network did not come to rest within {seconds:g} s")
                return False
            meanwhile()
            time.sleep(POLL_SECONDS)
        self.note(f"nothing is in flight any more{' between peers that run' if self.down else ''}")
        return True

    def audit(self) -> Audit:
        """Add up what all stores hold; to be called after `drain` and `stop`.

        Raises:
            StoreError: If a store is damaged.
            OnewayError: If there is no store at all.
        """
        found = self.snapshots()
        if not found:
            raise OnewayError("there is nothing to audit: no peer ever had a store")
        payload = self.problem.task.build_method().payload
        return audit(found, self.down, [it.name for it in payload if it.tracks])

    def _known(self, *names: str) -> list[PeerProcess]:
        peers = {peer.name: peer for peer in self.peers}
        for name in names:
            if name not in peers:
                known = nearest(name, peers) or f"; there are {listed(peers)}"
                raise ConfigError(f"there is no peer {shown(name)}{known}")
        return [peers[name] for name in names]


def _admits(receiver: PeerFolder, sender: PeerFolder) -> bool:
    return any(known.key == sender.key for known in receiver.config.senders)


def _let_send(giver: PeerFolder, taker: PeerFolder) -> None:
    """With the weight that the giver's receivers have on average."""
    weights = [known.weight for known in giver.config.receivers]
    weight = sum(weights) / len(weights) if weights else 1.0
    taker.change(lambda config: config.with_sender(giver.card, own_key=taker.key))
    giver.change(lambda config: config.with_receiver(taker.card, weight, own_key=giver.key))


def _change_faults(peer: PeerFolder, how: Callable[[Faults], Faults]) -> None:
    peer.change(lambda config: replace(config, faults=how(config.faults)))


def _change_cuts(peer: PeerFolder, how: Callable[[set[str]], set[str]]) -> None:
    _change_faults(peer, lambda faults: replace(faults, cut=tuple(sorted(how(set(faults.cut))))))


@dataclass(frozen=True)
class TrustEdges:
    """The trust graph according to the configurations of the peers.

    Attributes:
        edges: Who sends to whom.
        cuts: The lines that are cut at either end, each a pair of names.
    """

    edges: Sequence[Edge]
    cuts: frozenset[frozenset[str]]

    @classmethod
    def of(cls, peers: Sequence[PeerFolder]) -> TrustEdges:
        """The graph at this moment; edges out of the lab are left out."""
        names = {peer.key: peer.name for peer in peers}
        configs = {peer.name: peer.config for peer in peers}
        return cls(
            edges=[
                (name, names[receiver.key])
                for name, config in configs.items()
                for receiver in config.receivers
                if receiver.key in names
            ],
            cuts=frozenset(
                frozenset((name, other))
                for name, config in configs.items()
                for other in config.faults.cut
            ),
        )

    def is_cut(self, one: str, other: str) -> bool:
        """Whether the line between two peers is cut, at either end."""
        return frozenset((one, other)) in self.cuts


def dead_ends(peers: Iterable[str], edges: Iterable[Edge]) -> list[tuple[str, ...]]:
    """Sink components: groups of running peers that receive from others and send nothing back.

    Empty if every running peer reaches every other one.

    >>> dead_ends("abc", [("a", "b"), ("b", "a"), ("b", "c")])
    [('c',)]
    """
    graph = nx.DiGraph()
    graph.add_nodes_from(peers)
    graph.add_edges_from(edge for edge in edges if edge[0] in graph and edge[1] in graph)
    parts = nx.condensation(graph)
    if len(parts) <= 1:
        return []
    ends = (part for part in parts if parts.out_degree(part) == 0)
    return sorted(tuple(sorted(parts.nodes[part]["members"])) for part in ends)


def flow_sentence(ends: Sequence[tuple[str, ...]], num_running: int = 2) -> str:
    """Say where mass gathers, given the sink components and the number of running peers.

    >>> flow_sentence([("c",)])
    'mass now gathers at c, which sends to nobody else that runs'
    >>> flow_sentence([("a", "b"), ("c",)])
    'mass now gathers in 2 places that send nothing to each other: a, b; c'
    """
    if num_running < 2:
        return FEW
    if not ends:
        return CONNECTED
    if len(ends) > 1:
        places = "; ".join(listed(end) for end in ends)
        return f"mass now gathers in {len(ends)} places that send nothing to each other: {places}"
    [end] = ends
    who = "which sends" if len(end) == 1 else "which send"
    return f"mass now gathers at {listed(end)}, {who} to nobody else that runs"


class Quiescence:
    """Detects that nothing is in flight between paused peers, according to their statuses.

    A status from before the last peer paused proves nothing. Statuses include what is not durable
    yet; the stores have to agree, see `num_unsettled`.
    """

    def __init__(self) -> None:
        self._paused_since: dict[Key, float] = {}

    def seen_in(self, observations: Sequence[Observation], down: Collection[Key] = ()) -> bool:
        """Whether the peers are at rest; to be called repeatedly.

        Args:
            observations: Every peer at this moment.
            down: Peers that are down for good; what is on its way to them will never arrive.
        """
        running = [peer for peer in observations if peer.key not in down]
        paused = {
            peer.key: peer.status
            for peer in running
            if peer.status is not None and peer.state == "paused"
        }
        if len(paused) < len(running):
            self._paused_since = {}
            return False
        if paused.keys() != self._paused_since.keys():
            self._paused_since = {key: status.time for key, status in paused.items()}
        names = {key_text(key) for key in down}
        return all(
            status.time > self._paused_since[key]
            and all(
                edge.phase == "none" or (edge.phase == OutPhase.OPEN and edge.seq == edge.acked)
                for edge in status.receivers
                if edge.key not in names
            )
            for key, status in paused.items()
        )
