"""A lab: the peers of a problem as real processes on this machine, and what can be done to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from oneway.errors import ConfigError, OnewayError
from oneway.lab.audit import Audit, audit, num_unsettled
from oneway.lab.peer_folders import PeerFolder, make_peer, make_peers
from oneway.lab.peer_process import Observation, PeerProcess, niceness, peer_command
from oneway.lab.ports import Ports
from oneway.lab.problem import Problem
from oneway.lab.quiescence import Quiescence, overfull
from oneway.lab.trust_edges import TrustEdges
from oneway.peer.store.snapshot import Snapshot
from oneway.records import Ints
from oneway.sentences import listed, nearest, shown
from oneway.transport import Faults

STOP_SECONDS = 15.0
DRAIN_SECONDS = 60.0
POLL_SECONDS = 0.1


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
    """

    def __init__(
        self,
        folder: Path,
        problem: Problem,
        *,
        rate: float = 0.0,
        run: Sequence[str] | None = None,
        forgiving: bool = False,
        transport: str = "zeromq",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the peers' folders; `start` starts them.

        Args:
            folder: A new or empty folder.
            problem: What is learned, by whom.
            rate: Samples per second of each peer; 0 for as many as it can.
            run: The command that runs a peer, if it is not `oneway peer run`.
            forgiving: Whether a peer that ends by itself is an event, and down like one that was
                killed; otherwise it is an error.
            transport: How the peers' messages travel, as it is registered.
            clock: Seconds that only grow.
        """
        if not 0.0 <= rate < float("inf"):
            raise ConfigError(f"rate is {rate:g} samples per second; it must be 0 or more")
        self.problem = problem
        self.events: list[str] = []
        self.loss = 0.0
        self.is_rewired = False
        self._folder = folder
        self._transport = transport
        self._forgiving = forgiving
        self._clock = clock
        self._began = clock()
        self._ports = Ports()
        try:
            made = make_peers(folder, problem, self._ports.reserve)
        except BaseException:
            self._ports.close()
            raise
        # On a busy machine processes start one after the other: nobody learns before all are up.
        self._waits_for_all = True
        self._how_to_run = (rate, run or peer_command(), niceness(len(made)))
        self.peers = [PeerProcess(peer.home, *self._how_to_run) for peer in made]
        for peer in self.peers:
            peer.change(lambda config: replace(config, paused=True, transport=transport))

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
        deadline = self._clock() + STOP_SECONDS
        for peer in self.peers:
            if not peer.wait(deadline - self._clock()):
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
        return self._clock() - self._began

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
            OnewayError: If a peer ended by itself and that is not forgiven; says what it said last.
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
        self, name: str, rows: Ints, *, receivers: Sequence[str] = (), senders: Sequence[str] = ()
    ) -> str:
        """Let a newcomer join that learns from these rows of the problem's table."""
        takers, givers = self._known(*receivers), self._known(*senders)
        own = self.problem.task.site
        made = make_peer(
            self._folder / name, self._ports.reserve(), self.problem.table, rows, site=own
        )
        peer = PeerProcess(made.home, *self._how_to_run)
        peer.change(lambda config: replace(config, transport=self._transport))
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
        deadline = self._clock() + seconds
        quiescence = Quiescence()
        while not (
            quiescence.seen_in(seen := self.observe(), self.down)
            and num_unsettled(self.snapshots(), self.down) == 0
        ):
            if self._clock() >= deadline:
                self.note(f"the network did not come to rest within {seconds:g} s")
                return False
            let_go = overfull(seen, self.down)
            for peer in self.peers:
                if peer.config.paused is (peer.key in let_go):
                    peer.change(lambda config: replace(config, paused=not config.paused))
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
