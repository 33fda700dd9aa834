"""SIMD row operations that Numba cannot express, and a prefetch.

Numba unrolls a short loop over a row into scalar instructions, and cannot keep the accumulators of
one receiver in registers while its senders pass by. The functions below emit LLVM code for both.
Lengths are constants at compile time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 4
"""Numbers per vector; what a node holds is padded to a multiple of it."""
_BLOCK = 8
"""Vectors accumulated at a time: half the registers of a 256-bit machine."""

_INDEX = ir.IntType(64)
_I32 = ir.IntType(32)
_BYTES = ir.IntType(8).as_pointer()
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = ir.Constant(_VECTOR, [0.0] * LANES)
_CACHE_LINE = 64
_FUSE = ("contract",)


def wide(builder: Any, index: Any) -> Any:
    """An index as a 64-bit integer."""
    return builder.sext(index, _INDEX) if index.type.width < _INDEX.width else index


def _spread(builder: Any, number: Any, lanes: int) -> Any:
    """The same number in every lane."""
    if lanes == 1:
        return number
    anything = ir.Constant(_VECTOR, ir.Undefined)
    lanes_of_first = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
    return builder.shuffle_vector(
        builder.insert_element(anything, number, _I32(0)), anything, lanes_of_first
    )


def _lanes_sum(builder: Any, vector: Any) -> Any:
    parts = [builder.extract_element(vector, _I32(lane)) for lane in range(LANES)]
    return builder.fadd(builder.fadd(parts[0], parts[1]), builder.fadd(parts[2], parts[3]))


def fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """`a * b + c`."""
    return builder.fadd(builder.fmul(a, b, flags=_FUSE), c, flags=_FUSE)


def _chunks(length: int) -> Iterator[tuple[int, int]]:
    """Cover `length` numbers by whole vectors, then singly: (offset, lanes)."""
    whole = length - length % LANES
    yield from ((offset, LANES) for offset in range(0, whole, LANES))
    yield from ((offset, 1) for offset in range(whole, length))


class Rows:
    """An array `[row, column]` or `[column]`, C-contiguous, seen from LLVM."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self.builder = builder
        self.array = context.make_array(kind)(context, builder, value)
        self.item = context.get_data_type(kind.dtype)
        self.row_length = (
            cgutils.unpack_tuple(builder, self.array.shape)[1] if kind.ndim == 2 else _INDEX(0)
        )

    def _address(self, row: Any, offset: int, lanes: int) -> Any:
        start = self.builder.add(self.builder.mul(row, self.row_length), _INDEX(offset))
        pointer = self.builder.gep(self.array.data, [start])
        if lanes == 1:
            return pointer
        return self.builder.bitcast(pointer, ir.VectorType(self.item, lanes).as_pointer())

    def load(self, row: Any, offset: int = 0, lanes: int = 1) -> Any:
        """Some numbers of a row, as doubles."""
        align = 4 if self.item == ir.FloatType() else 8
        found = self.builder.load(self._address(row, offset, lanes), align=align)
        if self.item != ir.FloatType():
            return found
        return self.builder.fpext(found, _VECTOR if lanes > 1 else _DOUBLE)

    def load_at(self, index: Any) -> Any:
        """A vector of doubles that starts at an index of `[column]`."""
        pointer = self.builder.gep(self.array.data, [index])
        return self.builder.load(self.builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)

    def store_at(self, value: Any, index: Any) -> None:
        """Write a vector of doubles that starts at an index of `[column]`."""
        pointer = self.builder.gep(self.array.data, [index])
        self.builder.store(value, self.builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)

    def store(self, value: Any, row: Any, offset: int = 0, lanes: int = 1) -> None:
        """Write some doubles of a row of doubles."""
        self.builder.store(value, self._address(row, offset, lanes), align=8)


@intrinsic(prefer_literal=True)
def mix_row(
    _context: Any,
    out: Any,
    rows: Any,
    senders: Any,
    shares: Any,
    start: Any,
    stop: Any,
    receiver: Any,
    width: Any,
) -> Any:
    """`out[receiver] = sum(shares[k] * rows[senders[k]] for k in range(start, stop))`.

    `width` is the row length, a multiple of LANES.
    """
    signature = types.void(out, rows, senders, shares, start, stop, receiver, width)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        offsets, kinds = range(0, width.literal_value, LANES), signature.args
        target, source = (Rows(context, builder, kinds[i], args[i]) for i in (0, 1))
        senders, shares = (context.make_array(kinds[i])(context, builder, args[i]) for i in (2, 3))
        first, last, to = (wide(builder, arg) for arg in args[4:7])
        for begin in range(0, len(offsets), _BLOCK):
            block = offsets[begin : begin + _BLOCK]
            totals = {offset: cgutils.alloca_once(builder, _VECTOR) for offset in block}
            for total in totals.values():
                builder.store(_ZERO, total)
            with cgutils.for_range_slice(builder, first, last, _INDEX(1), inc=True) as (k, _):
                sender = wide(builder, builder.load(builder.gep(senders.data, [k])))
                share = builder.load(builder.gep(shares.data, [k]))
                spread = _spread(builder, share, LANES)
                for offset, total in totals.items():
                    part = source.load(sender, offset, LANES)
                    builder.store(fused(builder, part, spread, builder.load(total)), total)
            for offset, total in totals.items():
                target.store(builder.load(total), to, offset, LANES)
        return context.get_dummy_value()

    return signature, codegen


