"""Streaming tally of predictions, and the measures that follow from it.

A tally holds a few small arrays by name, whatever the number of samples. Tallies of two sets of
samples can be `merged`, so samples are counted one by one, by node, or all at once. Measures are
accuracy, ROC AUC, log loss, Brier score and calibration; of numbers RMSE, MAE and R2.

Ranks are counted in bins of equal width of asinh(score): fine near 0, where most scores are, and
wide where they are few.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from oneway.models import LabelKind, Model, Predictions
from oneway.records import Floats, Ints, Matrix, Vector
from oneway.records.measures import Baselines, CalibrationBin, ClassMeasure, Measures

Tally: TypeAlias = Mapping[str, Matrix]
"""Arrays by name, float64, so that counts are exact up to 2^53; empty before the first sample.

- `losses[3]`: samples, and the sums of their losses and of the base rate's.
- `alone[1]`, `shared[1]`: the sums of the losses of the learner that is alone, and of the shared
  model, where something else predicts.
- `counts[3, class]`: of labels, of predictions, and of right predictions.
- `table[label, prediction]`: counts, if there are at most `MOST_CLASSES`.
- `scores[column, 2, bin]`: of others and of its own class, if there are at most `MOST_RANKED`.
- `chances[2]`: the sums of log loss and Brier score.
- `tenths[3, 10]`: by tenths of a probability: samples, the sum of it, and how often it was so.
- `errors[2]`: the sums of squared and absolute errors.
- `labels[3]`: samples, mean, and sum of the squared distances from it.
"""

MOST_CLASSES = 32
"""With more classes there is no table of label against prediction."""
MOST_RANKED = 16
"""With more classes they are not ranked one by one."""
ALL_BINS = 1024
"""Bins of scores, of all columns together; two classes have one column, of half as many."""
CLASS_PRIOR = 0.5
"""Samples of each class that a base rate starts from (Krichevsky and Trofimov), so that nothing is
impossible."""
_REACH = 5.0
"""Bins end at asinh(score) = 5, a score of 74; those at the ends take what lies beyond."""
_LARGEST = float(np.finfo(np.float64).max)
"""Sums stop here: neither JSON nor a chart can hold infinity."""
_EPSILON = float(np.finfo(np.float64).eps)


def counted(
    model: Model,
    num_classes: int,
    predictions: Predictions,
    labels: Floats,
    losses: Vector,
    base: Vector,
    alone: Vector | None = None,
) -> Tally:
    """Return the tally of some samples.

    Args:
        model: The model that is learned.
        num_classes: Number of classes; ignored for numbers.
        predictions: Predictions, made before the labels were known.
        labels: The labels, as the model learns them.
        losses: Loss of each prediction.
        base: Loss of the base rate at each sample.
        alone: Loss of the learner that is alone, if there is one.
    """
    tally: dict[str, Matrix] = {
        "losses": np.minimum([float(len(labels)), losses.sum(), base.sum()], _LARGEST)
    }
    if alone is not None:
        # A learner that is alone may diverge where this one does not.
        worst = np.nan_to_num(alone, nan=_LARGEST, posinf=_LARGEST)
        with np.errstate(over="ignore"):
            tally["alone"] = np.minimum(worst.sum(keepdims=True), _LARGEST)
    if model.classifies:
        tally |= _of_classes(model.labels, num_classes, predictions, labels)
    else:
        tally |= _of_numbers(predictions.predicted, labels)
    return tally


def merged(one: Tally, other: Tally) -> Tally:
    """Return the tally of the samples of both."""
    if not one or not other:
        return one or other
    with np.errstate(over="ignore"):
        both = {
            name: np.minimum(one[name] + other[name], _LARGEST)
            for name in one
            if name != "labels" and name in other
        }
    if "labels" in one and "labels" in other:
        both["labels"] = _pooled(one["labels"], other["labels"])
    return both


def with_sample(
    tally: Tally,
    model: Model,
    num_classes: int,
    predictions: Predictions,
    label: float,
    loss: float,
    base: float,
    alone: float | None = None,
    shared: float | None = None,
) -> Tally:
    """Return the tally with one sample more."""
    apart = None if alone is None else np.array([alone])
    given = (np.array([label]), np.array([loss]), np.array([base]), apart)
    one = counted(model, num_classes, predictions, *given)
    return merged(tally, one if shared is None else {**one, "shared": np.array([shared])})


def class_codes(kind: LabelKind, labels: Floats) -> Ints:
    """Return the class of each label, counted from 0."""
    codes: Ints = (labels > 0).astype(np.intp) if kind == "binary" else labels.astype(np.intp)
    return codes


def base_expectation(tally: Tally, kind: LabelKind, num_classes: int) -> Matrix:
    """Return the expected label, ignoring its features: one row for `Model.base_losses`.

    Shares of classes are those seen so far, with `CLASS_PRIOR` samples of each added; of numbers it
    is the mean, 0 before the first.
    """
    if kind == "number":
        return np.array([[tally["labels"][1] if tally else 0.0]])
    seen = tally["counts"][0] if tally else np.zeros(num_classes)
    shares: Matrix = (seen + CLASS_PRIOR) / (seen.sum() + CLASS_PRIOR * num_classes)
    return shares[None, :]


def _of_classes(
    kind: LabelKind, num_classes: int, predictions: Predictions, labels: Floats
) -> Tally:
    codes, predicted = class_codes(kind, labels), class_codes(kind, predictions.predicted)
    counts = [
        np.bincount(it, minlength=num_classes)
        for it in (codes, predicted, codes[codes == predicted])
    ]
    tally: dict[str, Matrix] = {"counts": np.array(counts, np.float64)}
    if num_classes <= MOST_CLASSES:
        pairs = np.bincount(codes * num_classes + predicted, minlength=num_classes**2)
        tally["table"] = pairs.reshape(num_classes, num_classes).astype(np.float64)
    if predictions.scores is not None and num_classes <= MOST_RANKED:
        tally["scores"] = _binned(predictions.scores, codes)
    if predictions.probabilities is not None:
        tally |= _of_probabilities(predictions.probabilities, codes, predicted)
    return tally


def _binned(scores: Matrix, codes: Ints) -> Matrix:
    """Count scores by column, by whether they are of the column's class, and by bin."""
    num_columns = scores.shape[1]
    num_bins = ALL_BINS // max(2, num_columns)
    # Every function here is monotone also in floating point: no pair of scores changes its order.
    places = (np.arcsinh(scores) + _REACH) * (num_bins / (2.0 * _REACH))
    bins = places.clip(0.0, num_bins - 1.0).astype(np.intp)
    columns = np.arange(num_columns)
    own = codes[:, None] == (columns if num_columns > 1 else 1)
    flat = ((2 * columns + own) * num_bins + bins).reshape(-1)
    counts = np.bincount(flat, minlength=2 * num_columns * num_bins)
    return counts.reshape(num_columns, 2, num_bins).astype(np.float64)


