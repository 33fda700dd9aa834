"""Random numbers of the event loop, and its pool of totals with their reference counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oneway.asynchronous.event_world import (
    ACKED,
    FOLLOWING,
    FREE_TOTAL,
    NONE,
    NUM_FREE_TOTALS,
    NUMBER,
    OF_SESSION,
    OLDEST,
    USES,
    World,
    edge_facts_of,
    part_of_loop,
    pool_facts_of,
    quantiles_of,
    random_of,
    tally_of,
)

# Random numbers: splitmix64 (Steele, Lea and Flood, 2014).
_STEP, _MIX, _MIX_AGAIN = (
    np.uint64(it) for it in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_30, _27, _31, _11 = (np.uint64(it) for it in (30, 27, 31, 11))


@part_of_loop
def uniform(random: Any) -> float:
    """The next number from 0 to below 1."""
    random[0] += _STEP
    mixed = random[0]
    mixed = (mixed ^ (mixed >> _30)) * _MIX
    mixed = (mixed ^ (mixed >> _27)) * _MIX_AGAIN
    mixed = mixed ^ (mixed >> _31)
    return float(np.int64(mixed >> _11)) * 2.0**-53


@part_of_loop
def exponential(random: Any, mean: float) -> float:
    """A time without memory."""
    return -mean * math.log(1.0 - uniform(random))


@part_of_loop
def delay(world: World) -> float:
    """As `Delay.draw`."""
    table = quantiles_of(world)
    place = uniform(random_of(world)) * (world.num_quantiles - 1)
    low = min(int(place), world.num_quantiles - 2)
    return float(table[low] + (place - low) * (table[low + 1] - table[low]))


# The pool of totals.


@part_of_loop
def new_total(world: World, number: int, session: int) -> int:
    """Take a total from the pool, referred to once; its row is whatever was there."""
    facts = pool_facts_of(world)
    total = tally_of(world)[FREE_TOTAL]
    tally_of(world)[FREE_TOTAL] = facts[total, FOLLOWING]
    tally_of(world)[NUM_FREE_TOTALS] -= 1
    facts[total, NUMBER] = number
    facts[total, FOLLOWING] = NONE
    facts[total, USES] = 1
    facts[total, OF_SESSION] = session
    return int(total)


@part_of_loop
def let_go(world: World, total: int) -> None:
    """One less refers to a total; the last one gives it back to the pool."""
    facts = pool_facts_of(world)
    facts[total, USES] -= 1
    if facts[total, USES] == 0:
        facts[total, FOLLOWING] = tally_of(world)[FREE_TOTAL]
        tally_of(world)[FREE_TOTAL] = total
        tally_of(world)[NUM_FREE_TOTALS] += 1


@part_of_loop
def let_go_until(world: World, edge: int, number: int) -> None:
    """Forget the totals of an edge before one that its receiver is known to hold."""
    facts, edges = pool_facts_of(world), edge_facts_of(world)
    oldest = edges[edge, OLDEST]
    while facts[oldest, NUMBER] < number:
        after = facts[oldest, FOLLOWING]
        let_go(world, oldest)
        oldest = after
    edges[edge, OLDEST] = oldest
    edges[edge, ACKED] = number


@part_of_loop
def total_numbered(world: World, edge: int, number: int) -> int:
    """The total of an edge with a number; it is one of those not forgotten."""
    total = edge_facts_of(world)[edge, OLDEST]
    while pool_facts_of(world)[total, NUMBER] < number:
        total = pool_facts_of(world)[total, FOLLOWING]
    return int(total)


def free_totals(pool_facts: Any, tally: Any, first: int) -> None:
    """Link the totals from one on into the free list."""
    pool_facts[first:, FOLLOWING] = np.arange(first + 1, len(pool_facts) + 1)
    pool_facts[-1, FOLLOWING] = tally[FREE_TOTAL] if first else NONE
    tally[FREE_TOTAL] = first
    tally[NUM_FREE_TOTALS] += len(pool_facts) - first
