"""What befalls a node: its samples' clock, sleep, crashes, coming and leaving."""

from __future__ import annotations

import math

from oneway.asynchronous.calendar_queue import schedule
from oneway.asynchronous.event_books import mint
from oneway.asynchronous.event_links import (
    check_link_later,
    check_links_to,
)
from oneway.asynchronous.event_pool import (
    exponential,
    let_go,
    total_numbered,
    uniform,
)
from oneway.asynchronous.event_words import (
    NO_QUESTION,
    begin,
)
from oneway.asynchronous.event_world import (
    ABSENT,
    ACCOUNT_AT,
    ACKED,
    ANSWER,
    ANSWERS,
    ASKED,
    ASLEEP,
    ASLEEP_SINCE,
    BETWEEN,
    CHANGED,
    COMMIT,
    COMMITTING,
    CRASH,
    CRASHES,
    CROWDED_UNTIL,
    DEAD,
    DEADLINE,
    DIRTY,
    DOWN,
    DRAINED_AT,
    DUE,
    FAREWELL,
    FIRST_UNITS,
    FOLLOWING,
    GONE,
    HANDED,
    HEARD,
    HEARTBEAT_AT,
    JOINED,
    LAG_SINCE,
    LAST_PUSH,
    LAST_STEP,
    LEARNED,
    LEAVE,
    LEAVING,
    LEFT_FOR_GOOD,
    LIAR,
    LIFE,
    LINKED,
    MINTED,
    MINTED_SUM,
    NEWEST,
    NEWS,
    NEXT_SAMPLE,
    NONE,
    OPEN,
    OWN_ACKED,
    OWN_PHASE,
    OWN_SEQ,
    OWN_SESSION,
    PHASE,
    QUESTIONS,
    RECEIVER,
    RESTART,
    RESYNC,
    RETURNING,
    SAID_PHASE,
    SAID_SEQ,
    SAMPLE,
    SAVED_HEARD,
    SAVED_LEARNED,
    SAVED_MINTED,
    SAVED_UNFINISHED,
    SEEN,
    SENDER,
    SEQ,
    SESSION,
    SHARE,
    SHUT,
    SLEEP,
    SLEEPS,
    SLEPT_FOR,
    SPEED,
    STARTED,
    STATUS,
    STEPPED,
    TICK,
    TRIP,
    TURN_UNTIL,
    UNFINISHED,
    UNUSED,
    UP,
    USES,
    WAITS,
    WAKE,
    WEIGHT,
    Numbers,
    World,
    batch_of,
    edge_facts_of,
    edge_times_of,
    held_of,
    in_edges_of,
    in_start_of,
    model_of,
    node_facts_of,
    node_times_of,
    out_start_of,
    owed_of,
    part_of_loop,
    pool_facts_of,
    pushed_of,
    random_of,
    saved_batch_of,
    saved_of,
    saved_owed_of,
    saved_squares_of,
    squares_of,
    start_of,
    sums_of,
    tally_of,
)
from oneway.peer.runtime import (
    JOIN_SECONDS,
    LINGER_SECONDS,
    TICK_SECONDS,
)

PATIENCE_OF_LINKS = 15.0
"""Seconds after which a connection to who sleeps is taken for broken: `transport.base.Limits`."""
RECONNECT = 1.0
"""The longest pause between two attempts to connect."""


@part_of_loop
def gap(world: World, numbers: Numbers, node: int) -> float:
    """Seconds until a node's next sample."""
    period = 1.0 / node_times_of(world)[node, SPEED]
    return exponential(random_of(world), period) if numbers.poisson else period


