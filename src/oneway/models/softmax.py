"""Multiclass logistic regression: one score per class, cross-entropy of their softmax."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oneway.errors import ConfigError
from oneway.models.base import (
    LearningPass,
    Model,
    Predictions,
    check_intercept,
    check_number,
    class_rule,
    log_odds,
    row_shares,
)
from oneway.records import Batch, Bools, Floats, Ints, Matrix, Vector


@dataclass(frozen=True)
class SoftmaxRegression(Model):
    """f(x; a, y) = log(sum_k exp(a . x_k)) - a . x_y + l2/2 * ||x||^2 with y in 0..num_classes-1.

    A parameter vector holds the classes one after the other, each with its features and then, with
    an intercept, its constant. The l2 term covers all of them. Of equal scores the lowest class is
    predicted.

    Raises:
        ConfigError: `num_classes` is not a whole number of at least 2, `l2` is negative or not
            finite, `intercept` is not a bool, or `start`, the intercepts to start from, is not one
            number for each class.

    >>> SoftmaxRegression(num_classes=3).dim(num_features=4)
    15
    """

    name = "softmax"
    labels = "classes"
    num_classes: int
    l2: float = 1e-4
    intercept: bool = True
    start: tuple[float, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        classes: object = self.num_classes
        if not isinstance(classes, int | np.integer) or isinstance(classes, bool) or classes < 2:
            raise ConfigError(
                f"SoftmaxRegression got num_classes={classes!r}, but needs a whole number of "
                "classes >= 2; count the distinct labels"
            )
        object.__setattr__(self, "num_classes", int(classes))
        l2 = check_number("SoftmaxRegression", "l2", self.l2, least=0.0)
        object.__setattr__(self, "l2", l2)
        intercept = check_intercept("SoftmaxRegression", self.intercept)
        object.__setattr__(self, "intercept", intercept)
        object.__setattr__(self, "start", self._checked_start())

    def _checked_start(self) -> tuple[float, ...]:
        given: object = self.start
        if not isinstance(given, tuple | list) or len(given) not in (0, self.num_classes):
            raise ConfigError(
                f"SoftmaxRegression got start={given!r}, but start must be a list of "
                f"{self.num_classes} numbers, one for each class"
            )
        return tuple(check_number("SoftmaxRegression", "start", value) for value in given)

    def init(self, num_features: int, rng: np.random.Generator) -> Vector:
        """Return zeros, but for the intercepts."""
        params = np.zeros(self.dim(num_features))
        if self.intercept and self.start:
            self._by_class(params)[:, -1] = self.start
        return params

    def start_options(self, expected: Vector, deviation: float) -> dict[str, Any]:
        """Return as the intercepts to start from the logarithms of the shares, of sum 0."""
        if not self.intercept:
            return {}
        logs = np.log(expected)
        return {"start": (logs - logs.mean()).round(4).tolist()}

    @classmethod
    def for_labels(cls, num_classes: int, **options: Any) -> SoftmaxRegression:
        """Return a model for so many classes."""
        return cls(num_classes, **options)

    def dim(self, num_features: int) -> int:
        """Return the number of classes times the features, plus one each with an intercept."""
        return self.num_classes * (num_features + int(self.intercept))

    def scores(self, params: Vector | Matrix, features: Floats) -> Matrix:
        """Return `[row, class]`, under one parameter vector or under one per row."""
        by_class = self._by_class(params)
        factors = by_class[..., :-1] if self.intercept else by_class
        scores: Matrix = (
            features @ factors.T if params.ndim == 1 else np.einsum("nf,nkf->nk", features, factors)
        )
        if self.intercept:
            scores += by_class[..., -1]
        return scores

    def coefficients(self, params: Vector) -> tuple[Matrix, Vector]:
        """Return the factors of every class, `[class, feature]`, and its constant."""
        by_class = self._by_class(params)
        if self.intercept:
            return by_class[:, :-1], by_class[:, -1]
        return by_class, np.zeros(self.num_classes)

    def _by_class(self, params: Vector | Matrix) -> Matrix:
        """View `params[..., dim]` as `[..., class, feature]`; a stack may have no rows."""
        length = params.shape[-1] // self.num_classes
        return params.reshape(*params.shape[:-1], self.num_classes, length)

    def losses(self, params: Vector | Matrix, batch: Batch) -> Vector:
        """Return the loss of every row, the l2 term included."""
        return self._losses(params, self.scores(params, batch.features), batch.labels)

    def _losses(self, params: Vector | Matrix, scores: Matrix, labels: Floats) -> Vector:
        # Below the highest score, so that exp cannot overflow and the sum is at least 1.
        depths = scores - scores.max(axis=1, keepdims=True)
        of_label = np.take_along_axis(depths, _classes(labels)[:, None], axis=1)[:, 0]
        penalty = 0.5 * self.l2 * np.einsum("...d,...d->...", params, params)
        losses: Vector = np.log(np.exp(depths).sum(axis=1)) - of_label + penalty
        return losses

    def gradients(self, stack: Matrix, batch: Batch) -> Matrix:
        """Return (probability of the class - 1 for the label's) * a + l2 * x for every row."""
        return self._gradients(stack, self.scores(stack, batch.features), batch)

    def _gradients(self, stack: Matrix, scores: Matrix, batch: Batch) -> Matrix:
        slopes = _slopes(scores, batch.labels)
        gradients: Matrix = np.multiply(stack, self.l2, order="C")
        by_class = self._by_class(gradients)
        by_class[..., : batch.features.shape[1]] += slopes[:, :, None] * batch.features[:, None, :]
        if self.intercept:
            by_class[..., -1] += slopes
        return gradients

    def learning_pass(self, stack: Matrix, batch: Batch, rng: np.random.Generator) -> LearningPass:
        """Return losses, whether predictions are right, and gradients, by one pass of scores."""
        scores = self.scores(stack, batch.features)
        return LearningPass(
            self._losses(stack, scores, batch.labels),
            scores.argmax(axis=1) == batch.labels,
            self._gradients(stack, scores, batch),
        )

    def gradient(self, params: Vector, batch: Batch, counts: Vector | None = None) -> Vector:
        """Return the mean of `gradients` over the rows."""
        scores = self.scores(params, batch.features)
        slopes = _slopes(scores, batch.labels) * row_shares(batch, counts)[:, None]
        gradient: Vector = self.l2 * params
        by_class = self._by_class(gradient)
        by_class[:, : batch.features.shape[1]] += slopes.T @ batch.features
        if self.intercept:
            by_class[:, -1] += slopes.sum(axis=0)
        return gradient

    def hessian(self, params: Vector, batch: Batch, counts: Vector | None = None) -> Matrix:
        """Return the mean of (diag(p) - p p^T) x (a a^T) over the rows, plus l2 on the diagonal.

        Needs memory for `num_classes` copies of the batch's features.
        """
        rows = batch.features
        if self.intercept:
            rows = np.column_stack([rows, np.ones(len(batch))])
        width = rows.shape[1]
        probabilities = softmax(self.scores(params, batch.features))
        spread = (probabilities[:, :, None] * rows[:, None, :]).reshape(len(batch), -1)
        shared = spread * row_shares(batch, counts)[:, None]
        hessian: Matrix = self.l2 * np.eye(len(params)) - shared.T @ spread
        blocks = rows.T @ shared
        for start in range(0, len(params), width):
            block = slice(start, start + width)
            hessian[block, block] += blocks[:, block]
        return hessian

    def predict(self, params: Vector, features: Floats) -> Vector:
        """Return the class with the highest score, as a float64 like every label."""
        classes: Vector = self.scores(params, features).argmax(axis=1).astype(np.float64)
        return classes

    def probabilities(self, params: Vector, features: Floats) -> Matrix:
        """Return the softmax of the scores, `[row, class]`."""
        return softmax(self.scores(params, features))

    def predictions(self, params: Vector | Matrix, features: Floats) -> Predictions:
        """Return the likeliest class, all probabilities, and their log-odds as scores."""
        scores = self.scores(params, features)
        probabilities = softmax(scores)
        return Predictions(
            scores.argmax(axis=1).astype(np.float64), log_odds(probabilities), probabilities
        )

    def correct(self, params: Vector | Matrix, batch: Batch) -> Bools:
        """Return for every row whether the class with the highest score is the label."""
        right: Bools = self.scores(params, batch.features).argmax(axis=1) == batch.labels
        return right

    def _label_rule(self, labels: Floats) -> tuple[Bools, str, str]:
        return class_rule(labels, self.num_classes)

    def curvature_bounds(self, features: Floats) -> Vector:
        """Return ||a||^2 / 2 + l2 for every row: diag(p) - p p^T has no eigenvalue above 1/2."""
        squares = np.einsum("nf,nf->n", features, features, dtype=np.float64)
        squares += int(self.intercept)
        bounds: Vector = 0.5 * squares + self.l2
        return bounds


def _classes(labels: Floats) -> Ints:
    return labels.astype(np.intp)


def _slopes(scores: Matrix, labels: Floats) -> Matrix:
    """Return the derivative of every row's loss by its scores, `[row, class]`."""
    slopes = softmax(scores)
    slopes[np.arange(len(labels)), _classes(labels)] -= 1.0
    return slopes


def softmax(scores: Matrix) -> Matrix:
    """Return the probability of every class, `[row, class]`."""
    probabilities: Matrix = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities
