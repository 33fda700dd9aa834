"""All nodes, edges and messages of an asynchronous network as arrays, by named columns.

What a node holds, hands over and has heard is a row: numerator and mass, padded, and where parcels
travel a second row, parcel and count. Totals that were handed over lie in a pool: the sender's list
of what is not acknowledged, the messages under way and the receiver's memory refer to the same one.

Compiled functions get one record with the addresses of all arrays: with forty arrays as arguments
of every function, Numba would take minutes to compile them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.numpy_support import carray

UP, ASLEEP, DOWN, ABSENT, GONE = range(5)
"""`STATUS` of a node: there, asleep, crashed, not there yet, no more there."""
RESYNC, OPEN, DEAD, ENDED, UNUSED = range(5)
"""`PHASE` of an edge at its sender: asks what was heard, hands over, has given its receiver up and
asks, is over; one of both has not come yet."""
(
    SAMPLE,
    TICK,
    COMMIT,
    SLEEP,
    WAKE,
    CRASH,
    RESTART,
    JOIN,
    LEAVE,
    PUSH,
    HELLO,
    ACK,
    STATE,
    CLOSED,
    LINK,
) = range(15)
"""Kinds of events: timers of a node and what befalls it; messages over an edge, to its receiver and
back to its sender; a connection that came up or broke, at the sender."""

(SPEED, NEXT_SAMPLE, LAST_PUSH, FREE_AT, RETURNING, FIRST_UNITS, CROWDED_UNTIL, DEADLINE, FAREWELL,
 HEARTBEAT_AT, ASLEEP_SINCE, SLEPT_FOR, DRAINED_AT, HANDED, LAST_STEP,
 BETWEEN) = range(16)  # fmt: skip
"""Columns of `node_times`: numbers of a node, most of them moments by its own clock, which stands
still while it sleeps. `HANDED` is what it hands to all its receivers together, `BETWEEN` the time
between its last two steps."""
(STATUS, LIFE, LEARNED, UNFINISHED, DUE, STEPPED, DIRTY, COMMITTING, QUESTIONS, ANSWERS, CHANGED,
 NEWS, MINTED, STARTED, LEAVING, LIAR, DRAWN, ARRIVED, WAITS, SAVED_LEARNED, SAVED_UNFINISHED,
 SAVED_MINTED, TAUGHT) = range(23)  # fmt: skip
"""Columns of `node_facts`. `ARRIVED` samples are due, one of which is learned per commit; `TAUGHT`
is whether there was ever one."""
(WEIGHT, SHARE, SAID_AT, SAID_WAIT, LAG_SINCE, TRIP, LINK_AT, BACK_AT, LEFT, BROUGHT, ACCOUNT_AT,
 OFFER, TURN_UNTIL) = range(13)  # fmt: skip
"""Columns of `edge_times`: of the sender up to `LINK_AT`, of the receiver from `BACK_AT` on."""
(SENDER, RECEIVER, REVERSE, PHASE, SESSION, SEQ, ACKED, NEWEST, OLDEST, SAID_PHASE, SAID_SESSION,
 SAID_SEQ, OWN_PHASE, OWN_SESSION, OWN_SEQ, OWN_ACKED, LAG_ACKED, HEARD, HEARD_SESSION,
 SAVED_HEARD, ASKED, ANSWER, ANSWER_SEQ, NEXT_QUESTION, NEXT_ANSWER, SHUT, LINKED,
 SEEN) = range(28)  # fmt: skip
"""Columns of `edge_facts`; `OWN_*` are those of the last state that was made durable."""
NUMBER, FOLLOWING, USES, OF_SESSION = range(4)
"""Columns of `pool_facts`: a total's number, the next one of its edge or of the free list, by how
many it is referred to, and in which session it was made."""
(EVENTS, SAMPLES, PUSHES, ACKNOWLEDGEMENTS, MESSAGES, LOST, BYTES, REPEATS, COMMITS, PRESUMED_DEAD,
 CLIPPED, WAITED, CRASHES, SLEEPS, JOINED, LEFT_FOR_GOOD, CORRECT, LOSSES, TRIPS, BAD_NODE,
 FREE_TOTAL, NUM_FREE_TOTALS) = range(22)  # fmt: skip
"""Columns of `tally`."""
LOSS_SUM, TRIP_SUM, MINTED_SUM = range(3)
"""Columns of `sums`."""

NONE = -1
"""Stands for no edge and no total."""


class World(NamedTuple):
    """The arrays; rows of `held`, `owed`, `saved`, `saved_owed` and `pool` have one or two parts.

    Attributes:
        far: Events in buckets, `[slot, column]`: see `calendar_queue`.
        far_numbers: The same memory as integers.
        near: The heap of the events of the bucket that the wheel is at.
        near_numbers: The same memory as integers.
        heads: The first event of every bucket plus 1; 0 if it is empty.
        counts: Of the queue.
        node_times: `[node, column]`.
        node_facts: `[node, column]`.
        edge_times: `[edge, column]`, edges by sender.
        edge_facts: `[edge, column]`.
        out_start: The edges of a sender are `out_start[node]` to `out_start[node + 1]`.
        in_start: As `out_start`, into `in_edges`.
        in_edges: Edges by receiver.
        held: What nodes hold.
        owed: What they gave away twice and have to pay back from what comes in.
        pushed: The model at the last push, `[node, dim]`, padded.
        saved: What they held when they last began to make it durable; empty without crashes.
        saved_owed: Likewise.
        batch: Unfinished batches, `[node, dim]`, padded.
        squares: For rates that nodes choose, `[node]`.
        saved_batch: As `saved`.
        saved_squares: As `saved`.
        past: The last draws of noise, `[node * band + which, dim]`, padded.
        pool: Totals.
        pool_facts: `[total, column]`.
        born: When a total was handed over, by its sender's clock; below 0 if nothing new was.
        lies: What liars push, by the number in `LIAR` less 1.
        labels: Of the stream, as the model's targets.
        num_samples: How many a node has.
        rates: The learning rate of a node's k-th sample.
        weights: Of the last draws of noise.
        quantiles: Of delays.
        sizes: Bytes of a message by kind of event.
        random: State of the generator.
        tally: Counts.
        sums: Sums.
        model: Room for a model.
        gradient: Room for a gradient.
        start: The first model.
        pace: Buckets a second.
        num_buckets: A power of two.
        num_quantiles: How many there are.
        band: How many draws make noise.
        width: Columns of rows.
        parts: Rows of a node or a total.
    """

    far: Any
    far_numbers: Any
    near: Any
    near_numbers: Any
    heads: Any
    counts: Any
    node_times: Any
    node_facts: Any
    edge_times: Any
    edge_facts: Any
    out_start: Any
    in_start: Any
    in_edges: Any
    held: Any
    owed: Any
    pushed: Any
    saved: Any
    saved_owed: Any
    batch: Any
    squares: Any
    saved_batch: Any
    saved_squares: Any
    past: Any
    pool: Any
    pool_facts: Any
    born: Any
    lies: Any
    labels: Any
    num_samples: Any
    rates: Any
    weights: Any
    quantiles: Any
    sizes: Any
    random: Any
    tally: Any
    sums: Any
    model: Any
    gradient: Any
    start: Any
    pace: float
    num_buckets: int
    num_quantiles: int
    band: int
    width: int
    parts: int


class Samples(NamedTuple):
    """What nodes learn from: `features[row, feature]`, and `rows[k, node]`, a node's k-th row."""

    features: Any
    rows: Any


