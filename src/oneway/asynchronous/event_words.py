"""Making durable, then speaking: commits one at a time, the words of `peer.send_schedule`, links.

Nothing that is not durable is said. Retries with backoff, heartbeats, what is overdue and presumed
death go by a peer's own clock.
"""

from __future__ import annotations

import numpy as np

from oneway.asynchronous.calendar_queue import schedule
from oneway.asynchronous.event_books import (
    end,
    give_up,
)
from oneway.asynchronous.event_handing import first_wait
from oneway.asynchronous.event_links import send
from oneway.asynchronous.event_pool import (
    let_go,
    total_numbered,
)
from oneway.asynchronous.event_world import (
    ACK,
    ACKED,
    ACKNOWLEDGEMENTS,
    ANSWER,
    ANSWER_SEQ,
    ANSWERS,
    ASKED,
    CHANGED,
    CLOSED,
    COMMIT,
    COMMITTING,
    DEAD,
    DIRTY,
    ENDED,
    FAREWELL,
    GONE,
    HEARD,
    HEARD_SESSION,
    HEARTBEAT_AT,
    HELLO,
    LAG_ACKED,
    LAG_SINCE,
    LEARNED,
    LEAVING,
    LIFE,
    LINKED,
    MINTED,
    NEWS,
    NEXT_ANSWER,
    NEXT_QUESTION,
    NONE,
    NUMBER,
    OPEN,
    OWN_ACKED,
    OWN_PHASE,
    OWN_SEQ,
    OWN_SESSION,
    PHASE,
    PRESUMED_DEAD,
    PUSH,
    PUSHES,
    QUESTIONS,
    RECEIVER,
    REPEATS,
    SAID_AT,
    SAID_PHASE,
    SAID_SEQ,
    SAID_SESSION,
    SAID_WAIT,
    SAVED_HEARD,
    SAVED_LEARNED,
    SAVED_MINTED,
    SAVED_UNFINISHED,
    SEEN,
    SEQ,
    SESSION,
    SHUT,
    SLEPT_FOR,
    STATE,
    STATUS,
    TRIP,
    UNFINISHED,
    USES,
    Numbers,
    World,
    batch_of,
    edge_facts_of,
    edge_times_of,
    held_of,
    in_edges_of,
    in_start_of,
    node_facts_of,
    node_times_of,
    out_start_of,
    owed_of,
    part_of_loop,
    pool_facts_of,
    saved_batch_of,
    saved_of,
    saved_owed_of,
    saved_squares_of,
    squares_of,
    tally_of,
)
from oneway.peer.send_schedule import (
    HEARTBEAT,
    LONGEST_RETRY,
)

NO_QUESTION, A_PUSH, A_HELLO = range(3)
"""`ASKED`: what a receiver has to answer."""


# Commits.


@part_of_loop
def ask(world: World, edge: int, what: int) -> None:
    """A receiver owes an answer, once what came is durable; to the last question of an edge."""
    facts, node = edge_facts_of(world), edge_facts_of(world)[edge, RECEIVER]
    if facts[edge, ASKED] == NO_QUESTION:
        facts[edge, NEXT_QUESTION] = node_facts_of(world)[node, QUESTIONS]
        node_facts_of(world)[node, QUESTIONS] = edge
    facts[edge, ASKED] = what


@part_of_loop
def begin(world: World, numbers: Numbers, node: int, now: float) -> None:
    """Begin to make durable what is not, unless that is under way; answer what needs no commit."""
    facts = node_facts_of(world)
    if facts[node, COMMITTING] or not (facts[node, DIRTY] or facts[node, QUESTIONS] >= 0):
        return
    dirty = facts[node, DIRTY]
    save(world, numbers, node)
    if dirty:
        facts[node, COMMITTING] = 1
        schedule(world, now + numbers.commit, COMMIT, node, facts[node, LIFE])
    else:
        speak(world, numbers, node, now)


@part_of_loop
def save(world: World, numbers: Numbers, node: int) -> None:
    """Take down what a commit is to make durable, and what may be said after it."""
    facts, edges = node_facts_of(world), edge_facts_of(world)
    edge = facts[node, QUESTIONS]
    facts[node, QUESTIONS] = NONE
    while edge >= 0:
        after = edges[edge, NEXT_QUESTION]
        heard = edges[edge, HEARD]
        if edges[edge, ANSWER] == NO_QUESTION:
            edges[edge, NEXT_ANSWER] = facts[node, ANSWERS]
            facts[node, ANSWERS] = edge
        edges[edge, ANSWER] = edges[edge, ASKED]
        edges[edge, ASKED] = NO_QUESTION
        edges[edge, ANSWER_SEQ] = pool_facts_of(world)[heard, NUMBER]
        if numbers.crashes > 0.0 and edges[edge, SAVED_HEARD] != heard:
            pool_facts_of(world)[heard, USES] += 1
            let_go(world, edges[edge, SAVED_HEARD])
            edges[edge, SAVED_HEARD] = heard
        edge = after
    if facts[node, CHANGED]:
        facts[node, CHANGED], facts[node, NEWS] = 0, 1
        for edge in range(out_start_of(world)[node], out_start_of(world)[node + 1]):
            edges[edge, OWN_PHASE] = edges[edge, PHASE]
            edges[edge, OWN_SESSION] = edges[edge, SESSION]
            edges[edge, OWN_SEQ] = edges[edge, SEQ]
            edges[edge, OWN_ACKED] = edges[edge, ACKED]
    if numbers.crashes > 0.0 and facts[node, DIRTY]:
        for at in range(numbers.parts * node, numbers.parts * (node + 1)):
            saved_of(world)[at] = held_of(world)[at]
            saved_owed_of(world)[at] = owed_of(world)[at]
        if numbers.batched:
            saved_batch_of(world)[node] = batch_of(world)[node]
        if numbers.auto:
            saved_squares_of(world)[node] = squares_of(world)[node]
        facts[node, SAVED_LEARNED] = facts[node, LEARNED]
        facts[node, SAVED_UNFINISHED] = facts[node, UNFINISHED]
        facts[node, SAVED_MINTED] = facts[node, MINTED]
    facts[node, DIRTY] = 0


