"""What Relay and Tracking promise at every moment, on any graph and any samples."""

from __future__ import annotations

import numpy as np
import pytest
import wrong_methods
from hypothesis import given, settings
from hypothesis import strategies as st
from literal_network import Shifted, some_graph, some_stream

import oneway as ow
from oneway.methods import METHODS, Batches, State
from oneway.simulator.measurements import Measurements
from oneway.simulator.reference_engine import ReferenceEngine

MODEL = Shifted(l2=1e-2)


class Noting(Shifted):
    """Writes down every gradient it says."""

    def __init__(self):
        super().__init__(l2=1e-2)
        object.__setattr__(self, "said", [])

    def gradients(self, stack, batch):
        gradients = super().gradients(stack, batch)
        self.said.extend(gradients)
        return gradients


def states_of(method, model, stream, graph, seed=0):
    """The state after every round."""
    blank = Measurements.blank(stream.num_rounds)
    engine = ReferenceEngine(method, model, stream, blank, seed)
    for round_index in range(stream.num_rounds):
        engine.advance(round_index, round_index + 1, method.shares(graph))
        yield engine.held


def relays_are_whole(method, num_nodes, seed, holes):
    """Whether numerators less parcels are the start less all steps, and the mass is constant."""
    graph, stream, model = (
        some_graph(num_nodes, seed),
        some_stream(num_nodes, 20, seed, holes),
        Noting(),
    )
    start = num_nodes * model.init(stream.dim, None)
    whole = True
    for state in states_of(method, model, stream, graph):
        sums = {name: array.sum(axis=0) for name, array in state.segments.items()}
        steps = 0.2 * np.sum(model.said, axis=0) if model.said else 0.0
        found = sums["numerator"] - sums["parcel"]
        whole &= np.allclose(found, start - steps, rtol=1e-11, atol=1e-11)
        whole &= np.allclose(sums["mass"], num_nodes, rtol=1e-12)
    return whole


@given(
    num_nodes=st.integers(2, 7),
    seed=st.integers(0, 10**6),
    holes=st.sampled_from([0.0, 0.5]),
    amount=st.floats(0.01, 5.0),
    mixes=st.integers(1, 3),
)
def test_relay_takes_every_gradient_in_once_with_full_weight(num_nodes, seed, holes, amount, mixes):
    method = ow.Relay(0.2, amount=amount, mixes=mixes)
    assert relays_are_whole(method, num_nodes, seed, holes)


@pytest.mark.parametrize(
    "wrong",
    [
        wrong_methods.ParcelIsNotReducedByTheDeposit,
        wrong_methods.DropsWhatItDoesNotDeposit,
        lambda rate: wrong_methods.ShortensStepsByMassToo(rate, step="mass"),
    ],
)
def test_a_relay_that_loses_or_repeats_gradients_is_noticed(wrong):
    assert not relays_are_whole(wrong(0.2), 6, 5, 0.3)


@given(num_nodes=st.integers(2, 7), seed=st.integers(0, 10**6), amount=st.floats(0.05, 1.0))
def test_the_parcels_of_relay_stay_bounded(num_nodes, seed, amount):
    """And no parcel is longer than its count times the longest step.

    With C gradients under way and w the lightest mass, a round deposits at least f(C) of them,
    f(C) = min(C, amount * w * sqrt(C)), as f is concave: C rises by at most n where f(C) < n, and
    not at all beyond.
    """
    graph, stream, model = some_graph(num_nodes, seed), some_stream(num_nodes, 60, seed), Noting()
    states = list(states_of(ow.Relay(0.2, amount=amount), model, stream, graph))
    lightest = min(float(state.segments["mass"].min()) for state in states)
    most = num_nodes + max(num_nodes, (num_nodes / (amount * lightest)) ** 2)
    longest = 0.2 * max(np.linalg.norm(gradient) for gradient in model.said)
    for state in states:
        counts = state.segments["count"]
        assert counts.min() >= 0
        assert counts.sum() <= most * (1 + 1e-9)
        lengths = np.linalg.norm(state.segments["parcel"], axis=1, keepdims=True)
        assert (lengths <= longest * counts * (1 + 1e-9) + 1e-12).all()


@given(
    st.lists(
        st.tuples(st.floats(1e-9, 1e3), st.floats(0.0, 1e4) | st.just(0.0)), min_size=1, max_size=8
    ),
    st.floats(0.01, 10.0),
    st.integers(0, 10**6),
)
def test_a_deposit_is_a_fraction_and_moves_no_estimate_far(held, amount, seed):
    """By amount * |b| / sqrt(c) at most: the mass has cancelled out."""
    masses, counts = np.array(held).T[:, :, None]
    rng = np.random.default_rng(seed)
    parcels = rng.standard_normal((len(held), 3)) * counts
    method = ow.Relay(0.1, amount=amount)
    numerators = rng.standard_normal((len(held), 3))
    segments = {"numerator": numerators, "parcel": parcels, "count": counts, "mass": masses}
    state = State(segments, {})
    fractions = method.fractions(state)
    assert ((fractions >= 0) & (fractions <= 1)).all()
    after = method.before_push(state, rng).segments
    moved = np.linalg.norm((after["numerator"] - numerators) / masses, axis=1)
    roots = np.maximum(np.sqrt(counts[:, 0]), 1e-300)
    rounding = 1e-12 + 1e-14 * np.abs(numerators / masses).max(axis=1)
    assert (moved <= amount * np.linalg.norm(parcels, axis=1) / roots * (1 + 1e-9) + rounding).all()
    np.testing.assert_allclose(
        after["numerator"] - after["parcel"], numerators - parcels, atol=1e-9
    )
    np.testing.assert_allclose(after["count"], (1 - fractions) * counts, rtol=1e-12)
    np.testing.assert_array_equal(after["mass"], masses)