def _reduced(builder: Any, length: int, term: Any) -> Any:
    """The sum of `term(offset, lanes) -> (a, b)` products over a row of this length."""
    totals: dict[int, Any] = {}
    for offset, lanes in _chunks(length):
        a, b = term(offset, lanes)
        # The first product is not to be fused: with two to choose from, the compiler takes either.
        before = totals.get(lanes)
        totals[lanes] = builder.fmul(a, b) if before is None else fused(builder, a, b, before)
    total = totals.get(1, ir.Constant(_DOUBLE, 0.0))
    return builder.fadd(total, _lanes_sum(builder, totals[LANES])) if LANES in totals else total


@intrinsic(prefer_literal=True)
def dot_rows(_context: Any, a: Any, row_a: Any, b: Any, row_b: Any, length: Any) -> Any:
    """`a[row_a, :length] @ b[row_b, :length]`, in double precision."""
    signature = types.float64(a, row_a, b, row_b, length)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        left, right = (Rows(context, builder, signature.args[i], args[i]) for i in (0, 2))
        at_left, at_right = (wide(builder, args[i]) for i in (1, 3))
        return _reduced(
            builder,
            length.literal_value,
            lambda offset, lanes: (
                left.load(at_left, offset, lanes),
                right.load(at_right, offset, lanes),
            ),
        )

    return signature, codegen


@intrinsic(prefer_literal=True)
def squared_distance(
    _context: Any, rows: Any, row: Any, scale: Any, point: Any, length: Any
) -> Any:
    """The squared distance of `scale * rows[row, :length]` from `point[:length]`."""
    signature = types.float64(rows, row, scale, point, length)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        held, center = (Rows(context, builder, signature.args[i], args[i]) for i in (0, 3))
        at = wide(builder, args[1])

        def difference(offset: int, lanes: int) -> tuple[Any, Any]:
            scaled = builder.fmul(held.load(at, offset, lanes), _spread(builder, args[2], lanes))
            gap = builder.fsub(scaled, center.load(_INDEX(0), offset, lanes))
            return gap, gap

        return _reduced(builder, length.literal_value, difference)

    return signature, codegen


@intrinsic(prefer_literal=True)
def add_row(
    _context: Any, rows: Any, row: Any, shrink: Any, other: Any, other_row: Any, move: Any,
    length: Any,
) -> Any:  # fmt: skip
    """`rows[row, :length] = shrink * rows[row, :length] + move * other[other_row, :length]`."""
    signature = types.void(rows, row, shrink, other, other_row, move, length)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        held, added = (Rows(context, builder, signature.args[i], args[i]) for i in (0, 3))
        at, at_added = (wide(builder, args[i]) for i in (1, 4))
        for offset, lanes in _chunks(length.literal_value):
            # Not to be fused: with two products to choose from, the compiler would take either.
            shrunk = builder.fmul(held.load(at, offset, lanes), _spread(builder, args[2], lanes))
            step = added.load(at_added, offset, lanes)
            moved = fused(builder, step, _spread(builder, args[5], lanes), shrunk)
            held.store(moved, at, offset, lanes)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic(prefer_literal=True)
def prefetch_row(_context: Any, array: Any, row: Any, num_bytes: Any) -> Any:
    """Ask for the first `num_bytes` of `array[row]` to be brought into the cache."""
    signature = types.void(array, row, num_bytes)
    num_lines = 1 + (num_bytes.literal_value - 1) // _CACHE_LINE

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_ = context.make_array(signature.args[0])(context, builder, args[0])
        stride = cgutils.unpack_tuple(builder, array_.strides)[0]
        base = builder.bitcast(array_.data, _BYTES)
        address = builder.gep(base, [builder.mul(wide(builder, args[1]), stride)])
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, _I32, _I32, _I32])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        read, keep, data = _I32(0), _I32(3), _I32(1)
        for line in range(num_lines):
            pointer = builder.gep(address, [_INDEX(line * _CACHE_LINE)])
            builder.call(prefetch, [pointer, read, keep, data])
        return context.get_dummy_value()

    return signature, codegen
