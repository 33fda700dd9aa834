"""Any directed graph: masses kept within bounds, in every engine; what estimates become there."""

from __future__ import annotations

import numpy as np
import pytest
import wrong_methods
from engine_cases import LOGISTIC, assert_close, assert_same_bits, both, stream_for
from hypothesis import given
from hypothesis import strategies as st
from literal_network import LiteralNetwork, PushSumNode, RelayNode, Shifted, some_stream

import oneway as ow
from oneway.methods import METHODS, Batches, Gradients, State
from oneway.simulator.exchange import Exchange
from oneway.simulator.measurements import Measurements
from oneway.simulator.reference_engine import ReferenceEngine

MODEL = Shifted(l2=1e-2)
NODES = {ow.OnlinePushSum: PushSumNode, ow.Relay: RelayNode}
NARROW = (0.25, 2.0)
"""Bounds that masses reach within a few rounds."""
CHAIN = ow.TrustGraph.from_edges([(i, i + 1) for i in range(4)], 5)
SINK = ow.TrustGraph.from_edges([(i, 0) for i in range(1, 5)], 5)
SOURCE = ow.TrustGraph.from_edges([(0, i) for i in range(1, 5)], 5)
TWO_RINGS = ow.TrustGraph.from_edges([(0, 1), (1, 0), (2, 3), (3, 2), (0, 2)], 5)
"""The second ring hears the first one; node 4 is alone."""


@st.composite
def graphs(draw):
    """Any directed graph: sinks, sources, chains, isolated nodes, and strongly connected ones."""
    num_nodes = draw(st.integers(1, 7))
    nodes = st.integers(0, num_nodes - 1)
    pairs = draw(st.lists(st.tuples(nodes, nodes), max_size=12))
    edges = sorted({pair for pair in pairs if pair[0] != pair[1]})
    return draw(
        st.sampled_from([CHAIN, SINK, SOURCE, TWO_RINGS])
        | st.just(ow.TrustGraph.from_edges(edges, num_nodes))
    )


def node_on(kind, graph, method):
    """A literal node of a run on the graph."""
    options = {"bounds": bounds_on(graph, method)}
    if kind is ow.Relay:
        options["lets_go"] = not graph.is_strongly_connected
    return lambda start: NODES[kind](start, **options)


some_bounds = st.sampled_from([None, NARROW, (1.0, 1.0), (0.5, 8.0)])


def bounds_on(graph, method):
    """The bounds that a run on the graph has."""
    if method.bounds is None and not graph.is_strongly_connected:
        return method.usual_bounds
    return method.bounds


@pytest.mark.parametrize("kind", [ow.OnlinePushSum, ow.Relay])
@given(
    graph=graphs(),
    bounds=some_bounds,
    seed=st.integers(0, 10**6),
    rate=st.sampled_from([0.2, "auto"]),
    batches=st.sampled_from([Batches(3), Batches(2, 0.7, 0.8, 5)]),
    mixes=st.integers(1, 2),
    holes=st.sampled_from([0.0, 0.4]),
)
def test_fast_equals_reference_on_any_graph(kind, graph, bounds, seed, rate, batches, mixes, holes):
    method = kind(rate, "curvature", batches=batches, mixes=mixes, bounds=bounds)
    fast, reference = both(method, LOGISTIC, stream_for(25, graph.num_nodes, seed, holes), graph)
    assert_close(fast, reference)
    lowest, highest = bounds_on(graph, method) or (0.0, np.inf)
    assert (lowest <= fast.masses).all()
    assert (fast.masses <= highest).all()


