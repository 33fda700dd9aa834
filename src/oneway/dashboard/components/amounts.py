"""Amounts in words: bytes, ages, and numbers of any size."""

from __future__ import annotations

import math

_SIZES = ("B", "kB", "MB", "GB", "TB")
_AGES = (("d", 86400), ("h", 3600), ("min", 60))


def size(count: float) -> str:
    """A number of bytes.

    >>> size(512), size(12_345_678)
    ('512 B', '12.3 MB')
    """
    return " ".join(_scaled(count))


def byte_rate(bytes_per_second: float) -> tuple[str, str]:
    """A rate as a short number and its unit.

    >>> byte_rate(512.0), byte_rate(1_234_567.0)
    (('512', 'B/s'), ('1.23', 'MB/s'))
    """
    number, unit = _scaled(bytes_per_second)
    return number, f"{unit}/s"


def age(seconds: float) -> str:
    """An age in its largest unit, short.

    >>> age(-3.0), age(7.4), age(200.0), age(90000.0)
    ('0 s', '7 s', '3 min', '1 d')
    """
    for unit, length in _AGES:
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def ago(moment: float, now: float) -> str:
    """How long ago something was; a moment of 0 never was.

    >>> ago(0.0, 50.0), ago(40.0, 50.0), ago(49.7, 50.0)
    ('never', '10 s ago', 'just now')
    """
    if not moment:
        return "never"
    return f"{age(now - moment)} ago" if now - moment >= 1.0 else "just now"


def short(value: float | None) -> str:
    """A number of any size; "-" if it is none.

    >>> short(0.25), short(0.000012), short(None), short(math.nan)
    ('0.25', '1.2e-05', '-', '-')
    """
    return "-" if value is None or not math.isfinite(value) else f"{value:.3g}"


def _scaled(count: float) -> tuple[str, str]:
    """A number of bytes below 1000 of the unit beside it."""
    unit = 0
    while count >= 1000 and unit < len(_SIZES) - 1:
        count, unit = count / 1000, unit + 1
    return (f"{count:.0f}" if unit == 0 else f"{count:.3g}"), _SIZES[unit]
