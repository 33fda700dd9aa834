"""A lab: the peers of a problem as real processes on this machine, and what one can do to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from oneway.errors import ConfigError, OnewayError
from oneway.lab.audit import Audit, audit
from oneway.lab.ports import Ports
from oneway.lab.problem import Problem
from oneway.lab.process import PeerProcess, command
from oneway.lab.rest import Look, Rest, look_at
from oneway.lab.setup import TASK_FILE, Member, make_member, make_members
from oneway.peer.home.limits import Faults
from oneway.peer.store.snapshot import Journal, Snapshot
from oneway.peer.store.store import read_snapshot
from oneway.records import Ints

DRAIN_SECONDS = 60.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.1


class Lab:
    """Real peers on loopback. Leave it with `close`, or use it in a `with` block.

    Peers are numbered as the nodes of the problem's graph; peers that are added get the next
    numbers. A peer that is killed stays down until `restart`, for good if it never comes.

    Attributes:
        problem: What the peers were made for.
        members: Their folders and cards.
        events: What was done to them, in sentences.
    """

    def __init__(
        self,
        folder: Path,
        problem: Problem,
        *,
        rate: float = 0.0,
        run: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Make the peers' folders; `start` starts them.

        Args:
            folder: A new or empty folder.
            problem: What is learned, by whom.
            rate: Samples per second of each peer; 0 for as many as it can.
            run: The command that runs a peer, if it is not `oneway peer run`.
            clock: Seconds that only grow.
            sleep: How to wait.

        Raises:
            ConfigError: If the folder cannot be used, or a rate or share is no such thing.
        """
        if not 0.0 <= rate < float("inf"):
            raise ConfigError(f"rate is {rate:g} samples per second; it must be 0 or more")
        self.problem = problem
        self.events: list[str] = []
        self._folder = folder
        self._rate = rate
        self._run = command() if run is None else list(run)
        self._clock = clock
        self._sleep = sleep
        self._began = clock()
        self._ports = Ports()
        try:
            self.members = make_members(folder, problem, self._ports.reserve)
        except BaseException:
            self._ports.close()
            raise
        self._processes = [self._process(member) for member in self.members]

    # Life and death.

    def start(self) -> None:
        """Start every peer that does not run."""
        for process in self._processes:
            if not process.is_running:
                process.start()
        self._note(f"{len(self.members)} peers were started")

    def kill(self, peer: int) -> None:
        """End a peer with SIGKILL, in the middle of whatever it does."""
        self._processes[peer].kill()
        self._note(f"{self._name(peer)} was killed")

    def restart(self, peer: int) -> None:
        """Start a peer that is down.

        Raises:
            OnewayError: If it runs.
        """
        self._processes[peer].start()
        self._note(f"{self._name(peer)} was started again")

    def stop(self) -> None:
        """Stop every peer cleanly; those that do not end in time are killed."""
        for process in self._processes:
            process.ask_to_stop()
        deadline = self._clock() + STOP_SECONDS
        for process in self._processes:
            if not process.wait(deadline - self._clock()):
                process.kill()
                self._note(f"{process.member.name} did not stop and was killed")

    def close(self) -> None:
        """Leave no process behind, and give the ports back."""
        try:
            self.stop()
        finally:
            for process in self._processes:
                process.kill()
            self._ports.close()

    # Trust and faults; running peers follow within a moment.

    def set_loss(self, loss: float) -> None:
        """Let every peer lose this share of the messages it sends.

        Raises:
            ConfigError: If it is not from 0 to 1.
        """
        for member in self.members:
            member.change(lambda config: replace(config, faults=replace(config.faults, loss=loss)))
        self._note(f"from now on {loss:.0%} of the messages are lost")

    def cut(self, one: int, other: int) -> None:
        """Let nothing pass between two peers."""
        self._set_cut(one, lambda cut: cut | {self._name(other)})
        self._note(f"the line between {self._name(one)} and {self._name(other)} was cut")

    def heal(self, one: int, other: int) -> None:
        """Undo `cut`."""
        self._set_cut(one, lambda cut: cut - {self._name(other)})
        self._set_cut(other, lambda cut: cut - {self._name(one)})
        self._note(f"the line between {self._name(one)} and {self._name(other)} was healed")

    def trust(self, sender: int, receiver: int, weight: float = 1.0) -> None:
        """Let one peer send to another, which admits it.

        Raises:
            ConfigError: If the weight is no weight.
        """
        giver, taker = self.members[sender], self.members[receiver]
        taker.change(lambda config: config.with_sender(giver.card, own_key=taker.key))
        giver.change(lambda config: config.with_receiver(taker.card, weight, own_key=giver.key))
        self._note(f"{giver.name} now sends to {taker.name}")

    def distrust(self, sender: int, receiver: int) -> None:
        """Let one peer send nothing more to another; what did not arrive comes back.

        Raises:
            ConfigError: If it does not send to it.
        """
        name = self._name(receiver)
        self.members[sender].change(lambda config: config.without_receiver(name))
        self._note(f"{self._name(sender)} no longer sends to {name}")

    def add_peer(
        self, name: str, rows: Ints, *, receivers: Sequence[int] = (), senders: Sequence[int] = ()
    ) -> int:
        """Let a newcomer join, and return its number.

        Args:
            name: What it is called; no other peer may be called so.
            rows: The rows of the problem's table that it learns from.
            receivers: Whom it sends to.
            senders: Who sends to it.

        Raises:
            ConfigError: If there is a peer of that name, or the name cannot be used.
        """
        member = make_member(
            self._folder / name,
            self._folder / TASK_FILE,
            self._ports.reserve(),
            self.problem.table,
            rows,
        )
        number = len(self.members)
        self.members.append(member)
        self._processes.append(self._process(member))
        for receiver in receivers:
            self.trust(number, receiver)
        for sender in senders:
            self.trust(sender, number)
        self._processes[number].start()
        self._note(f"{name} joined")
        return number

    # What there is to see.

    def running(self) -> list[int]:
        """The peers whose process lives."""
        return [peer for peer, process in enumerate(self._processes) if process.is_running]

    @property
    def down(self) -> set[bytes]:
        """The keys of the peers that were killed and not brought back."""
        return {process.member.key for process in self._processes if process.was_killed}

    def pid(self, peer: int) -> int | None:
        """The id of a peer's process; None if it is down."""
        return self._processes[peer].pid

    def statuses(self) -> list[Look]:
        """Every peer at this moment.

        Raises:
            OnewayError: If a peer ended by itself; says what it said last.
        """
        for process in self._processes:
            if process.failure:
                raise OnewayError(f"{process.failure}; see {process.log_path}")
        return [look_at(process) for process in self._processes]

    def is_finished(self) -> bool:
        """Whether every peer that runs has come to the end of its samples."""
        return all(
            look.state != "starting" and look.status is not None and look.status.finished
            for look in self.statuses()
            if look.state != "down"
        )

    def snapshots(self) -> dict[bytes, Snapshot]:
        """What every peer's store holds, by public key; peers that never had one are left out.

        Raises:
            StoreError: If a store is damaged.
        """
        return {
            member.key: read_snapshot(member.home.store_path)
            for member in self.members
            if member.home.store_path.exists()
        }

    def journals(self) -> list[Journal]:
        """What every peer has learned from, as its store says; of no store, nothing."""
        found = self.snapshots()
        return [
            found[member.key].journal if member.key in found else Journal()
            for member in self.members
        ]

    # The end.

    def drain(self, seconds: float = DRAIN_SECONDS) -> bool:
        """Let everything arrive: all faults end, nobody learns or pushes any more.

        Returns:
            Whether the peers that run came to rest within so many seconds.
        """
        for member in self.members:
            member.change(lambda config: replace(config, paused=True, faults=Faults()))
        self._note("the peers were paused, to let everything arrive")
        rest = Rest(self.down)
        deadline = self._clock() + seconds
        while not (rest.seen_in(self.statuses()) and rest.stored_in(self.snapshots())):
            if self._clock() >= deadline:
                self._note(f"the network did not come to rest within {seconds:g} s")
                return False
            self._sleep(POLL_SECONDS)
        self._note("nothing is in flight any more")
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
        return audit(found, self.down)

    def __enter__(self) -> Lab:
        """Start the peers."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave nothing behind."""
        self.close()

    # Details.

    def _process(self, member: Member) -> PeerProcess:
        return PeerProcess(member, self._rate, self._run)

    def _name(self, peer: int) -> str:
        return self.members[peer].name

    def _note(self, sentence: str) -> None:
        self.events.append(f"{self._clock() - self._began:.1f} s: {sentence}")

    def _set_cut(self, peer: int, cut: Callable[[set[str]], set[str]]) -> None:
        self.members[peer].change(
            lambda config: replace(
                config,
                faults=replace(config.faults, cut=tuple(sorted(cut(set(config.faults.cut))))),
            )
        )
