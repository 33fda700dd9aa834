"""Two instructions Numba has no word for: a weighted sum of rows held in registers, and a prefetch.

Numba compiles a loop over a row as loads, multiplies and stores; what makes mixing fast is to keep
all accumulators of one receiver in vector registers while its senders pass by. The few lines of
LLVM below say exactly that, for any processor LLVM knows.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 4
"""Numbers per vector; rows are padded to a multiple of it."""
_BLOCK = 8
"""Vectors accumulated at a time: half the registers of a 256-bit machine."""

_INDEX = ir.IntType(64)
_I32 = ir.IntType(32)
_BYTES = ir.IntType(8).as_pointer()
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_CACHE_LINE = 64
_FUSE = ("contract",)


def _wide(builder: Any, index: Any) -> Any:
    """An index as a 64-bit integer."""
    return builder.sext(index, _INDEX) if index.type.width < _INDEX.width else index


@intrinsic(prefer_literal=True)
def mix_row(
    typing_context: Any,  # noqa: ARG001
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

    `width` is the row length, a constant at compile time and a multiple of LANES.
    """
    num_vectors = width.literal_value // LANES
    signature = types.void(out, rows, senders, shares, start, stop, receiver, width)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out_, rows_, senders_, shares_ = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[:4], args[:4], strict=True)
        )
        first, last, target = (_wide(builder, arg) for arg in args[4:7])
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        anything = ir.Constant(_VECTOR, ir.Undefined)
        to_all_lanes = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)

        def vector_at(array: Any, row: Any, vector: int) -> Any:
            offset = builder.add(
                builder.mul(row, _INDEX(num_vectors * LANES)), _INDEX(vector * LANES)
            )
            return builder.bitcast(builder.gep(array.data, [offset]), _VECTOR.as_pointer())

        for begin in range(0, num_vectors, _BLOCK):
            block = range(begin, min(begin + _BLOCK, num_vectors))
            totals = {vector: cgutils.alloca_once(builder, _VECTOR) for vector in block}
            for total in totals.values():
                builder.store(zero, total)
            with cgutils.for_range_slice(builder, first, last, _INDEX(1), inc=True) as (k, _):
                sender = _wide(builder, builder.load(builder.gep(senders_.data, [k])))
                share = builder.load(builder.gep(shares_.data, [k]))
                spread = builder.shuffle_vector(
                    builder.insert_element(anything, share, _I32(0)), anything, to_all_lanes
                )
                for vector, total in totals.items():
                    part = builder.load(vector_at(rows_, sender, vector), align=8)
                    scaled = builder.fmul(part, spread, flags=_FUSE)
                    builder.store(builder.fadd(builder.load(total), scaled, flags=_FUSE), total)
            for vector, total in totals.items():
                builder.store(builder.load(total), vector_at(out_, target, vector), align=8)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic(prefer_literal=True)
def prefetch_row(typing_context: Any, array: Any, row: Any, num_bytes: Any) -> Any:  # noqa: ARG001
    """Ask for the first `num_bytes` (a constant) of `array[row]` to be brought into the cache."""
    signature = types.void(array, row, num_bytes)
    num_lines = 1 + (num_bytes.literal_value - 1) // _CACHE_LINE

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_ = context.make_array(signature.args[0])(context, builder, args[0])
        stride = cgutils.unpack_tuple(builder, array_.strides)[0]
        base = builder.bitcast(array_.data, _BYTES)
        address = builder.gep(base, [builder.mul(_wide(builder, args[1]), stride)])
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, _I32, _I32, _I32])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        read, keep, data = _I32(0), _I32(3), _I32(1)
        for line in range(num_lines):
            builder.call(
                prefetch, [builder.gep(address, [_INDEX(line * _CACHE_LINE)]), read, keep, data]
            )
        return context.get_dummy_value()

    return signature, codegen