@part_of_loop
def start(world: World, numbers: Numbers, node: int, now: float) -> None:
    """Begin a life: nothing was said or heard in it, no connection is up."""
    facts, edges, times = node_facts_of(world), edge_facts_of(world), edge_times_of(world)
    own = node_times_of(world)[node]
    facts[node, STATUS] = UP
    local = now - own[SLEPT_FOR]
    own[LAST_PUSH], own[FAREWELL], own[HEARTBEAT_AT] = -math.inf, -math.inf, local
    own[LAST_STEP], own[RETURNING], own[BETWEEN] = local, 0.0, 0.0
    own[CROWDED_UNTIL] = own[DRAINED_AT] = -1.0
    # In its first life a node mints after it has begun, founders too.
    held = held_of(world)[numbers.parts * node, numbers.dim] if facts[node, LIFE] else 0.0
    own[FIRST_UNITS] = max(1.0 - held, 0.0)
    facts[node, LIFE] += 1
    facts[node, DUE] = facts[node, STEPPED] = facts[node, WAITS] = facts[node, COMMITTING] = 0
    for c in range(numbers.dim):
        pushed_of(world)[node, c] = start_of(world)[c]
    for edge in range(out_start_of(world)[node], out_start_of(world)[node + 1]):
        if edges[edge, PHASE] in (RESYNC, OPEN, DEAD):
            edges[edge, SESSION] += 1
            if edges[edge, PHASE] == OPEN:
                edges[edge, PHASE] = RESYNC
        edges[edge, OWN_PHASE] = edges[edge, PHASE]
        edges[edge, OWN_SESSION] = edges[edge, SESSION]
        edges[edge, OWN_SEQ] = edges[edge, SEQ]
        edges[edge, OWN_ACKED] = edges[edge, ACKED]
        edges[edge, SAID_PHASE] = edges[edge, SAID_SEQ] = NONE
        edges[edge, LINKED] = edges[edge, SEEN] = 0
        times[edge, LAG_SINCE] = times[edge, TRIP] = -1.0
        check_link_later(world, edge, now)
    for place in range(in_start_of(world)[node], in_start_of(world)[node + 1]):
        edge = in_edges_of(world)[place]
        times[edge, ACCOUNT_AT] = times[edge, TURN_UNTIL] = -1.0
    check_links_to(world, node, now + RECONNECT * uniform(random_of(world)))
    facts[node, CHANGED] = facts[node, DIRTY] = 1
    schedule(world, now + TICK_SECONDS * uniform(random_of(world)), TICK, node, facts[node, LIFE])
    begin(world, numbers, node, now)


@part_of_loop
def resume_samples(world: World, node: int, now: float) -> None:
    """Let a node's samples come from now on; `NEXT_SAMPLE` is then how long the next one takes."""
    if node_times_of(world)[node, NEXT_SAMPLE] < math.inf:
        node_times_of(world)[node, NEXT_SAMPLE] += now
        moment = node_times_of(world)[node, NEXT_SAMPLE]
        schedule(world, moment, SAMPLE, node, node_facts_of(world)[node, LIFE])


@part_of_loop
def pause_samples(world: World, node: int, now: float) -> None:
    """Let a node's samples wait; the next one then takes as long as it would have."""
    node_times_of(world)[node, NEXT_SAMPLE] = max(
        node_times_of(world)[node, NEXT_SAMPLE] - now, 0.0
    )


@part_of_loop
def ready(world: World, numbers: Numbers, node: int, now: float) -> None:
    """Mint, at the first model unless another came, and learn from now on."""
    facts = node_facts_of(world)
    if not facts[node, MINTED]:
        if now < node_times_of(world)[node, DEADLINE]:
            return
        for c in range(numbers.dim):
            model_of(world)[c] = start_of(world)[c]
        mint(world, numbers, node)
        facts[node, DIRTY] = 1
    facts[node, STARTED] = 1


@part_of_loop
def sleep(world: World, numbers: Numbers, node: int, now: float) -> None:
    """Do nothing, hear nothing for a while."""
    if node_facts_of(world)[node, STATUS] == UP and not node_facts_of(world)[node, LEAVING]:
        tally_of(world)[SLEEPS] += 1
        pause_samples(world, node, now)
        node_facts_of(world)[node, STATUS] = ASLEEP
        node_facts_of(world)[node, LIFE] += 1
        node_times_of(world)[node, ASLEEP_SINCE] = now
        check_links_to(world, node, now + PATIENCE_OF_LINKS)
    schedule(world, now + exponential(random_of(world), numbers.asleep), WAKE, node, 0)


