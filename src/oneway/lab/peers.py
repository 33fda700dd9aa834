"""The processes of a lab: start, kill and stop them, and see what they are doing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from oneway.errors import OnewayError
from oneway.lab.process import PeerProcess, command
from oneway.lab.rest import Look, StatusFiles, look_at
from oneway.lab.setup import Member
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import read_snapshot

STOP_SECONDS = 15.0


class Peers:
    """Real peers on loopback. Leave them with `close`, or use them in a `with` block.

    A peer that is killed stays down until `restart`, for good if it never comes.

    Attributes:
        members: Their folders and cards; peers are numbered in this order.
        events: What was done to them, in sentences.
    """

    def __init__(
        self,
        members: Sequence[Member],
        *,
        rate: float = 0.0,
        run: Sequence[str] | None = None,
        forgiving: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; `start` starts them.

        Args:
            members: The peers.
            rate: Samples per second of each peer; 0 for as many as it can.
            run: The command that runs a peer, if it is not `oneway peer run`.
            forgiving: Whether a peer that ends by itself is an event, and down like one that was
                killed; otherwise it is an error.
            clock: Seconds that only grow.
        """
        self.members = list(members)
        self.events: list[str] = []
        self._rate = rate
        self._run = command(len(self.members)) if run is None else list(run)
        self._forgiving = forgiving
        self._clock = clock
        self._began = clock()
        self._processes = [self._process(member) for member in self.members]
        self._status_files = StatusFiles()

    # Life and death.

    def start(self) -> None:
        """Start every peer that does not run."""
        for process in self._processes:
            if not process.is_running:
                process.start()
        self.note(f"{len(self.members)} peers were started")

    def kill(self, peer: int) -> str:
        """End a peer with SIGKILL, in the middle of whatever it does; say so."""
        self._processes[peer].kill()
        return self.note(f"{self.members[peer].name} was killed")

    def restart(self, peer: int) -> str:
        """Start a peer that is down; say so.

        Raises:
            OnewayError: If it runs.
        """
        self._processes[peer].start()
        return self.note(f"{self.members[peer].name} was started again")

    def stop(self) -> None:
        """Stop every peer cleanly; those that do not end in time are killed."""
        for process in self._processes:
            process.ask_to_stop()
        deadline = self._clock() + STOP_SECONDS
        for process in self._processes:
            if not process.wait(deadline - self._clock()):
                process.kill()
                self.note(f"{process.member.name} did not stop and was killed")

    def close(self) -> None:
        """Leave no process behind."""
        try:
            self.stop()
        finally:
            for process in self._processes:
                process.kill()

    # What there is to see.

    @property
    def seconds(self) -> float:
        """Since they were made."""
        return self._clock() - self._began

    def running(self) -> list[int]:
        """The peers whose process lives."""
        return [peer for peer, process in enumerate(self._processes) if process.is_running]

    @property
    def down(self) -> set[bytes]:
        """The keys of the peers that were killed, or ended by themselves, and are not back."""
        return {
            process.member.key
            for process in self._processes
            if process.was_killed or process.ended_by_itself
        }

    def pid(self, peer: int) -> int | None:
        """The id of a peer's process; None if it is down."""
        return self._processes[peer].pid

    def statuses(self) -> list[Look]:
        """Every peer at this moment.

        Raises:
            OnewayError: If a peer ended by itself and that is not forgiven; says what it said last.
        """
        for process in self._processes:
            if process.ended_by_itself and not self._forgiving:
                raise OnewayError(f"{process.failure}; see {process.log_path}")
            if process.ended_by_itself and not process.is_mourned:
                process.is_mourned = True
                self.note(process.failure)
        return [look_at(process, self._status_files.read) for process in self._processes]

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

    def note(self, sentence: str) -> str:
        """Add something that happened to the events, and return it."""
        self.events.append(f"{self.seconds:.1f} s: {sentence}")
        return sentence

    def __enter__(self) -> Self:
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

    def _process(self, member: Member) -> PeerProcess:
        return PeerProcess(member, self._rate, self._run)
