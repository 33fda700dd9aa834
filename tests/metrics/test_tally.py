"""Streaming measures against scikit-learn, and against literal transcriptions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from oneway.metrics.tally import (
    base_expectation,
    counted,
    measures_of,
    merged,
    roc_auc,
    with_sample,
)
from oneway.models import Hinge, LogisticRegression, Model, RidgeRegression, SoftmaxRegression
from oneway.records import Batch

SIZES = {"logistic": 2, "hinge": 2, "softmax": 4, "ridge": 0}
MODELS: dict[str, Model] = {
    "logistic": LogisticRegression(l2=0.0),
    "hinge": Hinge(l2=0.0),
    "softmax": SoftmaxRegression(num_classes=4, l2=0.0),
    "ridge": RidgeRegression(l2=0.0),
}


def samples(name: str, count: int, seed: int, spread: float = 1.0) -> tuple[np.ndarray, Batch]:
    """A parameter vector per row, and rows whose labels they foresee more or less."""
    rng = np.random.default_rng(seed)
    model = MODELS[name]
    features = rng.normal(size=(count, 3))
    stack = spread * rng.normal(size=(count, model.dim(3))) + np.linspace(-1, 1, model.dim(3))
    noisy = model.predictions(stack + rng.normal(size=stack.shape), features).predicted
    labels = noisy + rng.normal(size=count) + 40.0 if name == "ridge" else noisy
    return stack, Batch(features, labels)


def tally_of(name: str, stack: np.ndarray, batch: Batch, rows: slice = slice(None)):
    model = MODELS[name]
    part = Batch(batch.features[rows], batch.labels[rows])
    answers, losses = model.predictions(stack[rows], part.features), model.losses(stack[rows], part)
    return counted(model, SIZES[name], answers, part.labels, losses, losses + 1.0, losses + 2.0)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("spread", [1.0, 300.0])
def test_samples_one_by_one_and_in_any_parts_give_the_same_tally(name, spread):
    stack, batch = samples(name, 60, seed=1, spread=spread)
    whole = tally_of(name, stack, batch)
    one_by_one, parts = {}, {}
    model, losses = MODELS[name], MODELS[name].losses(stack, batch)
    for row in range(60):
        answers = model.predictions(stack[row], batch.features[row : row + 1])
        label, loss = float(batch.labels[row]), float(losses[row])
        more = (answers, label, loss, loss + 1.0, loss + 2.0)
        one_by_one = with_sample(one_by_one, model, SIZES[name], *more)
    for rows in (slice(40, 60), slice(0, 7), slice(7, 40)):
        parts = merged(tally_of(name, stack, batch, rows), parts)
    for other in (one_by_one, parts):
        assert other.keys() == whole.keys()
        for key, array in whole.items():
            np.testing.assert_allclose(other[key], array, rtol=1e-12, atol=1e-12)
    assert sum(array.size for array in whole.values()) < 2200  # however many samples there are


def test_sums_of_single_samples_stop_at_the_largest_number():
    model, largest = MODELS["ridge"], float(np.finfo(np.float64).max)
    answers = model.predictions(np.array([0.0, 1e200]), np.array([[1e100]]))
    tally: dict = {}
    for alone in (1.0, math.inf, math.nan):
        tally = with_sample(tally, model, 0, answers, 0.0, largest, largest, alone)
    assert tally["losses"].tolist() == [3.0, largest, largest]
    assert (tally["alone"].tolist(), tally["errors"][0]) == ([largest], largest)
    assert measures_of(tally).so_far.alone_loss > 1e300


@pytest.mark.parametrize("name", ["logistic", "hinge"])
@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0])
def test_two_classes_are_measured_as_scikit_learn_does(name, spread):
    stack, batch = samples(name, 3000, seed=2, spread=spread)
    model = MODELS[name]
    found = measures_of(tally_of(name, stack, batch), ("no", "yes"))
    scores, truth = model.scores(stack, batch.features), batch.labels > 0
    said = scores >= 0
    assert found.accuracy == pytest.approx(sk.accuracy_score(truth, said), abs=1e-12)
    assert found.confusion == sk.confusion_matrix(truth, said).tolist()
    recall, precision = sk.recall_score(truth, said), sk.precision_score(truth, said)
    assert found.classes[1].recall == pytest.approx(recall, abs=1e-12)
    assert found.classes[1].precision == pytest.approx(precision, abs=1e-12)
    assert [it.samples for it in found.classes] == [(~truth).sum(), truth.sum()]
    area = sk.roc_auc_score(truth, scores)
    assert abs(found.roc_auc - area) <= found.roc_auc_error + 1e-12
    assert abs(found.roc_auc - area) < 2e-3
    assert found.roc_auc_error < (0.35 if spread == 0.01 else 0.01)
    if name == "hinge":
        assert found.log_loss is found.brier is None
        assert found.calibration == []
        return
    chances = model.probabilities_of(scores)[:, 1]
    assert found.log_loss == pytest.approx(sk.log_loss(truth, chances), rel=1e-10)
    assert found.brier == pytest.approx(sk.brier_score_loss(truth, chances), rel=1e-12)
    observed, predicted = calibration_curve(truth, chances, n_bins=10)
    full = [it for it in found.calibration if it.samples]
    np.testing.assert_allclose([it.observed for it in full], observed, atol=1e-12)
    np.testing.assert_allclose([it.predicted for it in full], predicted, atol=1e-12)
    assert found.so_far.loss == pytest.approx(model.losses(stack, batch).mean(), rel=1e-12)
    assert found.so_far.base_loss == pytest.approx(found.so_far.loss + 1.0, rel=1e-12)
    assert found.so_far.alone_loss == pytest.approx(found.so_far.loss + 2.0, rel=1e-12)


def test_several_classes_are_measured_as_scikit_learn_does():
    stack, batch = samples("softmax", 2000, seed=3)
    found = measures_of(tally_of("softmax", stack, batch))
    model, truth = MODELS["softmax"], batch.labels.astype(int)
    chances = np.array(
        [
            model.probabilities(row, at[None])[0]
            for row, at in zip(stack, batch.features, strict=True)
        ]
    )
    said = chances.argmax(axis=1)
    assert found.accuracy == pytest.approx(sk.accuracy_score(truth, said), abs=1e-12)
    assert found.confusion == sk.confusion_matrix(truth, said).tolist()
    recalls = sk.recall_score(truth, said, average=None)
    precisions = sk.precision_score(truth, said, average=None)
    np.testing.assert_allclose([it.recall for it in found.classes], recalls, atol=1e-12)
    np.testing.assert_allclose([it.precision for it in found.classes], precisions, atol=1e-12)
    assert found.log_loss == pytest.approx(sk.log_loss(truth, chances), rel=1e-10)
    literal = np.mean([((chances[i] - np.eye(4)[truth[i]]) ** 2).sum() for i in range(2000)])
    assert found.brier == pytest.approx(literal, rel=1e-12)
    area = sk.roc_auc_score(truth, chances, multi_class="ovr")
    assert abs(found.roc_auc - area) <= found.roc_auc_error + 1e-12 < 0.03
    of_predicted = chances.max(axis=1)
    high = (of_predicted >= 0.7) & (of_predicted < 0.8)
    assert found.calibration[7].samples == high.sum()
    assert found.calibration[7].observed == pytest.approx((truth == said)[high].mean(), abs=1e-12)


def test_numbers_are_measured_as_scikit_learn_does_also_far_from_zero():
    stack, batch = samples("ridge", 1000, seed=4)
    far = Batch(batch.features, batch.labels + 1e7)
    for rows in (batch, far):
        tally = {}
        for part in np.array_split(np.arange(1000), 7):
            cut = slice(part[0], part[-1] + 1)
            tally = merged(tally, tally_of("ridge", stack, rows, cut))
        found, said = measures_of(tally), MODELS["ridge"].scores(stack, rows.features)
        squares = sk.mean_squared_error(rows.labels, said)
        assert found.rmse == pytest.approx(math.sqrt(squares), rel=1e-10)
        assert found.mae == pytest.approx(sk.mean_absolute_error(rows.labels, said), rel=1e-10)
        assert found.r2 == pytest.approx(sk.r2_score(rows.labels, said), rel=1e-7)
        assert float(found.answer) == pytest.approx(rows.labels.mean(), rel=1e-5)
    assert found.accuracy is found.roc_auc is found.answer_share is None


@given(seed=st.integers(0, 2**32 - 1), power=st.floats(-8.0, 8.0), ties=st.booleans())
def test_binned_area_is_never_further_off_than_it_says(seed, power, ties):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 300))
    scores = 10.0**power * rng.normal(size=count) + rng.normal()
    if ties:
        scores = np.round(scores, 1)
    labels = rng.choice([-1.0, 1.0], count)
    labels[:2] = (-1.0, 1.0)
    model = MODELS["logistic"]
    nothing = np.zeros(count)
    tally = counted(model, 2, model.predictions_from(scores), labels, nothing, nothing)
    area, error = roc_auc(tally["scores"])
    own, others = scores[labels > 0], scores[labels < 0]
    literal = np.mean([(a > b) + 0.5 * (a == b) for a in own for b in others])
    assert literal == pytest.approx(sk.roc_auc_score(labels > 0, scores), abs=1e-12)
    assert abs(area - literal) <= error + 1e-12


def test_one_class_has_no_area_and_no_sample_no_measures():
    model, nothing = MODELS["logistic"], np.zeros(2)
    tally = counted(model, 2, model.predictions_from(np.ones(2)), np.ones(2), nothing, nothing)
    found = measures_of(tally, ("no", "yes"))
    assert (found.roc_auc, found.roc_auc_error) == (None, None)
    assert (found.classes[0].recall, found.classes[0].precision) == (None, None)
    assert (found.answer, found.answer_share) == ("yes", 1.0)
    assert found.so_far.alone_loss is None
    assert measures_of({}) is None


def test_a_thousand_classes_have_neither_table_nor_ranks_but_recall_and_precision():
    model = SoftmaxRegression(num_classes=1000)
    rng = np.random.default_rng(5)
    stack, features = rng.normal(size=(50, model.dim(2))), rng.normal(size=(50, 2))
    labels, nothing = rng.integers(0, 1000, 50).astype(float), np.zeros(50)
    tally = counted(model, 1000, model.predictions(stack, features), labels, nothing, nothing)
    assert sum(array.size for array in tally.values()) < 3100
    found = measures_of(tally)
    assert found.confusion == []
    assert found.roc_auc is None
    assert sum(it.samples for it in found.classes) == 50


def test_the_base_rate_knows_what_was_seen_and_half_a_sample_of_each_class():
    assert base_expectation({}, "binary", 2).tolist() == [[0.5, 0.5]]
    assert base_expectation({}, "number", 0).tolist() == [[0.0]]
    stack, batch = samples("softmax", 9, seed=6)
    seen = np.bincount(batch.labels.astype(int), minlength=4)
    expected = base_expectation(tally_of("softmax", stack, batch), "classes", 4)
    np.testing.assert_allclose(expected[0], (seen + 0.5) / 11.0, rtol=1e-14)
    stack, batch = samples("ridge", 9, seed=6)
    found = base_expectation(tally_of("ridge", stack, batch), "number", 0)
    assert found[0, 0] == pytest.approx(batch.labels.mean(), rel=1e-14)
