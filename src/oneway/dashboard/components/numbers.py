"""Number formatting and validation: amounts as short texts, and what is wrong with a typed one."""

from __future__ import annotations

import math

from oneway.sentences import cut, short_age

_SIZES = ("B", "kB", "MB", "GB", "TB")


def size(count: float) -> tuple[str, str]:
    """A number of bytes below 1000 of the unit beside it.

    >>> size(512), size(12_345_678)
    (('512', 'B'), ('12.3', 'MB'))
    """
    unit = 0
    while count >= 1000 and unit < len(_SIZES) - 1:
        count, unit = count / 1000, unit + 1
    return (f"{count:.0f}" if unit == 0 else f"{count:.3g}"), _SIZES[unit]


def ago(moment: float, now: float) -> str:
    """How long ago something was; a moment of 0 never was.

    >>> ago(0.0, 50.0), ago(40.0, 50.0), ago(49.7, 50.0)
    ('never', '10 s ago', 'just now')
    """
    if not moment:
        return "never"
    return f"{short_age(now - moment)} ago" if now - moment >= 1.0 else "just now"


def number(value: float | None, form: str = ".3g", factor: float = 1.0) -> str:
    """A number in a format, times a factor; "-" if it is none or not finite.

    >>> number(0.000012), number(0.25, ".4f"), number(math.nan), number(0.5, ".1f", factor=100)
    ('1.2e-05', '0.2500', '-', '50.0')
    """
    return "-" if value is None or not math.isfinite(value) else format(factor * value, form)


def counted(count: int, one: str, more: str) -> str:
    """A number with its noun.

    >>> counted(1, "push", "pushes"), counted(2000, "push", "pushes")
    ('1 push', '2,000 pushes')
    """
    return f"{count:,} {one if count == 1 else more}"


def number_problem(text: str | None) -> str | None:
    """What is wrong with a typed number, as a sentence for its field; None if nothing is.

    >>> number_problem("21.5"), number_problem("abc"), number_problem("21,5")
    (None, 'abc is not a number', 'write 21.5, with a point')
    """
    typed = (text or "").strip()
    if not typed:
        return "a number is needed"
    value = _parsed(typed)
    if value is not None:
        return None if math.isfinite(value) else f"{cut(typed)} is not finite"
    pointed = typed.replace(",", ".")
    if typed.count(",") == 1 and _parsed(pointed) is not None:
        return f"write {pointed}, with a point"
    return f"{cut(typed)} is not a number"


def _parsed(text: str) -> float | None:
    try:
        # Python reads 1_000 as a number; nobody else does.
        return None if "_" in text else float(text)
    except ValueError:
        return None
