"""Handing over: `protocol.transitions.push` at the pace of `peer.push_pace` and `peer.node`."""

from __future__ import annotations

from oneway.asynchronous.event_books import pay
from oneway.asynchronous.event_learning import (
    deposit,
    has_parcel,
    lie,
    moved,
    norm,
    read_model,
    take_average,
)
from oneway.asynchronous.event_pool import new_total
from oneway.asynchronous.event_world import (
    ACKED,
    BETWEEN,
    CHANGED,
    DIRTY,
    DUE,
    FOLLOWING,
    LAG_SINCE,
    LAST_PUSH,
    LAST_STEP,
    LEAVING,
    LIAR,
    NEWEST,
    OLDEST,
    OPEN,
    PHASE,
    RETURNING,
    SEEN,
    SEQ,
    SESSION,
    SHARE,
    STEPPED,
    TAUGHT,
    TRIP,
    Numbers,
    World,
    born_of,
    edge_facts_of,
    edge_times_of,
    held_of,
    model_of,
    node_facts_of,
    node_times_of,
    out_start_of,
    part_of_loop,
    pool_facts_of,
    pool_of,
    pushed_of,
)
from oneway.peer.push_pace import (
    IDLE_SECONDS,
    LONGEST_IDLE,
    LONGEST_WAITING,
    PASSES,
)
from oneway.peer.send_schedule import (
    OVERDUE_RETRIES,
    OVERDUE_SECONDS,
    ROUND_TRIPS,
    SHORTEST_RETRY,
)
from oneway.protocol.incoming import CARRIED
from oneway.protocol.transitions import LEAST

MASS_FLOOR = 0.01
SHORTEST_PUSH = 0.001
"""Defaults of `protocol.rules.Rules` and of `peer.home.limits.Limits`."""
_IDLE, _LONGEST_IDLE = IDLE_SECONDS - 1e-9, LONGEST_IDLE - 1e-9
_LONGEST_WAITING = LONGEST_WAITING - 1e-9
"""A tick that follows a push by as much counts as that much later, whatever it was rounded to."""


@part_of_loop
def first_wait(world: World, numbers: Numbers, edge: int) -> float:
    """How long to wait for an answer before a word is said again, the first time."""
    trip = edge_times_of(world)[edge, TRIP]
    if trip < 0.0:
        return numbers.first_retry
    return float(min(numbers.first_retry, max(SHORTEST_RETRY, ROUND_TRIPS * trip)))


@part_of_loop
def is_held_back(world: World, numbers: Numbers, edge: int, now: float) -> bool:
    """Whether a link is down, or its receiver should have acknowledged something long ago."""
    if not edge_facts_of(world)[edge, SEEN]:
        return True
    since = edge_times_of(world)[edge, LAG_SINCE]
    patience = max(OVERDUE_RETRIES * first_wait(world, numbers, edge), OVERDUE_SECONDS)
    return bool(since >= 0.0 and now - since > patience)


@part_of_loop
def stepped(world: World, numbers: Numbers, node: int, now: float) -> None:
    """As `PushPace.stepped`."""
    facts, times = node_facts_of(world), node_times_of(world)
    if facts[node, LIAR] or moved(world, numbers, node):
        facts[node, STEPPED], facts[node, DUE] = 1, numbers.mixes
    times[node, BETWEEN] = now - times[node, LAST_STEP]
    times[node, LAST_STEP] = now


@part_of_loop
def push_if_due(world: World, numbers: Numbers, node: int, now: float) -> None:
    """As `Node.push_if_due`."""
    facts, times = node_facts_of(world), node_times_of(world)
    if facts[node, LIAR]:
        lie(world, numbers, node)
    since = now - times[node, LAST_PUSH]
    if since < SHORTEST_PUSH:
        return
    leaving = facts[node, LEAVING] == 1
    is_due = facts[node, DUE] > 0 or leaving
    by_steps = min(times[node, BETWEEN] / PASSES, _LONGEST_IDLE)
    by_waiting = min((now - times[node, LAST_STEP]) / PASSES, _LONGEST_WAITING)
    idle = max(_IDLE, by_steps, by_waiting if facts[node, TAUGHT] else 0.0)
    if not is_due and (since < idle or not moved(world, numbers, node)):
        return
    prepared = False
    if not (facts[node, STEPPED] or leaving):
        if numbers.relayed and has_parcel(world, numbers, node):
            prepared = deposit(world, numbers, node)
        elif numbers.copied and _may_push(world, numbers, node, now):
            take_average(world, numbers, node)
    if leaving:
        handed = _push_all(world, numbers, node, now)
    else:
        handed = _push_shares(world, numbers, node, now)
    if out_start_of(world)[node] == out_start_of(world)[node + 1]:
        facts[node, STEPPED] = 0
    if handed < 0.0 and not prepared:
        return
    facts[node, DIRTY] = 1
    times[node, LAST_PUSH] = now
    if handed >= 0.0:
        facts[node, CHANGED] = 1
        times[node, RETURNING] = min(numbers.mass_limit, times[node, RETURNING] + handed)
        facts[node, DUE] = max(0, facts[node, DUE] - 1)
        facts[node, STEPPED] = 0
        read_model(world, numbers, node)
        for c in range(numbers.dim):
            pushed_of(world)[node, c] = model_of(world)[c]


@part_of_loop
def _is_able(world: World, numbers: Numbers, edge: int, now: float) -> bool:
    facts = edge_facts_of(world)
    return (
        facts[edge, PHASE] == OPEN
        and facts[edge, SEQ] - facts[edge, ACKED] < numbers.window
        and not is_held_back(world, numbers, edge, now)
    )