@part_of_loop
def wake(world: World, numbers: Numbers, node: int, now: float) -> None:
    """Go on; what should have happened meanwhile happens now."""
    facts = node_facts_of(world)
    if facts[node, STATUS] == ASLEEP:
        facts[node, STATUS] = UP
        node_times_of(world)[node, SLEPT_FOR] += now - node_times_of(world)[node, ASLEEP_SINCE]
        resume_samples(world, node, now)
        schedule(world, now, TICK, node, facts[node, LIFE])
        if facts[node, COMMITTING]:
            schedule(world, now, COMMIT, node, facts[node, LIFE])
        check_links_to(world, node, now + RECONNECT * uniform(random_of(world)))
    schedule(world, now + exponential(random_of(world), numbers.awake), SLEEP, node, 0)


@part_of_loop
def crash(world: World, numbers: Numbers, node: int, now: float) -> None:
    """Forget what is not durable; a commit that is under way still ends."""
    facts, edges = node_facts_of(world), edge_facts_of(world)
    schedule(world, now + exponential(random_of(world), 1.0 / numbers.crashes), CRASH, node, 0)
    if facts[node, STATUS] != UP:
        return
    tally_of(world)[CRASHES] += 1
    pause_samples(world, node, now)
    facts[node, STATUS] = DOWN
    facts[node, LIFE] += 1
    for at in range(numbers.parts * node, numbers.parts * (node + 1)):
        held_of(world)[at] = saved_of(world)[at]
        owed_of(world)[at] = saved_owed_of(world)[at]
    if numbers.batched:
        batch_of(world)[node] = saved_batch_of(world)[node]
    if numbers.auto:
        squares_of(world)[node] = saved_squares_of(world)[node]
    if not facts[node, LIAR]:
        facts[node, LEARNED] = facts[node, SAVED_LEARNED]
    facts[node, UNFINISHED] = facts[node, SAVED_UNFINISHED]
    if facts[node, MINTED] and not facts[node, SAVED_MINTED]:
        facts[node, MINTED] = 0
        sums_of(world)[MINTED_SUM] -= 1.0
    for edge in range(out_start_of(world)[node], out_start_of(world)[node + 1]):
        edges[edge, PHASE] = edges[edge, OWN_PHASE]
        edges[edge, SESSION] = max(edges[edge, SESSION], edges[edge, OWN_SESSION])
        _forget_after(world, edge, edges[edge, OWN_SEQ])
    for place in range(in_start_of(world)[node], in_start_of(world)[node + 1]):
        edge = in_edges_of(world)[place]
        if edges[edge, HEARD] != edges[edge, SAVED_HEARD]:
            pool_facts_of(world)[edges[edge, SAVED_HEARD], USES] += 1
            let_go(world, edges[edge, HEARD])
            edges[edge, HEARD] = edges[edge, SAVED_HEARD]
        edges[edge, ASKED] = edges[edge, ANSWER] = NO_QUESTION
    facts[node, QUESTIONS] = facts[node, ANSWERS] = NONE
    facts[node, DIRTY] = facts[node, CHANGED] = facts[node, NEWS] = facts[node, COMMITTING] = 0
    check_links_to(world, node, now)
    schedule(world, now + numbers.down, RESTART, node, 0)


@part_of_loop
def _forget_after(world: World, edge: int, number: int) -> None:
    """Forget the totals of an edge after one; nobody was told of them."""
    kept = total_numbered(world, edge, number)
    after = pool_facts_of(world)[kept, FOLLOWING]
    while after >= 0:
        following = pool_facts_of(world)[after, FOLLOWING]
        let_go(world, after)
        after = following
    pool_facts_of(world)[kept, FOLLOWING] = NONE
    edge_facts_of(world)[edge, NEWEST] = kept
    edge_facts_of(world)[edge, SEQ] = number


@part_of_loop
def restart(world: World, numbers: Numbers, node: int, now: float) -> None:
    """Begin another life."""
    start(world, numbers, node, now)
    resume_samples(world, node, now)


