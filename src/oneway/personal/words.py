"""Sentences about personal predictions: whom the mixture believes, and whether joining pays."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oneway.records import Vector

_NAMES = ("the network", "your own data", "the network, adapted to you")
"""Of the experts, in the order of `EXPERTS`."""
_MOSTLY = 0.6
_NOTABLY = 0.15
_HAIR = 0.5
"""A difference below so many per cent is none worth joining for."""


def believes(weights: Vector | Sequence[float]) -> str:
    """Return whom a mixture believes, in words.

    Args:
        weights: Of shared, alone and adapted, of sum 1: those of a node, or means over nodes.

    >>> believes([0.1, 0.8, 0.1]), believes([0.1, 0.2, 0.7]), believes([0.5, 0.4, 0.1])
    ('mostly your own data', 'mostly the network, adapted to you', 'a mix of the network and your own data')
    """  # noqa: E501
    ranked = sorted(zip(weights, _NAMES, strict=True), reverse=True)
    if ranked[0][0] >= _MOSTLY:
        return f"mostly {ranked[0][1]}"
    names = [name.replace(",", "") for weight, name in ranked if weight >= _NOTABLY]
    return f"a mix of {', '.join(names[:-1])} and {names[-1]}"


def verdict(
    difference: float | None, half_width: float | None, alone: float | None, step: float = 0.1
) -> str:
    """Return one sentence: whether together a node loses less than alone.

    Args:
        difference: The mean of its own loss less that of being alone; None if unknown.
        half_width: Of the 95 % interval of this difference; None or not finite with too few
            samples.
        alone: The mean loss of being alone.
        step: Numbers are rounded to multiples of so many per cent.

    >>> verdict(-0.0155, 0.0035, 0.5)
    'together you lose 3.1 % less than alone (2.4 to 3.8)'
    >>> verdict(-0.001, 0.005, 0.5)
    'not decided yet: between 1.2 % less and 0.8 % more than alone'
    """
    numbers = [math.nan if it is None else it for it in (difference, half_width, alone)]
    if not all(map(math.isfinite, numbers)):
        return "not decided yet: too few samples"
    if not numbers[2] > 0.0:
        return "the network cannot help here: alone you lose nothing"
    less, half = -100.0 * numbers[0] / numbers[2], 100.0 * numbers[1] / numbers[2]
    low, high = less - half, less + half
    span = f"between {_change(high, step)} and {_change(low, step)} than alone"
    if low >= -_HAIR and high <= _HAIR:
        return f"the network changes little here ({span})"
    if low <= 0.0 <= high:
        return f"not decided yet: {span}"
    ends = sorted((abs(low), abs(high)))
    interval = f"({_number(ends[0], step)} to {_number(ends[1], step)})"
    return f"together you lose {_change(less, step)} than alone {interval}"


def _change(less: float, step: float) -> str:
    return f"{_number(abs(less), step)} % {'less' if less >= 0.0 else 'more'}"


def _number(size: float, step: float) -> str:
    digits = 1 if step < 1.0 else 0
    return f"{round(size / step) * step:.{digits}f}"