@part_of_loop
def speak(world: World, numbers: Numbers, node: int, now: float) -> None:
    """Say what a commit gives to say: edges that changed, and answers."""
    facts, edges, times = node_facts_of(world), edge_facts_of(world), edge_times_of(world)
    local = now - node_times_of(world)[node, SLEPT_FOR]
    if facts[node, NEWS]:
        facts[node, NEWS] = 0
        for edge in range(out_start_of(world)[node], out_start_of(world)[node + 1]):
            phase = edges[edge, OWN_PHASE]
            if phase >= ENDED:
                times[edge, LAG_SINCE] = -1.0
                continue
            if (
                edges[edge, SAID_SEQ] != edges[edge, OWN_SEQ]
                or edges[edge, SAID_PHASE] != phase
                or edges[edge, SAID_SESSION] != edges[edge, OWN_SESSION]
            ):
                is_new = phase == OPEN and edges[edge, OWN_SEQ] > edges[edge, SAID_SEQ]
                tally_of(world)[PUSHES if is_new else REPEATS] += phase == OPEN
                say(world, numbers, edge, now, local, first_wait(world, numbers, edge))
            if phase == DEAD or edges[edge, OWN_SEQ] == edges[edge, OWN_ACKED]:
                if phase != DEAD:
                    _note_trip(world, edge, local)
                times[edge, LAG_SINCE] = -1.0
            elif times[edge, LAG_SINCE] >= 0.0 and edges[edge, LAG_ACKED] != edges[edge, OWN_ACKED]:
                _note_trip(world, edge, local)
                times[edge, LAG_SINCE] = local
                edges[edge, LAG_ACKED] = edges[edge, OWN_ACKED]
    edge = facts[node, ANSWERS]
    facts[node, ANSWERS] = NONE
    while edge >= 0:
        what = edges[edge, ANSWER]
        edges[edge, ANSWER] = NO_QUESTION
        heard = edges[edge, ANSWER_SEQ]
        if edges[edge, SHUT]:
            send(world, numbers, edge, CLOSED, heard, now)
        elif what == A_HELLO:
            session = np.int64(edges[edge, HEARD_SESSION])
            send(world, numbers, edge, STATE, (session << 32) | heard, now)
        else:
            tally_of(world)[ACKNOWLEDGEMENTS] += 1
            send(world, numbers, edge, ACK, heard, now)
        edge = edges[edge, NEXT_ANSWER]


@part_of_loop
def say(world: World, numbers: Numbers, edge: int, now: float, local: float, wait: float) -> None:
    """What the sender of an edge has to say: its last durable total, or what was heard."""
    edges, times = edge_facts_of(world), edge_times_of(world)
    phase = edges[edge, OWN_PHASE]
    edges[edge, SAID_PHASE] = phase
    edges[edge, SAID_SESSION] = edges[edge, OWN_SESSION]
    edges[edge, SAID_SEQ] = edges[edge, OWN_SEQ]
    times[edge, SAID_AT] = local
    times[edge, SAID_WAIT] = wait
    in_flight = edges[edge, OWN_SEQ] > edges[edge, OWN_ACKED] and phase != DEAD
    if in_flight and times[edge, LAG_SINCE] < 0.0:
        times[edge, LAG_SINCE] = local
        edges[edge, LAG_ACKED] = edges[edge, OWN_ACKED]
    if phase != OPEN:
        send(world, numbers, edge, HELLO, edges[edge, OWN_SESSION], now)
        return
    if edges[edge, PHASE] >= ENDED:
        return  # its receiver has told meanwhile that it takes in nothing more
    total = total_numbered(world, edge, edges[edge, OWN_SEQ])
    if send(world, numbers, edge, PUSH, total, now):
        pool_facts_of(world)[total, USES] += 1


