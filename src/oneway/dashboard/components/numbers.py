"""Whether what somebody typed is a number, and if not, what to type instead."""

from __future__ import annotations

import math


def number_problem(text: str | None) -> str | None:
    """What is wrong with a number, as a sentence for its field; None if nothing is.

    >>> number_problem("21.5"), number_problem("abc")
    (None, 'abc is not a number')
    """
    typed = (text or "").strip()
    if not typed:
        return "a number is needed"
    shown = typed if len(typed) <= 20 else f"{typed[:20]}..."
    # Python reads 1_000 as a number; nobody else does.
    if "_" in typed:
        return f"{shown} is not a number"
    try:
        value = float(typed)
    except ValueError:
        if typed.count(",") == 1 and _is_float(typed.replace(",", ".")):
            return f"write {typed.replace(',', '.')}, with a point"
        return f"{shown} is not a number"
    return None if math.isfinite(value) else f"{shown} is not finite"


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
