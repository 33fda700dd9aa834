"""log(1 + exp(-m)) and its derivative, for four margins at a time.

A call of the C library's exp and log1p costs as much as mixing a node's model. This is the same
arithmetic on whole vectors, exact to a few units in the last place for every margin:

    tail = exp(-|m|) = 2^-k * exp(r),  k = round(|m| / ln 2),  r = k * ln 2 - |m|,  |r| <= ln(2) / 2
    log(1 + tail) = 2 atanh(q),  q = tail / (2 + tail) <= 1/3

with a Taylor polynomial for exp(r) and the series of atanh. Beyond |m| = 708 the tail is held at
3e-308, nearly the smallest normal number, which no loss notices.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from oneway.simulator.intrinsics import LANES, Rows, fused, wide

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_BITS = ir.VectorType(ir.IntType(64), LANES)
_ROUNDING = 1.5 * 2.0**52
"""Adding this rounds to an integer, which then stands in the lowest bits."""
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
"""ln 2 to 33 bits, so that small multiples of it are exact."""
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_LARGEST = 708.0
_EXP = [1.0 / math.factorial(power) for power in range(14)]
_ATANH = [1.0 / (2 * power + 1) for power in range(17)]


def _number(value: float) -> ir.Constant:
    return ir.Constant(_VECTOR, [value] * LANES)


def _polynomial(builder: Any, coefficients: list[float], x: Any) -> Any:
    total = _number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = fused(builder, total, x, _number(coefficient))
    return total


def _smaller(builder: Any, a: Any, b: Any) -> Any:
    """The smaller of both; a NaN in `a` stays."""
    return builder.select(builder.fcmp_ordered(">", a, b), b, a)


def _tail(builder: Any, size: Any) -> Any:
    """exp(-size)."""
    shifted = fused(builder, size, _number(1.0 / math.log(2.0)), _number(_ROUNDING))
    whole = builder.fsub(shifted, _number(_ROUNDING))
    rest = fused(builder, whole, _number(_LN2_HIGH), builder.fneg(size))
    rest = fused(builder, whole, _number(_LN2_LOW), rest)
    one = ir.Constant(_BITS, [1023 << 52] * LANES)
    exponent = builder.shl(builder.bitcast(shifted, _BITS), ir.Constant(_BITS, [52] * LANES))
    scale = builder.bitcast(builder.sub(one, exponent), _VECTOR)
    return builder.fmul(_polynomial(builder, _EXP, rest), scale)


@intrinsic
def soften(_context: Any, margins: Any, losses: Any, slopes: Any, start: Any) -> Any:
    """Fill `losses` and `slopes` (the derivative by the margin) at `start` to `start + LANES`."""
    signature = types.void(margins, losses, slopes, start)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given, loss, slope = (
            Rows(context, builder, kind, value)
            for kind, value in zip(signature.args[:3], args[:3], strict=True)
        )
        at = wide(builder, args[3])
        margin = given.load_at(at)
        opposite = builder.fneg(margin)
        positive = builder.fcmp_ordered(">", margin, _number(0.0))
        size = builder.select(positive, margin, opposite)
        tail = _tail(builder, _smaller(builder, size, _number(_LARGEST)))
        q = builder.fdiv(tail, builder.fadd(tail, _number(2.0)))
        series = _polynomial(builder, _ATANH, builder.fmul(q, q))
        log_term = builder.fmul(builder.fmul(q, series), _number(2.0))
        linear = builder.select(positive, _number(0.0), opposite)
        loss.store_at(builder.fadd(log_term, linear), at)
        top = builder.select(positive, tail, _number(1.0))
        share = builder.fdiv(top, builder.fadd(tail, _number(1.0)))
        slope.store_at(builder.fneg(share), at)
        return context.get_dummy_value()

    return signature, codegen
