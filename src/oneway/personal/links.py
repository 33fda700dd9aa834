"""Losses as functions of scores: what experts need to know of a model.

An expert answers a sample with scores, one for a linear model or one for each class. A link says
what scores cost once the label is known, the derivative, and the probabilities they stand for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from oneway.errors import ConfigError
from oneway.models import (
    LinearModel,
    LogisticRegression,
    Model,
    RidgeRegression,
    SoftmaxRegression,
    Torch,
)
from oneway.models.base import Predictions, log_odds
from oneway.records import Floats, Ints, Matrix, Vector

_AGAINST = np.array([1.0, -1.0])
"""The sign with which a score speaks against each of two classes."""


class Link(ABC):
    """From scores to losses. Scores are `[..., width]`, labels and losses `[...]`."""

    width: int
    """How many scores answer a sample."""
    curvature: float | None
    """The largest second derivative of the loss by any direction of scores; None at a kink."""

    @abstractmethod
    def losses(self, scores: Matrix, labels: Floats) -> Vector:
        """Return the loss of every answer, without any l2 term."""

    @abstractmethod
    def slopes(self, scores: Matrix, labels: Floats) -> Matrix:
        """Return the derivative of `losses` by the scores, `[..., width]`."""

    def probabilities(self, scores: Matrix) -> Matrix | None:
        """Return `[..., class]`; None if scores stand for no probabilities."""
        return None

    def targets(self, labels: Floats) -> Floats:
        """Return the scores that labels stand for; by default the labels."""
        return labels


@dataclass(frozen=True)
class LinearLink(Link):
    """The loss of a `LinearModel`: one score."""

    model: LinearModel
    width = 1

    @property
    def curvature(self) -> float | None:  # type: ignore[override]
        """That of the model."""
        return self.model.largest_curvature

    def losses(self, scores: Matrix, labels: Floats) -> Vector:
        """Return the model's losses."""
        return self.model.sample_losses(scores[..., 0], labels)

    def slopes(self, scores: Matrix, labels: Floats) -> Matrix:
        """Return the model's slopes."""
        return self.model.slopes(scores[..., 0], labels)[..., None]

    def targets(self, labels: Floats) -> Floats:
        """Return the model's targets."""
        return self.model.targets(labels)

    def probabilities(self, scores: Matrix) -> Matrix | None:
        """Return those of both classes, if the model is logistic."""
        if not isinstance(self.model, LogisticRegression):
            return None
        # Each to full precision, also where it is tiny: their logarithms are losses.
        chances: Matrix = 1.0 / (1.0 + np.exp(scores * _AGAINST))
        return chances


@dataclass(frozen=True)
class SoftmaxLink(Link):
    """The cross-entropy of the softmax of one score for each class."""

    width: int
    curvature = 0.5

    def losses(self, scores: Matrix, labels: Floats) -> Vector:
        """Return log(sum_k exp(s_k)) - s_y."""
        top = scores.max(axis=-1, keepdims=True)
        sums = np.log(np.exp(scores - top).sum(axis=-1)) + top[..., 0]
        losses: Vector = sums - _of_label(scores, labels)
        return losses

    def slopes(self, scores: Matrix, labels: Floats) -> Matrix:
        """Return the probability of every class, less 1 for the label's."""
        slopes: Matrix = self.probabilities(scores)
        slopes -= labels[..., None] == np.arange(self.width)
        return slopes

    def probabilities(self, scores: Matrix) -> Matrix:
        """Return the softmax of the scores."""
        chances: Matrix = np.exp(scores - scores.max(axis=-1, keepdims=True))
        chances /= chances.sum(axis=-1, keepdims=True)
        return chances


def link_of(model: Model) -> Link:
    """Return the loss of a model as a function of its scores.

    Raises:
        ConfigError: The model does not answer with scores.
    """
    if isinstance(model, LinearModel):
        return LinearLink(model)
    if isinstance(model, SoftmaxRegression):
        return SoftmaxLink(model.num_classes)
    if isinstance(model, Torch):
        if model.objective == "logistic":
            return LinearLink(LogisticRegression(l2=0.0))
        if model.objective == "cross-entropy":
            return SoftmaxLink(model.num_classes)
        if model.objective == "squared":
            return LinearLink(RidgeRegression(l2=0.0, center=model.center, scale=model.scale))
    raise ConfigError(
        f"{type(model).__name__} has no personal predictions: its loss is not a function of scores "
        "that experts can mix; the shared model answers (use a linear model, softmax, or a PyTorch "
        'module with the loss "logistic", "cross-entropy" or "squared")'
    )


def _of_label(values: Matrix, labels: Floats) -> Matrix:
    codes = np.broadcast_to(labels, values.shape[:-1]).astype(np.intp)[..., None]
    chosen: Matrix = np.take_along_axis(values, codes, axis=-1)[..., 0]
    return chosen


def label_codes(link: Link, labels: Floats) -> Ints:
    """Return the place of every label among the classes of `Link.probabilities`."""
    codes = labels > 0 if isinstance(link, LinearLink) else labels
    return codes.astype(np.intp)


def answers_to(link: Link, answers: Matrix) -> Predictions:
    """Return what answers `[row, class or score]` say about rows, as a model would say it."""
    if isinstance(link, LinearLink):
        if answers.shape[1] == 1:
            return link.model.predictions_from(answers[:, 0])
        guesses = np.where(answers[:, 1] >= answers[:, 0], 1.0, -1.0)
        return Predictions(guesses, log_odds(answers[:, 1:]), answers)
    return Predictions(answers.argmax(axis=1).astype(np.float64), log_odds(answers), answers)
