"""Standardised: any regression model, learning labels in units of their spread.

One learning rate suits labels of any size only if they are standardised, as features are. A model
that has the options `center` and `scale` itself (ridge, torch) does so; all others are wrapped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np

from oneway.models.base import MODELS, LearningPass, Model, Predictions, check_number
from oneway.records import Batch, Floats, Matrix, Vector

UNITS = ("center", "scale")
"""The options that say how labels are standardised."""


def options_of(kind: type[Model]) -> set[str]:
    """Return the options that a class of models takes."""
    return set(signature(kind.__init__).parameters) - {"self"}


def model_from(name: str, options: Mapping[str, Any], num_classes: int | None = None) -> Model:
    """Return a registered model by its name and options.

    Args:
        name: As it is registered.
        options: What the model is made with. Every regression model has `center` and `scale`.
        num_classes: Of the labels, where these decide about the model; 0 for numbers.

    Raises:
        ConfigError: There is no such model, or an option breaks its rule.
        TypeError: The model has no such option.
    """
    kind = MODELS[name]
    units, rest = {}, dict(options)
    if kind.kind_of_labels(options) == "number":
        units = {unit: rest.pop(unit) for unit in UNITS if unit in rest.keys() - options_of(kind)}
    model = kind(**rest) if num_classes is None else kind.for_labels(num_classes, **rest)
    return standardised(model, **units) if units else model


def standardised(model: Model, center: float = 0.0, scale: float = 1.0) -> Model:
    """Return a regression model that learns (y - center) / scale and predicts y."""
    return Standardised(model, center, scale)


@dataclass(frozen=True)
class Standardised(Model):
    """A regression model whose labels y are learned as (y - center) / scale.

    Predictions are in the units of the labels; losses are in units of the scale.

    Attributes:
        inner: The model, which sees standardised labels.
        center: The label that the model sees as 0.
        scale: By how much the label that the model sees as 1 is above that.

    Raises:
        ConfigError: The center is not finite, or the scale is not a finite number above 0.
    """

    inner: Model
    center: float = 0.0
    scale: float = 1.0

    labels = "number"

    def __post_init__(self) -> None:
        for unit, above in zip(UNITS, (-np.inf, 0.0), strict=True):
            value = check_number(self.inner.name, unit, getattr(self, unit), above=above)
            object.__setattr__(self, unit, value)
        for name in ("name", "dtype", "skips", "typical_features"):
            object.__setattr__(self, name, getattr(self.inner, name))

    def _batch(self, batch: Batch) -> Batch:
        return Batch(batch.features, self._targets(batch.labels))

    def _targets(self, labels: Floats) -> Vector:
        targets: Vector = (np.asarray(labels, np.float64) - self.center) / self.scale
        return targets

    def dim(self, num_features: int) -> int:
        """Return the length of a parameter vector."""
        return self.inner.dim(num_features)

    def init(self, num_features: int, rng: np.random.Generator) -> Vector:
        """Return the parameters to start from."""
        return self.inner.init(num_features, rng)

    def task_options(self) -> dict[str, Any]:
        """Return the options that a task has to name for all sites."""
        return self.inner.task_options()

    def for_samples(self, shape: tuple[int, ...], labels: Floats | None = None) -> Model:
        """Return the given model for such samples, with labels in units of the scale."""
        seen = None if labels is None else self._targets(labels)
        return replace(self, inner=self.inner.for_samples(shape, seen))

    def check_labels(self, labels: Floats) -> None:
        """Check that the given model can learn from these labels, standardised.

        Raises:
            DataError: The first label that breaks the model's rule, and the rule.
        """
        self.inner.check_labels(self._targets(labels))

    def losses(self, params: Vector | Matrix, batch: Batch) -> Vector:
        """Return the loss of every row, in units of the scale."""
        return self.inner.losses(params, self._batch(batch))

    def gradients(self, stack: Matrix, batch: Batch) -> Matrix:
        """Return the gradient of every row."""
        return self.inner.gradients(stack, self._batch(batch))

    def drawn_gradients(self, stack: Matrix, batch: Batch, rng: np.random.Generator) -> Matrix:
        """Return the gradients to learn from."""
        return self.inner.drawn_gradients(stack, self._batch(batch), rng)

    def learning_pass(self, stack: Matrix, batch: Batch, rng: np.random.Generator) -> LearningPass:
        """Return losses and gradients of every row."""
        return self.inner.learning_pass(stack, self._batch(batch), rng)

    def gradient(self, params: Vector, batch: Batch, counts: Vector | None = None) -> Vector:
        """Return the gradient of `loss`."""
        return self.inner.gradient(params, self._batch(batch), counts)

    def predict(self, params: Vector, features: Floats) -> Vector:
        """Return the predicted label of every row, in the units of the labels."""
        return self.center + self.scale * self.inner.predict(params, features)

    def predictions(self, params: Vector | Matrix, features: Floats) -> Predictions:
        """Return the predictions, in the units of the labels."""
        predicted = self.inner.predictions(params, features).predicted
        return Predictions(self.center + self.scale * predicted)

    def base_losses(self, expected: Matrix, labels: Floats) -> Vector:
        """Return the loss of predictions that know nothing of the features."""
        return self.inner.base_losses(self._targets(expected), self._targets(labels))

    def hessian(self, params: Vector, batch: Batch, counts: Vector | None = None) -> Matrix | None:
        """Return the second derivative of `loss`."""
        return self.inner.hessian(params, self._batch(batch), counts)

    def curvature_bounds(self, features: Floats) -> Vector | None:
        """Return the bounds of the given model."""
        return self.inner.curvature_bounds(features)

    def coefficients(self, params: Vector) -> tuple[Matrix, Vector] | None:
        """Return the coefficients of the prediction, and its constant."""
        found = self.inner.coefficients(params)
        if found is None:
            return None
        return self.scale * found[0], self.center + self.scale * found[1]

    def options(self) -> dict[str, Any]:
        """Return the options of the given model, with center and scale."""
        return {**self.inner.options(), "center": self.center, "scale": self.scale}

    def describe(self) -> dict[str, Any]:
        """Return what describes the given model, with center and scale."""
        return {**self.inner.describe(), "center": self.center, "scale": self.scale}
