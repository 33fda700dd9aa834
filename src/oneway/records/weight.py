"""Which weights a receiver can have: one rule for files, commands and pages."""

from __future__ import annotations

_LARGEST = 1e6

WEIGHT_RULE = f"a number above 0, from {1 / _LARGEST:g} to {_LARGEST:g}"
"""What a weight must be, for a sentence."""


def is_weight(value: float) -> bool:
    """Whether a receiver can have this weight; beyond it, its share could not be told from 0."""
    return 1 / _LARGEST <= value <= _LARGEST
