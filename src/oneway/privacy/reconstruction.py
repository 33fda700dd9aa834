"""Reconstruction attack: what the steps of a linear model tell about the samples behind them.

The step for one sample (a, label) of a linear model at x is D = length * (slope * (a, 1) + l2 * x).
Those who get a sender's pushes compute it, whatever the method (the audit shows how). Its last
coordinate, the intercept's, is therefore length * slope, and the others divided by it are
the sample; the sign of the slope is the label's. Where the model has no intercept, the loss itself
leaves few scales that fit, or (least squares) all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from oneway.records import Bools, Ints, Matrix, Vector

Loss = Literal["logistic", "hinge", "ridge", "softmax"]

EXACT = 1e-6
"""Read exactly: off by so little of the row's length, far below any digit that was recorded."""
NOTHING = 1e-10
"""A smaller step is rounding, and no sample's."""
_REFINEMENTS = 30
_HALVINGS = 200


@dataclass(frozen=True, eq=False)
class Steps:
    """What an attacker takes a sender's steps to be, one row for every push that had one.

    Attributes:
        values: `[step, dim]`, D above.
        estimates: `[step, dim]`, the model at which the gradients were taken.
    """

    values: Matrix
    estimates: Matrix


@dataclass(frozen=True, eq=False)
class Candidates:
    """Samples that an attacker takes to be the sender's: `features[i]` with `labels[i]`."""

    features: Matrix
    labels: Vector


@dataclass(frozen=True)
class Score:
    """How near the candidates come to the truth.

    Attributes:
        rows: How many samples the sender learned from.
        rows_read_exactly: How many of them are among the candidates, digit for digit, with label.
        cosine: Of a sample and the nearest candidate (up to the sign), the median over samples.
        cosine_by_chance: The median for samples that the sender never had: what nearness there is
            in any case, since some candidate is always nearest.
    """

    rows: int
    rows_read_exactly: int
    cosine: float
    cosine_by_chance: float


@dataclass(frozen=True)
class LinearAttack:
    """The inversion of the step of a linear model.

    Attributes:
        loss: Which loss is learned by.
        l2: How strongly parameters are pulled towards 0.
        intercept: Whether the last parameter is that of a constant 1.
        num_classes: Of softmax; its parameters are `[class, feature]`.
    """

    loss: Loss
    l2: float
    intercept: bool
    num_classes: int = 0

    def candidates(self, steps: Steps, lengths: Callable[[Matrix], Vector]) -> Candidates:
        """The samples that steps of one sample each would come from.

        Args:
            steps: Those too small to be a sample's are left out.
            lengths: Given `features[step, feature]`, how long the step rule makes their steps; it
                may depend on the features, so that both are found in turns.
        """
        if self.loss == "softmax":
            return self._by_class(steps, lengths)
        guess = np.zeros((len(steps.values), steps.values.shape[1] - int(self.intercept)))
        return (
            self._with_intercept(steps, lengths, guess)
            if self.intercept
            else (self._without_intercept(steps, lengths, guess))
        )

    def _with_intercept(
        self, steps: Steps, lengths: Callable[[Matrix], Vector], features: Matrix
    ) -> Candidates:
        values, estimates = steps.values, steps.estimates
        for _ in range(_REFINEMENTS):
            length = lengths(features)
            plain = values - self.l2 * length[:, None] * estimates
            features = _divided(plain[:, :-1], plain[:, -1])
        slopes = _divided(plain[:, -1:], length)[:, 0]
        labels = -np.sign(slopes)
        if self.loss == "ridge":
            scores = np.einsum("nf,nf->n", features, estimates[:, :-1]) + estimates[:, -1]
            labels = scores - slopes
        return Candidates(features, labels)

    def _by_class(self, steps: Steps, lengths: Callable[[Matrix], Vector]) -> Candidates:
        """The class whose slope is largest gives the sample, the only negative one the label."""
        shape = (len(steps.values), self.num_classes, -1)
        values, estimates = steps.values.reshape(shape), steps.estimates.reshape(shape)
        features = np.zeros((len(values), values.shape[2] - int(self.intercept)))
        for _ in range(_REFINEMENTS):
            length = lengths(features)
            plain = values - self.l2 * length[:, None, None] * estimates
            if not self.intercept:  # only the direction is known
                rows = plain[np.arange(len(plain)), np.abs(plain).sum(axis=2).argmax(axis=1)]
                return Candidates(rows, np.zeros(len(rows)))
            slopes = plain[:, :, -1]
            rows = plain[np.arange(len(plain)), np.abs(slopes).argmax(axis=1)]
            features = _divided(rows[:, :-1], rows[:, -1])
        return Candidates(features, slopes.argmin(axis=1).astype(float))

    def _without_intercept(
        self, steps: Steps, lengths: Callable[[Matrix], Vector], guess: Matrix
    ) -> Candidates:
        """The step is length * slope * a: only scales that the loss allows, of either sign.

        For the hinge |slope| = 1. For the logistic loss q = |slope| has y a . x = -c / q with
        c = x . D / length, and so must solve q = 1 / (1 + exp(-c / q)), that is q logit(q) = c:
        one solution if c >= 0, two or none if c < 0. Least squares allows every scale: only the
        direction is known, and the length is taken to be that of a standardised sample.
        """
        found: list[Candidates] = []
        for branch in (0, 1) if self.loss == "logistic" else (0,):
            features = guess
            for _ in range(_REFINEMENTS):
                length = lengths(features)
                plain = _divided(steps.values - self.l2 * length[:, None] * steps.estimates, length)
                if self.loss == "ridge":
                    size = np.linalg.norm(plain, axis=1) / np.sqrt(plain.shape[1])
                elif self.loss == "hinge":
                    size = np.ones(len(plain))
                else:
                    size = _slope_sizes(np.einsum("nf,nf->n", plain, steps.estimates), branch)
                features = _divided(plain, size)
            found += [
                Candidates(-label * features, np.full(len(features), label))
                for label in (-1.0, 1.0)
            ]
        return Candidates(
            np.vstack([each.features for each in found]),
            np.concatenate([each.labels for each in found]),
        )


