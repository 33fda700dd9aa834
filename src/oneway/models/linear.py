"""Linear models: the loss of a sample depends on its score s = a . x and its label alone.

A model is three functions of scores and labels (the loss and its first two derivatives by the
score); everything else is the same for all and stands once, in `LinearModel`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oneway.models.base import (
    Model,
    Predictions,
    check_intercept,
    check_number,
    row_shares,
)
from oneway.records import Batch, Bools, Floats, Matrix, Vector


@dataclass(frozen=True)
class LinearModel(Model):
    """The loss of a score plus l2/2 * ||x||^2.

    With an intercept, a sample is a = (features, 1) and the last parameter belongs to the constant
    feature. The l2 term covers all parameters, the intercept included: the paper's formula applied
    to a table that has a constant column.

    Attributes:
        l2: The paper's lambda.
        intercept: Whether the constant feature is added.
        start: The intercept to start from.

    Raises:
        ConfigError: `l2` is negative or not finite, `intercept` is not a bool, or `start` is not
            finite.
    """

    l2: float = 1e-4
    intercept: bool = True
    start: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "l2", check_number(name, "l2", self.l2, least=0.0))
        object.__setattr__(self, "intercept", check_intercept(name, self.intercept))
        object.__setattr__(self, "start", check_number(name, "start", self.start))

    @abstractmethod
    def sample_losses(self, scores: Vector, labels: Floats) -> Vector:
        """Return the loss of every score, without the l2 term."""

    @abstractmethod
    def slopes(self, scores: Vector, labels: Floats) -> Vector:
        """Return the derivative of `sample_losses` by the score."""

    @abstractmethod
    def curvatures(self, scores: Vector, labels: Floats) -> Vector:
        """Return the second derivative of `sample_losses` by the score."""

    @property
    @abstractmethod
    def largest_curvature(self) -> float | None:
        """The largest value of `curvatures` at any score; None if there is a kink."""

    def dim(self, num_features: int) -> int:
        """Return the number of features, plus one with an intercept."""
        return num_features + int(self.intercept)

    def init(self, num_features: int, rng: np.random.Generator) -> Vector:
        """Return zeros, but for the intercept."""
        params = np.zeros(self.dim(num_features))
        if self.intercept:
            params[-1] = self.start
        return params

    def start_options(self, expected: Vector, deviation: float) -> dict[str, Any]:
        """Return the best intercept for the shares of the classes; numbers are standardised."""
        if self.labels == "number":
            return super().start_options(expected, deviation)
        if not self.intercept:
            return {}
        return {"start": round(float(self.constant_scores(expected[None, :])[0]), 4)}

    def targets(self, labels: Floats) -> Floats:
        """Return the scores that labels stand for; by default the labels."""
        return labels

    def scores(self, params: Vector | Matrix, features: Floats) -> Vector:
        """Return a . x for every row, under one parameter vector or under one per row."""
        factors = params[..., :-1] if self.intercept else params
        scores: Vector = (
            features @ factors if params.ndim == 1 else np.einsum("nf,nf->n", features, factors)
        )
        if self.intercept:
            scores += params[..., -1]
        return scores

    def coefficients(self, params: Vector) -> tuple[Matrix, Vector]:
        """Return the factors of the only score, `[1, feature]`, and its constant."""
        if self.intercept:
            return params[None, :-1], params[-1:]
        return params[None, :], np.zeros(1)

    def losses(self, params: Vector | Matrix, batch: Batch) -> Vector:
        """Return the loss of every row, the l2 term included."""
        penalty = 0.5 * self.l2 * np.einsum("...d,...d->...", params, params)
        scores = self.scores(params, batch.features)
        losses: Vector = self.sample_losses(scores, batch.labels) + penalty
        return losses

    def gradients(self, stack: Matrix, batch: Batch) -> Matrix:
        """Return slope * a + l2 * x for every row."""
        slopes = self.slopes(self.scores(stack, batch.features), batch.labels)
        gradients: Matrix = self.l2 * stack
        gradients[:, : batch.features.shape[1]] += slopes[:, None] * batch.features
        if self.intercept:
            gradients[:, -1] += slopes
        return gradients

    def gradient(self, params: Vector, batch: Batch, counts: Vector | None = None) -> Vector:
        """Return the mean of slope * a over the rows, plus l2 * x."""
        slopes = self.slopes(self.scores(params, batch.features), batch.labels)
        slopes = slopes * row_shares(batch, counts)
        gradient: Vector = self.l2 * params
        gradient[: batch.features.shape[1]] += slopes @ batch.features
        if self.intercept:
            gradient[-1] += slopes.sum()
        return gradient

    def hessian(self, params: Vector, batch: Batch, counts: Vector | None = None) -> Matrix:
        """Return the mean of curvature * a a^T over the rows, plus l2 on the diagonal."""
        curvatures = self.curvatures(self.scores(params, batch.features), batch.labels)
        curvatures = curvatures * row_shares(batch, counts)
        bent = curvatures[:, None] * batch.features
        num_features = batch.features.shape[1]
        hessian: Matrix = self.l2 * np.eye(len(params))
        hessian[:num_features, :num_features] += bent.T @ batch.features
        if self.intercept:
            totals = bent.sum(axis=0)
            hessian[:num_features, -1] += totals
            hessian[-1, :num_features] += totals
            hessian[-1, -1] += curvatures.sum()
        return hessian

    def predictions(self, params: Vector | Matrix, features: Floats) -> Predictions:
        """Return the predictions for every row, under one parameter vector or under one per row."""
        return self.predictions_from(self.scores(params, features))

    def predictions_from(self, scores: Vector) -> Predictions:
        """Return the predictions for rows with these scores; by default the scores."""
        return Predictions(scores)

    def base_losses(self, expected: Matrix, labels: Floats) -> Vector:
        """Return the loss of the score that is best for what is known about labels."""
        return self.sample_losses(self.constant_scores(expected), labels)

    def constant_scores(self, expected: Matrix) -> Vector:
        """Return the best score for every row if its features say nothing; see `base_losses`."""
        return expected[:, 0]

    def curvature_bounds(self, features: Floats) -> Vector | None:
        """Return largest_curvature * ||a||^2 + l2 for every row."""
        if self.largest_curvature is None:
            return None
        squares = np.einsum("nf,nf->n", features, features, dtype=np.float64)
        squares += int(self.intercept)
        bounds: Vector = self.largest_curvature * squares + self.l2
        return bounds


@dataclass(frozen=True)
class LinearClassifier(LinearModel):
    """A linear model whose labels are -1 and +1; a score of exactly 0 predicts +1."""

    labels = "binary"

    def predict(self, params: Vector, features: Floats) -> Vector:
        """Return +1 where the score is >= 0 and -1 elsewhere."""
        return np.where(self.scores(params, features) >= 0.0, 1.0, -1.0)

    def predictions_from(self, scores: Vector) -> Predictions:
        """Return signs and scores, and the model's probabilities, if any."""
        return Predictions(
            np.where(scores >= 0.0, 1.0, -1.0), scores[:, None], self.probabilities_of(scores)
        )

    def probabilities_of(self, scores: Vector) -> Matrix | None:
        """Return how probable each class is, `[row, class]`; None if the model does not say."""
        return None

    def constant_scores(self, expected: Matrix) -> Vector:
        """Return the log-odds of the shares, the best for every proper loss of that link."""
        return np.log(expected[:, 1]) - np.log(expected[:, 0])

    def correct(self, params: Vector | Matrix, batch: Batch) -> Bools:
        """Return for every row whether the predicted sign is the label's."""
        right: Bools = (self.scores(params, batch.features) >= 0.0) == (batch.labels > 0)
        return right