def _of_probabilities(probabilities: Matrix, codes: Ints, predicted: Ints) -> Tally:
    rows, num_classes = np.arange(len(codes)), probabilities.shape[1]
    of_label = probabilities[rows, codes].clip(_EPSILON, 1.0 - _EPSILON)
    if num_classes == 2:
        chosen, happened = probabilities[:, 1], codes == 1
        brier = (chosen - happened) ** 2
    else:
        chosen, happened = probabilities[rows, predicted], codes == predicted
        brier = (probabilities**2).sum(axis=1) - 2.0 * probabilities[rows, codes] + 1.0
    tenths = np.minimum((10.0 * chosen).astype(np.intp), 9)
    return {
        "chances": np.array([-np.log(of_label).sum(), brier.sum()]),
        "tenths": np.bincount(
            np.concatenate([tenths, tenths + 10, tenths + 20]),
            weights=np.concatenate([np.ones(len(codes)), chosen, happened]),
            minlength=30,
        ).reshape(3, 10),
    }


def _of_numbers(predicted: Vector, labels: Floats) -> Tally:
    values = labels.astype(np.float64)
    with np.errstate(over="ignore"):
        errors = predicted - values
        sums = np.minimum([(errors**2).sum(), np.abs(errors).sum()], _LARGEST)
        mean = values.mean()
        spread = np.minimum([len(values), mean, ((values - mean) ** 2).sum()], _LARGEST)
    return {"errors": sums, "labels": spread}


