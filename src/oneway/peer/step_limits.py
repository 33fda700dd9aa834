"""Step limits: how far one step moves the estimate of a peer, others may have had a part in it."""

from __future__ import annotations

import math

import numpy as np

from oneway.methods import Method, State
from oneway.protocol.fixed_point import pieces
from oneway.protocol.incoming import reach
from oneway.protocol.rules import Rules
from oneway.records import Vector

INSIDE = 1.0 - 2.0**-20
"""How much of the radius a deposit may use: the rest is for roundings."""

_SURELY = 1.0 - 2.0**-20
"""A distance below so much of a limit is within it, however the two are rounded."""


def inside(method: Method, row: State, after: State, rules: Rules) -> State:
    """A row after a step, projected onto the radius, or to where it was if that is outside."""
    if after is row:
        return after
    first = method.payload[0].name
    before, moved = row.segments[first], after.segments[first]
    if moved is before:
        return after
    most = rules.radius * INSIDE * method.masses(row)[:, None]
    if moved.max() <= most[0, 0] and moved.min() >= -most[0, 0]:
        return after
    limits = np.maximum(most, np.abs(before))
    return State({**after.segments, first: moved.clip(-limits, limits)}, after.memory)


def limited(method: Method, row: State, after: State, rules: Rules) -> State:
    """A row after a step that others may have had a part in: its model moves only so far."""
    after = inside(method, row, after, rules)
    part, first = part_within(method, row, after, rules), method.payload[0].name
    if part == 1.0:
        return after
    before = row.segments[first]
    moved = before + part * (after.segments[first] - before)
    return State({**after.segments, first: moved}, after.memory)


def part_within(method: Method, row: State, after: State, rules: Rules) -> float:
    """How much of a step moves the estimate as far as others may at once."""
    first = method.payload[0].name
    before, there = row.segments[first], after.segments[first]
    if math.isinf(rules.clip) or there is before:
        return 1.0
    mass = row.segments.get("mass")
    if mass is not None and mass is after.segments["mass"]:
        # The limit is no less than this, whatever the model is; nearly all steps are shorter.
        surely = _SURELY * rules.clip * float(mass[0, 0])
        if _distance(there[0], before[0]) < surely:
            return 1.0
    own = method.estimate(row)[0]
    moved = float(np.linalg.norm(method.estimate(after)[0] - own))
    limit = reach(own, rules)
    return limit / moved if moved > limit else 1.0


def _distance(one: Vector, other: Vector) -> float:
    squares = 0.0
    for piece in pieces(len(one)):
        between = one[piece] - other[piece]
        squares += float(between @ between)
    return math.sqrt(squares)
