"""Progress of a peer's stream, sealed: for receivers to keep, and for a restored backup to learn.

A backup that is restored does not know which rows were learned after it was made, and to learn them
again would count them twice. Its receivers know how far it had come, since every push says so. The
place in the stream is sealed: a receiver sees how many samples there were, which no push hides,
and neither where rows lie in a file nor how long they are; and it can invent none, or it could make
a restored peer pass over all its data. (It can tell an old one: what only a liar has heard may be
learned again.)
"""

from __future__ import annotations

import logging
import struct
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest

from oneway.peer.store.snapshot import Journal, Snapshot
from oneway.protocol.messages import NO_PROGRESS, Closed, Gone, Progress, Reply, Retired, State
from oneway.protocol.state import EdgeId, Key, OutPhase, PeerState
from oneway.tables.rows import START, Position

UNUSED_SECONDS = 3.0
"""How long to wait for receivers that never answered, as far as a backup knows."""

_log = logging.getLogger("oneway.peer")

_TAG_BYTES = 16
_PLACE = struct.Struct("<QQQQI")


@dataclass(frozen=True, slots=True)
class Place:
    """How many samples were learned from, and where the stream stood after them."""

    learned: int = 0
    position: Position = START


class ProgressSeal:
    """Deterministic authenticated encryption of the progress of one peer in one task.

    The tag is a keyed hash of everything, and what hides the place is a keyed hash of the tag: so
    there is no number that must never be used twice, which a restored backup could not promise.
    """

    def __init__(self, secret: bytes, task: bytes) -> None:
        """`secret` must survive a lost store; `task` is the fingerprint of the task."""
        self._secret = secret
        self._task = task

    def seal(self, journal: Journal) -> Progress:
        """What a push says that contains all that the journal counts."""
        if not journal.learned:
            return NO_PROGRESS
        at = journal.position
        place = _PLACE.pack(at.offset, at.last_offset, at.num_rows, at.num_lines, at.checksum)
        tag = self._tag(journal.learned, place)
        return Progress(journal.learned, tag + self._hidden(tag, place))

    def open(self, progress: Progress) -> Place | None:
        """The place in a progress that this peer once told; None if it did not."""
        tag, hidden = progress.mark[:_TAG_BYTES], progress.mark[_TAG_BYTES:]
        if len(hidden) != _PLACE.size:
            return None
        place = self._hidden(tag, hidden)
        if not compare_digest(tag, self._tag(progress.learned, place)):
            return None
        return Place(progress.learned, Position(*_PLACE.unpack(place)))

    def _tag(self, learned: int, place: bytes) -> bytes:
        said = struct.pack("<Q", learned) + place + self._task
        return blake2b(
            said, key=self._secret, digest_size=_TAG_BYTES, person=b"oneway progress"
        ).digest()

    def _hidden(self, tag: bytes, place: bytes) -> bytes:
        mask = blake2b(
            tag, key=self._secret, digest_size=_PLACE.size, person=b"oneway place"
        ).digest()
        return bytes(one ^ other for one, other in zip(place, mask, strict=True))


class ToldProgress:
    """Keeps the furthest progress that receivers told this peer in this life.

    Attributes:
        furthest: Of what carries this peer's own seal.
    """

    def __init__(self, seal: ProgressSeal) -> None:
        self.furthest = Place()
        self._seal = seal

    def hear(self, reply: Reply) -> bool:
        """Take in what a reply tells; return whether it may be true."""
        if not isinstance(reply, State | Closed | Gone | Retired):
            return True
        if reply.progress.learned <= self.furthest.learned:
            return True
        told = self._seal.open(reply.progress)
        self.furthest = told or self.furthest
        return told is not None

    def is_ahead_of(self, snapshot: Snapshot) -> bool:
        """Whether more was learned than a snapshot knows: it is of a backup that was restored."""
        return self.furthest.learned > snapshot.journal.learned

    def caught_up(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with what it does not remember, and the stream after it; it is logged."""
        told = self.furthest
        _log.warning("%s", rows_forgotten(told.learned - snapshot.journal.learned))
        return snapshot.with_forgotten(told.learned, told.position)


def unanswered(state: PeerState, seconds: float, patience: float) -> list[Key]:
    """The receivers that have not told yet in this life what they heard before it.

    Only those that a peer may wait for: who is silent for too long is presumed dead.

    Args:
        state: Restarted some `seconds` ago.
        seconds: Since then.
        patience: Seconds until a receiver is presumed dead.
    """
    asked: dict[EdgeId, float] = {
        # One that never answered, as far as the backup knows, may never have been there at all.
        name: patience if edge.seq or edge.granted else min(UNUSED_SECONDS, patience)
        for name, edge in state.out.items()
        if edge.phase in (OutPhase.RESYNC, OutPhase.CLOSING)
    }
    return list(dict.fromkeys(name[0] for name, limit in asked.items() if seconds < limit))


def rows_forgotten(count: int) -> str:
    """What status and log say of rows that were learned in a forgotten life."""
    rows = "1 row was" if count == 1 else f"{count:,} rows were"
    again = "it is" if count == 1 else "they are"
    return f"{rows} learned in a life that this backup does not remember; {again} not learned again"
