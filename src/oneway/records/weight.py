"""Receiver weights: one constraint for files, commands and pages."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

_LARGEST = 1e6

WEIGHT_RULE = f"a number above 0, from {1 / _LARGEST:g} to {_LARGEST:g}"
"""What a weight must be, for a sentence."""

Weight: TypeAlias = Annotated[
    float, msgspec.Meta(ge=1 / _LARGEST, le=_LARGEST, extra={"rule": WEIGHT_RULE})
]
"""How much a receiver gets compared with others; beyond it, its share could not be told from 0."""


def is_weight(value: float) -> bool:
    """Whether a receiver can have this weight."""
    return 1 / _LARGEST <= value <= _LARGEST
