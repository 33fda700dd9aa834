"""Cases that a hostile tester broke once."""

from __future__ import annotations

import multiprocessing
import threading

import numpy as np
import pytest
from engine_cases import LOGISTIC as MODEL
from engine_cases import stream_for

import oneway as ow
from oneway.errors import DivergenceError, StoreError


def random_stream(num_rounds=40, num_nodes=5, names=None):
    plain = stream_for(num_rounds, num_nodes)
    return ow.Stream(plain.features, plain.labels, plain.rows, node_names=names)


def test_labels_keep_their_precision_beside_float32_features():
    stream = ow.Stream.from_arrays(np.ones((2, 2, 3), np.float32), np.full((2, 2), 1e6 / 3))
    fast, reference = (
        ow.simulate(ow.Isolated(0.1), ow.models.RidgeRegression(), stream, engine=engine)
        for engine in ("fast", "reference")
    )
    assert fast.average_loss == pytest.approx(reference.average_loss, rel=1e-12)


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_divergence_names_the_node_it_begins_at(engine):
    features = np.ones((60, 5, 3))
    features[:, 3] = 1e8
    stream = ow.Stream.from_arrays(features, np.ones((60, 5)))
    with pytest.raises(DivergenceError, match="at node 3"):
        ow.simulate(ow.Isolated(0.1), ow.models.RidgeRegression(), stream, engine=engine)


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_node_without_mass_is_named_and_not_blamed_on_the_learning_rate(engine):
    """Each graph sends all there is to one node; taking turns, they are strongly connected."""
    to_first, to_second = (
        ow.TrustGraph.from_mixing(mixing) for mixing in ([[1.0, 0], [1, 0]], [[0, 1.0], [0, 1]])
    )
    with pytest.raises(DivergenceError, match="node 1 has no mass left after round 0: it keeps"):
        ow.simulate(
            ow.OnlinePushSum(0.1),
            MODEL,
            random_stream(num_nodes=2),
            [to_first, to_second],
            engine=engine,
        )


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("method", [ow.OnlinePushSum, ow.Pull, ow.Relay])
def test_the_capped_step_is_a_remedy_only_where_steps_go_by_mass(engine, method):
    stream = ow.Stream.from_arrays(np.full((300, 5, 3), 30.0), np.ones((300, 5)))
    with pytest.raises(DivergenceError, match="use a smaller learning rate than 10") as caught:
        ow.simulate(
            method(10.0), ow.models.RidgeRegression(), stream, ow.TrustGraph.ring(5), engine=engine
        )
    assert ("capped" in str(caught.value)) == (method is ow.OnlinePushSum)


@pytest.mark.parametrize("method", [ow.OnlinePushSum(0.2), ow.MutualGossip(0.2)])
def test_nodes_of_graph_and_stream_are_matched_by_name(method):
    """A file lists nodes as they come, owners are sorted: the order must not matter."""
    edges = [("c", "a"), ("a", "b"), ("b", "c"), ("a", "c"), ("e", "a"), ("d", "e"), ("b", "d")]
    by_appearance = ow.TrustGraph.from_edges(edges)
    assert by_appearance.names == ("c", "a", "b", "e", "d")
    sorted_ = ow.TrustGraph.from_edges(
        [("abcde".index(a), "abcde".index(b)) for a, b in edges], num_nodes=5
    )
    stream = random_stream(names=tuple("abcde"))
    named = ow.simulate(method, MODEL, stream, by_appearance)
    plain = ow.simulate(method, MODEL, random_stream(), sorted_)
    np.testing.assert_allclose(named.numerators, plain.numerators, rtol=1e-12)
    misplaced = ow.TrustGraph.from_edges(np.stack(by_appearance.edges(), axis=1), num_nodes=5)
    other = ow.simulate(method, MODEL, random_stream(), misplaced)
    assert np.abs(other.numerators - plain.numerators).max() > 1e-3


def test_a_run_is_not_loaded_with_data_it_was_not_made_from(tmp_path):
    problem = ow.streams.synthetic(num_samples=100, num_features=3, seed=1)
    stream = problem.table.deal(5, seed=1)
    graph = ow.TrustGraph.ring(5)
    ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph).save(tmp_path / "run")
    assert ow.Run.load(tmp_path / "run", model=MODEL, stream=stream).regret().shape == (20,)
    with pytest.raises(StoreError, match="was made with model"):
        ow.Run.load(tmp_path / "run", model=ow.models.RidgeRegression(), stream=stream)
    with pytest.raises(StoreError, match="was made with stream"):
        ow.Run.load(tmp_path / "run", model=MODEL, stream=problem.table.deal(5, seed=2))


def _losses_of_large_network(_=None):
    graph = ow.TrustGraph.random(300, max_receivers=8, seed=1)
    run = ow.simulate(ow.OnlinePushSum(0.2), MODEL, random_stream(10, 300), graph, engine="fast")
    return run.record.loss_sums


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_simulate_after_its_parent_used_all_cores(monkeypatch):
    monkeypatch.setattr("oneway.simulator.fast_engine._PARALLEL_FROM", 0)
    parent = _losses_of_large_network()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        child = pool.apply_async(_losses_of_large_network).get(timeout=240)
    np.testing.assert_array_equal(child, parent)


def test_threads_may_simulate_large_networks_at_the_same_time(monkeypatch):
    monkeypatch.setattr("oneway.simulator.fast_engine._PARALLEL_FROM", 0)
    expected = _losses_of_large_network()
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(_losses_of_large_network())) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=240)
    assert len(found) == 3
    for losses in found:
        np.testing.assert_array_equal(losses, expected)
