from __future__ import annotations

import math

import pytest

import oneway as ow
from oneway.errors import DivergenceError
from oneway.simulator.comparison import Tuned, compare

MODEL = ow.models.RidgeRegression(l2=1e-3)


@pytest.fixture(scope="module")
def stream():
    return ow.streams.synthetic(3_000, 10, seed=1, task="number").table.deal(6, seed=1)


@pytest.fixture(scope="module")
def graph():
    return ow.TrustGraph.random(6, max_receivers=3, seed=1)


@pytest.fixture(scope="module")
def tuned(stream, graph):
    methods = {"ops": ow.OnlinePushSum, "local": ow.Isolated}
    return compare(methods, (0.001, 0.03, 0.1, 50.0), MODEL, stream, graph)


def test_every_method_gets_the_rate_with_the_smallest_loss(tuned, stream, graph):
    for name, make in {"ops": ow.OnlinePushSum, "local": ow.Isolated}.items():
        result = tuned[name]
        losses = {
            rate: ow.simulate(make(rate), MODEL, stream, graph).average_loss
            for rate in (0.001, 0.03, 0.1)
        }
        assert result.learning_rate == min(losses, key=losses.__getitem__) == 0.03
        assert result.run.average_loss == losses[0.03]
        assert {rate: result.tried[rate] for rate in losses} == losses


def test_a_rate_that_diverges_counts_as_infinite(tuned):
    assert tuned["ops"].tried[50.0] == math.inf
    assert list(tuned["ops"].tried) == [0.001, 0.03, 0.1, 50.0]


def test_a_method_that_diverges_at_every_rate_has_no_best_one(stream, graph):
    with pytest.raises(DivergenceError, match="use a smaller learning rate than 50"):
        compare({"ops": ow.OnlinePushSum}, (50.0, 100.0), MODEL, stream, graph)


def test_the_edge_of_the_grid_is_its_smallest_and_its_largest_rate(tuned):
    run = tuned["ops"].run
    tried = {0.1: 3.0, 0.3: 2.0, 1.0: 1.0}
    assert [Tuned(run, rate, tried).at_edge for rate in tried] == [True, False, True]
    assert not tuned["ops"].at_edge


def test_every_run_is_reported_even_one_that_diverges(stream, graph):
    calls: list[None] = []
    compare(
        {"ops": ow.OnlinePushSum, "col": ow.Centralised},
        (0.03, 50.0),
        MODEL,
        stream,
        graph,
        on_run=lambda: calls.append(None),
    )
    assert len(calls) == 4


def test_an_error_of_another_kind_is_not_swallowed(stream):
    wrong = ow.TrustGraph.ring(5)
    with pytest.raises(ow.OnewayError, match="the graph has 5 nodes and the stream has 6"):
        compare({"ops": ow.OnlinePushSum}, (0.1,), MODEL, stream, wrong)
