"""river's own checks, and what they do not ask."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from plain import PLAIN_TOML
from river import checks, compose, datasets, evaluate, metrics, preprocessing

import oneway as ow
from oneway.errors import ConfigError, DataError, MissingExtraError
from oneway.peer.home.free_address import free_address
from oneway.peer.home.home import Home

LEARNERS = [
    ow.RiverClassifier(),
    ow.RiverRegressor(),
    ow.RiverRegressor(nodes=3, method="pull"),
]
CHECKS = [(learner, check) for learner in LEARNERS for check in checks.yield_checks(learner)]


@pytest.mark.parametrize(
    ("learner", "check"),
    CHECKS,
    ids=[f"{i}-{type(one).__name__}-{check.__name__}" for i, (one, check) in enumerate(CHECKS)],
)
def test_rivers_own_checks_hold(learner, check):
    """None is skipped."""
    assert not learner._unit_test_skips()
    check(learner.clone())


@pytest.mark.parametrize(
    ("data", "learner", "metric", "least"),
    [
        (datasets.Phishing(), ow.RiverClassifier(nodes=5), metrics.Accuracy(), 0.85),
        (datasets.ImageSegments().take(1000), ow.RiverClassifier(), metrics.Accuracy(), 0.75),
        (datasets.TrumpApproval(), ow.RiverRegressor(nodes=5), metrics.MAE(), -1.0),
    ],
    ids=["two classes", "seven classes", "numbers"],
)
def test_a_learner_learns(data, learner, metric, least):
    found = evaluate.progressive_val_score(data, learner, metric).get()
    assert (found if metric.bigger_is_better else -found) > least


def samples(count, seed=0):
    rng = np.random.default_rng(seed)
    for row in rng.standard_normal((count, 2)):
        yield dict(zip("ab", row.tolist(), strict=True)), bool(row[0] + 0.3 * row[1] > 0)


def test_a_feature_that_comes_later_is_as_one_that_was_always_there_and_said_nothing():
    """Until it comes, both learn the same; a feature that never varies is 0 after scaling."""
    late, early = ow.RiverClassifier(learning_rate=0.1), ow.RiverClassifier(learning_rate=0.1)
    for place, (x, y) in enumerate(samples(200)):
        if place < 100:
            late.learn_one(x, y)
            early.learn_one({**x, "c": 7.0}, y)
            assert late.predict_proba_one(x) == pytest.approx(early.predict_proba_one(x), rel=1e-12)
        else:
            late.learn_one({**x, "c": 9.0 * y}, y)
    assert late.predict_one({"c": 9.0}) is True
    assert late.predict_one({"c": 0.0}) is False
    without = late.predict_proba_one({"a": 0.1, "b": 0.1})
    assert without == late.predict_proba_one({"a": 0.1, "b": 0.1, "never seen": 5.0})


def test_a_feature_that_is_missing_has_its_mean():
    learner = ow.RiverRegressor()
    for x, _ in samples(50):
        learner.learn_one(x, 2 * x["a"])
    mean = np.mean([x["b"] for x, _ in samples(50)])
    assert learner.predict_one({"a": 1.0}) == pytest.approx(
        learner.predict_one({"a": 1.0, "b": mean})
    )


def test_a_class_that_comes_later_leaves_what_was_learned():
    learner = ow.RiverClassifier()
    for x, y in samples(300):
        learner.learn_one(x, y)
    before = learner.predict_proba_one({"a": 2.0, "b": 0.0})
    learner.learn_one({"a": 0.0, "b": 9.0}, "a third one")
    after = learner.predict_proba_one({"a": 2.0, "b": 0.0})
    assert set(after) == {True, False, "a third one"}
    assert before[True] > 0.9
    assert after[True] > after["a third one"] > after[False]
    for x, _ in samples(100, seed=1):
        learner.learn_one({"a": x["a"], "b": 9.0}, "a third one")
    assert learner.predict_one({"a": 0.0, "b": 9.0}) == "a third one"


def test_a_sample_is_predicted_by_the_node_that_learns_from_it():
    """Nodes that learn alone: the first sample of each is predicted by a model of zeros."""
    learner = ow.RiverRegressor(nodes=3, method="local", l2=0.0)
    learner.learn_one({"a": 1.0}, 5.0)
    learner.learn_one({"a": 2.0}, 8.0)
    network = learner._network
    assert network.network.turn == 2
    np.testing.assert_array_equal(network.params, np.zeros(2))
    np.testing.assert_array_equal(network.params, network.network.estimates[2])
    assert np.abs(network.network.estimates[1]).max() > 0


def test_what_cannot_be_used_changes_nothing_and_is_told():
    learner = ow.RiverClassifier()
    learner.learn_one({"a": 1.0}, True)
    before = learner.predict_proba_one({"a": 1.0})
    for wrong in ("red", float("nan"), None):
        with pytest.raises(DataError, match="feature 'colour' is"):
            learner.learn_one({"a": 1.0, "colour": wrong}, False)
    assert learner.predict_proba_one({"a": 1.0}) == before
    with pytest.raises(ConfigError, match="nodes is 0"):
        ow.RiverClassifier(nodes=0).learn_one({"a": 1.0}, True)


def test_in_a_pipeline_text_has_an_encoder_in_front():
    model = compose.Pipeline(preprocessing.OneHotEncoder(), ow.RiverClassifier())
    for _ in range(30):
        model.learn_one({"colour": "red"}, True)
        model.learn_one({"colour": "blue"}, False)
    assert model.predict_one({"colour": "red"}) is True
    assert model.predict_one({"colour": "blue"}) is False


def test_a_peer_as_a_learner_of_river(tmp_path):
    (tmp_path / "task.toml").write_text(
        f'{PLAIN_TOML}label = "y"\nclasses = ["false", "true"]\nmodel = "logistic"\n'
        "learning_rate = 0.3\n[features]\na = {}\nb = {}\n"
    )
    home = Home.create(tmp_path / "alice", "alice", tmp_path / "task.toml", free_address(tmp_path))
    with ow.Peer(home.folder) as peer:
        learner = ow.RiverClassifier(peer)
        score = evaluate.progressive_val_score(samples(300), learner, metrics.Accuracy()).get()
        assert score > 0.85
        assert peer.status().samples == 300
        assert learner.predict_one({"a": 2.0, "b": 0.0}) is True
        assert learner.clone().peer is peer


def test_without_river_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "oneway.estimators.river_learners", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'oneway\[river\]'"):
        _ = ow.RiverClassifier
    assert ow.OnewayClassifier is not None
