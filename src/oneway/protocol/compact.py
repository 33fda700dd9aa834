"""Quantised pushes: a total as its difference to one that both ends know, in a byte or half of one.

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

from typing import Literal, TypeAlias, get_args

import msgspec
import numpy as np

from oneway.protocol.fixed_point import LARGEST, ONE, Fixed, extent, mass_of, nearest
from oneway.protocol.layout import Layout
from oneway.protocol.stamps import Count

Codes: TypeAlias = Literal["int8", "int4"]
"""How a number of a compact push is written."""

Format: TypeAlias = Literal["total", "int8", "int4"]
"""What a push has: the running total itself, or codes."""

FORMATS: tuple[Format, ...] = get_args(Format)

BLOCK = 64
"""Numbers that share a step."""

_LARGEST_CODE = {"int8": 127, "int4": 7}
_MOST_EXPONENT = {"int8": 55, "int4": 59}
"""A code may be one more than the largest, and times its step it must fit into 63 bits."""


class Packed(msgspec.Struct, frozen=True, array_like=True, eq=False, forbid_unknown_fields=True):
    """How a total follows from an earlier one.

    Attributes:
        base: The number of the earlier total.
        exact: By how much each number that stands alone grows, in their order; the mass comes last.
        follows: Whether the model is told as what differs from the base's model; otherwise as is.
        exponents: One byte per block, an int8: the step of its codes is 2 to the power of that.
        codes: One byte per number, or half of one, the low half first; each segment begins anew.
            Where all of them are 0, there are none, and no exponents.
        format: Which of the two.
    """

    base: Count
    exact: Fixed
    follows: bool
    exponents: bytes
    codes: bytes
    format: Codes


def pack(
    layout: Layout, part: Fixed, base: int, base_total: Fixed, code: Codes, radius: float
) -> Packed:
    """Write down what a push hands over, as nearly as codes can; see `packed_total`."""
    return packed_total(layout, part, base, base_total, code, radius)[0]


def packed_total(
    layout: Layout, part: Fixed, base: int, base_total: Fixed, code: Codes, radius: float
) -> tuple[Packed, Fixed]:
    """What a push hands over, as nearly as codes can, and the total that `unpack` makes of it.

    Args:
        layout: Of amounts.
        part: What is to be handed over; copied segments as they are to be.
        base: The number of the total that the receiver is known to hold.
        base_total: That total.
        code: How numbers are written.
        radius: No code leads out of it, or a receiver would refuse the push.
    """
    alone, vectors = _split(layout, len(part))
    near = _near_model(layout, base_total, part, radius)
    total = base_total.copy()
    exponents, codes = [], []
    for place in vectors:
        known, most = None, radius * ONE
        if place in layout.copied:
            known = base_total[place]
        elif place == _model(layout, len(part)):
            known, most = near, radius * mass_of(part)
        steps, numbers, change = _quantised(part[place], known, int(most), _LARGEST_CODE[code])
        exponents.append(steps.tobytes())
        codes.append(_written(numbers, code))
        total[place] += change
    exact = part[alone] - layout.with_copies(np.zeros_like(part), base_total)[alone]
    if all(numbers.count(0) == len(numbers) for numbers in codes):
        exponents = codes = []
    total[alone] += exact
    if near is not None:
        total[layout.model] += near
    follows = near is not None
    return Packed(base, exact, follows, b"".join(exponents), b"".join(codes), code), total


def nothing(layout: Layout, total: Fixed, seq: int, code: Codes) -> Packed:
    """How a total follows from itself."""
    alone, _ = _split(layout, len(total))
    return Packed(seq, np.zeros(len(alone), dtype=np.int64), False, b"", b"", code)


def unpack(layout: Layout, base_total: Fixed, packed: Packed) -> Fixed:
    """The total that follows from its base; `flaw` must have found nothing."""
    alone, vectors = _split(layout, len(base_total))
    total = base_total.copy()
    total[alone] += packed.exact
    exponents = np.frombuffer(packed.exponents, np.int8).astype(np.int64)
    first_block = first_code = 0
    for place in vectors if packed.codes else ():
        size = place.stop - place.start
        last_block = first_block - (-size // BLOCK)
        last_code = first_code + _length(size, packed.format)
        change = np.zeros((last_block - first_block, BLOCK), dtype=np.int64)
        _read(packed.codes[first_code:last_code], change.reshape(-1)[:size], packed.format)
        change *= np.left_shift(1, exponents[first_block:last_block])[:, None]
        total[place] += change.reshape(-1)[:size]
        first_block, first_code = last_block, last_code
    if packed.follows:
        total[layout.model] += _model_at(layout, base_total, mass_of(packed.exact))
    return total


def flaw(layout: Layout, base_total: Fixed, packed: Packed) -> str:
    """What is wrong with a packed total, whatever it says; empty if it can be unpacked."""
    alone, vectors = _split(layout, len(base_total))
    sizes = [place.stop - place.start for place in vectors]
    if len(packed.exact) != len(alone):
        return f"{len(packed.exact)} numbers alone instead of {len(alone)}"
    if packed.follows and not _can_follow(layout, base_total, mass_of(packed.exact)):
        return "a model that follows from none"
    if not packed.codes and not packed.exponents:
        return ""
    blocks = sum(-(-size // BLOCK) for size in sizes)
    if len(packed.exponents) != blocks:
        return f"{len(packed.exponents)} blocks instead of {blocks}"
    length = sum(_length(size, packed.format) for size in sizes)
    if len(packed.codes) != length:
        return f"{len(packed.codes)} bytes of codes instead of {length}"
    steps = np.frombuffer(packed.exponents, np.int8)
    if blocks and not 0 <= steps.min() <= steps.max() <= _MOST_EXPONENT[packed.format]:
        return "codes whose step does not fit"
    return ""


# Which numbers are what.


def _split(layout: Layout, size: int) -> tuple[np.ndarray, list[slice]]:
    """Where the numbers of an amount are that stand alone, and where its vectors."""
    places = layout.places.values() or (_model(layout, size),)
    vectors = [place for place in places if place.stop - place.start > 1]
    is_alone = np.ones(size, dtype=bool)
    for place in vectors:
        is_alone[place] = False
    return np.flatnonzero(is_alone), vectors


def _model(layout: Layout, size: int) -> slice:
    return slice(*layout.model.indices(size)[:2])


# The model of a base.


def _can_follow(layout: Layout, base_total: Fixed, mass: int) -> bool:
    stands_alone = len(base_total[layout.model]) == 1  # then it is told as it is
    if layout.copies_model or stands_alone or mass_of(base_total) <= 0:
        return False
    return extent(base_total[layout.model]) * (abs(mass) / mass_of(base_total)) < LARGEST


def _model_at(layout: Layout, base_total: Fixed, mass: int) -> Fixed:
    """The numerator of the base's model, were this its mass.

    One quotient of integers, then a product and a rounding per number: the same everywhere.
    """
    return nearest(base_total[layout.model] * (mass / mass_of(base_total)))


def _near_model(layout: Layout, base_total: Fixed, part: Fixed, radius: float) -> Fixed | None:
    """What the base's model is at the mass of a part; None if that tells less than nothing.

    Running totals wrap, and what is left of them then need not be near any model.
    """
    mass = mass_of(part)
    if mass <= 0 or not _can_follow(layout, base_total, mass):
        return None
    expected, wanted = _model_at(layout, base_total, mass), part[layout.model]
    is_near = extent(expected) <= radius * mass and extent(wanted - expected) <= extent(wanted)
    return expected if is_near else None


# Numbers as codes.


def _quantised(
    wanted: Fixed, known: Fixed | None, most: int, largest: int
) -> tuple[np.ndarray, np.ndarray, Fixed]:
    """Exponents of blocks, codes, and what these stand for.

    The nearest to what is wanted that stay within `most`.
    """
    size = len(wanted)
    blocks = np.zeros((-(-size // BLOCK), BLOCK), dtype=np.int64)
    codes = blocks.reshape(-1)[:size]
    np.subtract(wanted, 0 if known is None else known, out=codes)
    sizes = np.maximum(blocks.max(axis=1), -blocks.min(axis=1))
    fraction, exponents = np.frexp(sizes / largest)
    exponents = np.maximum(exponents - (fraction == 0.5), 0).astype(np.int64)
    steps = np.left_shift(1, exponents)
    blocks += (steps >> 1)[:, None]
    blocks >>= exponents[:, None]
    if extent(wanted) + int(steps.max()) > most:
        reached = (blocks * steps[:, None]).reshape(-1)[:size] + (0 if known is None else known)
        codes += (reached < -most).astype(np.int64) - (reached > most)
    written = codes.astype(np.int8)
    blocks *= steps[:, None]
    return exponents.astype(np.int8), written, codes


def _length(size: int, code: Codes) -> int:
    return size if code == "int8" else -(-size // 2)


def _written(codes: np.ndarray, code: Codes) -> bytes:
    if code == "int8":
        return codes.tobytes()
    halves = np.zeros(len(codes) + len(codes) % 2, dtype=np.uint8)
    halves[: len(codes)] = codes.view(np.uint8) & 15
    return (halves[::2] | (halves[1::2] << 4)).tobytes()


def _read(written: bytes, codes: Fixed, code: Codes) -> None:
    if code == "int8":
        codes[:] = np.frombuffer(written, np.int8)
        return
    both = np.frombuffer(written, np.uint8)
    halves = np.stack((both & 15, both >> 4), axis=1).reshape(-1)[: len(codes)]
    codes[:] = (halves ^ 8).view(np.int8) - 8
