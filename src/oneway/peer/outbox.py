"""What a peer makes durable and what it may say then: a commit, and frames."""

from __future__ import annotations

from dataclasses import dataclass

from oneway.peer.inbox import Answers
from oneway.peer.store.large import is_large
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.state import Key, OutPhase
from oneway.protocol.tags import digest_of
from oneway.transport.base import Via


@dataclass(frozen=True, eq=False)
class Commit:
    """What to make durable, and what may be answered once it is."""

    snapshot: Snapshot
    answers: Answers

    @property
    def is_large(self) -> bool:
        """Whether there is something to prepare that takes long."""
        return is_large(self.snapshot.state.dim)

    def prepare(self) -> None:
        """Compute, while the disk writes, the digests that what is said of large totals needs."""
        for edge in self.snapshot.state.out.values():
            if edge.phase is OutPhase.OPEN:
                digest_of(edge.sent)


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes to send: a push over one's own connection, or a reply over the other's."""

    peer: Key
    via: Via
    content: bytes