@part_of_loop
def _may_push(world: World, numbers: Numbers, node: int, now: float) -> bool:
    """Whether a receiver can take something, where models are copied."""
    if held_of(world)[numbers.parts * node, numbers.dim] <= MASS_FLOOR:
        return False
    for edge in range(out_start_of(world)[node], out_start_of(world)[node + 1]):
        if _is_able(world, numbers, edge, now):
            return True
    return False


@part_of_loop
def in_flight(world: World, numbers: Numbers, edge: int) -> float:
    """The mass that is handed over and not acknowledged."""
    newest, oldest = edge_facts_of(world)[edge, NEWEST], edge_facts_of(world)[edge, OLDEST]
    pool, parts, dim = pool_of(world), numbers.parts, numbers.dim
    return float(pool[parts * newest, dim] - pool[parts * oldest, dim])


@part_of_loop
def _push_shares(world: World, numbers: Numbers, node: int, now: float) -> float:
    """Hand a share to every receiver that can take it; return the mass handed over, or -1."""
    mass = held_of(world)[numbers.parts * node, numbers.dim]
    first, last = out_start_of(world)[node], out_start_of(world)[node + 1]
    if mass <= MASS_FLOOR:
        return -1.0
    of_all, any_pushed = 0.0, False
    for edge in range(first, last):
        if not is_held_back(world, numbers, edge, now):
            of_all += edge_times_of(world)[edge, SHARE]
    kept, kept_parcel, handed = 1.0, 1.0, 0.0
    for edge in range(first, last):
        if not _is_able(world, numbers, edge, now):
            continue
        share, under_way = edge_times_of(world)[edge, SHARE], in_flight(world, numbers, edge)
        if share <= 0.0:
            continue
        fraction = share
        if under_way > 0.0:
            fraction = share - (1.0 - share) * under_way / mass
        room = numbers.mass_cap - under_way
        if fraction < LEAST * share or room < LEAST * numbers.mass_cap:
            if not numbers.copied:
                continue
            fraction = 0.0
        fraction = min(fraction, room / mass)
        forwarded = fraction / of_all
        forwarded = _hand_over(world, numbers, node, edge, fraction, forwarded, now)
        kept -= fraction
        kept_parcel -= forwarded
        handed += fraction * mass
        any_pushed = True
    if not any_pushed:
        return -1.0
    _keep(world, numbers, node, kept, kept_parcel)
    return handed


@part_of_loop
def _push_all(world: World, numbers: Numbers, node: int, now: float) -> float:
    """Hand everything over, as a peer that leaves does; return the mass handed over, or -1."""
    pay(world, numbers, node, held_of(world)[numbers.parts * node, numbers.dim])
    mass = held_of(world)[numbers.parts * node, numbers.dim]
    first, last = out_start_of(world)[node], out_start_of(world)[node + 1]
    if not mass > 0.0:
        return -1.0
    of_all, last_able = 0.0, -1
    for edge in range(first, last):
        room = numbers.mass_cap - in_flight(world, numbers, edge)
        if _is_able(world, numbers, edge, now) and room >= LEAST * numbers.mass_cap:
            of_all += edge_times_of(world)[edge, SHARE]
            last_able = edge
    kept = 1.0
    for edge in range(first, last_able + 1):
        room = numbers.mass_cap - in_flight(world, numbers, edge)
        if not _is_able(world, numbers, edge, now) or room < LEAST * numbers.mass_cap:
            continue
        fraction = min(edge_times_of(world)[edge, SHARE] / of_all, room / mass)
        if edge == last_able and kept * mass <= room:
            fraction = kept
        _hand_over(world, numbers, node, edge, fraction, fraction, now)
        kept = 0.0 if fraction == kept else kept - fraction
    if last_able < 0:
        return -1.0
    _keep(world, numbers, node, kept, kept)
    return float(mass * (1.0 - kept))


@part_of_loop
def _hand_over(
    world: World,
    numbers: Numbers,
    node: int,
    edge: int,
    fraction: float,
    forwarded: float,
    now: float,
) -> float:
    """Make the next total of an edge; return which part of the parcel went with it."""
    facts, parts, dim, pool = edge_facts_of(world), numbers.parts, numbers.dim, pool_of(world)
    facts[edge, SEQ] += 1
    before = facts[edge, NEWEST]
    total = new_total(world, facts[edge, SEQ], facts[edge, SESSION])
    held = held_of(world)
    if numbers.relayed:
        length = forwarded * norm(held[2 * node + 1], dim)
        most = CARRIED / 2.0 * numbers.nearness
        if length > most:
            forwarded *= most / length
        for c in range(dim + 1):
            pool[2 * total + 1, c] = pool[2 * before + 1, c] + forwarded * held[2 * node + 1, c]
    for c in range(dim + 1):
        pool[parts * total, c] = pool[parts * before, c] + fraction * held[parts * node, c]
    if numbers.copied:
        for c in range(dim):
            pool[total, c] = held[node, c]
    pool_facts_of(world)[before, FOLLOWING] = total
    born_of(world)[total] = now
    facts[edge, NEWEST] = total
    return forwarded


@part_of_loop
def _keep(world: World, numbers: Numbers, node: int, kept: float, kept_parcel: float) -> None:
    """What is left after all was handed over."""
    first = 0 if not numbers.copied else numbers.dim
    for c in range(first, numbers.dim + 1):
        held_of(world)[numbers.parts * node, c] *= kept
    if numbers.relayed:
        for c in range(numbers.dim + 1):
            held_of(world)[2 * node + 1, c] *= kept_parcel
