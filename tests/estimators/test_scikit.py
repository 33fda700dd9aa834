"""scikit-learn's own checks, and what they do not ask."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import oneway as ow
from oneway.errors import ConfigError, DataError
from oneway.estimators.network import SimulatedNetwork
from oneway.privacy import epsilon_of, sensitivity
from oneway.task.privacy import DEFAULT_DELTA, Privacy


@parametrize_with_checks(
    [ow.OnewayClassifier(), ow.OnewayRegressor(), ow.OnewayClassifier(nodes=1, method="local")]
)
def test_scikit_learns_own_checks_hold(estimator, check):
    """None is skipped or expected to fail."""
    check(estimator)


@pytest.mark.usefixtures("huber")
@pytest.mark.parametrize("model", ["ridge", "huber"])
def test_a_network_learns_numbers_in_their_units(model):
    X, y = load_diabetes(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), ow.OnewayRegressor(model=model, random_state=0))
    assert cross_val_score(pipeline, X, 1e6 + 1e3 * y, cv=3).mean() > 0.4


def test_it_works_in_pipelines_and_grid_searches():
    rng = np.random.default_rng(5)
    age, ward = rng.normal(60.0, 12.0, 300), rng.choice(["east", "west"], 300)
    frame = pd.DataFrame({"age": age, "ward": ward})
    ill = (age > 60) | (ward == "east")
    columns = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["ward"]))
    model = make_pipeline(columns, ow.OnewayClassifier(nodes=4, random_state=0))
    search = GridSearchCV(model, {"onewayclassifier__learning_rate": [0.0001, 0.3]}, cv=2)
    assert search.fit(frame, ill).best_params_ == {"onewayclassifier__learning_rate": 0.3}
    assert search.score(frame, ill) > 0.9


@pytest.mark.parametrize("estimator", [ow.OnewayClassifier(), ow.OnewayRegressor(model="ridge")])
def test_an_estimator_lists_its_attributes_before_it_is_fitted(estimator):
    """`dir` asks for every attribute, and once failed an assertion of a property."""
    assert "fit" in dir(estimator)


@pytest.mark.parametrize(
    "graph",
    [
        ow.TrustGraph.random(5, max_receivers=3, seed=1),
        ow.TrustGraph.from_edges([(0, 1), (1, 2), (4, 1)], 5),
    ],
    ids=["strongly connected", "one-way streets"],
)
def test_a_network_that_learns_in_blocks_is_the_simulators_run_to_the_last_bit(graph):
    """Rows go to the nodes in turn; blocks end where rounds do."""
    rng = np.random.default_rng(0)
    features, labels = rng.standard_normal((60, 3)), rng.choice([-1.0, 1.0], 60)
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
    for _ in range(4):
        network.learn(np.ones((1, 1)), np.ones(1))
    once, twice = 0.25, 0.25 + 0.5 / (1 + np.exp(0.25))
    np.testing.assert_allclose(network.estimates[:, 0], [twice, once, once], rtol=1e-15)


def test_partial_fit_keeps_what_was_learned_and_fit_does_not():
    X, y = load_iris(return_X_y=True)
    once = ow.OnewayClassifier(random_state=0).fit(X, y)
    again = ow.OnewayClassifier(random_state=0).fit(X, y).fit(X, y)
    np.testing.assert_array_equal(once.predict_proba(X), again.predict_proba(X))
    before = again.network_.samples
    again.partial_fit(X, y)
    assert again.network_.samples == before + len(y)


def test_later_blocks_do_not_change_the_units_of_parameters_that_were_learned_before():
    """A model of labels in thousands stays one, however large later labels are."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 1))
    blocks = ow.OnewayRegressor(nodes=2, random_state=0).partial_fit(X, 1e3 * X[:, 0])
    units = blocks.network_.model.center, blocks.network_.model.scale
    blocks.partial_fit(X[:1], np.array([1e5]))
    assert (blocks.network_.model.center, blocks.network_.model.scale) == units


def test_nodes_that_learn_alone_have_no_common_model():
    """`local` predicts with the model of one node that never saw another's rows."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    alone = ow.OnewayClassifier(nodes=4, method="local", random_state=0).fit(X, y)
    models = alone.network_.estimates
    for estimator, node in ((alone, 0), (clone(alone).set_params(node=2).fit(X, y), 2)):
        scores = X @ models[node][:-1] + models[node][-1]
        np.testing.assert_allclose(estimator.decision_function(X), scores, rtol=1e-12)


def test_an_estimator_keeps_no_row():
    X, y = load_iris(return_X_y=True)
    fitted = ow.OnewayClassifier(nodes=3, random_state=0).fit(X, y)
    assert X[0].tobytes() not in pickle.dumps(fitted)


def test_hinge_has_no_probabilities_and_two_classes_of_softmax_decide_by_their_difference():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    hinge = ow.OnewayClassifier(model="hinge", random_state=0).fit(X, y)
    assert hinge.score(X, y) > 0.9
    assert not hasattr(hinge, "predict_proba")
    softmax = ow.OnewayClassifier(model="softmax", random_state=0).fit(X, y)
    decided = softmax.decision_function(X) > 0
    np.testing.assert_array_equal(decided, softmax.predict(X) == softmax.classes_[1])


@pytest.mark.parametrize(("passes", "epsilon"), [(1, 1.0), (10, 1.0), (10, 8.0)])
def test_epsilon_holds_for_all_passes_together(passes, epsilon):
    """A row moves what nodes send `passes` times, each time by up to 1 / noise deviations."""
    X, y = load_iris(return_X_y=True)
    noised = ow.OnewayClassifier(nodes=3, passes=passes, epsilon=epsilon, random_state=0).fit(X, y)
    batches = noised.network_.method.batches
    mu = passes * sensitivity(batches.band) / batches.noise
    assert epsilon_of(mu, DEFAULT_DELTA) <= epsilon
    assert epsilon_of(1.01 * mu, DEFAULT_DELTA) > epsilon
    assert Privacy(epsilon=epsilon).batches(1, 5).noise * passes == pytest.approx(batches.noise)


@pytest.mark.parametrize(
    "settings",
    [
        *({"nodes": 0}, {"passes": 0}, {"graph": 7}, {"method": "magic"}),
        *({"model": "ridge"}, {"model": "logistic"}, {"node": 20}),
    ],
    ids=str,
)
def test_wrong_parameters_are_refused(settings):
    X, y = load_iris(return_X_y=True)
    [(name, value)] = settings.items()
    with pytest.raises(ConfigError, match=f"{name} is {value!r}"):
        ow.OnewayClassifier(**settings).fit(X, y).predict(X)


def test_unknown_classes_and_models_of_classes_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(DataError, match="the label 2"):
        ow.OnewayClassifier().partial_fit(X[:100], y[:100]).partial_fit(X, y)
    with pytest.raises(ConfigError, match="model is 'logistic'"):
        ow.OnewayRegressor(model="logistic").fit(X, y)
