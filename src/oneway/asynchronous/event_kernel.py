"""The event loop of an asynchronous network, compiled: one event after the other, no Python.

Every event is of one node: something happens to it, then it pushes if that is due, begins a commit
if there is something to make durable, and says what has become durable.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit

from oneway.asynchronous.calendar_queue import (
    KIND_BITS,
    PAYLOAD,
    TIME,
    WHAT,
    drop_first,
    has_room,
    is_next_until,
    schedule,
)
from oneway.asynchronous.event_books import (
    acknowledge,
    end,
    reopen,
)
from oneway.asynchronous.event_handing import (
    push_if_due,
    stepped,
)
from oneway.asynchronous.event_intake import absorb
from oneway.asynchronous.event_learning import learn
from oneway.asynchronous.event_life import (
    PATIENCE_OF_LINKS,
    crash,
    gap,
    join,
    leave,
    linger,
    ready,
    restart,
    sleep,
    wake,
)
from oneway.asynchronous.event_pool import let_go
from oneway.asynchronous.event_words import (
    A_HELLO,
    A_PUSH,
    ask,
    begin,
    give_up_the_silent,
    look_at_links,
    reached,
    say_again,
    set_right,
    speak,
)
from oneway.asynchronous.event_world import (
    ABSENT,
    ACK,
    ARRIVED,
    ASLEEP,
    ASLEEP_SINCE,
    BAD_NODE,
    CHANGED,
    COMMIT,
    COMMITS,
    COMMITTING,
    CRASH,
    DEAD,
    DIRTY,
    DUE,
    ENDED,
    EVENTS,
    HEARD,
    HEARD_SESSION,
    HELLO,
    JOIN,
    LEARNED,
    LEAVING,
    LIAR,
    LIFE,
    LINK,
    LINKED,
    LOSS_SUM,
    LOST,
    NEXT_SAMPLE,
    NUM_FREE_TOTALS,
    NUMBER,
    OF_SESSION,
    PHASE,
    PUSH,
    RECEIVER,
    RESTART,
    RESYNC,
    REVERSE,
    SAMPLE,
    SENDER,
    SESSION,
    SHUT,
    SLEEP,
    SLEPT_FOR,
    STARTED,
    STATE,
    STATUS,
    TAUGHT,
    TICK,
    UP,
    WAITS,
    WAKE,
    Numbers,
    Samples,
    World,
    edge_facts_of,
    near_numbers_of,
    near_of,
    node_facts_of,
    node_times_of,
    num_samples_of,
    part_of_loop,
    pool_facts_of,
    sums_of,
    tally_of,
)
from oneway.peer import inflow, push_pace, runtime, send_schedule
from oneway.peer.runtime import TICK_SECONDS
from oneway.protocol import incoming, transitions
from oneway.simulator import kernels

MORE, DONE, NO_ROOM, DIVERGED = range(4)
"""Why a stretch of events ended: enough for now, the time is over, arrays are too small, a loss or
an estimate is not finite."""


def _run_events(
    world: World, numbers: Numbers, samples: Samples, until: float, most: int, margin: int
) -> int:
    """Carry out events up to a time, at most so many; `margin` is what one may add to an array."""
    tally = tally_of(world)
    for _ in range(most):
        if not is_next_until(world, until):
            return DONE
        if not has_room(world, margin) or tally[NUM_FREE_TOTALS] < margin:
            return NO_ROOM
        now = near_of(world)[0, TIME]
        what, payload = near_numbers_of(world)[0, WHAT], near_numbers_of(world)[0, PAYLOAD]
        drop_first(world)
        tally[EVENTS] += 1
        kind, target = what & ((1 << KIND_BITS) - 1), what >> KIND_BITS
        if kind >= PUSH:
            _arrive(world, numbers, kind, target, payload, now)
        elif kind > COMMIT:
            _befall(world, numbers, kind, target, now)
        elif payload == node_facts_of(world)[target, LIFE]:
            _timer(world, numbers, samples, kind, target, now)
            if not sums_of(world)[LOSS_SUM] < math.inf:
                tally[BAD_NODE] = target
                return DIVERGED
    return MORE


@part_of_loop
def _timer(
    world: World, numbers: Numbers, samples: Samples, kind: int, node: int, now: float
) -> None:
    """A sample is due, a commit has ended, or a tick."""
    facts = node_facts_of(world)
    local = now - node_times_of(world)[node, SLEPT_FOR]
    pushes = kind == TICK
    if kind == COMMIT:
        tally_of(world)[COMMITS] += 1
        facts[node, COMMITTING] = facts[node, WAITS] = 0
        speak(world, numbers, node, now)
    elif kind == SAMPLE:
        facts[node, ARRIVED] += 1
        if facts[node, ARRIVED] < num_samples_of(world)[node]:
            node_times_of(world)[node, NEXT_SAMPLE] = now + gap(world, numbers, node)
            moment = node_times_of(world)[node, NEXT_SAMPLE]
            schedule(world, moment, SAMPLE, node, facts[node, LIFE])
        else:
            node_times_of(world)[node, NEXT_SAMPLE] = math.inf
    else:
        look_at_links(world, numbers, node, local)
        give_up_the_silent(world, numbers, node, local)
        if not facts[node, STARTED]:
            ready(world, numbers, node, now)
    while (
        facts[node, LEARNED] < facts[node, ARRIVED] and samples.rows[facts[node, LEARNED], node] < 0
    ):
        facts[node, LEARNED] += 1
    if (
        facts[node, LEARNED] < facts[node, ARRIVED]
        and facts[node, STARTED]
        and not (facts[node, WAITS] or facts[node, LEAVING])
    ):
        facts[node, WAITS] = facts[node, DIRTY] = facts[node, TAUGHT] = 1
        pushes = True
        if facts[node, LIAR]:
            facts[node, LEARNED] += 1
        if facts[node, LIAR] or learn(world, numbers, samples, node):
            stepped(world, numbers, node, local)
    if pushes and numbers.exchanges:
        push_if_due(world, numbers, node, local)
    begin(world, numbers, node, now)
    if kind == TICK:
        say_again(world, numbers, node, now)
        is_gone = facts[node, LEAVING] and linger(world, numbers, node, local)
        if not is_gone and (numbers.exchanges or not facts[node, STARTED]):
            schedule(world, now + TICK_SECONDS, TICK, node, facts[node, LIFE])


@part_of_loop
def _arrive(world: World, numbers: Numbers, kind: int, edge: int, payload: int, now: float) -> None:
    """A message arrives at the receiver of an edge, or an answer at its sender."""
    edges = edge_facts_of(world)
    if kind == LINK:
        _link(world, edge, now)
        return
    to_receiver = kind in (PUSH, HELLO)
    node = edges[edge, RECEIVER] if to_receiver else edges[edge, SENDER]
    if node_facts_of(world)[node, STATUS] != UP:
        tally_of(world)[LOST] += 1
        if kind == PUSH:
            let_go(world, payload)
        return
    local = now - node_times_of(world)[node, SLEPT_FOR]
    own = edges[edge, REVERSE] if to_receiver else edge
    if own >= 0:
        reached(world, numbers, own, local)
    if to_receiver:
        _hear(world, numbers, kind, edge, node, payload, local)
    else:
        _answered(world, numbers, kind, edge, node, payload, local)
        if node_facts_of(world)[node, DUE] > 0:
            push_if_due(world, numbers, node, local)
    begin(world, numbers, node, now)


@part_of_loop
def _hear(
    world: World, numbers: Numbers, kind: int, edge: int, node: int, payload: int, local: float
) -> None:
    """What a sender says about its edge."""
    edges = edge_facts_of(world)
    if kind == HELLO:
        if payload < edges[edge, HEARD_SESSION]:
            return  # of a former life
        if payload > edges[edge, HEARD_SESSION]:
            edges[edge, HEARD_SESSION] = payload
            node_facts_of(world)[node, DIRTY] = 1
        ask(world, edge, A_HELLO)
        return
    session, number = (
        pool_facts_of(world)[payload, OF_SESSION],
        pool_facts_of(world)[payload, NUMBER],
    )
    if session == edges[edge, HEARD_SESSION]:
        is_new = number > pool_facts_of(world)[edges[edge, HEARD], NUMBER]
        if is_new and not edges[edge, SHUT] and absorb(world, numbers, edge, payload, local):
            node_facts_of(world)[node, DIRTY] = 1
        ask(world, edge, A_PUSH)
    let_go(world, payload)


@part_of_loop
def _answered(
    world: World, numbers: Numbers, kind: int, edge: int, node: int, payload: int, local: float
) -> None:
    """What a receiver says about an edge."""
    edges, facts = edge_facts_of(world), node_facts_of(world)
    phase = edges[edge, PHASE]
    if kind == ACK:
        if acknowledge(world, numbers, node, edge, payload, local):
            facts[node, DIRTY] = facts[node, CHANGED] = 1
            if phase == DEAD:
                set_right(world, numbers, node)
    elif kind == STATE:
        if phase in (RESYNC, DEAD) and payload >> 32 == edges[edge, SESSION]:
            reopen(world, numbers, node, edge, payload & 0xFFFFFFFF)
            set_right(world, numbers, node)
    elif phase < ENDED:
        end(world, numbers, node, edge, payload)
        set_right(world, numbers, node)


@part_of_loop
def _link(world: World, edge: int, now: float) -> None:
    """A sender notices whether its receiver is there."""
    edges, facts = edge_facts_of(world), node_facts_of(world)
    sender, receiver = edges[edge, SENDER], edges[edge, RECEIVER]
    status = facts[receiver, STATUS]
    if status != ABSENT and facts[sender, STATUS] in (UP, ASLEEP):
        asleep = now - node_times_of(world)[receiver, ASLEEP_SINCE]
        edges[edge, LINKED] = status == UP or (status == ASLEEP and asleep < PATIENCE_OF_LINKS)


@part_of_loop
def _befall(world: World, numbers: Numbers, kind: int, node: int, now: float) -> None:
    """Something befalls a node."""
    if kind == SLEEP:
        sleep(world, numbers, node, now)
    elif kind == WAKE:
        wake(world, numbers, node, now)
    elif kind == CRASH:
        crash(world, numbers, node, now)
    elif kind == RESTART:
        restart(world, numbers, node, now)
    elif kind == JOIN:
        join(world, numbers, node, now)
    else:
        leave(world, node, now)
        begin(world, numbers, node, now)


def _schedule_all(world: World, times: Any, kinds: Any, targets: Any) -> None:
    """Let all this happen."""
    for place in range(len(times)):
        schedule(world, times[place], kinds[place], targets[place], 0)


_NOT_COMPILED = ("event_setup", "event_queue")
"""Files beside this one that the loop is not made of."""


@cache
def compiled() -> tuple[Callable[..., int], Callable[..., None]]:
    """The event loop, and what fills its queue.

    Kept on disk under names that change with all the files they are made of: Numba looks at this
    one alone.
    """
    here = Path(__file__)
    files = [it for it in sorted(here.parent.glob("event_*.py")) if it.stem not in _NOT_COMPILED]
    files.append(here.with_name("calendar_queue.py"))
    peers = (inflow, push_pace, send_schedule, runtime, incoming, transitions, kernels)
    files += [Path(inspect.getfile(module)) for module in peers]
    name = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
    made = []
    for function in (_run_events, _schedule_all):
        function.__qualname__ = f"{function.__name__}_{name}"
        made.append(njit(function, cache=True, error_model="numpy", nogil=True))
    return made[0], made[1]
