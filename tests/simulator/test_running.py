"""Running: engines, interruption, divergence, bad input, regret, saving."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest
from engine_cases import LOGISTIC as MODEL
from engine_cases import MODELS

import oneway as ow
from oneway.errors import (
    DivergenceError,
    GraphError,
)


@pytest.fixture(scope="module")
def stream():
    return ow.streams.synthetic(num_samples=600, num_features=3, seed=1).table.deal(6, seed=1)


@pytest.fixture(scope="module")
def graph():
    return ow.TrustGraph.random(6, max_receivers=3, seed=1)


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_where_nodes_choose_their_rates_divergence_does_not_advise_a_smaller_one(engine):
    """There is none to set."""
    stream = ow.Stream.from_arrays(np.ones((40, 3, 3)), np.full((40, 3), 1e200))
    with pytest.raises(DivergenceError, match="scale features") as caught:
        ow.simulate(
            ow.OnlinePushSum("auto", "curvature"), MODELS["ridge"], stream, ow.TrustGraph.ring(3),
            engine=engine,
        )  # fmt: skip
    assert "smaller learning rate" not in str(caught.value)


def test_nodes_of_graph_and_stream_must_match(stream):
    graph = ow.TrustGraph.random(7, max_receivers=3, seed=1)
    with pytest.raises(GraphError, match="the graph has 7 nodes and the stream has 6"):
        ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph)
    with pytest.raises(GraphError, match="the graph has 7 nodes and the stream has 6"):
        ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, lambda _: graph)


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


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_ctrl_c_returns_what_was_computed_marked_incomplete(engine):
    """A real SIGINT, sent from a learning-rate schedule in the middle of a run."""
    rng = np.random.default_rng(0)
    stream = ow.Stream.from_arrays(rng.standard_normal((40_000, 3, 3)), np.ones((40_000, 3)))
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
