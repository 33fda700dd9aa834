"""Personal predictions of a simulation: alike in both engines, and nothing feeds back."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from builders import replace
from engine_cases import MODELS, any_graph, stream_for
from hypothesis import given
from hypothesis import strategies as st
from users_huber import Huber

import oneway as ow
from oneway.errors import ConfigError
from oneway.personal import bayes_bound, experts, mixtures, personal
from oneway.personal.personal import PRIOR
from oneway.records.values import ADAPTED, ALONE, SHARED, YOURS
from oneway.simulator import personal_pass
from oneway.simulator.personal_pass import PersonalPass
from oneway.task.learning import Learning

GRAPH = any_graph(5, 1)
METHOD = ow.Relay("auto", "curvature")


def stream_of(name: str, rounds: int = 150, nodes: int = 5, seed: int = 0) -> ow.Stream:
    """Labels that features tell something about, with gaps."""
    plain = stream_for(rounds, nodes, seed=seed, holes=0.2, classes=3 if name == "softmax" else 2)
    score = plain.features @ np.array([1.0, -1.0, 0.5])
    labels = {"softmax": np.digitize(score, [-0.5, 0.5]), "ridge": 10.0 + score}
    return replace(plain, labels=labels.get(name, np.where(score > 0, 1.0, -1.0)).astype(float))


def both(name: str, stream: ow.Stream, method=METHOD, **options):
    return [
        ow.simulate(method, MODELS[name], stream, GRAPH, engine=engine, personal=True, **options)
        for engine in ("fast", "reference")
    ]


def same(one: ow.Run, other: ow.Run) -> None:
    for name, array in vars(one.personal).items():
        np.testing.assert_allclose(
            array, getattr(other.personal, name), rtol=1e-9, atol=1e-9, err_msg=name
        )


@pytest.mark.parametrize("name", ["logistic", "logistic without intercept", "ridge", "hinge"])
def test_engines_agree(name):
    fast, reference = both(name, stream_of(name), measure=True)
    same(fast, reference)
    assert fast.personal.counts.sum() == stream_of(name).num_samples
    assert fast.measures.accuracy == reference.measures.accuracy
    assert fast.measures.so_far.loss == pytest.approx(fast.personal_loss, rel=1e-12)
    assert fast.measures.so_far.alone_loss == pytest.approx(fast.alone_loss, rel=1e-12)
    if fast.measures.log_loss is not None:  # what is measured is what answers
        assert fast.measures.log_loss == pytest.approx(fast.personal_loss, rel=1e-9)


@given(st.integers(0, 10**6))
def test_the_compiled_walk_is_that_of_the_functions_whatever_the_network_says(seed):
    """Also if it says nothing at all, and however rounds are cut into stretches."""
    rng = np.random.default_rng(seed)
    name = ["logistic", "ridge", "hinge"][seed % 3]
    stream, model = stream_of(name, 40, 20, seed % 7), MODELS[name]
    scores = rng.choice([0.1, 1.0, 30.0, 1e3, 1e200]) * rng.standard_normal((40, 20, 1))
    scores[rng.random(scores.shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
    compiled, plain = (PersonalPass(model, stream, compiled=it) for it in (True, False))
    cut = int(rng.integers(1, 39))
    for first, last in ((0, cut), (cut, 40)):
        compiled.take(first, scores[first:last])
        plain.take(first, scores[first:last])
    one, other = compiled.record(40), plain.record(40)
    for name, array in vars(one).items():
        np.testing.assert_allclose(array, getattr(other, name), rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    ("module", "constant"),
    [
        (experts, "BY_COORDINATE"), (experts, "FAR"), (mixtures, "SHARE"), (personal, "PRIOR"),
        (mixtures, "FIRST_GAP"), (personal, "FIRST_REACH"),
    ],
)  # fmt: skip
def test_a_walk_with_another_constant_differs(module, constant, monkeypatch):
    """The tolerance is tight enough to tell."""
    model = MODELS["ridge" if constant.startswith("FIRST") else "logistic"]
    stream = stream_of("logistic", 60)
    scores = np.random.default_rng(1).standard_normal((60, 5, 1)) * 10

    def walked(*, compiled: bool):
        own = PersonalPass(model, stream, compiled=compiled)
        own.take(0, scores)
        return own.record(60).sums

    found = walked(compiled=True)
    monkeypatch.setattr(module, constant, 1.001 * getattr(module, constant))
    assert not np.allclose(found, walked(compiled=False), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "engine"), [("logistic", "fast"), ("softmax", "reference")])
def test_nothing_feeds_back(name, engine):
    """The shared models are the same bits with and without."""
    method = Learning().build_method(4)
    bare, own = (
        ow.simulate(method, MODELS[name], stream_of(name), GRAPH, engine=engine, personal=it)
        for it in (False, True)
    )
    assert (bare.personal, bare.personal_loss) == (None, None)
    for array in ("numerators", "masses", "loss_sums", "disagreement"):
        assert np.array_equal(getattr(bare.record, array), getattr(own.record, array))


@pytest.mark.parametrize("name", ["logistic", "softmax", "ridge"])
def test_losses_are_summed_by_round_and_by_node(name, tmp_path):
    stream = stream_of(name)
    run = ow.simulate(METHOD, MODELS[name], stream, GRAPH, personal=True)
    found = run.personal
    np.testing.assert_allclose(found.sums.sum(axis=0), found.node_sums.sum(axis=0), rtol=1e-12)
    assert np.array_equal(found.node_counts, (stream.rows >= 0).sum(axis=0))
    means = found.sums.sum(axis=0) / stream.num_samples
    numbers = (run.personal_loss, found.shared_loss, run.alone_loss, found.adapted_loss)
    np.testing.assert_allclose(numbers, means[[YOURS, SHARED, ALONE, ADAPTED]], rtol=1e-12)
    assert found.loss_curves[-1] == pytest.approx(means, rel=1e-12)
    assert found.node_losses.shape == (5, 4)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, rtol=1e-12)
    # Without the l2 term, which the paper's measure has.
    assert found.shared_loss < run.average_loss
    # Alone does not depend on the network: it is the same if nobody asked for the rest.
    assert ow.simulate(METHOD, MODELS[name], stream, GRAPH).alone_loss == pytest.approx(
        run.alone_loss, rel=1e-12
    )
    assert ow.simulate(ow.Isolated("auto"), MODELS[name], stream, personal=True).alone_loss is None
    again = ow.Run.load(run.save(tmp_path / "run"))
    same(run, again)
    assert again.verdict == run.verdict


@pytest.mark.parametrize(
    ("name", "engine"),
    [("logistic", "fast"), ("logistic", "reference"), ("ridge", "fast"), ("softmax", "auto")],
)
def test_a_shared_model_that_has_said_nothing_yet_takes_no_part(name, engine, monkeypatch):
    """Batches that are never full: a network that says nothing has no part in what is answered."""
    stream, method = stream_of(name).head(15), Learning(model=name).build_method(4)

    def learn() -> tuple[ow.Run, float]:
        run = ow.simulate(method, MODELS[name], stream, GRAPH, engine=engine, personal=True)
        return run, run.personal_loss

    _, loss = learn()
    monkeypatch.setattr(personal, "SAME", -1.0)
    monkeypatch.setattr(personal_pass, "_KINDS", {})  # what is compiled keeps its constants
    run, heard = learn()
    assert run.personal.shared_loss > run.alone_loss
    assert loss < heard


def test_no_node_loses_by_joining():
    """The bound, against every expert, in the numbers of a run."""
    run = ow.simulate(METHOD, MODELS["logistic"], stream_of("logistic"), GRAPH, personal=True)
    for expert, prior in zip((SHARED, ALONE, ADAPTED), PRIOR, strict=True):
        for sums, count in zip(run.personal.node_sums, run.personal.node_counts, strict=True):
            assert sums[YOURS] <= sums[expert] + bayes_bound(float(prior), int(count)) + 1e-9


def test_late_labels_teach_when_they_come():
    """Until then a node predicts with what it knew; without delay it is as without late labels."""
    stream = stream_of("logistic")
    prompt, at_once, late = (
        ow.simulate(METHOD, MODELS["logistic"], it, GRAPH, personal=True)
        for it in (stream, stream.delayed(0), stream.delayed(30))
    )
    same(prompt, at_once)
    assert np.isfinite(late.personal.sums).all()
    # Nobody has learned anything in the first 30 rounds: the start, 1/2 for both classes.
    np.testing.assert_allclose(
        late.personal.sums[:30, ALONE], np.log(2) * late.personal.counts[:30], rtol=1e-6
    )
    assert prompt.personal_loss < late.personal_loss < np.log(2)


def test_a_model_of_ones_own_has_experts_too_if_it_is_linear():
    stream = stream_of("ridge")
    run = ow.simulate(ow.Relay(0.01), Huber(), stream, GRAPH, personal=True)
    assert np.isfinite(run.personal_loss)


def test_a_model_without_scores_is_refused_by_name():
    class Opaque(ow.models.Model):
        name, labels = "opaque", "binary"

        def dim(self, num_features):
            return num_features

        def losses(self, params, batch):
            return np.zeros(len(batch))

        def gradients(self, stack, batch):
            return np.zeros_like(stack)

        def predict(self, params, features):
            return np.ones(len(features))

    with pytest.raises(ConfigError, match="Opaque"):
        ow.simulate(ow.Relay(0.1), Opaque(), stream_of("logistic"), GRAPH, personal=True)


def test_ctrl_c_leaves_the_rounds_that_were_done(monkeypatch):
    stream = stream_of("logistic", 400)
    real = PersonalPass.take

    def take(self, first, scores):
        real(self, first, scores)
        if first:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(PersonalPass, "take", take)
    run = ow.simulate(METHOD, MODELS["logistic"], stream, GRAPH, personal=True)
    assert not run.complete
    assert 0 < len(run.personal.sums) == run.record.num_rounds < 400
    np.testing.assert_allclose(
        run.personal.sums.sum(axis=0), run.personal.node_sums.sum(axis=0), rtol=1e-12
    )