def with_substance(steps: Steps) -> Bools:
    """Which steps are more than rounding."""
    sizes = np.linalg.norm(steps.values, axis=1)
    usual = np.linalg.norm(steps.estimates, axis=1)
    return np.asarray(sizes > NOTHING * (1.0 + usual))


def score(candidates: Candidates, rows: Matrix, labels: Vector, others: Matrix) -> Score:
    """Compare candidates with the truth.

    Args:
        candidates: What the attacker came up with.
        rows: `[row, feature]`, the sender's samples, standardised as the task has it.
        labels: Theirs.
        others: `[row, feature]`, samples that the sender never had.
    """
    exact = int(read_exactly(candidates, rows, labels).sum())
    near = nearest(candidates.features, rows)[1]
    chance = nearest(candidates.features, others)[1]
    return Score(
        rows=len(rows),
        rows_read_exactly=exact,
        cosine=float(np.median(near)) if len(near) else 0.0,
        cosine_by_chance=float(np.median(chance)) if len(chance) else 0.0,
    )


def read_exactly(candidates: Candidates, rows: Matrix, labels: Vector) -> Bools:
    """Which rows are among the candidates, with their labels, up to `EXACT` of their length."""
    result = np.zeros(len(rows), np.bool_)
    if not len(candidates.labels):
        return result
    for place, (row, label) in enumerate(zip(rows, labels, strict=True)):
        tolerance = EXACT * max(1.0, float(np.linalg.norm(row)))
        same = np.abs(candidates.labels - label) <= EXACT * max(1.0, abs(label))
        off = np.abs(candidates.features[same] - row).max(axis=1, initial=0.0)
        result[place] = bool((off <= tolerance).any())
    return result


def nearest(candidates: Matrix, rows: Matrix) -> tuple[Ints, Vector]:
    """For every row the candidate with the largest cosine, up to the sign, and that cosine."""
    if not (len(candidates) and len(rows)):
        return np.zeros(len(rows), np.intp), np.zeros(len(rows))
    cosines = np.minimum(np.abs(_directions(rows) @ _directions(candidates).T), 1.0)
    places = cosines.argmax(axis=1)
    return places, cosines[np.arange(len(rows)), places]


def _directions(rows: Matrix) -> Matrix:
    return _divided(rows, np.linalg.norm(rows, axis=1))


def _divided(rows: Matrix, by: Vector) -> Matrix:
    """Rows divided by one number each; zeros where that is not possible."""
    column = np.asarray(by)[:, None]
    usable = np.isfinite(column) & (column != 0.0)
    with np.errstate(over="ignore"):
        result = np.where(usable, rows / np.where(usable, column, 1.0), 0.0)
    return np.nan_to_num(result, nan=0.0, posinf=0.0, neginf=0.0)


def _slope_sizes(levels: Vector, branch: int) -> Vector:
    """Solve q logit(q) = level for q in (0, 1): the larger solution (branch 0) or the smaller.

    The function falls until q = 0.2178... and grows from there; where there is no solution, the
    point where it turns is the nearest.
    """
    turn = 0.21781170571980166
    low, high = (turn, 1.0 - 1e-16) if branch == 0 else (1e-16, turn)
    lows, highs = np.full(len(levels), low), np.full(len(levels), high)
    for _ in range(_HALVINGS):
        middle = (lows + highs) / 2
        with np.errstate(divide="ignore"):
            value = middle * (np.log(middle) - np.log1p(-middle))
        larger = value < levels if branch == 0 else value > levels
        lows, highs = np.where(larger, middle, lows), np.where(larger, highs, middle)
    sizes: Vector = (lows + highs) / 2
    return sizes
