"""Taking in: `protocol.incoming.absorb`, and how much of it by the accounts of `peer.inflow`.

The largest parameter that peers believe (`radius`, 1,000 by default) is no limit here.
"""

from __future__ import annotations

import math

from oneway.asynchronous.event_books import (
    mint,
    pay,
)
from oneway.asynchronous.event_learning import read_model
from oneway.asynchronous.event_pool import let_go
from oneway.asynchronous.event_world import (
    ACCOUNT_AT,
    BROUGHT,
    CLIPPED,
    CROWDED_UNTIL,
    FIRST_UNITS,
    HEARD,
    LEFT,
    MINTED,
    NUMBER,
    OFFER,
    RECEIVER,
    RETURNING,
    TURN_UNTIL,
    USES,
    WAITED,
    Numbers,
    World,
    edge_facts_of,
    edge_times_of,
    held_of,
    in_edges_of,
    in_start_of,
    model_of,
    node_facts_of,
    node_times_of,
    owed_of,
    part_of_loop,
    pool_facts_of,
    pool_of,
    tally_of,
)
from oneway.peer.inflow import (
    RECENT_SECONDS,
    TURN_SECONDS,
)
from oneway.protocol.incoming import CARRIED

UNITS_PER_SECOND, POOR, POOR_UNITS_PER_SECOND = 1 / 300, 4.0, 1 / 10
"""As in `peer.inflow`, in units of mass."""


@part_of_loop
def absorb(world: World, numbers: Numbers, edge: int, total: int, now: float) -> bool:
    """Add what is new in a total to what its receiver holds; False if it has to wait."""
    parts, dim, pool = numbers.parts, numbers.dim, pool_of(world)
    node, before = edge_facts_of(world)[edge, RECEIVER], edge_facts_of(world)[edge, HEARD]
    held, first = held_of(world), numbers.parts * node
    mass = pool[parts * total, dim] - pool[parts * before, dim]
    owed = owed_of(world)[first, dim]
    account(world, numbers, edge, now)
    if mass > allowance(world, numbers, edge, now) + owed:
        tally_of(world)[WAITED] += 1
        edge_times_of(world)[edge, OFFER] = mass
        edge_times_of(world)[edge, TURN_UNTIL] = now + TURN_SECONDS
        node_times_of(world)[node, CROWDED_UNTIL] = now + TURN_SECONDS
        return False
    if mass > 0.0 and held[first, dim] + mass - owed > numbers.mass_limit:
        tally_of(world)[WAITED] += 1
        return False
    size = 0.0
    if held[first, dim] > 0.0 or numbers.copied:
        size = read_model(world, numbers, node)
    else:
        for c in range(dim):
            model_of(world)[c] = 0.0
    pushes = pool_facts_of(world)[total, NUMBER] - pool_facts_of(world)[before, NUMBER]
    clipped = False
    if numbers.relayed:
        length, part = 0.0, 1.0
        for c in range(dim):
            length += (pool[2 * total + 1, c] - pool[2 * before + 1, c]) ** 2
        length = math.sqrt(length)
        longest = min(pushes, 64) * CARRIED * numbers.nearness * (1.0 + size)
        if length > longest:
            part, clipped = longest / length, True
        for c in range(dim):
            held[2 * node + 1, c] += part * (pool[2 * total + 1, c] - pool[2 * before + 1, c])
        held[2 * node + 1, dim] += pool[2 * total + 1, dim] - pool[2 * before + 1, dim]
    if not numbers.copied:
        clipped |= _take_model(world, numbers, node, total, before, mass, size)
    held[first, dim] += mass
    if owed > 0.0:
        now_held = held[first, dim]
        pay(world, numbers, node, max(0.0, min(mass / 2.0, now_held - 0.5), now_held - 1.0))
        owed -= owed_of(world)[first, dim]
    if not node_facts_of(world)[node, MINTED] and mass > 0.0:
        if numbers.copied:
            for c in range(dim):
                model_of(world)[c] = pool[total, c]
        mint(world, numbers, node)
    tally_of(world)[CLIPPED] += clipped
    take_account(world, edge, node, mass - owed)
    pool_facts_of(world)[total, USES] += 1
    let_go(world, before)
    edge_facts_of(world)[edge, HEARD] = total
    return True


