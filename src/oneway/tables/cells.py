"""Cells: the number or label that the text or JSON value of a cell stands for.

One rule for a single cell of a peer's sample and for a whole column of a table in polars.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np

if TYPE_CHECKING:
    import polars as pl

EMPTY = ("", "?", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null")
"""Texts, in lower case, that say that a cell holds nothing."""

NONE = "None"
"""What Python writes for nothing. In lower case it is a word of people: no pain, mild, severe."""

SPACES = " \t\r\n\v\f\xa0"
"""What may stand around a cell and says nothing."""

EXACT_BELOW = 2.0**53
"""From here on, floats lack digits, and two names would become one."""

_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.I)
_NUMERIC = (float, int, np.floating, np.integer, np.bool_)
_WORDS = {"true": 1.0, "false": 0.0}
_TRUTHS = dict.fromkeys(("true", "yes", "y", "t", "on"), True) | dict.fromkeys(
    ("false", "no", "n", "f", "off"), False
)


def as_number(raw: object) -> float | None:
    """Return a feature or label as a float, which may not be finite; None if it is not a number.

    >>> as_number(" 21.5 "), as_number(True), as_number("false"), as_number("1_000"), as_number([])
    (21.5, 1.0, 0.0, None, None)
    """
    if isinstance(raw, str):
        text = raw.strip(SPACES)
        return float(text) if _NUMBER.fullmatch(text) else _WORDS.get(text.lower())
    if not isinstance(raw, _NUMERIC):
        return None
    try:
        return float(raw)
    except OverflowError:
        return math.inf


def is_empty(raw: object) -> bool:
    """Whether a cell says that it holds nothing."""
    if not isinstance(raw, str):
        return raw is None
    text = raw.strip(SPACES)
    return text == NONE or text.lower() in EMPTY


def is_gap(raw: object) -> bool:
    """Whether a cell of a feature holds nothing, or says that what it holds is not a number.

    >>> is_gap(" NA "), is_gap(None), is_gap(float("nan")), is_gap(0), is_gap("no")
    (True, True, True, False, False)
    """
    if isinstance(raw, str | list | tuple | dict | np.ndarray):
        return is_empty(raw)
    # What is not a number, nor a time, differs from itself: nan, and NaT of pandas, but not its NA.
    return raw is None or type(raw).__name__ == "NAType" or bool(raw != raw)


def as_truth(raw: object) -> bool | None:
    """Return a cell as true or false; None if it is neither.

    >>> as_truth("Yes"), as_truth(" f "), as_truth(1), as_truth("0.0"), as_truth("maybe")
    (True, False, True, False, None)
    """
    if isinstance(raw, str) and (word := raw.strip(SPACES).lower()) in _TRUTHS:
        return _TRUTHS[word]
    number = as_number(raw)
    return bool(number) if number in (0.0, 1.0) else None


def label_key(raw: object) -> str | float:
    """Return what makes two labels the same: their number if they have one, else their text.

    >>> label_key("1.0") == label_key(1) == label_key(True), label_key(" yes ")
    (True, 'yes')
    """
    number = as_number(raw)
    if number is not None and math.isfinite(number):
        return number
    return raw.strip(SPACES) if isinstance(raw, str) else ""


def label_text(raw: object) -> str:
    """Return a label as data files spell it.

    >>> label_text(True), label_text(1), label_text(" yes ")
    ('true', '1', 'yes')
    """
    if isinstance(raw, bool):
        return "true" if raw else "false"
    return raw.strip(SPACES) if isinstance(raw, str) else repr(raw)


def group_name(raw: object) -> str:
    """What makes two cells the same group; nothing if the cell names none.

    All spellings of a number are one: a person that counts as two has two times the samples.

    >>> group_name(" 7 "), group_name(7.0), group_name("007"), group_name("Ada "), group_name([])
    ('7', '7', '7', 'Ada', '')
    """
    if isinstance(raw, str):
        raw = normalize("NFKC", raw)  # letters that look the same are, however they were typed
    number = as_number(raw)
    if is_empty(raw) or (number is not None and math.isnan(number)):
        return ""
    if number is None or math.isinf(number):
        return raw.strip(SPACES) if isinstance(raw, str) else ""
    if abs(number) < EXACT_BELOW:
        return f"{number + 0.0:.17g}"
    return f"{Decimal(str(raw).strip(SPACES)):.0f}"  # such as a number of a passport, to the digit


def column_numbers(cells: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the numbers of a column of text, null where there is none, and where text is wrong.

    The same rule as `as_number` and `is_empty`, for millions of cells.
    """
    import polars as pl

    text = cells.str.strip_chars(SPACES)
    lower, empty = text.str.to_lowercase(), empty_cells(cells)
    numbers = text.cast(pl.Float64, strict=False).set(empty, None)
    for word, number in _WORDS.items():
        numbers = numbers.set(lower == word, number)
    return numbers, numbers.is_null() & ~empty & text.is_not_null()


def empty_cells(cells: pl.Series) -> pl.Series:
    """Return where cells of a column of text say that they hold nothing, as `is_empty`."""
    text = cells.str.strip_chars(SPACES)
    return (text.str.to_lowercase().is_in(EMPTY) | (text == NONE)).fill_null(True)