class LogisticRegression(LinearClassifier):
    """The paper's experiment: f(x; a, y) = log(1 + exp(-y a . x)) + l2/2 * ||x||^2.

    Loss and gradient are stable for any margin y s: neither overflows where it is itself finite.

    >>> LogisticRegression(l2=1e-4).describe()
    {'model': 'LogisticRegression', 'l2': 0.0001, 'intercept': True}
    """

    name = "logistic"
    largest_curvature = 0.25

    def sample_losses(self, scores: Vector, labels: Floats) -> Vector:
        """Return log(1 + exp(-y s))."""
        return np.logaddexp(0.0, -labels * scores)

    def slopes(self, scores: Vector, labels: Floats) -> Vector:
        """Return -y / (1 + exp(y s))."""
        margins = labels * scores
        # The exponent is never positive, so that exp cannot overflow.
        tails = np.exp(-np.abs(margins))
        slopes: Vector = -labels * np.where(margins >= 0.0, tails, 1.0) / (1.0 + tails)
        return slopes

    def curvatures(self, scores: Vector, labels: Floats) -> Vector:
        """Return p (1 - p) with p = 1 / (1 + exp(y s))."""
        tails = np.exp(-np.abs(labels * scores))
        curvatures: Vector = tails / (1.0 + tails) ** 2
        return curvatures

    def probabilities(self, params: Vector, features: Floats) -> Matrix:
        """Return 1 / (1 + exp(s)) and 1 / (1 + exp(-s)) for every row."""
        return self.probabilities_of(self.scores(params, features))

    def probabilities_of(self, scores: Vector) -> Matrix:
        """Return 1 / (1 + exp(s)) and 1 / (1 + exp(-s)) for every score."""
        second = 0.5 * (1.0 + np.tanh(0.5 * scores))
        return np.column_stack([1.0 - second, second])


