"""Running: engines, interruption, divergence, bad input, regret, saving."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest

import oneway as ow
from oneway.errors import (
    ComparatorError,
    ConfigError,
    DataError,
    DivergenceError,
    GraphError,
    StoreError,
)

MODEL = ow.models.LogisticRegression(l2=1e-3)


@pytest.fixture(scope="module")
def stream():
    return ow.streams.synthetic(num_samples=600, num_features=4, seed=1).table.deal(6, seed=1)


@pytest.fixture(scope="module")
def graph():
    return ow.TrustGraph.random(6, max_receivers=3, seed=1)


def test_auto_takes_the_fast_engine_where_there_is_a_kernel(stream, graph):
    linear = ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph)
    assert linear.record.config["engine"] == "fast"

    class Mine(ow.OnlinePushSum):
        name = "mine"

    other = ow.simulate(Mine(0.1), MODEL, stream, graph)
    assert other.record.config["engine"] == "reference"
    with pytest.raises(ConfigError, match="no kernel for Mine"):
        ow.simulate(Mine(0.1), MODEL, stream, graph, engine="fast")
    with pytest.raises(ConfigError, match="engine='warp' is unknown"):
        ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph, engine="warp")


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_divergence_names_round_node_mass_and_remedy(engine):
    rng = np.random.default_rng(0)
    stream = ow.Stream.from_arrays(10 * rng.standard_normal((400, 6, 4)), rng.random((400, 6)))
    graph = ow.TrustGraph.random(6, max_receivers=3, seed=1)
    with pytest.raises(DivergenceError, match="a smaller learning rate than 5") as caught:
        ow.simulate(
            ow.OnlinePushSum(5.0), ow.models.RidgeRegression(), stream, graph, engine=engine
        )
    error = caught.value
    assert 0 < error.round_index < 400
    assert 0 <= error.node < 6
    assert 0 < error.smallest_mass < 1
    for word in (f"round {error.round_index}", f"node {error.node}", "capped"):
        assert word in str(error)


def test_both_engines_diverge_in_the_same_round():
    rng = np.random.default_rng(0)
    stream = ow.Stream.from_arrays(10 * rng.standard_normal((400, 6, 4)), rng.random((400, 6)))
    graph = ow.TrustGraph.random(6, max_receivers=3, seed=1)
    rounds = set()
    for engine in ("reference", "fast"):
        with pytest.raises(DivergenceError) as caught:
            ow.simulate(
                ow.OnlinePushSum(5.0), ow.models.RidgeRegression(), stream, graph, engine=engine
            )
        rounds.add((caught.value.round_index, caught.value.node))
    assert len(rounds) == 1


def test_nodes_of_graph_and_stream_must_match(stream):
    graph = ow.TrustGraph.random(7, max_receivers=3, seed=1)
    with pytest.raises(GraphError, match="the graph has 7 nodes and the stream has 6"):
        ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph)
    with pytest.raises(GraphError, match="the graph has 7 nodes and the stream has 6"):
        ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, lambda _: graph)


def test_a_graph_that_is_not_strongly_connected_is_refused(stream):
    chain = ow.TrustGraph.from_edges([(i, i + 1) for i in range(5)], num_nodes=6)
    with pytest.raises(GraphError, match=r"6 strong components.*largest_strong_component\(\)"):
        ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, chain)
    with pytest.raises(GraphError, match="not strongly connected"):
        ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, [chain, chain])


def test_a_method_with_a_graph_needs_one_and_the_others_do_not(stream):
    with pytest.raises(ConfigError, match="sends models along a graph and none was given"):
        ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream)
    with pytest.raises(GraphError, match="is empty"):
        ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, [])
    assert ow.simulate(ow.Isolated(0.1), MODEL, stream).complete


def test_labels_must_fit_the_model(stream, graph):
    wrong = ow.Stream(features=stream.features, labels=stream.labels + 2, rows=stream.rows)
    with pytest.raises(DataError, match="-1"):
        ow.simulate(ow.OnlinePushSum(0.1), MODEL, wrong, graph)


@pytest.mark.parametrize("rate", [-0.1, float("nan"), float("inf")])
def test_a_learning_rate_is_finite_and_not_negative(rate, stream, graph):
    with pytest.raises(ConfigError, match="learning rate of ops is"):
        ow.OnlinePushSum(rate)
    with pytest.raises(ConfigError, match="in round 3"):
        ow.simulate(ow.OnlinePushSum(lambda t: rate if t == 3 else 0.1), MODEL, stream, graph)


def test_all_nodes_start_at_the_models_own_parameters_which_depend_on_the_seed():
    class Somewhere(ow.models.LogisticRegression):
        def init(self, num_features, rng):
            return rng.standard_normal(self.dim(num_features))

    stream = ow.streams.synthetic(num_samples=60, num_features=3, seed=1).table.deal(6, seed=1)
    graph = ow.TrustGraph.random(6, max_receivers=2, seed=1)
    first, again, other = (
        ow.simulate(ow.OnlinePushSum(0.0), Somewhere(), stream, graph, seed=seed)
        for seed in (1, 1, 2)
    )
    expected = np.random.default_rng(1).standard_normal(4)
    np.testing.assert_allclose(first.estimates, np.tile(expected, (6, 1)), rtol=1e-12)
    np.testing.assert_array_equal(first.estimates, again.estimates)
    assert np.abs(first.estimates - other.estimates).max() > 0.1


def test_mixed_up_arguments_are_named(stream, graph):
    table = ow.streams.synthetic(num_samples=10, num_features=2).table
    method = ow.OnlinePushSum(0.1)
    with pytest.raises(ConfigError, match=r"stream is <Table: .*table\.deal\(num_nodes\)"):
        ow.simulate(method, MODEL, table, graph)
    with pytest.raises(ConfigError, match="model is <Stream: 6 nodes, 100 rounds"):
        ow.simulate(method, stream, MODEL, graph)
    with pytest.raises(ConfigError, match="method is 'ops'"):
        ow.simulate("ops", MODEL, stream, graph)
    with pytest.raises(ConfigError, match=r"OnlinePushSum'>; it must be a method with its"):
        ow.simulate(ow.OnlinePushSum, MODEL, stream, graph)


def test_a_run_says_what_it_is_in_one_line(stream, graph):
    run = ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph)
    assert repr(run) == f"<Run: ops, 6 nodes, 100 rounds, average loss {run.average_loss:.4f}>"


def test_a_cap_is_not_negative():
    with pytest.raises(ConfigError, match="cap is -1"):
        ow.OnlinePushSum(0.1, cap_step=-1)


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_ctrl_c_returns_what_was_computed_marked_incomplete(engine):
    """A real SIGINT, sent from a learning-rate schedule in the middle of a run."""
    rng = np.random.default_rng(0)
    stream = ow.Stream.from_arrays(rng.standard_normal((40_000, 3, 2)), np.ones((40_000, 3)))
    graph = ow.TrustGraph.ring(3)

    def interrupting(round_index):
        if round_index == 100:
            os.kill(os.getpid(), signal.SIGINT)
        return 0.1

    before = signal.getsignal(signal.SIGINT)
    run = ow.simulate(ow.OnlinePushSum(interrupting), MODEL, stream, graph, engine=engine)
    assert signal.getsignal(signal.SIGINT) is before
    assert not run.complete
    done = run.record.num_rounds
    assert 100 < done < 40_000
    full = ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream.head(done), graph, engine=engine)
    np.testing.assert_allclose(run.estimates, full.estimates, rtol=1e-12)
    assert len(run.regret()) == done


def test_regret_is_measured_against_the_best_fixed_model(stream, graph):
    run = ow.simulate(ow.OnlinePushSum(0.3), MODEL, stream, graph)
    best = run.comparator
    samples = ow.records.Batch(
        stream.features[stream.rows.ravel()], stream.labels[stream.rows.ravel()]
    )
    assert np.linalg.norm(MODEL.gradient(best, samples)) <= 1e-6
    total = MODEL.loss(best, samples) * len(samples)
    assert run.regret()[-1] == pytest.approx(run.record.loss_sums.sum() - total, rel=1e-9)
    assert run.regret()[-1] > 0


def test_average_loss_and_curve_on_a_ragged_stream_count_samples(stream, graph):
    rows = stream.rows.copy()
    rows[::2, 3:] = -1
    ragged = ow.Stream(features=stream.features, labels=stream.labels, rows=rows)
    run = ow.simulate(ow.OnlinePushSum(0.3), MODEL, ragged, graph)
    assert run.record.sample_counts[0] == 3
    assert run.average_loss == pytest.approx(run.record.loss_sums.sum() / (rows >= 0).sum())
    assert run.loss_curve[-1] == pytest.approx(run.average_loss)


def test_a_saved_run_comes_back_with_config_seed_and_versions(tmp_path, stream, graph):
    run = ow.simulate(ow.OnlinePushSum(0.3), MODEL, stream, graph)
    regret = run.regret()
    run.save(tmp_path / "run")
    again = ow.Run.load(tmp_path / "run")
    np.testing.assert_array_equal(again.estimates, run.estimates)
    np.testing.assert_array_equal(again.regret(), regret)
    summary = json.loads((tmp_path / "run" / "run.json").read_text())
    assert summary["config"]["graph"]["seed"] == 1
    assert summary["config"]["stream"]["seed"] == 1
    assert summary["config"]["learning_rate"] == 0.3
    assert summary["versions"]["oneway"] == ow.__version__
    assert again.average_loss == run.average_loss


def test_a_run_loaded_without_its_data_says_how_to_get_its_regret(tmp_path, stream, graph):
    ow.simulate(ow.OnlinePushSum(0.3), MODEL, stream, graph).save(tmp_path / "run")
    with pytest.raises(ComparatorError, match=r"regret\(\) before save\(\)"):
        ow.Run.load(tmp_path / "run").regret()
    assert len(ow.Run.load(tmp_path / "run", model=MODEL, stream=stream).regret()) == 100


def test_a_damaged_or_missing_run_is_named(tmp_path, stream, graph):
    run = ow.simulate(ow.OnlinePushSum(0.3), MODEL, stream, graph)
    folder = run.save(tmp_path / "run")
    run.save(folder)  # a run replaces a run
    arrays = folder / "arrays.npz"
    arrays.write_bytes(arrays.read_bytes()[:200])
    with pytest.raises(StoreError, match=f"the run in {folder} is damaged"):
        ow.Run.load(folder)
    with pytest.raises(StoreError, match="no stored run"):
        ow.Run.load(tmp_path / "elsewhere")
    (folder / "run.json").write_text('{"format": 99}')
    with pytest.raises(StoreError, match="format 99"):
        ow.Run.load(folder)
    (tmp_path / "mine").mkdir()
    run.save(tmp_path / "mine")  # it was empty
    (tmp_path / "mine" / "run.json").unlink()
    with pytest.raises(StoreError, match="is not a stored run"):
        run.save(tmp_path / "mine")