@part_of_loop
def _note_trip(world: World, edge: int, local: float) -> None:
    """Take the time since something began to lag for a round trip."""
    times = edge_times_of(world)
    if times[edge, LAG_SINCE] >= 0.0:
        trip, known = local - times[edge, LAG_SINCE], times[edge, TRIP]
        times[edge, TRIP] = trip if known < 0.0 else known + (trip - known) / 8.0


@part_of_loop
def reached(world: World, numbers: Numbers, edge: int, local: float) -> None:
    """The receiver of an edge is there: what it has not heard is worth saying soon again."""
    times = edge_times_of(world)
    first = first_wait(world, numbers, edge)
    if edge_facts_of(world)[edge, SAID_PHASE] >= 0 and times[edge, SAID_WAIT] > first:
        times[edge, SAID_AT] = local
        times[edge, SAID_WAIT] = first


# What time brings.


@part_of_loop
def look_at_links(world: World, numbers: Numbers, node: int, local: float) -> None:
    """Notice which connections are up, as a tick does."""
    edges = edge_facts_of(world)
    for edge in range(out_start_of(world)[node], out_start_of(world)[node + 1]):
        if edges[edge, LINKED] != edges[edge, SEEN]:
            edges[edge, SEEN] = edges[edge, LINKED]
            if edges[edge, SEEN]:
                reached(world, numbers, edge, local)


@part_of_loop
def give_up_the_silent(world: World, numbers: Numbers, node: int, local: float) -> None:
    """Presume receivers dead that have acknowledged nothing for too long."""
    edges, times = edge_facts_of(world), edge_times_of(world)
    for edge in range(out_start_of(world)[node], out_start_of(world)[node + 1]):
        if (
            times[edge, LAG_SINCE] >= 0.0
            and local - times[edge, LAG_SINCE] > numbers.patience
            and edges[edge, SEQ] > edges[edge, ACKED]
            and edges[edge, PHASE] <= OPEN
        ):
            tally_of(world)[PRESUMED_DEAD] += 1
            times[edge, LAG_SINCE] = -1.0
            receiver = edges[edge, RECEIVER]
            if node_facts_of(world)[receiver, STATUS] == GONE:
                # Others keep receipts of what it had heard.
                heard = pool_facts_of(world)[edges[edge, HEARD], NUMBER]
                end(world, numbers, node, edge, heard)
            else:
                give_up(world, numbers, node, edge)
            set_right(world, numbers, node)


@part_of_loop
def set_right(world: World, numbers: Numbers, node: int) -> None:
    """Books changed by what a receiver did or did not say: durable at once, as a rare event."""
    node_facts_of(world)[node, DIRTY] = node_facts_of(world)[node, CHANGED] = 1
    if numbers.crashes > 0.0:
        save(world, numbers, node)
        node_facts_of(world)[node, DIRTY] = 1


@part_of_loop
def say_again(world: World, numbers: Numbers, node: int, now: float) -> None:
    """Unanswered words, each time later, and the heartbeat."""
    edges, times, facts = edge_facts_of(world), edge_times_of(world), node_facts_of(world)
    local = now - node_times_of(world)[node, SLEPT_FOR]
    for edge in range(out_start_of(world)[node], out_start_of(world)[node + 1]):
        phase = edges[edge, OWN_PHASE]
        if phase >= ENDED:
            continue
        if edges[edge, SAID_PHASE] < 0:
            tally_of(world)[REPEATS] += phase == OPEN
            say(world, numbers, edge, now, local, first_wait(world, numbers, edge))
            continue
        if edges[edge, SAID_SEQ] != edges[edge, OWN_SEQ] or edges[edge, SAID_PHASE] != phase:
            continue  # it is said when the commit that is under way has ended
        at_rest = phase == OPEN and edges[edge, OWN_SEQ] == edges[edge, OWN_ACKED]
        wait = times[edge, SAID_WAIT]
        if local - times[edge, SAID_AT] >= (HEARTBEAT if at_rest else wait):
            tally_of(world)[REPEATS] += phase == OPEN
            say(world, numbers, edge, now, local, max(wait, min(2.0 * wait, LONGEST_RETRY)))
    leaving = facts[node, LEAVING] == 1
    farewell = leaving and local - node_times_of(world)[node, FAREWELL] >= 2.0 * numbers.first_retry
    if farewell:
        node_times_of(world)[node, FAREWELL] = local
    is_due = local - node_times_of(world)[node, HEARTBEAT_AT] >= HEARTBEAT
    if is_due:
        node_times_of(world)[node, HEARTBEAT_AT] = local
    if farewell or is_due:
        for place in range(in_start_of(world)[node], in_start_of(world)[node + 1]):
            edge = in_edges_of(world)[place]
            if edges[edge, HEARD_SESSION] == 0:
                continue
            heard = pool_facts_of(world)[edges[edge, HEARD], NUMBER]
            if leaving:
                send(world, numbers, edge, CLOSED, heard, now)
            elif edges[edge, ASKED] == NO_QUESTION and edges[edge, ANSWER] == NO_QUESTION:
                tally_of(world)[ACKNOWLEDGEMENTS] += 1
                send(world, numbers, edge, ACK, heard, now)
