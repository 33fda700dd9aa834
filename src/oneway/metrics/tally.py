"""Streaming tally of predictions: mergeable sums and counts of bounded size.

A tally holds a few small arrays by name, whatever the number of samples. That of two sets of
samples is the `merged` one of both, so that samples can be counted one by one, by node, or all at
once. `measured.py` says what follows from them.

Ranks are counted in bins of equal width of asinh(score): fine near 0, where most scores are, and
wide where they are few.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from oneway.models import Answers, LabelKind, Model
from oneway.records import Floats, Ints, Matrix, Vector

Tally: TypeAlias = Mapping[str, Matrix]
"""Arrays by name, float64, so that counts are exact up to 2^53; empty before the first sample.

- `losses[3]`: samples, and the sums of their losses and of the base rate's.
- `alone[1]`: the sum of the losses of the learner that is alone, if there is one.
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
_REACH = 5.0
"""Bins end at asinh(score) = 5, a score of 74; those at the ends take what lies beyond."""
_LARGEST = float(np.finfo(np.float64).max)
"""Sums stop here: neither JSON nor a picture has a place for infinity."""
_EPSILON = float(np.finfo(np.float64).eps)


def counted(
    model: Model,
    num_classes: int,
    answers: Answers,
    labels: Floats,
    losses: Vector,
    base: Vector,
    alone: Vector | None = None,
) -> Tally:
    """Return the tally of some samples.

    Args:
        model: What is learned; says what kind of labels there are.
        num_classes: How many classes there are; any number where labels are numbers.
        answers: What was said before the labels were known, row by row.
        labels: As the model wants them.
        losses: What the model suffered, row by row.
        base: What the base rate did.
        alone: What the learner that is alone did, if there is one.
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
        tally |= _of_classes(model.labels, num_classes, answers, labels)
    else:
        tally |= _of_numbers(answers.predicted, labels)
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
    answers: Answers,
    label: float,
    loss: float,
    base: float,
    alone: float | None = None,
) -> Tally:
    """Return the tally with one sample more: that of `counted`, merged, by plain numbers.

    Of a single sample, making arrays takes longer than counting.
    """
    if not tally:
        apart = None if alone is None else np.array([alone])
        given = (np.array([label]), np.array([loss]), np.array([base]), apart)
        return counted(model, num_classes, answers, *given)
    after = {"losses": _plus(tally["losses"], 1.0, loss, base)}
    if alone is not None and "alone" in tally:
        after["alone"] = _plus(tally["alone"], alone if math.isfinite(alone) else _LARGEST)
    if not model.classifies:
        away = float(answers.predicted[0]) - label
        after["errors"] = _plus(tally["errors"], away * away, abs(away))
        after["labels"] = _pooled(tally["labels"], np.array([1.0, label, 0.0]))
        return after
    kind = model.labels
    code, said = _code(kind, label), _code(kind, float(answers.predicted[0]))
    marks = {"counts": [(0, code), (1, said), *([(2, code)] if code == said else [])]}
    if "table" in tally:
        marks["table"] = [(code, said)]
    for name, places in marks.items():
        after[name] = tally[name].copy()
        for place in places:
            after[name][place] += 1.0
    if answers.scores is not None and "scores" in tally:
        after["scores"] = _with_ranks(tally["scores"], answers.scores, code)
    if answers.probabilities is not None and "chances" in tally:
        after |= _with_chances(tally, answers.probabilities[0].tolist(), code, said)
    return after


def class_codes(kind: LabelKind, labels: Floats) -> Ints:
    """Return which class labels mean, counted from 0."""
    codes: Ints = (labels > 0).astype(np.intp) if kind == "binary" else labels.astype(np.intp)
    return codes


def base_expectation(tally: Tally, kind: LabelKind, num_classes: int) -> Matrix:
    """Return what is known about the next label without its features: one row for `base_losses`.

    Shares of classes are those seen so far with half a sample of each on top (Krichevsky and
    Trofimov), so that nothing is impossible; of numbers it is the mean, 0 before the first.
    """
    if kind == "number":
        mean = tally["labels"][1] if tally else 0.0
        return np.array([[mean]])
    seen = tally["counts"][0] if tally else np.zeros(num_classes)
    return smoothed_shares(seen[None, :])


def smoothed_shares(seen: Matrix) -> Matrix:
    """Return the shares of classes after `seen[row, class]` samples, half a sample added to each.

    >>> smoothed_shares(np.array([[0.0, 0.0], [1.0, 0.0]]))
    array([[0.5 , 0.5 ],
           [0.75, 0.25]])
    """
    shares: Matrix = (seen + 0.5) / (seen.sum(axis=1, keepdims=True) + 0.5 * seen.shape[1])
    return shares


def _of_classes(kind: LabelKind, num_classes: int, answers: Answers, labels: Floats) -> Tally:
    codes, said = class_codes(kind, labels), class_codes(kind, answers.predicted)
    # One call for all three: of a single sample, calls take longer than counting.
    marks = np.concatenate(
        [codes, said + num_classes, codes[codes == said] + 2 * num_classes], dtype=np.intp
    )
    counts = np.bincount(marks, minlength=3 * num_classes).astype(np.float64)
    tally: dict[str, Matrix] = {"counts": counts.reshape(3, num_classes)}
    if num_classes <= MOST_CLASSES:
        pairs = np.bincount(codes * num_classes + said, minlength=num_classes**2)
        tally["table"] = pairs.reshape(num_classes, num_classes).astype(np.float64)
    if answers.scores is not None and num_classes <= MOST_RANKED:
        tally["scores"] = _binned(answers.scores, codes)
    if answers.probabilities is not None:
        tally |= _of_chances(answers.probabilities, codes, said)
    return tally


def _binned(scores: Matrix, codes: Ints) -> Matrix:
    """Count scores by column, by whether they are of the column's class, and by bin."""
    num_columns = scores.shape[1]
    num_bins = ALL_BINS // max(2, num_columns)
    bins = _bins(scores, num_bins)
    columns = np.arange(num_columns)
    own = codes[:, None] == (columns if num_columns > 1 else 1)
    flat = ((2 * columns + own) * num_bins + bins).reshape(-1)
    counts = np.bincount(flat, minlength=2 * num_columns * num_bins)
    return counts.reshape(num_columns, 2, num_bins).astype(np.float64)


