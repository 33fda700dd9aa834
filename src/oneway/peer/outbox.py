"""What a peer makes durable and what it may say then: a commit, and frames."""

from __future__ import annotations

from dataclasses import dataclass

from oneway.peer.inbox import Answers
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.state import Key
from oneway.transport.base import Via


@dataclass(frozen=True, eq=False)
class Commit:
    """What to make durable, and what may be answered once it is."""

    snapshot: Snapshot
    answers: Answers


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes to send: a push over one's own connection, or a reply over the other's."""

    peer: Key
    via: Via
    content: bytes
