"""Conduct of other peers: rejections by reason, strikes and quarantine; tasks that do not fit.

A peer with another task or another release is counted and answered, never blamed: both sides learn
from each other's answer what differs, and their status says so in one sentence.
"""

from __future__ import annotations

import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from oneway.protocol.state import Key
from oneway.sentences import listed
from oneway.task.differences import differences
from oneway.task.task import Task
from oneway.transport.wire import VERSION, Foreign, Message, OtherVersion, Versions

QUARANTINE_SECONDS = 600.0
LOG_SECONDS = 10.0
"""About one peer, no more than one line in this time."""

TELL_SECONDS = 0.2
"""An older life of a peer is told so this often."""

ANSWER_SECONDS = 10.0
"""A peer that does not fit is answered this often; and what it says of itself is read so often."""

COPIES_SECONDS = 300.0
"""A peer that ran twice is named for this long."""

_SAME_TASK = "agree on one task.toml, put it into both folders, and start both peers again"
_SAME_RELEASE = "let both run the same release of oneway"

_log = logging.getLogger("oneway.peer")


@dataclass
class Conduct:
    """One peer's record in this life of ours.

    Attributes:
        rejected: Its rejected messages, by reason.
        clipped: How often it would have moved us by more than the limit.
        strikes: Rejections that count against it.
        quarantined_until: Before this time nothing of it is even decoded.
        mismatch: How its task or release differs from ours, and the remedy; to follow its name.
        copies_seen: When two copies of it were last seen to run with one key.
        last_line: When something about it was last logged.
        unsaid: What was not logged since.
    """

    rejected: Counter[str] = field(default_factory=Counter)
    clipped: int = 0
    strikes: int = 0
    quarantined_until: float = 0.0
    mismatch: str = ""
    copies_seen: float = -math.inf
    last_line: float = -LOG_SECONDS
    unsaid: int = 0


class ConductLog:
    """Counts strikes per peer, and quarantines a peer that has too many."""

    def __init__(
        self, max_strikes: int, clock: Callable[[], float], name_of: Callable[[Key], str]
    ) -> None:
        self.max_strikes = max_strikes
        self._clock = clock
        self._name_of = name_of
        self._conduct: dict[Key, Conduct] = {}

    def about(self, peer: Key) -> Conduct:
        """The record of a peer; all clear if there is none."""
        return self._conduct.get(peer) or Conduct()

    def _record(self, peer: Key) -> Conduct:
        return self._conduct.setdefault(peer, Conduct())

    @property
    def known(self) -> Mapping[Key, Conduct]:
        """The records of all that there is one of."""
        return self._conduct

    def is_quarantined(self, peer: Key) -> bool:
        """Whether to ignore a peer; one that has served its time starts afresh."""
        conduct = self._conduct.get(peer)
        if conduct is None or not conduct.quarantined_until:
            return False
        if self._clock() < conduct.quarantined_until:
            return True
        conduct.quarantined_until, conduct.strikes = 0.0, 0
        return False

    def count(self, peer: Key, kind: str) -> None:
        """Count a message that was not taken in, without blame: the network repeats messages."""
        self._record(peer).rejected[kind] += 1

    def strike(self, peer: Key, kind: str, sentence: str) -> None:
        """Count a message that no honest peer sends."""
        conduct = self._record(peer)
        conduct.rejected[kind] += 1
        conduct.strikes += 1
        self._say(conduct, f"rejected a message of {self._name_of(peer)}: {sentence}")
        if conduct.strikes >= self.max_strikes and not conduct.quarantined_until:
            conduct.quarantined_until = self._clock() + QUARANTINE_SECONDS
            _log.warning(
                "%s is quarantined for %d minutes after %d rejected messages",
                self._name_of(peer),
                QUARANTINE_SECONDS / 60,
                conduct.strikes,
            )

    def clip(self, peer: Key, excess: float) -> None:
        """Count a push that would have moved us too far."""
        conduct = self._record(peer)
        conduct.clipped += 1
        name = self._name_of(peer)
        self._say(conduct, f"clipped a push of {name}: it lay {excess:.3g} beyond the limit")

    def is_news(self, peer: Key) -> bool:
        """Note that an older life of a peer spoke after a newer one; whether to tell it now."""
        conduct, now = self._record(peer), self._clock()
        is_news = now - conduct.copies_seen >= TELL_SECONDS
        if is_news:
            conduct.copies_seen = now
        return is_news

    def runs_twice(self, peer: Key) -> bool:
        """Whether two copies of a peer were seen lately."""
        conduct = self._conduct.get(peer)
        return conduct is not None and self._clock() - conduct.copies_seen < COPIES_SECONDS

    def differs(self, peer: Key, mismatch: str) -> None:
        """Note that a peer has another task or release."""
        conduct = self._record(peer)
        if mismatch != conduct.mismatch:
            _log.warning("%s's %s", self._name_of(peer), mismatch)
            conduct.mismatch = mismatch

    def agrees(self, peer: Key) -> None:
        """Note that a peer's task and release are ours."""
        conduct = self._conduct.get(peer)
        if conduct is not None:
            conduct.mismatch = ""

    def _say(self, conduct: Conduct, sentence: str) -> None:
        conduct.unsaid += 1
        if self._clock() - conduct.last_line >= LOG_SECONDS:
            more = f" ({conduct.unsaid - 1} more like it)" if conduct.unsaid > 1 else ""
            _log.warning("%s%s", sentence, more)
            conduct.last_line, conduct.unsaid = self._clock(), 0


class Mismatches:
    """Answers peers that do not fit, seldom enough that none can keep this one busy."""

    def __init__(self, task: Task, guard: ConductLog) -> None:
        self._task = task
        self._guard = guard
        self._answered: dict[Key, float] = {}
        self._read: dict[Key, float] = {}

    def meet(self, peer: Key, message: Message, now: float) -> Foreign | Versions | None:
        """Note a message of another task or version; return what to answer, if it is time."""
        if isinstance(message, Versions | OtherVersion):
            self._guard.count(peer, "another version")
            spoken = message.spoken if isinstance(message, Versions) else (message.version,)
            if VERSION not in spoken and _is_due(self._read, peer, now):
                theirs = listed(map(str, spoken), limit=4) or "none"
                self._guard.differs(
                    peer,
                    f"release differs: it speaks version {theirs} of the wire format and this peer "
                    f"version {VERSION}: {_SAME_RELEASE}",
                )
            # A list of versions is an answer, and an answer is not answered.
            is_due = isinstance(message, OtherVersion) and _is_due(self._answered, peer, now)
            return Versions((VERSION,)) if is_due else None
        self._guard.count(peer, "another task")
        if isinstance(message, Foreign) and _is_due(self._read, peer, now):
            try:
                fields = json.loads(message.fields)
            except (ValueError, RecursionError):
                fields = None
            if found := "; ".join(differences(self._task.fields(), fields)):
                self._guard.differs(peer, f"task differs: {found}: {_SAME_TASK}")
        is_due = _is_due(self._answered, peer, now)
        return Foreign(json.dumps(self._task.fields()).encode()) if is_due else None


def _is_due(last: dict[Key, float], peer: Key, now: float) -> bool:
    """Whether it is time again; if so, it is noted as done."""
    if now - last.get(peer, -math.inf) < ANSWER_SECONDS:
        return False
    last[peer] = now
    return True
