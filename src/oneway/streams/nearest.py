"""The closest known name, for errors about names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ", did you mean 'x'?" for the closest known name, or nothing if none is close.

    >>> nearest("ocupancy", ["flights", "occupancy"])
    ", did you mean 'occupancy'?"
    >>> nearest("zzz", ["flights", "occupancy"])
    ''
    """
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), list(by_lower_case), n=1)
    return f", did you mean {by_lower_case[close[0]]!r}?" if close else ""


def listed(names: Iterable[str], limit: int = 30) -> str:
    """Return the names as "a, b, c", cut after `limit` of them."""
    shown = list(names)
    cut = f", ... ({len(shown):,} in all)" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + cut