def _bins(scores: Matrix, num_bins: int) -> NDArray[np.intp]:
    # Every function here is monotone also in floating point: no pair of scores changes its order.
    places = (np.arcsinh(scores) + _REACH) * (num_bins / (2.0 * _REACH))
    return places.clip(0.0, num_bins - 1.0).astype(np.intp)


def _with_ranks(ranks: Matrix, scores: Matrix, code: int) -> Matrix:
    """The counts of `_binned` with one row of scores more."""
    after = ranks.copy()
    bins = _bins(scores, ranks.shape[2])[0].tolist()
    for column, place in enumerate(bins):
        own = code == (column if len(bins) > 1 else 1)
        after[column, int(own), place] += 1.0
    return after


def _with_chances(tally: Tally, chances: list[float], code: int, said: int) -> dict[str, Matrix]:
    """The sums of `_of_chances` with one row of probabilities more."""
    of_label = min(max(chances[code], _EPSILON), 1.0 - _EPSILON)
    if len(chances) == 2:
        chosen, happened = chances[1], code == 1
        brier = (chosen - happened) ** 2
    else:
        chosen, happened = chances[said], code == said
        brier = sum(chance * chance for chance in chances) - 2.0 * chances[code] + 1.0
    tenths = tally["tenths"].copy()
    tenths[:, min(int(10.0 * chosen), 9)] += (1.0, chosen, happened)
    return {"chances": _plus(tally["chances"], -math.log(of_label), brier), "tenths": tenths}


def _code(kind: LabelKind, label: float) -> int:
    """Which class a label means, as `class_codes` says."""
    return int(label > 0) if kind == "binary" else int(label)


def _plus(sums: Vector, *more: float) -> Vector:
    return np.array([min(a + b, _LARGEST) for a, b in zip(sums.tolist(), more, strict=True)])


def _of_chances(chances: Matrix, codes: Ints, said: Ints) -> Tally:
    rows, num_classes = np.arange(len(codes)), chances.shape[1]
    of_label = chances[rows, codes].clip(_EPSILON, 1.0 - _EPSILON)
    if num_classes == 2:
        chosen, happened = chances[:, 1], codes == 1
        brier = (chosen - happened) ** 2
    else:
        chosen, happened = chances[rows, said], codes == said
        brier = (chances**2).sum(axis=1) - 2.0 * chances[rows, codes] + 1.0
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