def _pooled(one: Vector, other: Vector) -> Vector:
    """Count, mean and sum of squares of two sets of numbers (Chan, Golub and LeVeque)."""
    (count, mean, square), (more, its_mean, its_square) = one, other
    total, apart = count + more, its_mean - mean
    with np.errstate(over="ignore"):
        return np.minimum(
            [
                total,
                mean + apart * (more / total),
                square + its_square + apart**2 * (count * more / total),
            ],
            _LARGEST,
        )


def measures_of(
    tally: Tally, classes: Sequence[str] = (), lately: Baselines | None = None
) -> Measures | None:
    """Return the measures of a tally; None if it has no samples.

    Args:
        tally: Of all predictions.
        classes: Names of the classes; by default their numbers.
        lately: Losses of the last samples.
    """
    if not tally:
        return None
    samples, loss_sum, base_sum = tally["losses"].tolist()
    so_far = Baselines(
        samples=int(samples),
        loss=loss_sum / samples,
        base_loss=base_sum / samples,
        shared_loss=float(tally["shared"][0]) / samples if "shared" in tally else None,
        alone_loss=float(tally["alone"][0]) / samples if "alone" in tally else None,
    )
    if "counts" not in tally:
        return _number_measures(tally, so_far, lately)
    counts = tally["counts"]
    names = list(classes) or [str(code) for code in range(counts.shape[1])]
    most = int(counts[0].argmax())
    area, error = roc_auc(tally["scores"]) if "scores" in tally else (None, None)
    log_loss, brier = tally["chances"].tolist() if "chances" in tally else (None, None)
    return Measures(
        so_far=so_far,
        lately=lately,
        answer=names[most],
        answer_share=float(counts[0, most] / samples),
        accuracy=float(counts[2].sum() / samples),
        roc_auc=area,
        roc_auc_error=error,
        log_loss=None if log_loss is None else log_loss / samples,
        brier=None if brier is None else brier / samples,
        calibration=_calibration(tally["tenths"]) if "tenths" in tally else [],
        classes=[
            ClassMeasure(
                name=name,
                samples=int(labelled),
                predicted=int(chosen),
                recall=right / labelled if labelled else None,
                precision=right / chosen if chosen else None,
            )
            for name, (labelled, chosen, right) in zip(names, counts.T.tolist(), strict=True)
        ],
        confusion=tally["table"].astype(int).tolist() if "table" in tally else [],
    )


def roc_auc(scores: Matrix) -> tuple[float | None, float | None]:
    """Return the area under the ROC curve of binned scores, and a bound on its error.

    A pair of scores in the same bin counts one half, as ties do; in truth it counts 0 to 1. So the
    error is at most half the share of such pairs. Of several columns it is the mean over those that
    have both kinds.

    Args:
        scores: `[column, 2, bin]`: counts of others and of the column's class.

    Returns:
        None and None if no column has both kinds.

    >>> import numpy as np
    >>> roc_auc(np.array([[[1.0, 1.0], [0.0, 2.0]]]))
    (0.75, 0.25)
    """
    others, own = scores[:, 0], scores[:, 1]
    pairs = own.sum(axis=1) * others.sum(axis=1)
    known = pairs > 0
    if not known.any():
        return None, None
    above = own.sum(axis=1, keepdims=True) - own.cumsum(axis=1)
    tied = 0.5 * (others * own).sum(axis=1)
    areas = ((others * above).sum(axis=1) + tied)[known] / pairs[known]
    return float(areas.mean()), float((tied[known] / pairs[known]).mean())


def _calibration(tenths: Matrix) -> list[CalibrationBin]:
    return [
        CalibrationBin(
            samples=int(count),
            predicted=total / count if count else None,
            observed=times / count if count else None,
        )
        for count, total, times in tenths.T.tolist()
    ]


def _number_measures(tally: Tally, so_far: Baselines, lately: Baselines | None) -> Measures:
    squares, sizes = tally["errors"].tolist()
    _, mean, spread = tally["labels"].tolist()
    explained = 1.0 - squares / spread if spread > 0.0 else -math.inf
    return Measures(
        so_far=so_far,
        lately=lately,
        answer=f"{mean:.6g}",
        rmse=math.sqrt(squares / so_far.samples),
        mae=sizes / so_far.samples,
        r2=explained if math.isfinite(explained) else None,
    )
