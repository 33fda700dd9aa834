"""Calendar queue of events in arrays: a wheel of time buckets before a small heap of what is next.

Scheduling links an event into the bucket of its time; when the wheel comes to a bucket, its events
of this turn move into the heap, which stays small enough for the processor's cache. Of two events
at one time, the one that was scheduled first happens first, however the arrays grow meanwhile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oneway.asynchronous.event_world import (
    HEARD,
    HELLO,
    OLDEST,
    PUSH,
    RECEIVER,
    SENDER,
    World,
    counts_of,
    edge_facts_of,
    edge_times_of,
    far_numbers_of,
    far_of,
    heads_of,
    held_of,
    near_numbers_of,
    near_of,
    node_facts_of,
    node_times_of,
    part_of_loop,
    pool_facts_of,
    pool_of,
)
from oneway.simulator.intrinsics import prefetch_row

TIME, ORDER, WHAT, PAYLOAD = range(4)
"""Columns of an event: seconds, how many were scheduled before it, kind and target, and a number.

The seconds are a float64, the rest integers in the same memory. Above the target, `WHAT` has the
next event of the bucket plus 1.
"""
KIND_BITS, WHAT_BITS = 4, 36
_WHAT = (1 << WHAT_BITS) - 1
_FREE, NUM_FREE, NUM_NEAR, BUCKET, ORDERED, NUM_FAR = range(6)
"""Columns of `counts`."""
PER_BUCKET = 16.0
"""Events that a bucket is made for."""
MOST_BUCKETS = 1 << 19
MOST_A_SECOND = 1e7
"""Buckets of a second: every one is looked at, however few events there are."""
NEVER = 2.0**60
"""The bucket of what lies beyond all of them."""


def empty_queue(capacity: int, events_per_second: float, longest: float) -> dict[str, Any]:
    """The arrays of a queue for so many events, most of which come within `longest` seconds."""
    pace = min(max(events_per_second / PER_BUCKET, 1.0), MOST_A_SECOND)
    buckets = 1 << int(np.ceil(np.log2(max(16.0, min(pace * longest, MOST_BUCKETS)))))
    counts = np.zeros(6, np.int64)
    arrays = _arrays(capacity)
    _free(arrays["far_numbers"], counts, 0)
    heads = np.zeros(buckets, np.int64)
    return {**arrays, "heads": heads, "counts": counts, "pace": pace, "num_buckets": buckets}


def with_more_events(world: World) -> World:
    """The same with room for twice as many events."""
    old = len(world.far)
    arrays = _arrays(2 * old)
    arrays["far"][:old], arrays["near"][:old] = world.far, world.near
    _free(arrays["far_numbers"], world.counts, old)
    return world._replace(**arrays)


def _arrays(capacity: int) -> dict[str, Any]:
    far, near = np.zeros((capacity, 4)), np.zeros((capacity, 4))
    views = {"far_numbers": far.view(np.int64), "near_numbers": near.view(np.int64)}
    return {"far": far, "near": near, **views}


def _free(numbers: Any, counts: Any, first: int) -> None:
    """Link the slots from one on into the list of those that are free."""
    numbers[first:, WHAT] = np.arange(first + 2, len(numbers) + 2) << WHAT_BITS
    numbers[-1, WHAT] = counts[_FREE] << WHAT_BITS
    counts[_FREE] = first + 1
    counts[NUM_FREE] += len(numbers) - first


@part_of_loop
def has_room(world: World, margin: int) -> bool:
    """Whether so many events more fit, in whichever of its parts."""
    counts = counts_of(world)
    capacity = counts[NUM_FREE] + counts[NUM_FAR]
    return bool(counts[NUM_FREE] >= margin and counts[NUM_NEAR] + margin <= capacity)


@part_of_loop
def schedule(world: World, time: float, kind: int, target: int, payload: int) -> None:
    """Let something happen at a time, which is not past."""
    counts = counts_of(world)
    order = counts[ORDERED]
    counts[ORDERED] = order + 1
    bucket = int(min(time * world.pace, NEVER))
    what = (int(target) << KIND_BITS) | kind
    if bucket <= counts[BUCKET]:
        _rise(world, time, order, what, payload)
        return
    slot = counts[_FREE] - 1
    far, numbers = far_of(world), far_numbers_of(world)
    counts[_FREE] = numbers[slot, WHAT] >> WHAT_BITS
    counts[NUM_FREE] -= 1
    counts[NUM_FAR] += 1
    place = bucket & (world.num_buckets - 1)
    far[slot, TIME] = time
    numbers[slot, ORDER] = order
    numbers[slot, WHAT] = what | (heads_of(world)[place] << WHAT_BITS)
    numbers[slot, PAYLOAD] = payload
    heads_of(world)[place] = slot + 1


@part_of_loop
def is_next_until(world: World, until: float) -> bool:
    """Whether there is an event not after a time; it is then at the top of the heap."""
    counts = counts_of(world)
    last = int(until * world.pace)
    while counts[NUM_NEAR] == 0:
        if counts[NUM_FAR] == 0 or counts[BUCKET] >= last:
            return False
        counts[BUCKET] += 1
        _open(world, counts[BUCKET])
    return bool(near_of(world)[0, TIME] <= until)


@part_of_loop
def _open(world: World, bucket: int) -> None:
    """Move the events of a bucket into the heap; those of later turns of the wheel stay."""
    counts, far, numbers = counts_of(world), far_of(world), far_numbers_of(world)
    place = bucket & (world.num_buckets - 1)
    after, kept = heads_of(world)[place], np.int64(0)
    while after:
        slot = after - 1
        what = numbers[slot, WHAT] & _WHAT
        after = numbers[slot, WHAT] >> WHAT_BITS
        if np.int64(min(far[slot, TIME] * world.pace, NEVER)) == bucket:
            _bring_near(world, what, numbers[slot, PAYLOAD])
            _rise(world, far[slot, TIME], numbers[slot, ORDER], what, numbers[slot, PAYLOAD])
            numbers[slot, WHAT] = counts[_FREE] << WHAT_BITS
            counts[_FREE] = slot + 1
            counts[NUM_FREE] += 1
            counts[NUM_FAR] -= 1
        else:
            numbers[slot, WHAT] = what | (kept << WHAT_BITS)
            kept = slot + 1
    heads_of(world)[place] = kept


@part_of_loop
def _bring_near(world: World, what: int, payload: int) -> None:
    """Ask for what an event will look at, some events before it: all of it lies anywhere."""
    kind, target = what & ((1 << KIND_BITS) - 1), what >> KIND_BITS
    if kind >= PUSH:
        prefetch_row(edge_facts_of(world), target, 112)
        prefetch_row(edge_times_of(world), target, 104)
        if kind == PUSH:
            prefetch_row(pool_of(world), world.parts * payload, 320)
            prefetch_row(pool_facts_of(world), payload, 16)
    else:
        prefetch_row(node_facts_of(world), target, 88)
        prefetch_row(node_times_of(world), target, 112)
        prefetch_row(held_of(world), world.parts * target, 320)


@part_of_loop
def _bring_nearer(world: World, what: int) -> None:
    """Ask for the node of a message, which stands in its edge."""
    kind, edge = what & ((1 << KIND_BITS) - 1), what >> KIND_BITS
    if kind >= PUSH:
        edges = edge_facts_of(world)
        node = edges[edge, RECEIVER if kind <= HELLO else SENDER]
        prefetch_row(node_facts_of(world), node, 88)
        if kind == PUSH:
            prefetch_row(held_of(world), world.parts * node, 320)
            prefetch_row(pool_of(world), world.parts * edges[edge, HEARD], 320)
        else:
            prefetch_row(pool_facts_of(world), edges[edge, OLDEST], 16)


@part_of_loop
def _rise(world: World, time: float, order: int, what: int, payload: int) -> None:
    """Put an event into the heap."""
    near, numbers = near_of(world), near_numbers_of(world)
    place = counts_of(world)[NUM_NEAR]
    counts_of(world)[NUM_NEAR] = place + 1
    while place > 0:
        above = (place - 1) >> 1
        if near[above, TIME] < time or (
            near[above, TIME] == time and numbers[above, ORDER] < order
        ):
            break
        for column in range(4):
            numbers[place, column] = numbers[above, column]
        place = above
    near[place, TIME] = time
    numbers[place, ORDER] = order
    numbers[place, WHAT] = what
    numbers[place, PAYLOAD] = payload


@part_of_loop
def drop_first(world: World) -> None:
    """Take the first event from the heap."""
    near, numbers = near_of(world), near_numbers_of(world)
    count = counts_of(world)[NUM_NEAR] - 1
    counts_of(world)[NUM_NEAR] = count
    time, order = near[count, TIME], numbers[count, ORDER]
    what, payload = numbers[count, WHAT], numbers[count, PAYLOAD]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        other = below + 1
        if other < count and (
            near[other, TIME] < near[below, TIME]
            or (
                near[other, TIME] == near[below, TIME]
                and numbers[other, ORDER] < numbers[below, ORDER]
            )
        ):
            below = other
        if time < near[below, TIME] or (
            time == near[below, TIME] and order < numbers[below, ORDER]
        ):
            break
        for column in range(4):
            numbers[place, column] = numbers[below, column]
        place = below
    near[place, TIME] = time
    numbers[place, ORDER] = order
    numbers[place, WHAT] = what
    numbers[place, PAYLOAD] = payload
    if count > 1:
        _bring_nearer(world, numbers[1, WHAT])
