"""The first moment of an asynchronous network, as the arrays of its event loop; and more room."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oneway.asynchronous import event_world as columns
from oneway.asynchronous.calendar_queue import (
    NUM_FREE,
    NUM_NEAR,
    empty_queue,
    with_more_events,
)
from oneway.asynchronous.conditions import Conditions
from oneway.asynchronous.event_pool import free_totals
from oneway.asynchronous.event_world import Numbers, Samples, World
from oneway.asynchronous.roles import Roles, lies
from oneway.methods import Batches, Isolated, Method, Pull, Relay
from oneway.methods.step_rules import Capped, Curvature, Mass
from oneway.models import Hinge, LinearModel, LogisticRegression, Model, RidgeRegression
from oneway.peer.home.limits import Limits
from oneway.peer.send_schedule import FIRST_RETRY, SLOWEST_LINK
from oneway.privacy.banded_noise import coefficients
from oneway.protocol.layout import Layout
from oneway.protocol.messages import Ack, Closed, Data, Hello, Life, Progress, State
from oneway.simulator.kernels import HINGE, LOGISTIC, RIDGE
from oneway.streams import Stream
from oneway.task.task import MOST_AT_ONCE, MOST_MASS
from oneway.transport.wire import Body, encode

KINDS: dict[type[Model], int] = {
    LogisticRegression: LOGISTIC,
    RidgeRegression: RIDGE,
    Hinge: HINGE,
}
"""The models that there is a loop for."""
FOUNDING_SECONDS, FOUNDING_TRIPS = 3.0, 10.0
"""How long founders have for that, and so many of the longest delays besides: as in `exact`."""
_STAMP = 1_700_000_000 << 30
"""As long as the stamps and counts of real messages."""


def founding(conditions: Conditions) -> float:
    """Seconds before virtual time begins, in which founders get to know each other."""
    return FOUNDING_SECONDS + FOUNDING_TRIPS * float(conditions.delay.quantiles[-1])


def numbers_of(method: Method, model: LinearModel, dim: int, conditions: Conditions) -> Numbers:
    """What stays the same during a run; the method suits the model already."""
    batches = method.batches or (Batches(1) if method.auto else None)
    cap, stable, bend = _step_numbers(method, model, batches)
    relayed = isinstance(method, Relay)
    width = Layout.of(method.payload, dim).width
    limits = Limits(window="auto" if conditions.window is None else conditions.window)
    return Numbers(
        dim=dim,
        parts=2 if relayed else 1,
        num_features=dim - model.intercept,
        kind=KINDS[type(model)],
        intercept=model.intercept,
        l2=float(model.l2),
        cap=cap,
        stable=stable,
        bend=bend,
        batched=batches is not None,
        batch_samples=batches.samples if batches else 1,
        batch_clip=float(batches.clip) if batches else math.inf,
        noise=float(batches.noise) if batches else 0.0,
        relayed=relayed,
        amount=float(method.amount or 0.0) if isinstance(method, Relay) else 0.0,
        by_count=isinstance(method, Relay) and method.deposit == "count",
        auto=method.auto is not None,
        reach=float(method.auto.reach) if method.auto else 0.0,
        ceiling=float(method.auto.most(dim)) if method.auto else 0.0,
        mixes=method.mixes,
        exchanges=not isinstance(method, Isolated),
        copied=isinstance(method, Pull),
        poisson=conditions.poisson,
        ordered=conditions.ordered,
        loss=float(conditions.loss),
        bandwidth=float(conditions.bandwidth),
        awake=float(conditions.awake),
        asleep=float(conditions.asleep),
        crashes=float(conditions.crashes),
        down=float(conditions.down),
        window=limits.window_for(width),
        nearness=float(conditions.clip),
        commit=float(conditions.commit),
        patience=float(conditions.presume_dead_after),
        first_retry=FIRST_RETRY + 8 * width / SLOWEST_LINK,
        mass_cap=MOST_AT_ONCE,
        mass_limit=MOST_MASS,
    )


def _step_numbers(
    method: Method, model: LinearModel, batches: Batches | None
) -> tuple[float, float, float]:
    """The step rule as kernels take it: cap, stable, bend."""
    rule, bend = method.rule, model.largest_curvature
    if isinstance(rule, Curvature):
        if bend is None:
            return 1.0, 0.0, 0.0
        # With batches a curvature limits the gradients, and the step is as without one.
        return (0.0 if batches is None else 1.0), rule.stable, bend
    if isinstance(rule, Capped):
        return float(rule.cap), 0.0, 0.0
    return (math.inf if isinstance(rule, Mass) else 0.0), 0.0, 0.0


def message_sizes(method: Method, dim: int) -> Any:
    """Bytes of messages on the wire, by kind of event."""
    total = np.zeros(Layout.of(method.payload, dim).width + 1, np.int64)
    tag, few = bytes(16), 1000
    life, progress = Life(_STAMP, 0, False, tag), Progress(few, bytes(48))
    messages: dict[int, Body] = {
        columns.PUSH: Data(_STAMP, life, 1, _STAMP, _STAMP, few, total, tag, progress),
        columns.HELLO: Hello(_STAMP, life, 1, _STAMP),
        columns.ACK: Ack(_STAMP, life, few, tag, tag),
        columns.STATE: State(
            _STAMP, life, 1, _STAMP, _STAMP, few, total, tag, progress, ("total", "int8", "int4")
        ),
        columns.CLOSED: Closed(_STAMP, life, few, total, tag, progress),
    }
    sizes = np.zeros(16, np.int64)
    for kind, message in messages.items():
        sizes[kind] = len(encode(message, bytes(16)))
    return sizes


def first_world(
    method: Method,
    model: LinearModel,
    stream: Stream,
    mixing: Any,
    conditions: Conditions,
    numbers: Numbers,
    seed: int,
) -> tuple[World, Samples, tuple[Any, Any, Any]]:
    """The arrays at time 0, and what is to happen then and later: times, kinds, nodes."""
    num_nodes, dim, parts = stream.num_nodes, numbers.dim, numbers.parts
    rng = np.random.default_rng([seed, 0xFA57])
    seconds = conditions.duration(stream.num_rounds)
    roles = Roles.draw(conditions, num_nodes, seconds, seed)
    start = model.init(stream.dim, np.random.default_rng(seed)).astype(np.float64)
    founds = roles.joins <= 0.0
    rows = _read_only(np.ascontiguousarray(stream.rows))
    num_samples = np.full(num_nodes, stream.num_rounds)
    node_times, node_facts = _nodes(roles, conditions, rng)
    width = -(-(dim + 1) // 4) * 4
    held = np.zeros((num_nodes * parts, width))
    held[::parts, :dim][founds] = start
    held[::parts, dim] = founds
    edges = _edges(mixing, num_nodes, node_times, founds)
    edge_times, edge_facts, out_start, in_start, in_edges = edges
    num_edges = len(edge_facts)
    tally = np.zeros(columns.NUM_FREE_TOTALS + 1, np.int64)
    room = 2 * num_edges + 4 * _margin(out_start, in_start) + 64
    pool_facts = np.zeros((room, 4), np.int32)
    free_totals(pool_facts, tally, 0)
    # Every edge begins with a total of nothing, known to both ends; and to the receiver's disk.
    tally[columns.FREE_TOTAL] = num_edges
    tally[columns.NUM_FREE_TOTALS] -= num_edges
    pool_facts[:num_edges] = [0, columns.NONE, 3, 0]
    told = lies(roles, dim, conditions.lie, seed)
    padded_lies = np.zeros((len(told), width))
    padded_lies[:, :dim] = list(told.values()) or np.zeros((0, dim))
    node_facts[list(told), columns.LIAR] = np.arange(1, len(told) + 1)
    crashes = conditions.crashes > 0
    batches = method.batches or Batches(1)
    # Per node and second: samples, ticks, and per receiver pushes, their answers and commits.
    pushes = min(20.0, 10.0 + conditions.rate)
    pace = num_nodes * (20.0 + 2 * conditions.rate) + 4.0 * pushes * num_edges
    longest = 2.0 * conditions.delay.mean + 0.06 + 1.0 / conditions.rate
    waiting = 4 * num_nodes + int(2.0 * pushes * num_edges * min(conditions.delay.mean, 1.0))
    world = World(
        **empty_queue(waiting + 4 * _margin(out_start, in_start) + 1024, pace, longest),
        node_times=node_times,
        node_facts=node_facts,
        edge_times=edge_times,
        edge_facts=edge_facts,
        out_start=out_start,
        in_start=in_start,
        in_edges=in_edges,
        held=held,
        owed=np.zeros_like(held),
        pushed=np.zeros((num_nodes, width)),
        saved=held.copy() if crashes else np.zeros((0, width)),
        saved_owed=np.zeros_like(held) if crashes else np.zeros((0, width)),
        batch=np.zeros((num_nodes if numbers.batched else 0, width)),
        squares=np.zeros(num_nodes if numbers.auto else 0),
        saved_batch=np.zeros((num_nodes if numbers.batched and crashes else 0, width)),
        saved_squares=np.zeros(num_nodes if numbers.auto and crashes else 0),
        past=np.zeros((num_nodes * batches.band if numbers.noise else 0, width)),
        pool=np.zeros((room * parts, width)),
        pool_facts=pool_facts,
        born=np.full(room, -1.0),
        lies=padded_lies,
        labels=np.ascontiguousarray(model.targets(stream.labels), np.float64),
        num_samples=num_samples,
        rates=method.rates(0, stream.num_rounds),
        weights=np.asarray(coefficients(batches.band), np.float64),
        quantiles=np.ascontiguousarray(conditions.delay.quantiles),
        sizes=message_sizes(method, dim),
        random=rng.integers(0, 2**64, 1, np.uint64),
        tally=tally,
        sums=np.array([0.0, 0.0, float(founds.sum())]),
        model=np.zeros(dim),
        gradient=np.zeros(dim),
        start=start,
        num_quantiles=len(conditions.delay.quantiles),
        band=batches.band,
        width=width,
        parts=parts,
    )
    samples = Samples(_read_only(np.ascontiguousarray(stream.features)), rows)
    return world, samples, _first_events(roles, conditions, rng)


def _nodes(roles: Roles, conditions: Conditions, rng: np.random.Generator) -> tuple[Any, Any]:
    num_nodes, founds = len(roles.speeds), roles.joins <= 0.0
    times = np.zeros((num_nodes, columns.BETWEEN + 1))
    facts = np.zeros((num_nodes, columns.TAUGHT + 1), np.int32)
    times[:, columns.SPEED] = conditions.rate * roles.speeds
    draws = rng.random(num_nodes)
    gaps = -np.log1p(-draws) if conditions.poisson else draws
    times[:, columns.NEXT_SAMPLE] = gaps / times[:, columns.SPEED]
    times[founds, columns.NEXT_SAMPLE] += founding(conditions)
    facts[:, columns.STATUS] = np.where(founds, columns.DOWN, columns.ABSENT)
    facts[:, [columns.QUESTIONS, columns.ANSWERS]] = columns.NONE
    for column in (columns.MINTED, columns.STARTED, columns.SAVED_MINTED):
        facts[:, column] = founds
    return times, facts


def _edges(mixing: Any, num_nodes: int, node_times: Any, founds: Any) -> tuple[Any, ...]:
    """What is known of every edge, by sender; where those of a node begin; and by receiver."""
    senders = receivers = np.zeros(0, np.int64)
    weights = np.zeros(0)
    if mixing is not None:
        found = mixing.tocoo()
        order = np.lexsort((found.coords[1], found.coords[0]))
        senders, receivers = (it[order] for it in found.coords)
        weights = found.data[order]
        others = (senders != receivers) & (weights > 0)
        senders, receivers, weights = senders[others], receivers[others], weights[others]
        node_times[:, columns.HANDED] = np.bincount(senders, weights, num_nodes)
    count = len(senders)
    times = np.zeros((count, columns.TURN_UNTIL + 1))
    facts = np.zeros((count, columns.SEEN + 1), np.int32)
    times[:, columns.WEIGHT] = weights
    facts[:, columns.SENDER], facts[:, columns.RECEIVER] = senders, receivers
    both = founds[senders] & founds[receivers]
    present = np.bincount(senders, weights * both, num_nodes)
    times[:, columns.SHARE] = np.divide(
        node_times[senders, columns.HANDED] * weights,
        present[senders],
        out=np.zeros(count),
        where=both,
    )
    facts[:, columns.PHASE] = np.where(both, columns.RESYNC, columns.UNUSED)
    facts[:, columns.OWN_PHASE] = facts[:, columns.PHASE]
    for column in (columns.NEWEST, columns.OLDEST, columns.HEARD, columns.SAVED_HEARD):
        facts[:, column] = np.arange(count)
    facts[:, [columns.SAID_PHASE, columns.SAID_SEQ]] = columns.NONE
    times[:, [columns.LAG_SINCE, columns.TRIP]] = -1.0
    # The edge the other way, where there is one.
    forth, back = senders * num_nodes + receivers, receivers * num_nodes + senders
    places = np.minimum(np.searchsorted(forth, back), max(count - 1, 0))
    facts[:, columns.REVERSE] = np.where(forth[places] == back, places, columns.NONE)
    in_edges = np.argsort(receivers, kind="stable").astype(np.int32)
    out_start, in_start = (
        np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=num_nodes))])
        for ends in (senders, receivers)
    )
    return times, facts, out_start, in_start, in_edges


def _first_events(
    roles: Roles, conditions: Conditions, rng: np.random.Generator
) -> tuple[Any, Any, Any]:
    nodes = np.arange(len(roles.speeds))
    founds, leaves = roles.joins <= 0.0, roles.leaves < np.inf
    begin = founding(conditions)
    times, kinds, targets = (
        [np.where(founds, 0.0, begin + roles.joins)],
        [np.where(founds, columns.RESTART, columns.JOIN)],
        [nodes],
    )
    asleep = rng.random(len(nodes)) >= conditions.awake / (conditions.awake + conditions.asleep)
    until = np.where(asleep, 0.0, rng.exponential(conditions.awake, len(nodes)))
    crash_at = rng.exponential(1.0 / (conditions.crashes or 1.0), len(nodes))
    everybody = np.full(len(nodes), conditions.crashes > 0)
    for who, when, kind in (
        (roles.sleepers, until, columns.SLEEP),
        (everybody, crash_at, columns.CRASH),
        (leaves, roles.leaves, columns.LEAVE),
    ):
        times.append(begin + when[who])
        kinds.append(np.full(int(who.sum()), kind))
        targets.append(nodes[who])
    return np.concatenate(times), np.concatenate(kinds), np.concatenate(targets)


def _margin(out_start: Any, in_start: Any) -> int:
    """How many events and totals one event adds at most."""
    widest = int(np.diff(out_start).max(initial=0)), int(np.diff(in_start).max(initial=0))
    return 16 + 3 * sum(widest)


def margin_of(world: World) -> int:
    """How many events and totals one event adds at most."""
    return _margin(world.out_start, world.in_start)


def with_room(world: World) -> World:
    """The same world with twice the room where room is short."""
    margin = margin_of(world)
    if world.counts[NUM_FREE] < margin or world.counts[NUM_NEAR] + margin > len(world.far):
        world = with_more_events(world)
    if world.tally[columns.NUM_FREE_TOTALS] < margin:
        old = len(world.pool_facts)
        pool = np.zeros((2 * len(world.pool), world.pool.shape[1]))
        facts = np.zeros((2 * old, 4), np.int32)
        pool[: len(world.pool)], facts[:old] = world.pool, world.pool_facts
        free_totals(facts, world.tally, old)
        born = np.concatenate([world.born, np.zeros(old)])
        world = world._replace(pool=pool, pool_facts=facts, born=born)
    return world


def _read_only(array: Any) -> Any:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
