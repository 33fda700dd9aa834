"""Pull, Relay, Tracking, transforms and mixes against networks in plain Python, and wrong ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import wrong_methods
from hypothesis import given
from hypothesis import strategies as st
from literal_network import (
    LiteralAdaGrad,
    LiteralMomentum,
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
from oneway.methods import Batches
from oneway.methods.transforms import AdaGrad, Momentum

MODEL = Shifted(l2=1e-2)


@dataclass(frozen=True)
class Case:
    """A method, how a node of it is made, and the transforms of both."""

    method: type
    node: type
    options: dict
    transforms: tuple = ()
    chain: object = tuple


CASES = {
    "pull": Case(ow.Pull, PullNode, {}),
    "relay": Case(ow.Relay, RelayNode, {}),
    "relay with a larger amount": Case(ow.Relay, RelayNode, {"amount": 0.9}),
    "tracking": Case(ow.Tracking, TrackingNode, {}),
    "tracking of gradients": Case(ow.Tracking, TrackingNode, {"beta": 0.0}),
    "push-sum with momentum": Case(
        ow.OnlinePushSum, PushSumNode, {}, (Momentum(0.6),), lambda: (LiteralMomentum(0.6),)
    ),
    "push-sum with adagrad": Case(
        ow.OnlinePushSum, PushSumNode, {}, (AdaGrad(),), lambda: (LiteralAdaGrad(),)
    ),
    "relay with momentum, then adagrad": Case(
        ow.Relay,
        RelayNode,
        {},
        (Momentum(0.6), AdaGrad(0.1)),
        lambda: (LiteralMomentum(0.6), LiteralAdaGrad(0.1)),
    ),
}


def literal_of(case, stream, graph, **options):
    def node(start):
        return case.node(start, **case.options)

    options = {"rate": ow.InverseSqrt(0.2), **options}
    return LiteralNetwork(node, MODEL, stream, graph, case.chain, **options).run()


def method_of(case, method=None, batches=None, mixes=1, rule="paper", transforms=None):
    return (method or case.method)(
        ow.InverseSqrt(0.2),
        step=rule,
        transforms=case.transforms if transforms is None else transforms,
        batches=batches,
        mixes=mixes,
        **case.options,
    )


@pytest.mark.parametrize("name", CASES)
@given(
    num_nodes=st.integers(2, 7),
    seed=st.integers(0, 10**6),
    holes=st.sampled_from([0.0, 0.4]),
    mixes=st.sampled_from([1, 1, 2, 3]),
    batches=st.sampled_from([None, Batches(3), Batches(2, clip=0.5, noise=0.3)]),
    rule=st.sampled_from(["paper", "curvature", "mass"]),
)
def test_the_reference_engine_does_what_nodes_and_messages_do(
    name, num_nodes, seed, holes, mixes, batches, rule
):
    case, graph = CASES[name], some_graph(num_nodes, seed)
    stream = some_stream(num_nodes, 12, seed, holes)
    literal = literal_of(case, stream, graph, batches=batches, mixes=mixes, rule=rule, seed=seed)
    method = method_of(case, batches=batches, mixes=mixes, rule=rule)
    run = ow.simulate(method, MODEL, stream, graph, engine="reference", seed=seed)
    np.testing.assert_allclose(run.estimates, literal.estimates, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run.record.loss_sums, literal.losses, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_a_node_that_keeps_no_share_still_averages_its_own_model(name):
    plain = ow.TrustGraph.random(6, max_receivers=3, seed=1)
    kept = np.array([0.0, 0.3, 0.0, 0.5, 0.3, 0.2])
    graph, stream = ow.TrustGraph.from_mixing(plain.mixing(kept_share=kept)), some_stream(6, 12, 5)
    np.testing.assert_array_equal(graph.mixing().diagonal() == 0, kept == 0)
    literal = literal_of(CASES[name], stream, graph)
    run = ow.simulate(method_of(CASES[name]), MODEL, stream, graph, engine="reference")
    np.testing.assert_allclose(run.estimates, literal.estimates, rtol=1e-12, atol=1e-12)


WRONG = {
    "relay": [
        wrong_methods.KeepsAShareOfItsParcel,
        wrong_methods.KeepsAShareOfItsCount,
        wrong_methods.ForwardsItsMass,
        wrong_methods.DepositsBeforeItsOwnGradient,
        wrong_methods.CountIsNotReducedByTheDeposit,
        wrong_methods.ParcelIsNotReducedByTheDeposit,
        wrong_methods.DropsWhatItDoesNotDeposit,
        wrong_methods.DepositsAll,
        wrong_methods.GoesByTheCountAndNotItsRoot,
        wrong_methods.ForgetsItsMass,
        wrong_methods.CountsNodesWithoutASample,
        wrong_methods.ShortensStepsByMassToo,
        ow.OnlinePushSum,
    ],
    "tracking": [
        wrong_methods.TracksGradients,
        wrong_methods.MovesByTheOldTracker,
        wrong_methods.MovesByItsOwnMomentum,
        wrong_methods.AddsTheMomentumAndNotItsChange,
        wrong_methods.SplitsItsModel,
        wrong_methods.AveragesItsTracker,
        wrong_methods.ForwardsItsTracker,
        wrong_methods.AddsUpItsMomentum,
    ],
    "pull": [
        wrong_methods.PullsWithThePapersShares,
        wrong_methods.PullsFromItsReceivers,
        wrong_methods.PullsFromOthersOnly,
        ow.MutualGossip,
    ],
}


@given(num_nodes=st.integers(2, 7), seed=st.integers(0, 10**6), beta=st.floats(0.0, 0.99))
def test_tracking_is_push_pull_on_momenta_in_matrices(num_nodes, seed, beta):
    """X' = A (X - gamma Y), M' = beta M + (1 - beta) G(X'), Y' = B Y + M' - M; Y = M at first.

    A is row-stochastic, B column-stochastic, and the rate is outside, as such methods are written;
    for a constant rate it is the same.
    """
    graph, stream = some_graph(num_nodes, seed), some_stream(num_nodes, 15, seed)
    split = graph.mixing().toarray().T
    links = (split > 0) | np.eye(num_nodes, dtype=bool)
    average = links / links.sum(axis=1, keepdims=True)
    models = np.tile(MODEL.init(stream.dim, None), (num_nodes, 1))
    momenta = trackers = np.zeros_like(models)
    for round_index in range(stream.num_rounds):
        gradients = MODEL.gradients(models, stream.batch(round_index)[1])
        before, momenta = momenta, beta * momenta + (1 - beta) * gradients
        trackers = split @ trackers + momenta - before
        models = average @ (models - 0.2 * trackers)
    run = ow.simulate(ow.Tracking(0.2, beta=beta), MODEL, stream, graph, engine="reference")
    np.testing.assert_allclose(run.estimates, models, rtol=1e-11, atol=1e-12)


def distance(run, literal):
    """By how much estimates or losses differ."""
    return max(
        np.abs(run.estimates - literal.estimates).max(),
        np.abs(run.record.loss_sums - literal.losses).max(),
    )


def setting(holes=0.3):
    """Weights, kept shares and nodes without samples: where mistakes show."""
    return some_stream(6, 12, 5, holes), some_graph(6, 5)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [(name, wrong) for name, wrongs in WRONG.items() for wrong in wrongs],
    ids=lambda it: getattr(it, "__name__", it),
)
def test_a_wrong_method_is_told_from_its_literal_transcription(name, wrong):
    stream, graph = setting()
    case = CASES[name]
    if not issubclass(wrong, case.method):
        case = replace(case, options={})
    rule = "mass" if wrong is wrong_methods.ShortensStepsByMassToo else "paper"
    run = ow.simulate(method_of(case, wrong, rule=rule), MODEL, stream, graph, engine="reference")
    assert distance(run, literal_of(case, stream, graph, rule=rule)) > 1e-3


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("push-sum with adagrad", wrong_methods.SquaresOfThePast(1.0)),
        ("push-sum with adagrad", wrong_methods.NoRoot()),
        ("push-sum with adagrad", wrong_methods.OneSquareForAllParameters()),
        ("push-sum with adagrad", wrong_methods.ForgetsSquares()),
        ("push-sum with momentum", wrong_methods.LooksAhead(0.6)),
        ("push-sum with momentum", wrong_methods.AddsUp(0.6)),
        ("push-sum with momentum", Momentum(0.4)),
    ],
    ids=lambda it: getattr(type(it), "__name__", it),
)
def test_a_wrong_transform_is_told_from_its_literal_transcription(name, wrong):
    stream, graph = setting()
    method = method_of(CASES[name], transforms=(wrong,))
    run = ow.simulate(method, MODEL, stream, graph, engine="reference")
    assert distance(run, literal_of(CASES[name], stream, graph)) > 1e-3


@pytest.mark.parametrize("name", CASES)
def test_another_number_of_mixes_gives_other_numbers(name):
    stream, graph = setting()
    literal = literal_of(CASES[name], stream, graph, mixes=2)
    for mixes in (1, 3):
        method = method_of(CASES[name], mixes=mixes)
        run = ow.simulate(method, MODEL, stream, graph, engine="reference")
        assert distance(run, literal) > 1e-3
