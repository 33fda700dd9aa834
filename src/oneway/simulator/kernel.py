"""The rounds of a linear model as one compiled loop nest, for any sizes and options.

All a node holds is one row: numerator, then mass, then padding to whole vectors, so that one pass
over the edges mixes both; where parcels travel, parcel and count are a second row, made alike.
Numba compiles the functions below once and keeps the machine code on disk.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from llvmlite import ir
from numba import njit, prange
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from oneway.records import Ints, Matrix

LANES = 4
"""Numbers per vector."""
_REGISTERS = 8
"""Vectors accumulated at a time: half the registers of a 256-bit machine."""
LOGISTIC, RIDGE, HINGE = range(3)
"""Losses of the score."""
ALONG_GRAPH, AVERAGE, ALONE = range(3)
"""How a round ends: models travel along the edges, to everybody, to nobody."""
_SCORES, _LOSSES, _SLOPES, _KNOWN = range(4)
"""Rows of `Scratch.lanes`; scores, losses and slopes of known samples begin at the last."""
_NUM_BLOCKS = 16
"""A large network is handled in this many blocks of nodes, whatever the number of cores, so that
sums are made in the same order and results do not depend on the number of cores."""
_NODES_A_BLOCK = 64
"""Smaller blocks do not pay."""
_AHEAD = 24
"""Samples lie anywhere in the table; each is asked for this many samples before it is needed."""
_NODES_AHEAD = 2
"""So do senders in a large network; their rows are asked for this many receivers before."""
_CACHE_LINE = 64
_MOST_AHEAD = 4 * _CACHE_LINE
"""Bytes of a row that are asked for; processors ask for the rest by themselves."""


class Options(NamedTuple):
    """What a run does, in terms of the kernel.

    The step is `rate * min(cap, mass)`, or the rate itself if `cap` is 0; and with `stable` above 0
    at most `stable * mass` over the largest curvature, `curvature_bound` times the squared sample
    plus l2. If `batched`, what that limit shortens the step by is a factor of the gradient, inside
    `clip`. If `relayed`, the mass in all this is 1. If `auto`, the rate is
    `min(ceiling, reach / sqrt(s))` with the node's own `squares` s, to which that of the batch is
    added before its step.

    Attributes:
        kind: LOGISTIC, RIDGE or HINGE.
        intercept: Whether a constant feature 1 follows those of a sample.
        l2: Weight of the squared parameters in the loss.
        exchange: ALONG_GRAPH, AVERAGE or ALONE.
        moves_mass: Whether masses travel with the models.
        lowest: Masses are kept from this one on...
        highest: ... to this one.
        mixes: Exchanges a round.
        cap: See above.
        stable: See above.
        curvature_bound: See above.
        batched: Whether gradients are clipped and summed, and a step is made of a full batch.
        clip: The longest gradient in a batch.
        relayed: Whether steps go into a parcel that is deposited bit by bit, as in `Relay`.
        amount: As in `Relay`.
        auto: Whether nodes choose their rates, as in `oneway.methods.AutoRate`; only if `batched`.
        reach: See above.
        ceiling: See above.
        late: Whether nodes learn from other samples than they predict: those whose label has come.
        parallel: Whether the network is large, so that rows of senders are asked for in advance.
    """

    kind: int
    intercept: bool
    l2: float
    exchange: int
    moves_mass: bool
    lowest: float
    highest: float
    mixes: int
    cap: float
    stable: float
    curvature_bound: float
    batched: bool
    clip: float
    relayed: bool
    amount: float
    auto: bool
    reach: float
    ceiling: float
    late: bool
    parallel: bool


class Scratch(NamedTuple):
    """Where the kernel writes what it needs in between, for each block of nodes.

    Attributes:
        ends: Block b has the nodes from `ends[b]` to `ends[b + 1]`, whole vectors of nodes.
        lanes: `lanes[what, node]`: scores, losses and slopes of predicted samples, and of known
            ones.
        parts: `parts[block, what]`: the sums of losses, right predictions, and squared distances.
        rows: `rows[block]`: a gradient, then the sum of the rows of a block.
        means: The one row `means[0]` is the mean of the network.
    """

    ends: Ints
    lanes: Matrix
    parts: Matrix
    rows: Matrix
    means: Matrix

    @classmethod
    def empty(cls, num_nodes: int, width: int) -> Scratch:
        """Scratch arrays for so many nodes, with rows of this width."""
        num_groups = -(-num_nodes // LANES)
        num_blocks = min(_NUM_BLOCKS, 1 + num_nodes // _NODES_A_BLOCK)
        ends = LANES * (np.arange(num_blocks + 1) * num_groups // num_blocks)
        return cls(
            ends=np.minimum(ends, num_nodes),
            lanes=np.zeros((6, LANES * num_groups)),
            parts=np.zeros((num_blocks, 3)),
            rows=np.zeros((num_blocks, width)),
            means=np.zeros((1, width)),
        )


def empty_rows(num_nodes: int, dim: int) -> Matrix:
    """Rows of zeros for `dim` parameters and the mass, padded to whole vectors.

    They begin at a cache line, as none of NumPy's own of this size does.
    """
    width = -(-(dim + 1) // LANES) * LANES
    spare = np.zeros(num_nodes * width + _CACHE_LINE // 8)
    begin = -spare.ctypes.data % _CACHE_LINE // 8
    rows: Matrix = spare[begin : begin + num_nodes * width].reshape(num_nodes, width)
    return rows


# What Numba cannot express: vectors of doubles, and a prefetch. It turns short loops over a row
# into scalar instructions, and cannot keep the accumulators of a receiver in registers while its
# senders pass by. All lengths are arguments at run time.

_intrinsic: Callable[[Callable[..., Any]], Callable[..., Any]] = intrinsic

_DOUBLE, _INDEX, _I32 = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_LLVM_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = ir.Constant(_LLVM_VECTOR, [0.0] * LANES)
_CONTRACT = ("contract",)


class _Vector(types.Type):
    """The type of a vector in compiled code."""


_VECTOR = _Vector("vector")


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _LLVM_VECTOR)


def _wide(builder: Any, index: Any) -> Any:
    return builder.sext(index, _INDEX) if index.type.width < _INDEX.width else index


def _pointer(context: Any, builder: Any, kind: Any, value: Any, row: Any, column: Any) -> Any:
    """The address of a number in an array `[row, column]`, C-contiguous."""
    array = context.make_array(kind)(context, builder, value)
    length = cgutils.unpack_tuple(builder, array.shape)[1]
    start = builder.add(builder.mul(_wide(builder, row), length), _wide(builder, column))
    return builder.gep(array.data, [start])


def _load_vector(builder: Any, pointer: Any) -> Any:
    item = pointer.type.pointee
    vector = builder.bitcast(pointer, ir.VectorType(item, LANES).as_pointer())
    found = builder.load(vector, align=4 if item == ir.FloatType() else 8)
    return builder.fpext(found, _LLVM_VECTOR) if item == ir.FloatType() else found


def _store_vector(builder: Any, vector: Any, pointer: Any) -> None:
    builder.store(vector, builder.bitcast(pointer, _LLVM_VECTOR.as_pointer()), align=8)


def _spread(builder: Any, number: Any) -> Any:
    undefined = ir.Constant(_LLVM_VECTOR, ir.Undefined)
    first = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
    return builder.shuffle_vector(
        builder.insert_element(undefined, number, _I32(0)), undefined, first
    )


def _fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=_CONTRACT), c, flags=_CONTRACT)


@_intrinsic
def load(_context: Any, rows: Any, row: Any, column: Any) -> Any:
    """`rows[row, column : column + LANES]` in double precision."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load_vector(builder, _pointer(context, builder, signature.args[0], *args))

    return _VECTOR(rows, row, column), codegen


