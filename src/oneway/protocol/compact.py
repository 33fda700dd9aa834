"""Quantised pushes: a total as its difference to one that both ends know, a byte a number.

What both ends have after a compact push is one and the same int64 total, so the books stay exact:
the sender hands over what the codes say, and keeps the remainder of rounding. A total follows from
its base by whole numbers and correctly rounded operations only, so every machine finds the same.

Numbers that stand alone (the mass, a count) travel as they are. Vectors travel in blocks of 64,
each with the power of two that is the step of its codes:
- of a model's numerator, what differs from the base's model at the mass that is handed over;
- of a copied segment, what differs from the base's copy;
- of other segments, what is handed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgspec
import numpy as np

from oneway.protocol.fixed_point import (
    LARGEST,
    ONE,
    PIECE,
    Fixed,
    extent,
    freeze,
    mass_of,
    nearest,
    pieces,
)
from oneway.protocol.layout import Layout
from oneway.protocol.stamps import Count

BLOCK = 64
"""Numbers that share a step."""

_LARGEST_CODE = 127
_MOST_EXPONENT = 55
"""A code may be one more than the largest, and times its step it must fit into 63 bits."""


class Packed(msgspec.Struct, frozen=True, array_like=True, eq=False, forbid_unknown_fields=True):
    """How a total follows from an earlier one.

    Attributes:
        base: The number of the earlier total.
        exact: By how much each number that stands alone grows, in their order; the mass comes last.
        follows: Whether the model is told as what differs from the base's model; otherwise as is.
        exponents: One byte per block, an int8: the step of its codes is 2 to the power of that.
        codes: One byte per number, an int8; each segment begins anew. Where all of them are 0,
            there are none, and no exponents.
    """

    base: Count
    exact: Fixed
    follows: bool
    exponents: bytes
    codes: bytes


def packed_total(
    layout: Layout, part: Fixed, base: int, base_total: Fixed, radius: float
) -> tuple[Packed, Fixed]:
    """What a push hands over, as nearly as codes can, and the total that `unpack` makes of it.

    Args:
        layout: Of amounts.
        part: What is to be handed over; copied segments as they are to be.
        base: The number of the total that the receiver is known to hold.
        base_total: That total.
        radius: No code leads out of it, or a receiver would refuse the push.
    """
    alone, vectors = _split(layout, len(part))
    beyond = _beyond_model(layout, base_total, part, radius)
    total, follows = np.empty_like(base_total), beyond is not None
    exponents, codes = [], []
    for place in vectors:
        wanted, base_part = part[place], base_total[place]
        rest, most = wanted, radius * ONE
        start: Fixed | None = base_part
        if place in layout.copied:
            rest, start = wanted - base_part, None
        elif place == _model(layout, len(part)):
            rest, most = wanted if beyond is None else beyond, radius * mass_of(part)
        steps, numbers = _quantised(wanted, rest, start, int(most), total[place])
        exponents.append(steps)
        codes.append(numbers)
    exact = part[alone]
    total[alone] = base_total[alone] + exact
    for place in layout.copied:  # told by how they differ
        exact[alone == place.start] -= base_total[place.start]
        total[alone[alone == place.start]] = part[place.start]
    if not any(numbers.any() for numbers in codes):
        exponents = codes = []
    steps_written = b"".join(steps.tobytes() for steps in exponents)
    codes_written = b"".join(numbers.tobytes() for numbers in codes)
    return Packed(base, exact, follows, steps_written, codes_written), total


def nothing(layout: Layout, total: Fixed, seq: int) -> Packed:
    """How a total follows from itself."""
    alone, _ = _split(layout, len(total))
    return Packed(seq, np.zeros(len(alone), dtype=np.int64), False, b"", b"")


def unpack(layout: Layout, base_total: Fixed, packed: Packed) -> Fixed:
    """The total that follows from its base; `flaw` must have found nothing."""
    alone, vectors = _split(layout, len(base_total))
    total = np.empty_like(base_total)
    total[alone] = base_total[alone] + packed.exact
    steps = np.left_shift(1, np.frombuffer(packed.exponents, np.int8).astype(np.int64))
    codes = np.frombuffer(packed.codes, np.int8)
    first_block = first_code = 0
    for place in vectors:
        before, after = base_total[place], total[place]
        size = len(before)
        if packed.codes:
            last_block = first_block - (-size // BLOCK)
            last_code = first_code + size
            block_steps, numbers = steps[first_block:last_block], codes[first_code:last_code]
            _add_codes(before, numbers, block_steps, after)
            first_block, first_code = last_block, last_code
        else:
            after[:] = before
    if packed.follows:
        after, mass = total[layout.model], mass_of(packed.exact)
        most = _most_at(layout, base_total, mass)
        assert most is not None
        for piece, expected in _model_at(layout, base_total, mass, most):
            after[piece] += expected
    freeze(total)
    return total


def flaw(layout: Layout, base_total: Fixed, packed: Packed) -> str:
    """What is wrong with a packed total, whatever it says; empty if it can be unpacked."""
    alone, vectors = _split(layout, len(base_total))
    sizes = [place.stop - place.start for place in vectors]
    if len(packed.exact) != len(alone):
        return f"{len(packed.exact)} numbers alone instead of {len(alone)}"
    if packed.follows and _most_at(layout, base_total, mass_of(packed.exact)) is None:
        return "a model that follows from none"
    if not packed.codes and not packed.exponents:
        return ""
    blocks = sum(-(-size // BLOCK) for size in sizes)
    if len(packed.exponents) != blocks:
        return f"{len(packed.exponents)} blocks instead of {blocks}"
    length = sum(sizes)
    if len(packed.codes) != length:
        return f"{len(packed.codes)} bytes of codes instead of {length}"
    steps = np.frombuffer(packed.exponents, np.int8)
    if blocks and not 0 <= steps.min() <= steps.max() <= _MOST_EXPONENT:
        return "codes whose step does not fit"
    return ""


# Which numbers are what.


def _split(layout: Layout, size: int) -> tuple[np.ndarray, list[slice]]:
    """Where the numbers of an amount are that stand alone, and where its vectors."""
    places = layout.places.values() or (_model(layout, size),)
    vectors = [place for place in places if place.stop - place.start > 1]
    starts = [0, *(place.stop for place in vectors)]
    ends = [*(place.start for place in vectors), size]
    alone = [range(start, end) for start, end in zip(starts, ends, strict=True)]
    return np.fromiter(chain(*alone), np.intp), vectors


def _model(layout: Layout, size: int) -> slice:
    return slice(*layout.model.indices(size)[:2])


# The model of a base.


def _most_at(layout: Layout, base_total: Fixed, mass: int) -> float | None:
    """The largest absolute number of the base's model, were this its mass, before it is rounded.

    None if no model can follow from it.
    """
    stands_alone = len(base_total[layout.model]) == 1  # then it is told as it is
    if layout.copies_model or stands_alone or mass_of(base_total) <= 0:
        return None
    most = extent(base_total[layout.model]) * (abs(mass) / mass_of(base_total))
    return most if most < LARGEST else None


def _model_at(
    layout: Layout, base_total: Fixed, mass: int, most: float
) -> Iterator[tuple[slice, Fixed]]:
    """The numerator of the base's model, were this its mass, piece by piece.

    One quotient of integers, then a product and a rounding per number: the same everywhere.
    """
    numerator, factor = base_total[layout.model], mass / mass_of(base_total)
    for piece in pieces(len(numerator)):
        yield piece, nearest(numerator[piece] * factor, most=most)


def _beyond_model(layout: Layout, base_total: Fixed, part: Fixed, radius: float) -> Fixed | None:
    """What a part has beyond the base's model at its mass; None if coding that would be larger.

    Running totals wrap, so a base need not be near any model.
    """
    mass = mass_of(part)
    most = _most_at(layout, base_total, mass) if mass > 0 else None
    if most is None or round(most) > radius * mass:
        return None
    wanted = part[layout.model]
    beyond, farthest = np.empty_like(wanted), 0
    for piece, expected in _model_at(layout, base_total, mass, most):
        farthest = max(farthest, extent(np.subtract(wanted[piece], expected, out=beyond[piece])))
    return beyond if farthest <= extent(wanted) else None


# Numbers as codes.

_STARTS = np.arange(0, PIECE, BLOCK)


def _quantised(
    wanted: Fixed, rest: Fixed, start: Fixed | None, most: int, reached: Fixed
) -> tuple[np.ndarray, np.ndarray]:
    """Exponents of blocks, and codes: the nearest to what is wanted that stay within `most`.

    Args:
        wanted: What is to be handed over.
        rest: What codes have to say of it: it itself, or what both ends do not know.
        start: What it is added to; None for nothing.
        most: See above.
        reached: Becomes what is reached.
    """
    size = len(wanted)
    exponents, codes = np.empty(-(-size // BLOCK), np.int8), np.empty(size, np.int8)
    room = np.empty(min(PIECE, size - size % -BLOCK), dtype=np.int64)
    for piece in pieces(size):
        length = piece.stop - piece.start
        numbers = room[: length - length % -BLOCK]
        numbers[:length], numbers[length:] = rest[piece], 0
        starts, blocks = _STARTS[: len(numbers) // BLOCK], numbers.reshape(-1, BLOCK)
        lowest, highest = np.minimum.reduceat(numbers, starts), np.maximum.reduceat(numbers, starts)
        fraction, powers = np.frexp(np.maximum(highest, -lowest) / _LARGEST_CODE)
        powers = np.maximum(powers - (fraction == 0.5), 0).astype(np.int64)
        steps = np.left_shift(1, powers)
        blocks += (steps >> 1)[:, None]
        blocks >>= powers[:, None]
        numbers = numbers[:length]
        known = 0 if rest is wanted else wanted[piece] - rest[piece]
        if extent(wanted[piece]) + int(steps.max()) > most:
            there = (blocks * steps[:, None]).reshape(-1)[:length] + known
            numbers += (there < -most).astype(np.int64) - (there > most)
        exponents[piece.start // BLOCK :][: len(steps)] = powers
        codes[piece] = numbers
        blocks *= steps[:, None]
        if rest is not wanted:
            numbers += known
        np.add(numbers, 0 if start is None else start[piece], out=reached[piece])
    return exponents, codes


def _add_codes(before: Fixed, codes: np.ndarray, steps: Fixed, after: Fixed) -> None:
    """Make `after` what is reached from `before` by what codes stand for."""
    size = len(before)
    room = np.zeros(min(PIECE, size - size % -BLOCK), dtype=np.int64)
    for piece in pieces(size):
        length = piece.stop - piece.start
        numbers = room[: length - length % -BLOCK]
        numbers[:length] = codes[piece]
        blocks = numbers.reshape(-1, BLOCK)
        blocks *= steps[piece.start // BLOCK :][: len(blocks), None]
        np.add(before[piece], numbers[:length], out=after[piece])
