"""Who behaved how: rejections by peer and reason, strikes, and quarantine."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from oneway.protocol.state import Key

QUARANTINE_SECONDS = 600.0
LOG_SECONDS = 10.0
"""About one peer, no more than one line in this time."""

_log = logging.getLogger("oneway.peer")


@dataclass
class Conduct:
    """One peer's record in this life of ours.

    Attributes:
        rejected: Its rejected messages, by reason.
        clipped: How often it would have moved us by more than the limit.
        strikes: Rejections that count against it.
        quarantined_until: Before this time nothing of it is even decoded.
        task_difference: How its task differs from ours, as a sentence.
        last_line: When something about it was last logged.
        unsaid: What was not logged since.
    """

    rejected: Counter[str] = field(default_factory=Counter)
    clipped: int = 0
    strikes: int = 0
    quarantined_until: float = 0.0
    task_difference: str = ""
    last_line: float = -LOG_SECONDS
    unsaid: int = 0


class Guard:
    """Keeps the records, and shuts out who has too many strikes."""

    def __init__(
        self, max_strikes: int, clock: Callable[[], float], name_of: Callable[[Key], str]
    ) -> None:
        self.max_strikes = max_strikes
        self._clock = clock
        self._name_of = name_of
        self._conduct: dict[Key, Conduct] = {}

    def about(self, peer: Key) -> Conduct:
        """The record of a peer; all clear if there is none."""
        return self._conduct.setdefault(peer, Conduct())

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
        self.about(peer).rejected[kind] += 1

    def strike(self, peer: Key, kind: str, sentence: str) -> None:
        """Count a message that no honest peer sends."""
        conduct = self.about(peer)
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
        conduct = self.about(peer)
        conduct.clipped += 1
        name = self._name_of(peer)
        self._say(conduct, f"clipped a push of {name}: it lay {excess:.3g} beyond the limit")

    def differs(self, peer: Key, difference: str) -> None:
        """Note that a peer has another task."""
        conduct = self.about(peer)
        if difference and difference != conduct.task_difference:
            _log.warning("%s has another task: %s", self._name_of(peer), difference)
            conduct.task_difference = difference

    def agrees(self, peer: Key) -> None:
        """Note that a peer's task is ours."""
        conduct = self._conduct.get(peer)
        if conduct is not None:
            conduct.task_difference = ""

    def _say(self, conduct: Conduct, sentence: str) -> None:
        conduct.unsaid += 1
        if self._clock() - conduct.last_line >= LOG_SECONDS:
            more = f" ({conduct.unsaid - 1} more like it)" if conduct.unsaid > 1 else ""
            _log.warning("%s%s", sentence, more)
            conduct.last_line, conduct.unsaid = self._clock(), 0
