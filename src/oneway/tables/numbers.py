"""Numbers as they come in samples: "21.5" in a CSV file, 21.5 or true in JSON, NumPy's own."""

from __future__ import annotations

import numpy as np

_WORDS = {"true": 1.0, "false": 0.0}


def as_number(raw: object) -> float | None:
    """Return a feature or label as a float, which may not be finite; None if it is not a number.

    >>> as_number(" 21.5 "), as_number(True), as_number("false"), as_number("1_000"), as_number([])
    (21.5, 1.0, 0.0, None, None)
    """
    if isinstance(raw, str):
        # Python reads 1_000 as a number; nothing that writes data files does.
        word = "_" if "_" in raw else raw.strip().lower()
        raw = _WORDS.get(word, word)
    if not isinstance(raw, str | int | float | np.integer | np.floating | np.bool_):
        return None
    try:
        return float(raw)
    except OverflowError:
        return float("inf")
    except ValueError:
        return None