class Numbers(NamedTuple):
    """What stays the same during a run: of the problem, the method and the peers."""

    dim: int
    parts: int
    num_features: int
    kind: int
    intercept: bool
    l2: float
    cap: float
    stable: float
    bend: float
    batched: bool
    batch_samples: int
    batch_clip: float
    noise: float
    relayed: bool
    amount: float
    by_count: bool
    auto: bool
    reach: float
    ceiling: float
    mixes: int
    exchanges: bool
    copied: bool
    poisson: bool
    ordered: bool
    loss: float
    bandwidth: float
    awake: float
    asleep: float
    crashes: float
    down: float
    window: int
    nearness: float
    commit: float
    patience: float
    first_retry: float
    mass_cap: float
    mass_limit: float


# How compiled functions get at them.


def seen(values: World | Numbers) -> Any:
    """What compiled functions get: a record of numbers, of an array its address."""
    kinds = [
        (name, np.float64 if isinstance(value, float) else np.int64)
        for name, value in values._asdict().items()
    ]
    numbers = (it.ctypes.data if isinstance(it, np.ndarray) else it for it in values)
    return np.rec.array([tuple(numbers)], dtype=kinds)[0]


Function = TypeVar("Function", bound=Callable[..., Any])


def part_of_loop(function: Function) -> Function:
    """Compile a function that only compiled functions call: without what Python would need."""
    options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Any = njit(error_model="numpy", **options)(function)
    made: Function = compiled
    return made


