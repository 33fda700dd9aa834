"""Peers as one sees them from outside, and how one sees that they have come to rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from oneway.lab.audit import num_unsettled
from oneway.lab.process import PeerProcess
from oneway.peer.identity.keys import key_text
from oneway.peer.status import read_status
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.state import Key, OutPhase
from oneway.records.network import PeerLife
from oneway.records.status import Status


@dataclass(frozen=True)
class Look:
    """One peer at one moment.

    Attributes:
        state: "starting" until its process has said something about itself.
        status: What it last said, perhaps in an earlier life; None if nothing yet.
        restarts: How often it was started again.
    """

    name: str
    key: Key
    state: PeerLife
    status: Status | None
    restarts: int


class StatusFiles:
    """Reads statuses, each file again only when it was written anew."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[object, Status | None]] = {}

    def read(self, path: Path) -> Status | None:
        """The last status that was written; None if there is none that can be read."""
        try:
            facts = path.stat()
        except OSError:
            return None
        version = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        known, status = self._read.get(path, (None, None))
        if known != version:
            status = read_status(path)
            self._read[path] = (version, status)
        return status


def look_at(process: PeerProcess, read: Callable[[Path], Status | None] = read_status) -> Look:
    """One peer at this moment."""
    member, pid = process.member, process.pid
    status = read(member.home.status_path)
    state: PeerLife
    if pid is None:
        state = "down"
    elif status is None or status.pid != pid:
        # What is there was said in an earlier life.
        state = "starting"
    else:
        state = "paused" if status.paused else "up"
    return Look(member.name, member.key, state, status, max(0, process.starts - 1))


class Rest:
    """Watches peers that were paused, until nothing is in flight between them.

    Two things must be true at once: what peers say, which includes what is not durable yet, and
    what their stores hold. What a peer said before the last one paused proves nothing: it may have
    been sent something since.
    """

    def __init__(self, down: Collection[Key] = ()) -> None:
        """Begin to watch.

        Args:
            down: Peers that are down for good; what is on its way to them will never arrive.
        """
        self._down = frozenset(down)
        self._down_names = {key_text(key) for key in self._down}
        self._said_before: dict[Key, float] | None = None

    def seen_in(self, looks: Sequence[Look]) -> bool:
        """Whether the peers say that they are at rest; to be asked again and again."""
        statuses = {look.key: look.status for look in looks if look.key not in self._down}
        paused = [look.state == "paused" for look in looks if look.key not in self._down]
        known = {key: status for key, status in statuses.items() if status is not None}
        if not all(paused) or len(known) < len(statuses):
            self._said_before = None
            return False
        if self._said_before is None:
            self._said_before = {key: status.time for key, status in known.items()}
        before = self._said_before
        return all(
            status.time > before[key] and self._is_at_rest(status) for key, status in known.items()
        )

    def stored_in(self, snapshots: Mapping[Key, Snapshot]) -> bool:
        """Whether the stores say so too."""
        return not any(
            num_unsettled(snapshot.state, self._down)
            for key, snapshot in snapshots.items()
            if key not in self._down
        )

    def _is_at_rest(self, status: Status) -> bool:
        return all(
            edge.phase == "none" or (edge.phase == OutPhase.OPEN and edge.seq == edge.acked)
            for edge in status.receivers
            if edge.key not in self._down_names
        )
