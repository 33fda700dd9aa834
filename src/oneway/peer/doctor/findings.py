"""What `doctor` finds: one sentence each, how bad it is, and times as a person would say them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import partial
from typing import Literal, TypeAlias

import msgspec

Severity: TypeAlias = Literal["ok", "note", "problem"]
"""As it should be; worth knowing; something has to be done."""


class Finding(msgspec.Struct, frozen=True):
    """One sentence about a peer; a problem names its remedy."""

    severity: Severity
    sentence: str


ok = partial(Finding, "ok")
note = partial(Finding, "note")
problem = partial(Finding, "problem")

_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


@dataclass(frozen=True)
class SpokenTime:
    """Says times as seen from one moment.

    Attributes:
        now: That moment, in seconds since 1970.
        zone: Whose time it is; None is this machine's.
    """

    now: float
    zone: tzinfo | None = None

    def at(self, time: float) -> str:
        """Return the time of day, with the date if that is not today.

        >>> from datetime import UTC
        >>> SpokenTime(7200.0, UTC).at(3600.0), SpokenTime(90000.0, UTC).at(3600.0)
        ('01:00', '1970-01-01 01:00')
        """
        moment, today = (datetime.fromtimestamp(t, self.zone) for t in (time, self.now))
        return moment.strftime("%H:%M" if moment.date() == today.date() else "%Y-%m-%d %H:%M")

    def since(self, time: float) -> str:
        """Return since when and for how long.

        >>> from datetime import UTC
        >>> SpokenTime(4320.0, UTC).since(3600.0)
        'since 01:00 (12 minutes)'
        """
        return f"since {self.at(time)} ({spoken_age(self.now - time)})"


def spoken_age(seconds: float) -> str:
    """Return an age in its largest unit, rounded down.

    >>> spoken_age(0.0), spoken_age(1.5), spoken_age(7199.0), spoken_age(86400.0)
    ('0 seconds', '1 second', '1 hour', '1 day')
    """
    age = max(0.0, seconds)
    unit, size = next((item for item in _UNITS if age >= item[1]), _UNITS[-1])
    count = math.floor(age / size)
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
