"""Pushes that take time, against an event list; nothing is lost, and the newest copy counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal_network import (
    LiteralNetwork,
    PullNode,
    PushSumNode,
    RelayNode,
    Shifted,
    TrackingNode,
    some_graph,
    some_stream,
)

import oneway as ow
from oneway.methods import METHODS, Batches, State
from oneway.simulator.delayed_engine import LONGEST_WAIT, DelayedEngine, InFlight
from oneway.simulator.measurements import Measurements

MODEL = Shifted(l2=1e-2)
NODES = {
    ow.OnlinePushSum: PushSumNode,
    ow.Relay: RelayNode,
    ow.Pull: PullNode,
    ow.Tracking: TrackingNode,
}
some_delays = st.sampled_from([(1, 1), (1, 3), (2, 2), (1, 5), (4, 6)])


@pytest.mark.parametrize("method", NODES, ids=lambda it: it.name)
@given(
    num_nodes=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    holes=st.sampled_from([0.0, 0.5]),
    delays=some_delays,
    mixes=st.sampled_from([1, 1, 2]),
    batches=st.sampled_from([None, Batches(2)]),
)
def test_the_delayed_engine_does_what_an_event_list_does(
    method, num_nodes, seed, holes, delays, mixes, batches
):
    graph, stream = some_graph(num_nodes, seed), some_stream(num_nodes, 16, seed, holes)
    if num_nodes > 2:  # one node never has a sample, and one no more after a while
        rows = stream.rows.copy()
        rows[:, 0] = rows[3:, 1] = -1
        stream = ow.Stream(stream.features, stream.labels, rows)
    options = {"batches": batches, "mixes": mixes}
    literal = LiteralNetwork(
        NODES[method], MODEL, stream, graph, seed=seed, delays=delays, **options
    )
    literal.run()
    run = ow.simulate(method(0.1, **options), MODEL, stream, graph, delays=delays, seed=seed)
    np.testing.assert_allclose(run.estimates, literal.estimates, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run.record.loss_sums, literal.losses, rtol=1e-12, atol=1e-12)
    assert run.record.config["engine"] == "delayed"
    assert run.record.config["delays"] == list(delays)


@pytest.mark.parametrize("mixes", [1, 2])
@pytest.mark.parametrize("name", METHODS)
def test_with_delays_of_one_round_and_samples_everywhere_it_is_lockstep(name, mixes):
    """What is pushed in a round is there before the next one: not a round later."""
    graph, stream = some_graph(6, 5), some_stream(6, 15, 5)
    method = METHODS[name](0.2, mixes=mixes)
    delayed = ow.simulate(method, MODEL, stream, graph, delays=(1, 1))
    lockstep = ow.simulate(method, MODEL, stream, graph, engine="reference")
    np.testing.assert_allclose(delayed.estimates, lockstep.estimates, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(delayed.masses, lockstep.masses, rtol=1e-12)
    np.testing.assert_allclose(delayed.losses, lockstep.losses, rtol=1e-12)
    later = ow.simulate(method, MODEL, stream, graph, delays=(2, 2))
    changes = np.abs(later.estimates - lockstep.estimates).max() > 1e-3
    assert changes == (method.exchange == "graph")


def engine_for(method, graph, stream, delays, seed=0):
    blank = Measurements.blank(stream.num_rounds)
    return DelayedEngine(method, MODEL, stream, blank, seed, delays), method.shares(graph)


@given(
    num_nodes=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    delays=some_delays,
    mixes=st.integers(1, 2),
)
def test_relay_loses_no_step_and_no_mass_under_way(num_nodes, seed, delays, mixes):
    """Numerators less parcels are the start less every step, with full weight, at every moment."""
    graph, stream = some_graph(num_nodes, seed), some_stream(num_nodes, 16, seed, 0.4)
    literal = LiteralNetwork(
        RelayNode, MODEL, stream, graph, seed=seed, delays=delays, mixes=mixes,
    )  # fmt: skip
    start = num_nodes * MODEL.init(stream.dim, None)
    method = ow.Relay(0.1, mixes=mixes)
    engine, mixing = engine_for(method, graph, stream, delays, seed)
    for round_index in range(stream.num_rounds):
        engine.advance(round_index, round_index + 1, mixing)
        literal.round(round_index)
        held, away = engine.held.segments, engine.under_way
        sums = {name: held[name].sum(axis=0) + away[name] for name in held}
        np.testing.assert_allclose(sums["mass"], num_nodes, rtol=1e-12)
        np.testing.assert_allclose(
            sums["numerator"] - sums["parcel"],
            start - np.array(literal.steps_taken),
            rtol=1e-11,
            atol=1e-11,
        )


@given(
    num_nodes=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    delays=some_delays,
    mixes=st.integers(1, 2),
    batches=st.sampled_from([None, Batches(2, 0.5, 0.3)]),
)
def test_trackers_and_what_is_under_way_sum_to_the_momenta(num_nodes, seed, delays, mixes, batches):
    graph, stream = some_graph(num_nodes, seed), some_stream(num_nodes, 16, seed, 0.4)
    method = ow.Tracking(0.1, mixes=mixes, batches=batches)
    engine, mixing = engine_for(method, graph, stream, delays, seed)
    for round_index in range(stream.num_rounds):
        engine.advance(round_index, round_index + 1, mixing)
        trackers = engine.held.segments["tracker"].sum(axis=0) + engine.under_way["tracker"]
        momenta = engine.held.memory["momentum"].sum(axis=0)
        np.testing.assert_allclose(trackers, momenta, rtol=1e-12, atol=1e-13)
    assert np.abs(momenta).max() > 0


def pushed(in_flight, method, values, delay, round_index):
    """Node 0 pushes a value, and the round ends; the models after averaging at node 1."""
    state = method.start(np.array([[values], [0.0]]))
    acting = np.array([values is not None, False])
    in_flight.push(state, acting, np.full(in_flight.num_edges, delay), round_index)
    after = in_flight.arrived(state, round_index + 1)
    return float(in_flight.averaged(after, np.array([False, True])).segments["model"][1, 0])


def test_of_copies_that_overtake_each_other_the_newest_counts():
    method, graph = ow.Pull(0.1), ow.TrustGraph.from_edges([(0, 1), (1, 0)], 2)
    in_flight = InFlight(method, method.shares(graph), 5, method.start(np.zeros((2, 1))))
    nothing = np.array([False, False])
    assert pushed(in_flight, method, 10.0, 4, 0) == 0.0  # due at 4
    assert pushed(in_flight, method, 20.0, 1, 1) == 10.0  # overtakes it: (0 + 20) / 2
    state = method.start(np.zeros((2, 1)))
    for round_index in (2, 3, 4):
        in_flight.push(state, nothing, np.ones(in_flight.num_edges, int), round_index)
        after = in_flight.averaged(
            in_flight.arrived(state, round_index + 1), np.array([True, True])
        )
        np.testing.assert_array_equal(after.segments["model"], [[0.0], [10.0]])


def samples_at(has_sample, num_features=2):
    """A stream with a sample wherever `has_sample[round, node]` is true."""
    rng = np.random.default_rng(0)
    rows = np.where(has_sample, np.arange(has_sample.size).reshape(has_sample.shape), -1)
    features = rng.standard_normal((has_sample.size, num_features))
    return ow.Stream(features, rng.choice([-1.0, 1.0], has_sample.size), rows)


@pytest.mark.parametrize("method", [ow.OnlinePushSum(0.1), ow.Relay(0.1)], ids=lambda it: it.name)
def test_nodes_that_never_have_a_sample_pass_on_what_they_receive(method):
    """Without that, the masses are 5e-91, 2 and 1 in the end: one node drains into the others."""
    has_sample = np.zeros((300, 3), bool)
    has_sample[:, 0] = True
    stream, graph = samples_at(has_sample), ow.TrustGraph.ring(3)
    run = ow.simulate(method, MODEL, stream, graph, delays=(1, 1))
    lockstep = ow.simulate(method, MODEL, stream, graph, engine="reference")
    np.testing.assert_allclose(run.masses, lockstep.masses, rtol=1e-9)


def test_nodes_whose_samples_end_early_do_not_drain_the_others():
    has_sample = np.ones((300, 4), bool)
    has_sample[20:, 1:] = False
    engine, mixing = engine_for(
        ow.OnlinePushSum(0.1), ow.TrustGraph.ring(4), samples_at(has_sample), (1, 3)
    )
    engine.advance(0, 300, mixing)
    held, away = engine.held.segments["mass"], engine.under_way["mass"]
    np.testing.assert_allclose(held.sum() + away, 4.0, rtol=1e-12)
    assert held.min() > 0.1


def test_a_node_waits_a_while_for_its_next_sample_before_it_passes_on():
    has_sample = np.zeros((LONGEST_WAIT + 2, 2), bool)
    has_sample[0] = has_sample[:, 0] = True
    graph = ow.TrustGraph.from_edges([(0, 1), (1, 0)], 2)
    engine, mixing = engine_for(ow.OnlinePushSum(0.1), graph, samples_at(has_sample), (1, 1))
    engine.advance(0, LONGEST_WAIT + 1, mixing)
    np.testing.assert_allclose(engine.state.masses[0], 0.5**LONGEST_WAIT, rtol=1e-12)
    engine.advance(LONGEST_WAIT + 1, LONGEST_WAIT + 2, mixing)
    assert engine.state.masses[0] > 0.9


def test_a_node_without_receivers_keeps_what_it_would_forward():
    method, mixing = ow.Relay(0.1), ow.TrustGraph.from_edges([(0, 1)], 2).mixing()
    state = method.start(np.zeros((2, 1)))
    state = State({**state.segments, "parcel": np.array([[3.0], [5.0]])}, state.memory)
    in_flight = InFlight(method, mixing, 2, state)
    after = in_flight.push(state, np.array([True, True]), np.array([2]), 0)
    np.testing.assert_array_equal(after.segments["parcel"], [[0.0], [5.0]])
    np.testing.assert_array_equal(in_flight.under_way["parcel"], [3.0])
    after = in_flight.arrived(in_flight.arrived(after, 1), 2)
    np.testing.assert_array_equal(after.segments["parcel"], [[0.0], [8.0]])
    np.testing.assert_array_equal(in_flight.under_way["parcel"], [0.0])


def samples_of(stream, node):
    return [int(row) for row in stream.rows[:, node] if row >= 0]


@given(
    num_nodes=st.integers(1, 6),
    num_rounds=st.integers(1, 40),
    seed=st.integers(0, 10**6),
    holes=st.sampled_from([0.0, 0.3]),
    share=st.floats(0.05, 1.0),
)
def test_at_random_rounds_a_node_sees_its_samples_in_order(
    num_nodes, num_rounds, seed, holes, share
):
    """None is skipped; what there is no round left for, is not seen."""
    stream = some_stream(num_nodes, num_rounds, seed, holes)
    spread = stream.at_random_rounds(share, seed=seed)
    assert spread.num_rounds == max(1, round(num_rounds / share))
    for node in range(num_nodes):
        own, seen = samples_of(stream, node), samples_of(spread, node)
        assert seen == own[: len(seen)]
    again = stream.at_random_rounds(share, seed=seed)
    np.testing.assert_array_equal(spread.rows, again.rows)
    if share == 1.0:
        np.testing.assert_array_equal(spread.rows, stream.rows)


@pytest.mark.parametrize("name", METHODS)
def test_rounds_in_which_nobody_acts_change_nothing_but_what_arrives(name):
    """Also the first one, and the last one."""
    full = some_stream(4, 5, 1)
    rows = np.full((12, 4), -1, full.rows.dtype)
    rows[[1, 2, 5, 6, 9]] = full.rows
    gaps = ow.Stream(full.features, full.labels, rows)
    graph, method = some_graph(4, 1), METHODS[name](0.1)
    run = ow.simulate(method, MODEL, gaps, graph, delays=(1, 1))
    dense = ow.simulate(method, MODEL, full, graph, engine="reference")
    np.testing.assert_array_equal(run.record.loss_sums[[0, 3, 4, 7, 8, 10, 11]], 0.0)
    np.testing.assert_allclose(
        run.record.loss_sums[[1, 2, 5, 6, 9]], dense.record.loss_sums, rtol=1e-12
    )
