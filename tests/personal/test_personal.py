"""Personal predictions equal a transcription in plain Python, keep their bound, and never peek."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal_personal import LiteralPersonal

from oneway.errors import ConfigError
from oneway.models import Hinge, LogisticRegression, RidgeRegression, SoftmaxRegression
from oneway.models.base import Model
from oneway.personal import Personal, bayes_bound
from oneway.personal.mixtures import hedge_bound
from oneway.personal.personal import FIRST_REACH, PRIOR

MODELS = {
    "logistic": LogisticRegression(start=-0.4),
    "ridge": RidgeRegression(center=3.0, scale=2.0),
    "hinge": Hinge(),
    "softmax": SoftmaxRegression(4, start=(0.5, 0.0, -0.2, -0.3)),
}
NODES, FEATURES = 3, 4


def made(name: str, seed: int, rounds: int):
    """Features, shared scores and labels of every round and node."""
    rng = np.random.default_rng(seed)
    model = MODELS[name]
    width = model.num_classes if name == "softmax" else 1
    features = rng.normal(size=(rounds, NODES, FEATURES))
    truth = rng.normal(size=(FEATURES, width))
    scores = features @ truth + 0.5 * rng.normal(size=(rounds, NODES, width))
    shared = scores + rng.normal(size=scores.shape)
    if name == "softmax":
        labels = scores.argmax(axis=2).astype(float)
    elif name == "ridge":
        labels = 3.0 + 2.0 * scores[..., 0]
    else:
        labels = np.where(scores[..., 0] >= 0, 1.0, -1.0)
    return model, features, shared, labels


def begun(model: Model) -> Personal:
    return Personal.of(model, FEATURES, model.init(FEATURES, np.random.default_rng(0)))


def run(model, features, shared, labels, active=None):
    """Losses of the mixture `[round, node]` and of the experts, and the memory in the end."""
    personal = begun(model)
    memory = personal.begin(features.shape[1])
    mixture, experts = [], []
    for t in range(len(features)):
        forecast = personal.predict(memory, shared[t][:, None, :], features[t])
        memory, suffered = personal.learn(
            memory, forecast, labels[t], None if active is None else active[t]
        )
        mixture.append(suffered.personal)
        experts.append(suffered.experts)
    return np.array(mixture), np.array(experts), memory


@pytest.mark.parametrize("name", ["logistic", "ridge"])
def test_it_equals_its_transcription(name):
    model, features, shared, labels = made(name, 5, 120)
    mixture, experts, _ = run(model, features, shared, labels)
    for node in range(NODES):
        literal = LiteralPersonal(FEATURES, getattr(model, "start", 0.0), squared=name == "ridge")
        targets = (labels - 3.0) / 2.0 if name == "ridge" else labels
        for t in range(len(features)):
            losses = literal.step(features[t, node], float(shared[t, node, 0]), targets[t, node])
            assert mixture[t, node] == pytest.approx(losses[0], rel=1e-9, abs=1e-12)
            assert experts[t, node] == pytest.approx(losses[1:], rel=1e-9, abs=1e-12)


@given(st.sampled_from(sorted(MODELS)), st.integers(0, 10**6))
def test_nobody_loses_by_joining_whatever_the_network_says(name, seed):
    """The bound against every expert, at every node and moment, with an adversarial network."""
    model, features, shared, labels = made(name, seed, 40)
    rng = np.random.default_rng(seed)
    shared = shared * rng.choice([-1.0, 0.0, 30.0, 1e200, np.nan, np.inf], shared.shape)
    mixture, experts, memory = run(model, features, shared, labels)
    rounds = np.arange(1, len(mixture) + 1)
    for expert in (1, 2):  # shared has no finite loss here
        bounds = np.array([bayes_bound(float(PRIOR[expert]), int(t)) for t in rounds])[:, None]
        if "top.gaps" in memory:  # of the end
            bounds = hedge_bound(float(PRIOR[expert]), 3, memory["top.gaps"][:, 0])
        excess = mixture.cumsum(axis=0) - experts[:, :, expert].cumsum(axis=0)
        assert (excess <= bounds + 1e-9).all()


@pytest.mark.parametrize("name", MODELS)
def test_a_prediction_depends_on_no_later_label(name):
    model, features, shared, labels = made(name, 2, 30)
    other = labels.copy()
    other[20:] = labels[20:][::-1]
    first, *_ = run(model, features, shared, labels)
    second, *_ = run(model, features, shared, other)
    assert (first[:20] == second[:20]).all()
    personal = begun(model)
    memory = personal.begin(NODES)
    forecast = personal.predict(memory, shared[0][:, None, :], features[0])
    assert np.isfinite(forecast.answer).all()


@pytest.mark.parametrize("name", MODELS)
def test_nodes_do_not_touch_each_other_and_rest_without_a_sample(name):
    model, features, shared, labels = made(name, 3, 25)
    active = np.random.default_rng(4).random((25, NODES)) < 0.6
    _, _, together = run(model, features, shared, labels, active)
    for node in range(NODES):
        own = active[:, node]
        one = slice(node, node + 1)
        _, _, memory = run(model, features[own][:, one], shared[own][:, one], labels[own][:, one])
        for array, other in memory.items():
            assert together[array][one] == pytest.approx(other, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_the_mixture_learns(name):
    """With a good network and with a useless one it is about as good as the better expert."""
    model, features, shared, labels = made(name, 6, 400)
    for network in (shared, np.zeros_like(shared)):
        mixture, experts, _ = run(model, features, network, labels)
        best = experts.sum(axis=0).min(axis=1)
        assert (mixture.sum(axis=0) <= 1.1 * best + 5.0).all()


@pytest.mark.parametrize("name", ["ridge", "hinge"])
def test_a_network_far_off_costs_no_more_than_one_at_the_edge_of_what_there_has_been(name):
    """Scores are kept within reach: squares of what a liar says would ruin any mean."""
    model, features, shared, labels = made(name, 9, 200)
    far, edge = (
        run(model, features, np.full_like(shared, it), labels)[0] for it in (1e200, FIRST_REACH)
    )
    assert far.sum() == pytest.approx(edge.sum(), rel=0.01)
    alone = run(model, features, np.full_like(shared, np.nan), labels)[0]
    assert far.sum() < 1.1 * alone.sum() + 10.0


def test_labels_far_out_are_within_reach_once_there_has_been_one():
    _, features, _, labels = made("ridge", 9, 100)
    model = RidgeRegression()  # whose units are not those of the labels
    labels = 1000.0 * labels
    _, experts, memory = run(model, features, labels[..., None], labels)
    assert memory["reach"][:, 0] == pytest.approx(np.abs(labels).max(axis=0))
    assert (experts[0, :, 0] > 0.0).all()
    assert np.median(experts[1:, :, 0]) == 0.0


def test_an_expert_that_leaves_the_finite_numbers_stays_where_it_was():
    model, features, shared, labels = made("ridge", 8, 10)
    features[4, 1] = 1e300
    mixture, experts, memory = run(model, features, shared, labels)
    assert all(np.isfinite(it).all() for it in memory.values())
    later = [t for t in range(10) if t != 4]
    assert np.isfinite(mixture[later]).all()
    assert np.isfinite(experts[later]).all()


def test_a_model_without_scores_is_named():
    class Strange(LogisticRegression):
        pass

    class Odd(Model):
        name = "odd"
        labels = "number"
        dim = losses = gradients = predict = None  # type: ignore[assignment]

    assert begun(Strange()).has_probabilities
    with pytest.raises(ConfigError, match="Odd"):
        Personal.of(Odd(), FEATURES, np.zeros(1))