@part_of_loop
def _take_model(
    world: World, numbers: Numbers, node: int, total: int, before: int, mass: float, size: float
) -> bool:
    """Add the numerator of a total, moved to the limit around `model_of(world)` if it is too far.

    Without a mint yet, `model_of(world)` becomes the model that came. Whether it was moved.
    """
    parts, dim, pool, model = numbers.parts, numbers.dim, pool_of(world), model_of(world)
    if not mass > 0.0:
        return False
    square = 0.0
    for c in range(dim):
        square += ((pool[parts * total, c] - pool[parts * before, c]) / mass - model[c]) ** 2
    distance, limit = math.sqrt(square), numbers.nearness * (1.0 + size)
    part = limit / distance if distance > limit else 1.0
    fresh = not node_facts_of(world)[node, MINTED]
    for c in range(dim):
        delta = pool[parts * total, c] - pool[parts * before, c]
        if part < 1.0:
            delta = mass * (model[c] + part * (delta / mass - model[c]))
        held_of(world)[parts * node, c] += delta
        if fresh:
            model[c] = delta / mass
    return part < 1.0


@part_of_loop
def account(world: World, numbers: Numbers, edge: int, now: float) -> None:
    """Bring a sender's account up to this moment."""
    times, node = edge_times_of(world), edge_facts_of(world)[edge, RECEIVER]
    if times[edge, ACCOUNT_AT] < 0.0:
        times[edge, LEFT] = node_times_of(world)[node, FIRST_UNITS]
        times[edge, BROUGHT] = 0.0
    else:
        passed = now - times[edge, ACCOUNT_AT]
        poor = held_of(world)[numbers.parts * node, numbers.dim] < POOR
        rate = POOR_UNITS_PER_SECOND if poor else UNITS_PER_SECOND
        times[edge, LEFT] = min(numbers.mass_limit, times[edge, LEFT] + rate * passed)
        times[edge, BROUGHT] *= math.exp(-passed / RECENT_SECONDS)
    times[edge, ACCOUNT_AT] = now


@part_of_loop
def _most_of(world: World, numbers: Numbers, edge: int, node: int) -> float:
    left = edge_times_of(world)[edge, LEFT] + node_times_of(world)[node, RETURNING]
    return max(left, numbers.mass_cap) if left > 0.0 else 0.0


@part_of_loop
def allowance(world: World, numbers: Numbers, edge: int, now: float) -> float:
    """The most mass that may come from a sender now; 0 while it is behind, or another's turn."""
    times, node = edge_times_of(world), edge_facts_of(world)[edge, RECEIVER]
    if node_times_of(world)[node, CROWDED_UNTIL] > now:
        for place in range(in_start_of(world)[node], in_start_of(world)[node + 1]):
            other = in_edges_of(world)[place]
            if (
                times[other, TURN_UNTIL] > now
                and times[other, BROUGHT] < times[edge, BROUGHT]
                and times[other, OFFER] <= _most_of(world, numbers, other, node)
            ):
                return 0.0
    return _most_of(world, numbers, edge, node)


@part_of_loop
def take_account(world: World, edge: int, node: int, mass: float) -> None:
    """Some mass has come from a sender."""
    if mass > 0.0:
        returned = min(mass, node_times_of(world)[node, RETURNING])
        node_times_of(world)[node, RETURNING] -= returned
        edge_times_of(world)[edge, LEFT] -= mass - returned
        edge_times_of(world)[edge, BROUGHT] += mass
        edge_times_of(world)[edge, TURN_UNTIL] = -1.0