@_intrinsic
def store(_context: Any, vector: Any, rows: Any, row: Any, column: Any) -> Any:
    """Write a vector to `rows[row, column : column + LANES]`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _store_vector(builder, args[0], _pointer(context, builder, signature.args[1], *args[1:]))
        return context.get_dummy_value()

    return types.void(vector, rows, row, column), codegen


@_intrinsic
def spread(_context: Any, number: Any) -> Any:
    """The same double in every lane."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return _spread(builder, args[0])

    return _VECTOR(number), codegen


@_intrinsic
def fused(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """`a * b + c`, lane by lane."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return _fused(builder, *args)

    return _VECTOR(a, b, c), codegen


@_intrinsic
def total(_context: Any, vector: Any) -> Any:
    """The sum of the lanes."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        parts = [builder.extract_element(args[0], _I32(lane)) for lane in range(LANES)]
        return builder.fadd(builder.fadd(parts[0], parts[1]), builder.fadd(parts[2], parts[3]))

    return types.float64(vector), codegen


# log(1 + exp(-m)) and its derivative. A call of the C library's exp and log1p costs as much as
# mixing a node's model; the arithmetic below, on whole vectors, is exact to a few units in the last
# place for every margin m:
#
#     tail = exp(-|m|) = 2^-k exp(r),  k = round(|m| / ln 2),  r = k ln 2 - |m|,  |r| <= ln(2) / 2
#     log(1 + tail) = 2 atanh(q),  q = tail / (2 + tail) <= 1/3
#
# with a Taylor polynomial for exp(r) and the series of atanh. Beyond |m| = 708 the tail is held at
# 3e-308, nearly the smallest normal number, which no loss notices.

_BITS = ir.VectorType(_INDEX, LANES)
_ROUNDING = 1.5 * 2.0**52
"""Adding this rounds to an integer, which then stands in the lowest bits."""
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
"""ln 2 to 33 bits, so that small multiples of it are exact."""
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_LARGEST = 708.0
_EXP = [1.0 / math.factorial(power) for power in range(14)]
_ATANH = [1.0 / (2 * power + 1) for power in range(17)]


def _number(value: float) -> Any:
    return ir.Constant(_LLVM_VECTOR, [value] * LANES)


def _polynomial(builder: Any, coefficients: list[float], x: Any) -> Any:
    series = _number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        series = _fused(builder, series, x, _number(coefficient))
    return series


def _tail(builder: Any, size: Any) -> Any:
    """exp(-size)."""
    too_large = builder.fcmp_ordered(">", size, _number(_LARGEST))  # nan stays
    size = builder.select(too_large, _number(_LARGEST), size)
    shifted = _fused(builder, size, _number(1.0 / math.log(2.0)), _number(_ROUNDING))
    whole = builder.fsub(shifted, _number(_ROUNDING))
    rest = _fused(builder, whole, _number(_LN2_HIGH), builder.fneg(size))
    rest = _fused(builder, whole, _number(_LN2_LOW), rest)
    one = ir.Constant(_BITS, [1023 << 52] * LANES)
    exponent = builder.shl(builder.bitcast(shifted, _BITS), ir.Constant(_BITS, [52] * LANES))
    scale = builder.bitcast(builder.sub(one, exponent), _LLVM_VECTOR)
    return builder.fmul(_polynomial(builder, _EXP, rest), scale)


@_intrinsic
def softplus(_context: Any, margins: Any) -> Any:
    """`log(1 + exp(-m))` of a vector of margins, and its derivative."""
    pair = types.UniTuple(_VECTOR, 2)

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        margin = args[0]
        opposite = builder.fneg(margin)
        positive = builder.fcmp_ordered(">", margin, _number(0.0))
        tail = _tail(builder, builder.select(positive, margin, opposite))
        q = builder.fdiv(tail, builder.fadd(tail, _number(2.0)))
        series = _polynomial(builder, _ATANH, builder.fmul(q, q))
        log_term = builder.fmul(builder.fmul(q, series), _number(2.0))
        loss = builder.fadd(log_term, builder.select(positive, _number(0.0), opposite))
        top = builder.select(positive, tail, _number(1.0))
        slope = builder.fneg(builder.fdiv(top, builder.fadd(tail, _number(1.0))))
        return context.make_tuple(builder, pair, (loss, slope))

    return pair(margins), codegen


@_intrinsic
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

    `width` is the row length, a multiple of LANES. Rows are mixed in blocks that fit into the
    registers, by a loop of its own for every length of a block.
    """
    signature = types.void(out, rows, senders, shares, start, stop, receiver, width)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        senders, shares = (context.make_array(kinds[i])(context, builder, args[i]) for i in (2, 3))
        first, last, length = (_wide(builder, args[i]) for i in (4, 5, 7))
        source = _pointer(context, builder, kinds[1], args[1], _INDEX(0), _INDEX(0))
        target = _pointer(context, builder, kinds[0], args[0], args[6], _INDEX(0))

        def mix_block(offset: Any, num_vectors: int) -> None:
            sums = [cgutils.alloca_once_value(builder, _ZERO) for _ in range(num_vectors)]
            for it in sums:
                builder.store(_ZERO, it)
            with cgutils.for_range_slice(builder, first, last, _INDEX(1), inc=True) as (k, _):
                sender = _wide(builder, builder.load(builder.gep(senders.data, [k])))
                share = _spread(builder, builder.load(builder.gep(shares.data, [k])))
                row = builder.gep(source, [builder.add(builder.mul(sender, length), offset)])
                for place, it in enumerate(sums):
                    part = _load_vector(builder, builder.gep(row, [_INDEX(place * LANES)]))
                    builder.store(_fused(builder, part, share, builder.load(it)), it)
            for place, it in enumerate(sums):
                here = builder.add(offset, _INDEX(place * LANES))
                _store_vector(builder, builder.load(it), builder.gep(target, [here]))

        step = _INDEX(_REGISTERS * LANES)
        with cgutils.for_range_slice(builder, _INDEX(0), length, step, inc=True) as (offset, _):
            rest = builder.udiv(builder.sub(length, offset), _INDEX(LANES))
            blocks = [builder.append_basic_block(f"mix{n}") for n in range(_REGISTERS + 1)]
            done = blocks[0]
            switch = builder.switch(rest, blocks[_REGISTERS])
            for num_vectors in range(1, _REGISTERS + 1):
                if num_vectors < _REGISTERS:
                    switch.add_case(_INDEX(num_vectors), blocks[num_vectors])
                builder.position_at_end(blocks[num_vectors])
                mix_block(offset, num_vectors)
                builder.branch(done)
            builder.position_at_end(done)
        return context.get_dummy_value()

    return signature, codegen


@_intrinsic
def prefetch(_context: Any, array: Any, row: Any, byte: Any) -> Any:
    """Ask for a cache line of `array[row]`, the one with this byte of the row."""
    signature = types.void(array, row, byte)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0])
        stride = cgutils.unpack_tuple(builder, data.strides)[0]
        start = builder.add(builder.mul(_wide(builder, args[1]), stride), _wide(builder, args[2]))
        bytes_ = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [bytes_, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        address = builder.gep(builder.bitcast(data.data, bytes_), [start])
        read, keep, of_data = _I32(0), _I32(3), _I32(1)
        builder.call(function, [address, read, keep, of_data])
        return context.get_dummy_value()

    return signature, codegen


@_intrinsic
def compiled_once(_context: Any) -> Any:
    """Keep the function this stands in from being inlined, so that callers share its code."""

    def codegen(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), codegen


# Arithmetic of rows.

_Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "fastmath": {"contract"}}
_LEAN: dict[str, Any] = {**_OPTIONS, "_nrt": False}
"""For functions that make no arrays: references are not counted."""
_compiled: _Decorator = njit(cache=True, **_LEAN)
_inlined: _Decorator = njit(forceinline=True, **_LEAN)
_not_stored: _Decorator = njit(**_LEAN)
"""For what is compiled for several types: see `rounds`, in which it is stored."""


@_inlined
def dot_rows(a: Any, row_a: int, b: Any, row_b: int, length: int) -> float:
    """`a[row_a, :length] @ b[row_b, :length]`, in double precision."""
    whole = length - length % LANES
    sums, rest = spread(0.0), 0.0
    for c in range(0, whole, LANES):
        sums = fused(load(a, row_a, c), load(b, row_b, c), sums)
    for c in range(whole, length):
        rest += np.float64(a[row_a, c]) * b[row_b, c]
    product: float = total(sums) + rest
    return product


@_inlined
def add_row(rows: Any, row: int, other: Any, other_row: int, move: float, length: int) -> None:
    """`rows[row, :length] += move * other[other_row, :length]`."""
    whole, moves = length - length % LANES, spread(move)
    for c in range(0, whole, LANES):
        store(fused(load(other, other_row, c), moves, load(rows, row, c)), rows, row, c)
    for c in range(whole, length):
        rows[row, c] += move * other[other_row, c]


@_inlined
def scale_row(rows: Any, row: int, factor: float, width: int) -> None:
    """`rows[row, :width] *= factor`; `width` is a multiple of LANES."""
    factors, zeros = spread(factor), spread(-0.0)
    for c in range(0, width, LANES):
        store(fused(load(rows, row, c), factors, zeros), rows, row, c)


@_inlined
def squared_distance(
    rows: Any, row: int, scale: float, points: Any, point: int, length: int
) -> float:
    """The squared distance of `scale * rows[row, :length]` from `points[point, :length]`."""
    whole, scales, minus = length - length % LANES, spread(scale), spread(-1.0)
    sums, rest = spread(0.0), 0.0
    for c in range(0, whole, LANES):
        gap = fused(load(rows, row, c), scales, fused(load(points, point, c), minus, spread(-0.0)))
        sums = fused(gap, gap, sums)
    for c in range(whole, length):
        single = rows[row, c] * scale - points[point, c]
        rest += single * single
    distance: float = total(sums) + rest
    return distance


@_inlined
def prefetch_row(array: Any, row: int, num_bytes: int) -> None:
    """Ask for the beginning of a row to be brought into the cache."""
    for byte in range(0, min(num_bytes, _MOST_AHEAD), _CACHE_LINE):
        prefetch(array, row, byte)


# The parts of a round; each handles a block of nodes, `first` to `last` (excluded).


@_inlined
def _score(
    options: Options, first: int, last: int, held: Any, features: Any, labels: Any, rows: Any,
    t: int, lanes: Any, into: int,
) -> None:  # fmt: skip
    """Score the samples of a round, into `lanes[into]`: the scores, their losses and slopes."""
    num_nodes, num_features = rows.shape[1], features.shape[1]
    dim = num_features + options.intercept
    sample_bytes = num_features * features.itemsize
    for node in range(first, last):
        soon, later = t, node + _AHEAD
        if later >= num_nodes:
            soon, later = t + 1, later - num_nodes
        if soon < len(rows) and later < num_nodes and rows[soon, later] >= 0:
            prefetch_row(features, rows[soon, later], sample_bytes)
            prefetch(labels, rows[soon, later], 0)
        row = np.int64(rows[t, node])
        if row >= 0:
            score = dot_rows(held, node, features, row, num_features)
            if options.intercept:
                score += held[node, dim - 1]
            score /= held[node, dim]
            lanes[into, node] = score
            label = np.float64(labels[row])
            if options.kind == LOGISTIC:
                lanes[into + 1, node] = label * score
            elif options.kind == RIDGE:
                lanes[into + 1, node] = 0.5 * (score - label) ** 2
                lanes[into + 2, node] = score - label
            else:
                lanes[into + 1, node] = max(1.0 - label * score, 0.0)
                lanes[into + 2, node] = -label if label * score < 1.0 else 0.0
    if options.kind == LOGISTIC:
        for node in range(first, last, LANES):
            loss, slope = softplus(load(lanes, into + 1, node))
            store(loss, lanes, into + 1, node)
            store(slope, lanes, into + 2, node)


@_not_stored
def _learn(
    options: Options, block: int, held: Any, parcels: Any, sums: Any, squares: Any, features: Any,
    labels: Any, rows: Any, known_rows: Any, t: int, fixed_rate: float, releases: Any, noise: Any,
    scratch: Scratch,
) -> None:  # fmt: skip
    """Predict, and take the steps of a round."""
    compiled_once()
    first, last = scratch.ends[block], scratch.ends[block + 1]
    lanes, gradients = scratch.lanes, scratch.rows
    num_features, l2 = features.shape[1], options.l2
    dim, width = num_features + options.intercept, held.shape[1]
    loss_sum, num_right = 0.0, 0.0
    _score(options, first, last, held, features, labels, rows, t, lanes, _SCORES)
    for node in range(first, last):
        row = np.int64(rows[t, node])
        if row >= 0:
            size = dot_rows(held, node, held, node, dim)
            lanes[_LOSSES, node] += 0.5 * l2 * size / held[node, dim] ** 2
            loss_sum += lanes[_LOSSES, node]
            num_right += (lanes[_SCORES, node] >= 0.0) == (labels[row] > 0.0)
    scratch.parts[block, 0], scratch.parts[block, 1] = loss_sum, num_right
    if options.late:
        _score(options, first, last, held, features, labels, known_rows, t, lanes, _KNOWN)
    slopes = _KNOWN + _SLOPES if options.late else _SLOPES
    for node in range(first, last):
        row = np.int64(known_rows[t, node])
        if row < 0:
            continue
        mass, rate, slope = held[node, dim], fixed_rate, lanes[slopes, node]
        if options.kind == LOGISTIC:
            slope *= labels[row]
        # One of the step rules of `oneway.methods.step_rules`.
        effective_mass = 1.0 if options.relayed else mass
        share = min(options.cap, effective_mass) if options.cap > 0.0 else 1.0
        if options.auto:
            rate = min(options.ceiling, options.reach / math.sqrt(squares[node]))
        step, limit = rate * share, math.inf
        if options.stable > 0.0:
            square = dot_rows(features, row, features, row, num_features) + options.intercept
            limit = options.stable * effective_mass / (options.curvature_bound * square + l2)
        if options.batched:
            # As `oneway.methods.batches` does it.
            scale_row(gradients, block, 0.0, width)
            add_row(gradients, block, held, node, l2 / mass, dim)
            add_row(gradients, block, features, row, slope, num_features)
            if options.intercept:
                gradients[block, dim - 1] += slope
            factor = 1.0
            if options.stable > 0.0:
                factor = min(rate, limit) / step if step > 0.0 else 0.0
            length = factor * math.sqrt(dot_rows(gradients, block, gradients, block, dim))
            if length > options.clip:
                factor *= options.clip / length
            add_row(sums, node, gradients, block, factor, dim)
            if releases[t, node] >= 0:
                if len(noise) > 0:
                    add_row(sums, node, noise, releases[t, node], 1.0, dim)
                if options.auto:
                    squares[node] += dot_rows(sums, node, sums, node, dim)
                    step = share * min(options.ceiling, options.reach / math.sqrt(squares[node]))
                if options.relayed:
                    add_row(parcels, node, sums, node, step, dim)
                    parcels[node, dim] += 1.0
                else:
                    add_row(held, node, sums, node, -step, dim)
                for c in range(dim):
                    sums[node, c] = 0.0
            continue
        step = min(step, limit)
        if options.relayed:
            add_row(parcels, node, held, node, step * l2 / mass, dim)
            add_row(parcels, node, features, row, step * slope, num_features)
            if options.intercept:
                parcels[node, dim - 1] += step * slope
            parcels[node, dim] += 1.0
        else:
            scale_row(held, node, 1.0 - step * l2 / mass, width)
            held[node, dim] = mass
            add_row(held, node, features, row, -step * slope, num_features)
            if options.intercept:
                held[node, dim - 1] -= step * slope


@_compiled
def _deposit(
    options: Options, block: int, dim: int, held: Any, parcels: Any, scratch: Scratch
) -> None:
    """Every node deposits, also one that had no sample: `Relay.before_push`."""
    compiled_once()
    for node in range(scratch.ends[block], scratch.ends[block + 1]):
        # As `Relay.fractions`: how much of a parcel enters the numerator.
        bearable = options.amount * max(held[node, dim], 0.0)
        root = math.sqrt(max(parcels[node, dim], 0.0))
        fraction = bearable / root if root > bearable else 1.0
        add_row(held, node, parcels, node, -fraction, dim)
        scale_row(parcels, node, 1.0 - fraction, held.shape[1])


@_compiled
def _mix(
    options: Options, block: int, dim: int, bounds: bool, held: Any, spare: Any, indptr: Any,
    senders: Any, shares: Any, scratch: Scratch,
) -> None:  # fmt: skip
    """Push and sum, into `spare`; and make the block's total, for the network's mean."""
    compiled_once()
    num_nodes, width = held.shape
    scale_row(scratch.rows, block, 0.0, width)
    for node in range(scratch.ends[block], scratch.ends[block + 1]):
        if options.exchange == ALONG_GRAPH:
            if options.parallel:
                ahead = min(node + _NODES_AHEAD, num_nodes - 1)
                for k in range(indptr[ahead], indptr[ahead + 1]):
                    prefetch_row(held, senders[k], 8 * width)
            mix_row(spare, held, senders, shares, indptr[node], indptr[node + 1], node, width)
            if not options.moves_mass:
                spare[node, dim] = 1.0
            mass = spare[node, dim]
            outside = mass < options.lowest or mass > options.highest
            if bounds and outside and mass > 0.0:
                # As `oneway.methods.Method.bounded`: the estimate stays.
                bounded_mass = min(max(mass, options.lowest), options.highest)
                scale_row(spare, node, bounded_mass / mass, width)
                spare[node, dim] = bounded_mass
        else:
            for c in range(0, width, LANES):
                store(load(held, node, c), spare, node, c)
        add_row(scratch.rows, block, spare, node, 1.0, width)


@_compiled
def _mix_parcels(
    block: int, parcels: Any, spare: Any, indptr: Any, senders: Any, shares: Any, scratch: Scratch
) -> None:
    """Pass the parcels on, into `spare`."""
    compiled_once()
    width = parcels.shape[1]
    for node in range(scratch.ends[block], scratch.ends[block + 1]):
        mix_row(spare, parcels, senders, shares, indptr[node], indptr[node + 1], node, width)


@_compiled
def _measure(options: Options, block: int, dim: int, held: Any, scratch: Scratch) -> None:
    """The sum of squared distances of estimates from the mean, which a server hands to all."""
    compiled_once()
    distance_sum = 0.0
    for node in range(scratch.ends[block], scratch.ends[block + 1]):
        if options.exchange == AVERAGE:
            for c in range(dim):
                held[node, c] = scratch.means[0, c]
        inverse = 1.0 / held[node, dim]
        distance_sum += squared_distance(held, node, inverse, scratch.means, 0, dim)
    scratch.parts[block, 2] = distance_sum


def _rounds(
    options: Options,
    held: Any,
    spare: Any,
    features: Any,
    labels: Any,
    rows: Any,
    known_rows: Any,
    indptr: Any,
    senders: Any,
    shares: Any,
    rates: Any,
    sums: Any,
    squares: Any,
    releases: Any,
    noise: Any,
    parcels: Any,
    spare_parcels: Any,
    parcel_indptr: Any,
    parcel_senders: Any,
    parcel_shares: Any,
    loss_sums: Any,
    correct_counts: Any,
    disagreement: Any,
    scores_out: Any,
    scratch: Scratch,
) -> tuple[int, int]:
    """Run `len(rows)` rounds of `mixes` exchanges on `held`, using `spare` of the same shape.

    After an odd number of exchanges the state is in `spare`, and `parcels` likewise. Unless `late`,
    `known_rows` are `rows`. Only if `batched`, `sums[node, dim]` are the unfinished batches, and
    `releases[round, node]` and `noise` those of a `release_plan.Piece`. Unless `scores_out` is
    empty, `scores_out[round, node]` becomes the score that was predicted with.

    Returns:
        The first (round, node) whose loss or estimate is not finite, or (-1, -1).
    """
    num_rounds, num_nodes = rows.shape
    dim, width = features.shape[1] + options.intercept, held.shape[1]
    num_blocks = len(scratch.parts)
    for t in range(num_rounds):
        for block in prange(num_blocks):
            _learn(
                options, np.int64(block), held, parcels, sums, squares, features, labels, rows,
                known_rows, t, rates[t], releases, noise, scratch,
            )  # fmt: skip
        for mix in range(options.mixes):
            bounds = mix == options.mixes - 1
            if options.relayed:
                for block in prange(num_blocks):
                    _deposit(options, np.int64(block), dim, held, parcels, scratch)
            for block in prange(num_blocks):
                _mix(
                    options, np.int64(block), dim, bounds, held, spare, indptr, senders, shares,
                    scratch,
                )  # fmt: skip
                if options.relayed:
                    _mix_parcels(
                        np.int64(block), parcels, spare_parcels, parcel_indptr, parcel_senders,
                        parcel_shares, scratch,
                    )  # fmt: skip
            held, spare = spare, held
            parcels, spare_parcels = spare_parcels, parcels
        scale_row(scratch.means, 0, 0.0, width)
        for block in range(num_blocks):
            add_row(scratch.means, 0, scratch.rows, block, 1.0, width)
        scale_row(scratch.means, 0, 1.0 / scratch.means[0, dim], width)
        for block in prange(num_blocks):
            _measure(options, np.int64(block), dim, held, scratch)

        loss_sum, num_right, distance_sum = 0.0, 0.0, 0.0
        for block in range(num_blocks):
            loss_sum += scratch.parts[block, 0]
            num_right += scratch.parts[block, 1]
            distance_sum += scratch.parts[block, 2]
        loss_sums[t], correct_counts[t] = loss_sum, np.int64(num_right)
        disagreement[t] = distance_sum / num_nodes
        if len(scores_out) > 0:
            for node in range(num_nodes):
                scores_out[t, node] = scratch.lanes[_SCORES, node]
        if not (math.isfinite(loss_sum) and math.isfinite(distance_sum)):
            for node in range(num_nodes):
                if rows[t, node] >= 0 and not math.isfinite(scratch.lanes[_LOSSES, node]):
                    return t, node
            # One infinite row makes the mean and so every distance infinite: ask the rows.
            for node in range(num_nodes):
                size = 0.0
                for c in range(dim):
                    size += (held[node, c] / held[node, dim]) ** 2
                if not math.isfinite(size):
                    return t, node
            return t, 0
    return -1, -1


@cache
def rounds(features: str, index: str, parallel: bool) -> Callable[..., tuple[int, int]]:
    """Return `_rounds` for one type of features and of row numbers.

    Every combination has a name of its own: of two processes that compile one function for
    different types at once, Numba may store the code of one as that of the other.

    Args:
        features: Name of the type, such as "float32".
        index: Name of the type of `rows`.
        parallel: Use all cores inside a round. The same bits; pays for large networks only.
    """
    name = f"_{'parallel' if parallel else 'serial'}_rounds_{features}_{index}"
    copy = FunctionType(_rounds.__code__, _rounds.__globals__, name)
    copy.__qualname__, copy.__module__ = name, __name__
    if not parallel:
        return _compiled(copy)
    compiled: Callable[..., tuple[int, int]] = njit(cache=True, parallel=True, **_OPTIONS)(copy)
    return compiled
