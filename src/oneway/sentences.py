"""Parts of an error sentence: values quoted and cut short, names listed, the closest known name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

LENGTH = 80
"""No value takes more characters than this."""


def shown(value: object) -> str:
    r"""Return a value as it may stand in a sentence, whatever it is.

    Text is quoted and escaped; lists and tables are named, since they may be nested without end.

    >>> shown("red\x1b"), shown(0.3), shown([[1], 2]), shown({})
    ("'red\\x1b'", '0.3', 'a list of 2', 'a table of 0')
    """
    if isinstance(value, str | bytes | bytearray):
        # Cut first: the rest of a very long text is not worth escaping.
        return cut(repr(value[: LENGTH + 1]))
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"a table of {len(value)}"
    if value is None or isinstance(value, bool | float):
        return repr(value)
    if isinstance(value, int):
        return repr(value) if value.bit_length() < 200 else "a number of very many digits"
    return cut(f"of the type {type(value).__name__}")


def cut(text: str) -> str:
    """Return the text, or its beginning with "..." if it is too long."""
    return text if len(text) <= LENGTH else f"{text[: LENGTH - 3]}..."


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


def short_age(seconds: float) -> str:
    """Return an age in its largest unit, rounded down, so short that it fits into a column.

    >>> short_age(-3.0), short_age(7.4), short_age(200.0), short_age(90000.0)
    ('0 s', '7 s', '3 min', '1 d')
    """
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
