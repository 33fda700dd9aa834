"""A run beside its baselines, and its measures: alike in both engines, saved if asked for."""

from __future__ import annotations

import numpy as np
import pytest
from builders import replace
from engine_cases import MODELS as ALL

import oneway as ow
from oneway import metrics
from oneway.metrics.tally import counted, merged

MODELS = {name: ALL[name] for name in ("logistic", "hinge", "ridge", "softmax")}
GRAPH = ow.TrustGraph.from_edges([(0, 1), (1, 2), (2, 0), (0, 2)])


def stream_for(name: str, rounds: int = 120, seed: int = 3) -> ow.Stream:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rounds, 3, 3))
    scores = features @ np.array([1.0, -2.0, 0.5]) + rng.normal(size=(rounds, 3))
    labels = {
        "ridge": scores + 10.0,
        "softmax": np.clip(np.round(scores) + 1, 0, 2),
    }.get(name, np.where(scores > 0.7, 1.0, -1.0))
    stream = ow.Stream.from_arrays(features, labels)
    rows = np.where(rng.random(stream.rows.shape) < 0.8, stream.rows, -1)
    return replace(stream, rows=rows)


class Watched(ow.OnlinePushSum):
    """Writes down the estimates before every step."""

    name = "watched"
    seen: list[np.ndarray] = []  # noqa: RUF012

    def learn(self, state, gradients, rng, normals=None):
        self.seen.append(self.estimate(state))
        return super().learn(state, gradients, rng, normals)


def literal_measures(model, stream):
    """Predict every sample with the estimate of its node, one by one, and count."""
    Watched.seen.clear()
    ow.simulate(Watched(0.1), model, stream, GRAPH, engine="reference")
    tally: dict = {}
    for t, estimates in enumerate(Watched.seen):
        nodes, batch = stream.batch(t)
        for node, x, y in zip(nodes, batch.features, batch.labels, strict=True):
            answers = model.predictions(estimates[node], x[None])
            zero, label = np.zeros(1), np.array([y])
            size = {"classes": 3, "binary": 2, "number": 0}[model.labels]
            tally = merged(tally, counted(model, size, answers, label, zero, zero))
    return tally


@pytest.mark.parametrize("name", MODELS)
def test_measures_are_those_of_every_prediction_before_its_step(name):
    model, stream = MODELS[name], stream_for(name)
    run = ow.simulate(ow.OnlinePushSum(0.1), model, stream, GRAPH, measure=True)
    expected = literal_measures(model, stream)
    for key, array in expected.items():
        if key != "losses":
            np.testing.assert_allclose(run.tally[key], array, rtol=1e-6, atol=1e-9)
    reference = ow.simulate(
        ow.OnlinePushSum(0.1), model, stream, GRAPH, measure=True, engine="reference"
    )
    later = ow.simulate(ow.OnlinePushSum(0.1), model, stream, GRAPH)
    found = run.measures
    assert later.tally is None
    assert later.measures == found
    for measure in ("accuracy", "roc_auc", "log_loss", "brier", "rmse", "mae", "r2"):
        assert getattr(found, measure) == pytest.approx(getattr(reference.measures, measure))
    if model.classifies:
        assert found.accuracy == pytest.approx(metrics.accuracy(run.record), abs=1e-12)
    assert found.so_far.loss == pytest.approx(run.average_loss, rel=1e-12)
    assert found.so_far.samples == stream.num_samples


@pytest.mark.parametrize("name", ["logistic", "softmax"])
def test_the_base_rate_is_that_of_the_same_samples(name):
    model, stream = MODELS[name], stream_for(name)
    run = ow.simulate(ow.Relay(0.2, "mass"), model, stream, GRAPH)
    seen: list[list[float]] = [[], [], []]
    size, losses = (2 if name == "logistic" else 3), []
    for t in range(stream.num_rounds):
        nodes, batch = stream.batch(t)
        for node, y in zip(nodes, batch.labels, strict=True):
            known = seen[node]
            losses.append(-np.log((known.count(y) + 0.5) / (len(known) + 0.5 * size)))
            known.append(y)
    assert run.base_loss == pytest.approx(np.mean(losses), rel=1e-12)


def test_late_labels_are_unknown_to_the_base_rate_until_they_come_and_measured_alike():
    stream = stream_for("logistic")
    late = stream.delayed(7)
    fast, reference = (
        ow.simulate(
            ow.OnlinePushSum(0.1), MODELS["logistic"], late, GRAPH, engine=engine, measure=True
        )
        for engine in ("fast", "reference")
    )
    assert fast.measures.confusion == reference.measures.confusion
    assert fast.measures.brier == pytest.approx(reference.measures.brier, rel=1e-6)
    seen: list[list[float]] = [[], [], []]
    losses = []
    for t in range(late.num_rounds):
        for node, y in zip(*_labels(late, late.rows[t]), strict=True):
            known = seen[node]
            losses.append(-np.log((known.count(y) + 0.5) / (len(known) + 1.0)))
        for node, y in zip(*_labels(late, late.known_rows[t]), strict=True):
            seen[node].append(y)
    assert fast.base_loss == pytest.approx(np.mean(losses), rel=1e-12)


def _labels(stream: ow.Stream, rows: np.ndarray) -> tuple[list[int], list[float]]:
    nodes = np.flatnonzero(rows >= 0)
    return nodes.tolist(), stream.labels[rows[nodes]].tolist()


def test_what_was_asked_for_is_saved_and_read_back(tmp_path):
    run = ow.simulate(ow.OnlinePushSum(0.1), MODELS["logistic"], stream_for("logistic"), GRAPH)
    bare = ow.Run.load(run.save(tmp_path / "bare"))
    assert (bare.base_loss, bare.alone_loss, bare.measures) == (None, None, None)
    asked = (run.base_loss, run.alone_loss, run.measures)
    again = ow.Run.load(run.save(tmp_path / "full"))
    assert (again.base_loss, again.alone_loss, again.measures) == asked
    assert again.measures.so_far.alone_loss == pytest.approx(run.alone_loss, rel=1e-12)