@dataclass(frozen=True)
class RidgeRegression(LinearModel):
    """Least squares: f(x; a, y) = (a . x - y')^2 / 2 + l2/2 * ||x||^2, y' = (y - center) / scale.

    The label y is any finite number, and so is what is predicted: center + scale * a . x. The loss
    is in units of the squared scale.

    Attributes:
        center: What a score of 0 predicts.
        scale: By how much a score of 1 is above that.

    >>> RidgeRegression(center=150.0, scale=80.0).predict(np.array([0.5]), np.empty((1, 0)))
    array([190.])
    """

    center: float = field(default=0.0, kw_only=True)
    scale: float = field(default=1.0, kw_only=True)

    name = "ridge"
    labels = "number"
    largest_curvature = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        object.__setattr__(self, "center", check_number(name, "center", self.center))
        object.__setattr__(self, "scale", check_number(name, "scale", self.scale, above=0.0))

    def targets(self, labels: Floats) -> Floats:
        """Return y' = (y - center) / scale."""
        if self.center == 0.0 and self.scale == 1.0:
            return labels
        targets: Vector = (np.asarray(labels, np.float64) - self.center) / self.scale
        return targets

    def constant_scores(self, expected: Matrix) -> Vector:
        """Return what stands for the expected label."""
        return np.asarray(self.targets(expected[:, 0]), np.float64)

    def sample_losses(self, scores: Vector, labels: Floats) -> Vector:
        """Return (s - y')^2 / 2."""
        losses: Vector = 0.5 * (scores - self.targets(labels)) ** 2
        return losses

    def slopes(self, scores: Vector, labels: Floats) -> Vector:
        """Return s - y'."""
        return scores - self.targets(labels)

    def curvatures(self, scores: Vector, labels: Floats) -> Vector:
        """Return 1 for every row."""
        return np.ones_like(scores)

    def predict(self, params: Vector, features: Floats) -> Vector:
        """Return center + scale * score."""
        return self.center + self.scale * self.scores(params, features)

    def coefficients(self, params: Vector) -> tuple[Matrix, Vector]:
        """Return those of what is predicted."""
        factors, constants = super().coefficients(params)
        return self.scale * factors, self.center + self.scale * constants

    def predictions_from(self, scores: Vector) -> Predictions:
        """Return center + scale * score."""
        return Predictions(self.center + self.scale * scores)


class Hinge(LinearClassifier):
    """The support vector machine: f(x; a, y) = max(0, 1 - y a . x) + l2/2 * ||x||^2.

    `gradient` is a subgradient (0 from the kink y s = 1 upwards) and `hessian` is that of the l2
    term, which is the second derivative everywhere but at kinks.
    """

    name = "hinge"
    largest_curvature = None

    def sample_losses(self, scores: Vector, labels: Floats) -> Vector:
        """Return max(0, 1 - y s)."""
        return np.maximum(0.0, 1.0 - labels * scores)

    def slopes(self, scores: Vector, labels: Floats) -> Vector:
        """Return -y where y s < 1 and 0 elsewhere."""
        return np.where(labels * scores < 1.0, -labels, 0.0).astype(np.float64)

    def curvatures(self, scores: Vector, labels: Floats) -> Vector:
        """Return 0 for every row."""
        return np.zeros_like(scores)

    def constant_scores(self, expected: Matrix) -> Vector:
        """Return +1 or -1 for the more frequent class, 0 if both are equally frequent."""
        return np.sign(expected[:, 1] - expected[:, 0])
