"""Links of the event loop: delay, loss, bandwidth, order of messages; who notices who is there."""

from __future__ import annotations

import math

from oneway.asynchronous.calendar_queue import schedule
from oneway.asynchronous.event_pool import (
    delay,
    uniform,
)
from oneway.asynchronous.event_world import (
    BACK_AT,
    BYTES,
    FREE_AT,
    HELLO,
    LINK,
    LINK_AT,
    LOST,
    MESSAGES,
    PUSH,
    RECEIVER,
    SENDER,
    Numbers,
    World,
    edge_facts_of,
    edge_times_of,
    in_edges_of,
    in_start_of,
    node_times_of,
    part_of_loop,
    random_of,
    sizes_of,
    tally_of,
)

HANDSHAKE = 4
"""Messages that go back and forth before a connection is up."""


@part_of_loop
def send(world: World, numbers: Numbers, edge: int, kind: int, payload: int, now: float) -> bool:
    """Put a message on its way, over an edge or back; False if it never arrives."""
    back = kind != PUSH and kind != HELLO
    node = edge_facts_of(world)[edge, RECEIVER if back else SENDER]
    size = sizes_of(world)[kind]
    tally_of(world)[MESSAGES] += 1
    tally_of(world)[BYTES] += size
    leaves = now
    if numbers.bandwidth < math.inf:
        leaves = max(now, node_times_of(world)[node, FREE_AT]) + size / numbers.bandwidth
        node_times_of(world)[node, FREE_AT] = leaves
    if numbers.loss > 0.0 and uniform(random_of(world)) < numbers.loss:
        tally_of(world)[LOST] += 1
        return False
    arrives = leaves + delay(world)
    if numbers.ordered:
        column = BACK_AT if back else LINK_AT
        arrives = max(arrives, edge_times_of(world)[edge, column])
        edge_times_of(world)[edge, column] = arrives
    schedule(world, arrives, kind, edge, payload)
    return True


@part_of_loop
def check_link_later(world: World, edge: int, moment: float) -> None:
    """Let a sender notice whether its receiver is there, a handshake after a moment."""
    for _ in range(HANDSHAKE):
        moment += delay(world)
    schedule(world, moment, LINK, edge, 0)


@part_of_loop
def check_links_to(world: World, node: int, moment: float) -> None:
    """The same for all who send to a node."""
    for place in range(in_start_of(world)[node], in_start_of(world)[node + 1]):
        check_link_later(world, in_edges_of(world)[place], moment)