@part_of_loop
def join(world: World, numbers: Numbers, node: int, now: float) -> None:
    """Come: those who are there trust the newcomer and are trusted from now on."""
    tally_of(world)[JOINED] += 1
    node_facts_of(world)[node, STATUS] = UP
    node_times_of(world)[node, DEADLINE] = now + JOIN_SECONDS
    for place in range(in_start_of(world)[node], in_start_of(world)[node + 1]):
        edge = in_edges_of(world)[place]
        sender = edge_facts_of(world)[edge, SENDER]
        if node_facts_of(world)[sender, STATUS] not in (ABSENT, GONE):
            _use(world, edge)
            share_out(world, sender)
            if node_facts_of(world)[sender, STATUS] == UP:
                node_facts_of(world)[sender, DIRTY] = node_facts_of(world)[sender, CHANGED] = 1
                begin(world, numbers, sender, now)
    for edge in range(out_start_of(world)[node], out_start_of(world)[node + 1]):
        if node_facts_of(world)[edge_facts_of(world)[edge, RECEIVER], STATUS] not in (ABSENT, GONE):
            _use(world, edge)
    share_out(world, node)
    start(world, numbers, node, now)
    resume_samples(world, node, now)


@part_of_loop
def _use(world: World, edge: int) -> None:
    """Trust a receiver from now on."""
    if edge_facts_of(world)[edge, PHASE] == UNUSED:
        edge_facts_of(world)[edge, PHASE] = RESYNC
        edge_facts_of(world)[edge, SESSION] = 1
        if node_facts_of(world)[edge_facts_of(world)[edge, SENDER], STATUS] != UP:
            edge_facts_of(world)[edge, OWN_PHASE] = RESYNC
            edge_facts_of(world)[edge, OWN_SESSION] = 1


@part_of_loop
def share_out(world: World, node: int) -> None:
    """What each receiver gets of what a node holds: those who are there share it."""
    first, last = out_start_of(world)[node], out_start_of(world)[node + 1]
    total = 0.0
    for edge in range(first, last):
        if edge_facts_of(world)[edge, PHASE] != UNUSED:
            total += edge_times_of(world)[edge, WEIGHT]
    for edge in range(first, last):
        share = 0.0
        if edge_facts_of(world)[edge, PHASE] != UNUSED:
            share = node_times_of(world)[node, HANDED] * edge_times_of(world)[edge, WEIGHT] / total
        edge_times_of(world)[edge, SHARE] = share


@part_of_loop
def leave(world: World, node: int, now: float) -> None:
    """Take in nothing more, and hand over everything; once awake."""
    facts = node_facts_of(world)
    if facts[node, STATUS] != UP or not facts[node, MINTED]:
        schedule(world, now + 1.0, LEAVE, node, 0)
        return
    facts[node, LEAVING] = facts[node, DIRTY] = 1
    node_times_of(world)[node, NEXT_SAMPLE] = math.inf
    if facts[node, UNFINISHED]:
        facts[node, UNFINISHED] = 0
        batch_of(world)[node] = 0.0
    for place in range(in_start_of(world)[node], in_start_of(world)[node + 1]):
        edge_facts_of(world)[in_edges_of(world)[place], SHUT] = 1


@part_of_loop
def linger(world: World, numbers: Numbers, node: int, local: float) -> bool:
    """Whether a node that leaves has handed over all, and has been answering for a while since."""
    facts, own = edge_facts_of(world), node_times_of(world)[node]
    drained = held_of(world)[numbers.parts * node, numbers.dim] <= 0.0
    for edge in range(out_start_of(world)[node], out_start_of(world)[node + 1]):
        drained &= facts[edge, SEQ] == facts[edge, ACKED] or facts[edge, PHASE] >= DEAD
    if not drained:
        own[DRAINED_AT] = -1.0
    elif own[DRAINED_AT] < 0.0:
        own[DRAINED_AT] = local
    elif local - own[DRAINED_AT] >= LINGER_SECONDS:
        tally_of(world)[LEFT_FOR_GOOD] += 1
        node_facts_of(world)[node, STATUS] = GONE
        node_facts_of(world)[node, LIFE] += 1
        check_links_to(world, node, local + own[SLEPT_FOR])
        return True
    return False
