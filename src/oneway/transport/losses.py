"""What a transport lost and refused, counted in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_NAMED = 1024
"""Refusals are counted by key for this many keys, then together: keys cost a stranger nothing."""


@dataclass(frozen=True)
class Losses:
    """What was lost at this end since the start.

    Attributes:
        unsent: Frames that could not leave: no connection, or its queue was full.
        oversized: Frames above the size limit, on their way out or in.
        malformed: Messages that are not one frame.
        refused: By key, attempts to connect and frames of senders that are not admitted.
        refused_others: The same for the keys after the first `MAX_NAMED`.
    """

    unsent: int = 0
    oversized: int = 0
    malformed: int = 0
    refused: Mapping[bytes, int] = field(default_factory=dict)
    refused_others: int = 0


class LossCounter:
    """Counts up to a `Losses`."""

    def __init__(self) -> None:
        self.unsent = 0
        self.oversized = 0
        self.malformed = 0
        self._refused: Counter[bytes] = Counter()
        self._refused_others = 0

    def refuse(self, key: bytes) -> None:
        """Count one refusal."""
        if key in self._refused or len(self._refused) < MAX_NAMED:
            self._refused[key] += 1
        else:
            self._refused_others += 1

    def read(self) -> Losses:
        """Return the counts so far."""
        return Losses(
            self.unsent, self.oversized, self.malformed, dict(self._refused), self._refused_others
        )
