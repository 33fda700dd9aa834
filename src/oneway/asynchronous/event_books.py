"""What a node holds and owes: `protocol.bookkeeping`, and what its receivers make known.

In floating point instead of whole units, and without what only restored backups, other versions and
malformed messages need: tags, ledgers, epochs.
"""

from __future__ import annotations

from oneway.asynchronous.event_pool import (
    let_go,
    let_go_until,
    new_total,
    total_numbered,
)
from oneway.asynchronous.event_world import (
    ACKED,
    DEAD,
    ENDED,
    FOLLOWING,
    MINTED,
    MINTED_SUM,
    NEWEST,
    NUMBER,
    OLDEST,
    OPEN,
    PHASE,
    SEQ,
    SESSION,
    TRIP_SUM,
    TRIPS,
    Numbers,
    World,
    born_of,
    edge_facts_of,
    held_of,
    model_of,
    node_facts_of,
    owed_of,
    part_of_loop,
    pool_facts_of,
    pool_of,
    sums_of,
    tally_of,
)


@part_of_loop
def add(world: World, numbers: Numbers, node: int, gained: int, lost: int, factor: float) -> None:
    """Add the difference of two totals, times a factor, to what a node holds."""
    held, pool, parts = held_of(world), pool_of(world), numbers.parts
    for part in range(parts):
        at, plus, minus = parts * node + part, parts * gained + part, parts * lost + part
        for c in range(numbers.dim + 1):
            if not (numbers.copied and c < numbers.dim):
                held[at, c] += factor * (pool[plus, c] - pool[minus, c])


@part_of_loop
def book(world: World, numbers: Numbers, node: int, gained: int, lost: int) -> None:
    """As `bookkeeping.booked`: what would bring the mass below half of it is owed."""
    dim, parts, pool = numbers.dim, numbers.parts, pool_of(world)
    mass = pool[parts * gained, dim] - pool[parts * lost, dim]
    held = held_of(world)[parts * node, dim]
    if mass >= 0.0:
        add(world, numbers, node, gained, lost, 1.0)
        pay(world, numbers, node, mass / 2.0)
    elif -mass <= held / 2.0:
        add(world, numbers, node, gained, lost, 1.0)
    else:
        for part in range(parts):
            at, plus, minus = parts * node + part, parts * gained + part, parts * lost + part
            for c in range(dim + 1):
                if not (numbers.copied and c < dim):
                    owed_of(world)[at, c] -= pool[plus, c] - pool[minus, c]
        pay(world, numbers, node, max(held, 0.0) / 2.0)


@part_of_loop
def pay(world: World, numbers: Numbers, node: int, most: float) -> None:
    """Pay back what is owed, with no more mass than `most`."""
    first = numbers.parts * node
    owed = owed_of(world)[first, numbers.dim]
    if owed <= 0.0:
        return
    factor = 1.0 if most >= owed else most / owed
    for at in range(first, first + numbers.parts):
        for c in range(numbers.dim + 1):
            part = factor * owed_of(world)[at, c]
            held_of(world)[at, c] -= part
            owed_of(world)[at, c] -= part


@part_of_loop
def mint(world: World, numbers: Numbers, node: int) -> None:
    """Bring one unit of mass, at `model_of(world)`."""
    held = held_of(world)[numbers.parts * node]
    for c in range(numbers.dim):
        held[c] = model_of(world)[c] if numbers.copied else held[c] + model_of(world)[c]
    held[numbers.dim] += 1.0
    node_facts_of(world)[node, MINTED] = 1
    sums_of(world)[MINTED_SUM] += 1.0


@part_of_loop
def acknowledge(
    world: World, numbers: Numbers, node: int, edge: int, number: int, local: float
) -> bool:
    """A receiver is known to hold a total; whether that is about totals that are known."""
    facts = edge_facts_of(world)
    if (
        facts[edge, PHASE] not in (OPEN, DEAD)
        or not facts[edge, ACKED] <= number <= facts[edge, SEQ]
    ):
        return False
    if facts[edge, PHASE] == DEAD:  # more had arrived than was taken back
        total = total_numbered(world, edge, number)
        book(world, numbers, node, facts[edge, OLDEST], total)
    total = facts[edge, OLDEST]
    while pool_facts_of(world)[total, NUMBER] < number:
        total = pool_facts_of(world)[total, FOLLOWING]
        if born_of(world)[total] >= 0.0:
            tally_of(world)[TRIPS] += 1
            sums_of(world)[TRIP_SUM] += local - born_of(world)[total]
    let_go_until(world, edge, number)
    return True


@part_of_loop
def give_up(world: World, numbers: Numbers, node: int, edge: int) -> None:
    """Take back what a long silent receiver never acknowledged; should it live, it will tell."""
    facts = edge_facts_of(world)
    book(world, numbers, node, facts[edge, NEWEST], facts[edge, OLDEST])
    facts[edge, PHASE] = DEAD
    facts[edge, SESSION] += 1


@part_of_loop
def reopen(world: World, numbers: Numbers, node: int, edge: int, number: int) -> None:
    """A receiver has told what it heard: hand over from there on, with a new total."""
    facts, parts = edge_facts_of(world), numbers.parts
    heard = total_numbered(world, edge, number)
    settle_at = facts[edge, NEWEST]
    if facts[edge, PHASE] == DEAD:
        book(world, numbers, node, facts[edge, OLDEST], heard)
        settle_at = heard
    total = new_total(world, facts[edge, SEQ] + 1, facts[edge, SESSION])
    for part in range(parts):
        for c in range(numbers.dim + 1):
            pool_of(world)[parts * total + part, c] = pool_of(world)[parts * settle_at + part, c]
    pool_facts_of(world)[facts[edge, NEWEST], FOLLOWING] = total
    born_of(world)[total] = -1.0
    facts[edge, NEWEST] = total
    facts[edge, SEQ] += 1
    facts[edge, PHASE] = OPEN
    let_go_until(world, edge, number)
    if settle_at == heard:  # what lies between was taken back
        _forget_between(world, edge, total)


@part_of_loop
def _forget_between(world: World, edge: int, total: int) -> None:
    """Forget the totals after the acknowledged one and before the last."""
    oldest = edge_facts_of(world)[edge, OLDEST]
    after = pool_facts_of(world)[oldest, FOLLOWING]
    while after != total:
        following = pool_facts_of(world)[after, FOLLOWING]
        let_go(world, after)
        after = following
    pool_facts_of(world)[oldest, FOLLOWING] = total


@part_of_loop
def end(world: World, numbers: Numbers, node: int, edge: int, number: int) -> None:
    """A receiver that leaves has told what it heard: the rest comes back, and the edge is over."""
    facts = edge_facts_of(world)
    counted = facts[edge, OLDEST] if facts[edge, PHASE] == DEAD else facts[edge, NEWEST]
    heard = total_numbered(world, edge, number)
    book(world, numbers, node, counted, heard)
    let_go_until(world, edge, number)
    after = pool_facts_of(world)[heard, FOLLOWING]
    while after >= 0:
        following = pool_facts_of(world)[after, FOLLOWING]
        let_go(world, after)
        after = following
    pool_facts_of(world)[heard, FOLLOWING] = -1
    facts[edge, NEWEST] = heard
    facts[edge, SEQ] = number
    facts[edge, PHASE] = ENDED