@pytest.mark.parametrize("kind", [ow.OnlinePushSum, ow.Relay])
@given(
    graph=graphs(),
    bounds=some_bounds,
    seed=st.integers(0, 10**6),
    rule=st.sampled_from(["paper", "curvature", "mass"]),
    mixes=st.integers(1, 2),
)
def test_the_reference_does_what_nodes_do_that_mint_and_burn(
    kind, graph, bounds, seed, rule, mixes
):
    method = kind(0.1, rule, mixes=mixes, bounds=bounds)
    stream = some_stream(graph.num_nodes, 14, seed, 0.2)
    literal = LiteralNetwork(
        node_on(kind, graph, method),
        MODEL, stream, graph, seed=seed, rule=rule, mixes=mixes,
    ).run()  # fmt: skip
    run = ow.simulate(method, MODEL, stream, graph, engine="reference", seed=seed)
    np.testing.assert_allclose(run.estimates, literal.estimates, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(run.masses, [node.omega for node in literal.nodes], rtol=1e-11)


@pytest.mark.parametrize(
    "wrong",
    [
        wrong_methods.MintsWithoutANumerator,
        wrong_methods.BurnsMassWithoutANumerator,
        wrong_methods.MintsAtTheMeanOfTheNetwork,
        wrong_methods.MintsBeforeTheExchange,
        wrong_methods.NeverMints,
        wrong_methods.NeverBurns,
    ],
)
def test_a_wrong_way_to_keep_masses_is_noticed(wrong):
    stream = some_stream(5, 14, 3)
    literal = LiteralNetwork(
        lambda start: PushSumNode(start, NARROW), MODEL, stream, SINK, rule="paper"
    ).run()
    for kind, same in ((ow.OnlinePushSum, True), (wrong, False)):
        run = ow.simulate(kind(0.1, bounds=NARROW), MODEL, stream, SINK, engine="reference")
        far = max(
            np.abs(run.estimates - literal.estimates).max(),
            np.abs(run.masses - [node.omega for node in literal.nodes]).max(),
        )
        assert (far < 1e-9) == same
        assert same or far > 1e-2


@given(
    masses=st.lists(st.just(0.0) | st.floats(1e-9, 1e6), min_size=1, max_size=6),
    lowest=st.floats(1e-6, 1.0),
    highest=st.floats(1.0, 1e4),
    seed=st.integers(0, 10**6),
)
def test_minting_and_burning_change_no_estimate(masses, lowest, highest, seed):
    """And what has no mass has no estimate to mint at: it stays as it is."""
    held = np.array(masses)[:, None]
    numerators = held * np.random.default_rng(seed).standard_normal((len(held), 3))
    before = State({"numerator": numerators, "mass": held}, {})
    method = ow.OnlinePushSum(0.1, bounds=(lowest, highest))
    after = method.bounded(before)
    there = held[:, 0] > 0.0
    expected = np.where(held > 0.0, np.clip(held, lowest, highest), 0.0)
    np.testing.assert_array_equal(after.segments["mass"], expected)
    estimates = (
        it.segments["numerator"][there] / it.segments["mass"][there] for it in (before, after)
    )
    np.testing.assert_allclose(*estimates, rtol=1e-13)
    assert method.bounded(after) is after


class Ledger:
    """Writes down what a method mints and burns."""

    def bounded(self, state):
        after = super().bounded(state)
        gained = after.segments["mass"] - state.segments["mass"]
        self.entries.append((gained.clip(0.0).sum(), -gained.clip(None, 0.0).sum()))
        return after


@pytest.mark.parametrize("kind", [ow.OnlinePushSum, ow.Relay])
@given(graph=graphs(), seed=st.integers(0, 10**6))
def test_all_mass_is_the_start_plus_what_was_minted_less_what_was_burned(kind, graph, seed):
    """Conservation stays an equality."""
    method = type("Booked", (Ledger, kind), {"name": kind.name})(0.1, bounds=NARROW)
    object.__setattr__(method, "entries", [])
    stream = some_stream(graph.num_nodes, 20, seed, 0.3)
    blank = Measurements.blank(20)
    engine = ReferenceEngine(method, MODEL, stream, blank, seed)
    mixing = method.shares(graph)
    for t in range(20):
        engine.advance(t, t + 1, mixing)
        minted, burned = np.sum(method.entries, axis=0)
        total = engine.state.masses.sum()
        assert total == pytest.approx(graph.num_nodes + minted - burned, rel=1e-12)


@pytest.mark.parametrize("kind", [ow.OnlinePushSum, ow.Relay])
@given(
    engine=st.sampled_from(["reference", "fast"]),
    num_nodes=st.integers(2, 12),
    seed=st.integers(0, 10**6),
)
def test_bounds_that_no_mass_reaches_change_no_bit(engine, kind, num_nodes, seed):
    """Where the graph is strongly connected, the simulator runs the method as published."""
    graph = ow.TrustGraph.random(num_nodes, max_receivers=min(4, num_nodes - 1), seed=seed)
    stream = stream_for(30, num_nodes, seed, 0.2)
    batches = Batches(3)
    plain, with_bounds, usual = (
        ow.simulate(
            kind(0.1, "curvature", batches=batches, bounds=bounds),
            LOGISTIC,
            stream,
            graph,
            engine=engine,
        )
        for bounds in (None, (1e-12, 1e12), kind.usual_bounds)
    )
    assert "bounds" not in plain.record.config
    assert_same_bits(plain, with_bounds)
    masses, reached = np.ones(num_nodes), False
    for _ in range(30):
        masses = graph.mixing().T @ masses
        reached |= (masses < kind.usual_bounds[0]).any() or (masses > kind.usual_bounds[1]).any()
    if not reached:
        assert_same_bits(plain, usual)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_on_a_graph_that_is_not_strongly_connected(name):
    for graph in (CHAIN, SINK, SOURCE, TWO_RINGS):
        run = ow.simulate(METHODS[name](0.1), LOGISTIC, stream_for(200, 5), graph)
        assert np.isfinite(run.estimates).all()
        if METHODS[name].has_mass:
            assert run.record.config["bounds"] == list(METHODS[name].usual_bounds)


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_graphs_in_turns_are_judged_by_what_they_are_together(engine):
    halves = [ow.TrustGraph.from_edges([edge], 2) for edge in ((0, 1), (1, 0))]
    stream = stream_for(20, 2)
    runs = [
        ow.simulate(ow.OnlinePushSum(0.1), LOGISTIC, stream, turns, engine=engine)
        for turns in (halves, halves[:1] * 2)
    ]
    assert ["bounds" in run.record.config for run in runs] == [False, True]


# What estimates become: docs/one-way-streets.md.


def settled(graph, method, rounds=2000):
    """Estimates after each round from random ones without any step, and the masses in the end."""
    exchange = Exchange(method, method.shares(graph))
    start = np.random.default_rng(7).standard_normal((graph.num_nodes, 2))
    state = method.start(start)
    for _ in range(rounds):
        state = method.bounded(exchange.apply(state))
    return start, method.estimate(state), method.masses(state)


def predicted(graph, start, bounds):
    """The limit, derived: consensus in every source component, and elsewhere a mixture of these.

    A receiver's estimate is the average of what arrives, by mass. In a source component the
    weights multiply up to one average; elsewhere a walk against the edges, by the same weights,
    ends in a source component, and its chances are the shares of the mixture.
    """
    mixing, masses = graph.mixing().toarray(), np.ones(graph.num_nodes)
    product = np.eye(graph.num_nodes)
    for _ in range(2000):
        arriving = mixing * masses[:, None]
        weights = (arriving / arriving.sum(axis=0)).T
        product = weights @ product
        masses = np.clip(arriving.sum(axis=0), *bounds)
    count, labels = graph.strong_components()
    sides = graph.sides()
    is_source = sides.upstream | sides.apart
    limits = np.zeros_like(start)
    for component in range(count):
        members = np.flatnonzero(labels == component)
        if is_source[members[0]]:
            own = product[np.ix_(members, members)]
            np.testing.assert_allclose(own, np.broadcast_to(own[0], own.shape), atol=1e-9)
            assert own[0].sum() == pytest.approx(1.0)
            limits[members] = own[0] @ start[members]
    rest = np.flatnonzero(~is_source)
    # limits = weights @ limits, where those of source components are known.
    inner, outer = weights[np.ix_(rest, rest)], weights[np.ix_(rest, np.flatnonzero(is_source))]
    limits[rest] = np.linalg.solve(np.eye(len(rest)) - inner, outer @ limits[is_source])
    return limits, masses


@given(bounds=st.sampled_from([NARROW, (0.25, 4.0)]), graph=graphs())
def test_without_steps_estimates_become_mixtures_of_the_source_components(bounds, graph):
    start, found, masses = settled(graph, ow.OnlinePushSum(0.0, bounds=bounds))
    limits, expected_masses = predicted(graph, start, bounds)
    np.testing.assert_allclose(masses, expected_masses, rtol=1e-9)
    again = np.clip(graph.mixing().T @ masses, *bounds)
    np.testing.assert_allclose(again, masses, rtol=1e-6)
    np.testing.assert_allclose(found, limits, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "rate"),
    [(ow.OnlinePushSum(0.1, "mass"), 0.1), (ow.Relay(0.1), 0.3 * 0.1)],
    ids=["mass step", "relay"],
)
def test_a_node_that_nobody_sends_to_learns_as_if_alone(method, rate):
    """With Relay at `amount` times the rate, however little mass it has."""
    stream = stream_for(60, 5, 3)
    run = ow.simulate(method, LOGISTIC, stream, SOURCE)
    alone = ow.simulate(ow.Isolated(rate), LOGISTIC, stream)
    np.testing.assert_allclose(run.estimates[0], alone.estimates[0], rtol=1e-10)
    assert run.masses[0] == method.usual_bounds[0]


def test_at_a_bound_the_samples_of_a_source_component_do_not_count_alike():
    """Alice <-> carol, alice -> bob: both lack mass, and carol's steps count 1.5 times alice's."""
    graph = ow.TrustGraph.from_edges([(0, 1), (1, 0), (0, 2)], 3)
    method = ow.OnlinePushSum(0.001, bounds=(0.25, 4.0))
    exchange, gradients = Exchange(method, method.shares(graph)), np.diag([1.0, 1.0, 0.0])
    state, before = method.start(np.zeros((3, 3))), None
    for t in range(200):
        before = method.estimate(state)
        state = method.local_step(state, Gradients(gradients, t), np.random.default_rng(0))
        state = method.bounded(exchange.apply(state))
    moved = method.estimate(state) - before
    expected = -0.001 / 0.25 * np.array([0.4, 0.6, 0.0])
    np.testing.assert_allclose(moved[:2], [expected, expected], atol=1e-12)
