"""Numbers that only grow, and that no two lives of a peer share.

A peer restored from a backup, with its clock set back, must not say again a number that it said in
the life it forgot. So the low bits of a stamp are random, drawn anew at every start.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
"""A number from the network stays below 2^62, so that one more never overflows."""

RANDOM_BITS = 20

_MASK = (1 << RANDOM_BITS) - 1


def first_stamp(time_ns: int, random_bits: int) -> int:
    """The stamp of a start at this time, to a millisecond, with this start's random bits."""
    return (time_ns & ~_MASK) | (random_bits & _MASK)


def later_stamp(than: int, now: int) -> int:
    """A stamp greater than another, with the random bits of `now`; `now` itself where it is.

    >>> later_stamp(than=5 << 20, now=9 << 20 | 7) == 9 << 20 | 7
    True
    >>> later_stamp(than=9 << 20 | 3, now=5 << 20 | 7) == 10 << 20 | 7
    True
    """
    return max(now, (((than >> RANDOM_BITS) + 1) << RANDOM_BITS) | (now & _MASK))