@intrinsic
def _pointer(_context: Any, address: Any) -> Any:
    """An address as a pointer."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), codegen


_MANY = 1 << 40
"""Stands for how long an array is, which no compiled function asks for."""


def _array(name: str, kind: Any, columns: int | str = 0) -> Callable[[Any], Any]:
    """A function of a world's record that is one of its arrays."""
    if columns == 0:

        def view(world: Any) -> Any:
            return carray(_pointer(world[name]), (_MANY,), kind)

    elif columns == "width":

        def view(world: Any) -> Any:
            return carray(_pointer(world[name]), (_MANY, world.width), kind)

    else:

        def view(world: Any) -> Any:
            return carray(_pointer(world[name]), (_MANY, columns), kind)

    return part_of_loop(view)


far_of = _array("far", np.float64, 4)
far_numbers_of = _array("far_numbers", np.int64, 4)
near_of = _array("near", np.float64, 4)
near_numbers_of = _array("near_numbers", np.int64, 4)
heads_of = _array("heads", np.int64)
counts_of = _array("counts", np.int64)
node_times_of = _array("node_times", np.float64, BETWEEN + 1)
node_facts_of = _array("node_facts", np.int32, TAUGHT + 1)
edge_times_of = _array("edge_times", np.float64, TURN_UNTIL + 1)
edge_facts_of = _array("edge_facts", np.int32, SEEN + 1)
out_start_of = _array("out_start", np.int64)
in_start_of = _array("in_start", np.int64)
in_edges_of = _array("in_edges", np.int32)
held_of = _array("held", np.float64, "width")
owed_of = _array("owed", np.float64, "width")
pushed_of = _array("pushed", np.float64, "width")
saved_of = _array("saved", np.float64, "width")
saved_owed_of = _array("saved_owed", np.float64, "width")
batch_of = _array("batch", np.float64, "width")
squares_of = _array("squares", np.float64)
saved_batch_of = _array("saved_batch", np.float64, "width")
saved_squares_of = _array("saved_squares", np.float64)
past_of = _array("past", np.float64, "width")
pool_of = _array("pool", np.float64, "width")
pool_facts_of = _array("pool_facts", np.int32, 4)
born_of = _array("born", np.float64)
lies_of = _array("lies", np.float64, "width")
labels_of = _array("labels", np.float64)
num_samples_of = _array("num_samples", np.int64)
rates_of = _array("rates", np.float64)
weights_of = _array("weights", np.float64)
quantiles_of = _array("quantiles", np.float64)
sizes_of = _array("sizes", np.int64)
random_of = _array("random", np.uint64)
tally_of = _array("tally", np.int64)
sums_of = _array("sums", np.float64)
model_of = _array("model", np.float64)
gradient_of = _array("gradient", np.float64)
start_of = _array("start", np.float64)