def test_without_mass_nothing_is_deposited():
    """Rounding may leave a trace of mass below zero; a deposit must not turn around there."""
    method = ow.Relay(0.1)
    held = method.start(np.ones((2, 1))).segments
    segments = {**held, "mass": np.array([[0.0], [-1e-18]]), "count": np.ones((2, 1))}
    np.testing.assert_array_equal(method.fractions(State(segments, {})), 0.0)


def trackers_sum_to_momenta(method, num_nodes, seed, holes):
    graph, stream = some_graph(num_nodes, seed), some_stream(num_nodes, 20, seed, holes)
    return all(
        np.allclose(
            state.segments["tracker"].sum(axis=0),
            state.memory["momentum"].sum(axis=0),
            rtol=1e-12,
            atol=1e-12,
        )
        for state in states_of(method, MODEL, stream, graph)
    )


@given(
    num_nodes=st.integers(2, 7),
    seed=st.integers(0, 10**6),
    holes=st.sampled_from([0.0, 0.5]),
    beta=st.floats(0.0, 0.99),
    mixes=st.integers(1, 3),
    batches=st.sampled_from([None, Batches(2, 0.5, 0.3)]),
)
def test_trackers_sum_to_momenta_at_every_moment(num_nodes, seed, holes, beta, mixes, batches):
    method = ow.Tracking(0.2, beta=beta, mixes=mixes, batches=batches)
    assert trackers_sum_to_momenta(method, num_nodes, seed, holes)


@pytest.mark.parametrize(
    "wrong",
    [wrong_methods.AddsTheMomentumAndNotItsChange, wrong_methods.AveragesItsTracker],
)
def test_a_tracker_that_is_not_its_momenta_is_noticed(wrong):
    assert not trackers_sum_to_momenta(wrong(0.2), 6, 5, 0.3)


class Still(Shifted):
    """Nobody wants another model."""

    def gradients(self, stack, batch):
        return np.zeros_like(stack)


@pytest.mark.parametrize("name", METHODS)
def test_a_common_model_stays_common_where_nobody_wants_another(name):
    """But naive gossip, whose nodes receive more or less than one model."""
    graph, stream, model = some_graph(6, 5), some_stream(6, 15, 5, 0.3), Still()
    method = METHODS[name](0.2, mixes=2)
    run = ow.simulate(method, model, stream, graph, engine="reference")
    kept = np.allclose(run.estimates, model.init(3, None), rtol=1e-12, atol=1e-12)
    assert kept == (name != "dol-asymm")


@pytest.mark.parametrize("name", ["ops", "relay", "pull", "tracking"])
def test_it_stays_common_under_any_delays_and_faults(name):
    graph, stream, model = some_graph(6, 5), some_stream(6, 15, 5, 0.3), Still()
    told = ow.Conditions(rate=1.0, delay="1", loss=0.3, sleepers=0.3, awake=5.0, asleep=5.0)
    run = ow.simulate(METHODS[name](0.2), model, stream, graph, conditions=told)
    there = run.estimates[run.masses > 0]
    np.testing.assert_allclose(there, np.tile(model.init(3, None), (len(there), 1)), rtol=1e-9)


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), mixes=st.integers(1, 2))
def test_nodes_in_another_order_learn_the_same(name, seed, mixes):
    graph, stream = some_graph(6, seed), some_stream(6, 12, seed, 0.3)
    order = np.random.default_rng(seed).permutation(6)
    swapped = ow.TrustGraph.from_mixing(graph.mixing()[order][:, order])
    dealt = ow.Stream(stream.features, stream.labels, stream.rows[:, order])
    method = METHODS[name](0.2, mixes=mixes)
    run = ow.simulate(method, MODEL, stream, graph, engine="reference")
    other = ow.simulate(method, MODEL, dealt, swapped, engine="reference")
    np.testing.assert_allclose(other.estimates, run.estimates[order], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(other.masses, run.masses[order], rtol=1e-12)


@pytest.mark.parametrize("conditions", [None, ow.Conditions(rate=1.0, delay="uniform:0,1")])
def test_relay_weighs_samples_alike_and_tracking_nodes(conditions):
    """One node of six has most of the samples and wants 1; the others want -1."""
    rng, num_rounds = np.random.default_rng(0), 1200
    wanted = np.array([1.0, *[-1.0] * 5])
    full = ow.Stream.from_arrays(np.ones((num_rounds, 6, 1)), np.tile(wanted, (num_rounds, 1)))
    rows = full.rows.copy()
    rows[rng.random(rows.shape) >= np.array([1.0, *[0.2] * 5])] = -1
    stream = ow.Stream(full.features, full.labels, rows)
    model, graph = ow.models.RidgeRegression(intercept=False), ow.TrustGraph.random(6, 3, seed=4)
    by_samples = float((wanted * (rows >= 0).sum(axis=0)).sum() / stream.num_samples)
    by_nodes = float(wanted.mean())
    assert by_samples - by_nodes > 0.6
    for method, mean in ((ow.Relay(0.02), by_samples), (ow.Tracking(0.02), by_nodes)):
        run = ow.simulate(method, model, stream, graph, conditions=conditions)
        np.testing.assert_allclose(run.estimates, mean, atol=0.05)
