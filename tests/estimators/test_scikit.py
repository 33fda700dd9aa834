"""scikit-learn's own checks, and what they do not ask."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from plain import PLAIN_TOML
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

import oneway as ow
from oneway.errors import ConfigError, DataError, GraphError
from oneway.estimators.network import SimulatedNetwork
from oneway.peer.home.free_address import free_address
from oneway.peer.home.home import Home

EXPECTED_FAILURES: dict[str, str] = {}
"""Checks of scikit-learn that cannot hold, and why: none."""


@parametrize_with_checks(
    [ow.OnewayClassifier(), ow.OnewayRegressor(), ow.OnewayClassifier(nodes=1, method="local")],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learns_own_checks_hold(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("load", "least"), [(load_iris, 0.8), (load_wine, 0.93), (load_breast_cancer, 0.95)]
)
def test_a_network_as_an_estimator_learns_two_classes_and_more(load, least):
    X, y = load(return_X_y=True)
    assert cross_val_score(ow.OnewayClassifier(random_state=0), X, y, cv=3).mean() > least


def test_a_network_as_an_estimator_learns_numbers_in_their_units():
    X, y = load_diabetes(return_X_y=True)
    scores = cross_val_score(ow.OnewayRegressor(random_state=0), X, 1e6 + 1e3 * y, cv=3)
    assert scores.mean() > 0.4


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    X, y = load_wine(return_X_y=True)

    def shares(seed):
        return ow.OnewayClassifier(random_state=seed).fit(X, y).predict_proba(X)

    np.testing.assert_array_equal(shares(3), shares(3))
    assert np.abs(shares(3) - shares(4)).max() > 1e-4


def test_a_network_that_learns_in_blocks_is_the_simulators_run_to_the_last_bit():
    """Rows go to the nodes in turn; blocks end where rounds do."""
    rng = np.random.default_rng(0)
    features, labels = rng.standard_normal((60, 3)), rng.choice([-1.0, 1.0], 60)
    graph = ow.TrustGraph.random(5, max_receivers=3, seed=1)
    method, model = ow.Relay(ow.InverseSqrt(0.5), step="curvature"), ow.models.LogisticRegression()
    network = SimulatedNetwork(method, model, graph, 3, seed=0)
    losses = [network.learn(features[i : i + 20], labels[i : i + 20]) for i in (0, 20, 40)]
    stream = ow.Stream(features, labels, np.arange(60).reshape(12, 5))
    run = ow.simulate(method, model, stream, graph, engine="reference")
    np.testing.assert_array_equal(network.estimates, run.estimates)
    np.testing.assert_array_equal(network.params(), run.numerators.sum(axis=0) / run.masses.sum())
    np.testing.assert_allclose(sum(losses), run.record.loss_sums.sum(), rtol=1e-14)


def test_rows_that_come_one_by_one_go_to_the_nodes_in_turn():
    model = ow.models.LogisticRegression(l2=0.0, intercept=False)
    network = SimulatedNetwork(ow.Isolated(0.5), model, ow.TrustGraph.ring(3), 1, seed=0)
    for turn in range(4):
        assert network.turn == turn % 3
        network.learn(np.ones((1, 1)), np.ones(1))
    once, twice = 0.25, 0.25 + 0.5 / (1 + np.exp(0.25))
    np.testing.assert_allclose(network.estimates[:, 0], [twice, once, once], rtol=1e-15)


def test_partial_fit_standardises_by_all_rows_so_far():
    rng = np.random.default_rng(0)
    X, y = 100 + 7 * rng.standard_normal((50, 2)), np.arange(50) % 2
    estimator = ow.OnewayClassifier(nodes=3, random_state=0)
    for first in (0, 1, 11, 30):
        last = {0: 1, 1: 11, 11: 30, 30: 50}[first]
        estimator.partial_fit(X[first:last], y[first:last], classes=[0, 1])
    np.testing.assert_allclose(estimator._scale.means, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(estimator._scale.scales, X.std(axis=0), rtol=1e-12)
    assert estimator.network_.samples == 50


def test_fit_begins_anew_and_partial_fit_goes_on():
    X, y = load_iris(return_X_y=True)
    once = ow.OnewayClassifier(random_state=0).fit(X, y)
    again = ow.OnewayClassifier(random_state=0).fit(X, y).fit(X, y)
    np.testing.assert_array_equal(once.predict_proba(X), again.predict_proba(X))
    before = again.network_.samples
    again.partial_fit(X, y)
    assert again.network_.samples == before + len(y)


def test_it_predicts_with_the_average_or_with_one_nodes_model():
    X, y = load_breast_cancer(return_X_y=True)
    mean = ow.OnewayClassifier(nodes=4, method="local", random_state=0).fit(X, y)
    models = mean.network_.estimates
    np.testing.assert_allclose(mean.network_.params(), models.mean(axis=0), rtol=1e-12)
    one = clone(mean).set_params(node=2).fit(X, y)
    features = one._scale.apply(X)
    scores = features @ models[2][:-1] + models[2][-1]
    np.testing.assert_allclose(one.decision_function(X), scores, rtol=1e-12)
    assert np.abs(one.decision_function(X) - mean.decision_function(X)).max() > 1e-3


def test_an_estimator_keeps_no_row_and_survives_pickling():
    X, y = load_iris(return_X_y=True)
    fitted = ow.OnewayClassifier(nodes=3, random_state=0).fit(X, y)
    stored = pickle.dumps(fitted)
    assert X[0].tobytes() not in stored
    assert fitted._scale.apply(X)[0].tobytes() not in stored
    again = pickle.loads(stored)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(
        again.partial_fit(X, y).predict_proba(X), fitted.partial_fit(X, y).predict_proba(X)
    )


def test_it_works_in_pipelines_and_grid_searches():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(PolynomialFeatures(2), ow.OnewayClassifier(nodes=5, random_state=0))
    search = GridSearchCV(model, {"onewayclassifier__learning_rate": [0.01, 0.3]}, cv=2)
    assert search.fit(X, y).best_params_ == {"onewayclassifier__learning_rate": 0.3}


def test_hinge_says_no_probabilities_and_two_classes_of_softmax_decide_by_their_difference():
    X, y = load_breast_cancer(return_X_y=True)
    hinge = ow.OnewayClassifier(model="hinge", random_state=0).fit(X, y)
    assert hinge.score(X, y) > 0.9
    assert not hasattr(hinge, "predict_proba")
    softmax = ow.OnewayClassifier(model="softmax", random_state=0).fit(X, y)
    decided = softmax.decision_function(X) > 0
    np.testing.assert_array_equal(decided, softmax.predict(X) == softmax.classes_[1])


def test_noise_costs_and_is_asked_for_by_its_epsilon():
    X, y = load_breast_cancer(return_X_y=True)
    plain = ow.OnewayClassifier(samples_per_push=4, random_state=0).fit(X, y)
    noised = ow.OnewayClassifier(samples_per_push=4, epsilon=1.0, random_state=0).fit(X, y)
    assert plain.network_.method.batches.noise == 0
    assert noised.network_.method.batches.noise > 1
    assert np.abs(plain.network_.params() - noised.network_.params()).max() > 0.01


@pytest.mark.parametrize(
    ("told", "error", "culprit"),
    [
        ({"nodes": 0}, ConfigError, "nodes is 0"),
        ({"passes": 0}, ConfigError, "passes is 0"),
        ({"graph": 7}, ConfigError, "graph is 7"),
        ({"graph": ow.TrustGraph.from_edges([(0, 1)], 2)}, GraphError, "strongly connected"),
        ({"method": "magic"}, ConfigError, "method is 'magic'"),
        ({"model": "ridge"}, ConfigError, "model is 'ridge'"),
        ({"model": "logistic"}, ConfigError, "model is 'logistic', which learns two classes"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(told, error, culprit):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(error, match=culprit):
        ow.OnewayClassifier(**told).fit(X, y)


def test_a_node_that_is_not_there_and_a_class_that_was_not_named_are_told():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ConfigError, match="node is 20"):
        ow.OnewayClassifier(node=20).fit(X, y).predict(X)
    with pytest.raises(DataError, match="the label 2 is not one of the 2 classes"):
        ow.OnewayClassifier().partial_fit(X[:100], y[:100]).partial_fit(X, y)
    with pytest.raises(ConfigError, match="model is 'logistic', which learns classes"):
        ow.OnewayRegressor(model="logistic").fit(X, y)


TASK = f"""
{PLAIN_TOML}label = "{{label}}"
{{classes}}model = "{{model}}"
learning_rate = 0.3
[features]
rain = {{{{}}}}
wind = {{{{}}}}
"""


def a_peer(folder, **told):
    (folder / "task.toml").write_text(TASK.format(**told))
    home = Home.create(folder / "alice", "alice", folder / "task.toml", free_address(folder))
    return ow.Peer(home.folder)


def weather(count=60):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((count, 2))
    return X, (X[:, 0] > 0).astype(int)


def test_a_peer_as_an_estimator_learns_each_row_once_and_answers_as_the_peer(tmp_path):
    X, y = weather()
    told = {"label": "late", "classes": 'classes = ["0", "1"]\n', "model": "logistic"}
    with a_peer(tmp_path, **told) as peer:
        estimator = ow.OnewayClassifier(peer)
        estimator.fit(X[:40], y[:40])
        estimator.partial_fit(X[40:], y[40:])
        assert peer.status().samples == 60
        assert estimator.score(X, y) > 0.9
        assert estimator.classes_.tolist() == [0, 1]
        sample = {"rain": X[0, 0], "wind": X[0, 1]}
        said = peer.predict_proba_one(sample)
        assert estimator.predict_proba(X[:1]).tolist() == [[said["0"], said["1"]]]
        frame = pd.DataFrame({"wind": X[:, 1], "rain": X[:, 0]})
        for rows in (frame, pl.from_pandas(frame)):
            np.testing.assert_array_equal(estimator.predict(rows), estimator.predict(X))
        assert clone(estimator).peer is peer
        assert not hasattr(estimator, "decision_function")
        with pytest.raises(DataError, match="the samples have the shape"):
            estimator.predict(X[:, :1])
        with pytest.raises(ConfigError, match="OnewayClassifier is for and not OnewayRegressor"):
            ow.OnewayRegressor(peer).fit(X, y)


def test_a_peer_that_learns_numbers_is_a_regressor(tmp_path):
    X, _ = weather(400)
    with a_peer(tmp_path, label="hours", classes="", model="ridge") as peer:
        estimator = ow.OnewayRegressor(peer).fit(X, 3 * X[:, 0] + 1)
        assert estimator.score(X, 3 * X[:, 0] + 1) > 0.9


def test_before_the_first_row_a_peer_answers_with_the_names_of_its_classes(tmp_path):
    told = {"label": "late", "classes": 'classes = ["no", "yes"]\n', "model": "logistic"}
    with a_peer(tmp_path, **told) as peer:
        assert ow.OnewayClassifier(peer).predict([[0.0, 0.0]]).tolist() == ["yes"]


def patients(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    age = rng.normal(60.0, 12.0, rows)
    ward = rng.choice(["east", "west", "north"], rows)
    ill = rng.random(rows) < 1.0 / (1.0 + np.exp(-(age - 60.0) / 5.0 - 2.0 * (ward == "east")))
    day = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), "D")
    frame = pd.DataFrame({"age": age, "ward": ward, "smoker": rng.random(rows) < 0.3, "day": day})
    frame.loc[rng.random(rows) < 0.15, ["age", "ward"]] = None
    return frame.assign(ill=np.where(ill, "yes", "no"), cost=100.0 * age)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_network_takes_frames_with_text_dates_and_gaps(kind):
    table = patients()
    frame = table[["age", "ward", "smoker", "day"]]
    if kind == "polars":
        cells = frame.astype(object).where(frame.notna(), None)
        frame = pl.DataFrame({name: cells[name].tolist() for name in cells})
    ill = ow.OnewayClassifier(nodes=4, random_state=0).fit(frame[:300], table.ill[:300])
    assert ill.score(frame[300:], table.ill[300:]) > 0.75
    assert [it.kind for it in ill.encoder_.features] == ["number", "category", "boolean", "time"]
    cost = ow.OnewayRegressor(nodes=4, random_state=0).fit(frame[:300], table.cost[:300])
    known = table.age.notna().to_numpy()
    assert np.corrcoef(cost.predict(frame)[known], table.cost[known])[0, 1] > 0.9
    by_blocks = ow.OnewayClassifier(nodes=4, random_state=0)
    for begin in range(0, 400, 100):
        some = slice(begin, begin + 100)
        by_blocks.partial_fit(frame[some], table.ill[some], classes=["no", "yes"])
    assert by_blocks.score(frame, table.ill) > 0.7


def test_a_network_names_the_row_and_column_of_a_frame_that_it_cannot_take():
    table = patients()
    fitted = ow.OnewayClassifier(nodes=3, random_state=0).fit(table[["age", "ward"]], table.ill)
    with pytest.raises(DataError, match=r"row 1.*'age'.*'old'"):
        fitted.predict(pd.DataFrame({"age": [50, "old"], "ward": ["east", "moon"]}))
    with pytest.raises(DataError, match="ward"):
        fitted.predict(pd.DataFrame({"age": [50]}))


def test_a_frame_of_numbers_is_learned_as_an_array_of_them():
    X, y = load_wine(return_X_y=True)
    names = [f"c{index}" for index in range(X.shape[1])]
    of_array = ow.OnewayClassifier(nodes=3, random_state=0).fit(X, y).predict_proba(X)
    frame = pd.DataFrame(X, columns=names)
    of_frame = ow.OnewayClassifier(nodes=3, random_state=0).fit(frame, y)
    np.testing.assert_array_equal(of_frame.predict_proba(frame), of_array)
    assert of_frame.encoder_ is None
