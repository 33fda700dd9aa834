"""Interface of all models: losses and gradients for one parameter vector, or for one per node.

A model is a frozen description without parameters; parameters are arguments. Losses are float64;
parameters and gradients have the model's `dtype`, whatever the samples have. Methods that only some
models can compute (`hessian`, `probabilities`, ...) return None by default.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from oneway.errors import ConfigError, DataError
from oneway.records import Batch, Bools, Floats, Matrix, Vector
from oneway.registry import Registry

LabelKind: TypeAlias = Literal["binary", "classes", "number"]
"""Labels are -1 and +1; the classes 0, 1, 2, ...; or numbers."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of a model for rows, made before their labels are known.

    Attributes:
        predicted: The predicted label of every row.
        scores: `[row, column]`, larger if more probable: one column for the second of two classes,
            or one per class. None if the model does not rank.
        probabilities: `[row, class]`; None if the model has none.
    """

    predicted: Vector
    scores: Matrix | None = None
    probabilities: Matrix | None = None


@dataclass(frozen=True, eq=False)
class LearningPass:
    """Result of one learning pass over samples, each under its own parameters.

    Attributes:
        losses: The loss of each prediction.
        correct: Whether each prediction is right; None for numbers.
        gradients: `[row, dim]`.
    """

    losses: Vector
    correct: Bools | None
    gradients: Matrix


class Model(ABC):
    """A loss function with its derivatives, and a frozen dataclass of its parameters.

    `loss` and `gradient` are means over a batch with at least one row; with `counts`, row i is
    taken `counts[i]` times. `losses`, `gradients` and `correct` go row by row.
    """

    name: ClassVar[str]
    """Short name, as in a task and on the command line."""
    labels: LabelKind
    """Which labels it learns from; depends on the options of some models."""
    dtype: type[np.float32] | type[np.float64] = np.float64
    """Type of the parameters; `init` and `gradients` return it."""

    skips: ClassVar[bool] = False
    """Whether a sample without a finite gradient is skipped and counted, because a module or a loss
    may lack one. Otherwise it ends the run: the parameters are no longer finite."""

    usual_data: ClassVar[str] = ""
    """Data set of a run that names none; "" for the usual one of all models."""

    typical_features: ClassVar[int | None] = None
    """How many standardised features give gradients about as long as this model's, if that does not
    depend on its size; the automatic rate and clip use it. None: the number of features."""

    @classmethod
    def kind_of_labels(cls, options: Mapping[str, Any]) -> LabelKind | None:  # noqa: ARG003
        """Return which labels a model with these options learns from; None if the data decides."""
        return cls.labels

    @classmethod
    def for_labels(cls, num_classes: int, **options: Any) -> Self:  # noqa: ARG003
        """Return a model for labels with so many classes (0 for numbers)."""
        return cls(**options)

    @abstractmethod
    def dim(self, num_features: int) -> int:
        """Return the length d of a parameter vector."""

    def init(self, num_features: int, rng: np.random.Generator) -> Vector:
        """Return the initial parameters, the same at all nodes; zeros for convex losses."""
        return np.zeros(self.dim(num_features))

    def start_options(self, expected: Vector, deviation: float) -> dict[str, Any]:
        """Return options of a model that starts from statistics of the labels.

        By default numbers are standardised by `center` and `scale`, and classes give no options. A
        regression model that needs labels as they are, such as counts, returns none.

        Args:
            expected: The share of each class, none of them 0; the mean of numbers.
            deviation: Standard deviation of numbers, above 0.
        """
        return rounded_units(float(expected[0]), deviation) if self.labels == "number" else {}

    def task_options(self) -> dict[str, Any]:
        """Return options that a task must state so that all sites have the same; default none."""
        return {}

    def for_samples(self, shape: tuple[int, ...], labels: Floats | None = None) -> Model:
        """Return the model for samples of a shape with such labels; by default itself."""
        return self

    @abstractmethod
    def losses(self, params: Vector | Matrix, batch: Batch) -> Vector:
        """Return the loss of every row, under `params[dim]` or under a stack `params[row, dim]`."""

    @abstractmethod
    def gradients(self, stack: Matrix, batch: Batch) -> Matrix:
        """Return `[row, dim]`: the gradient of row i of the batch at row i of the stack."""

    def drawn_gradients(self, stack: Matrix, batch: Batch, rng: np.random.Generator) -> Matrix:
        """Return `gradients` to learn from; random effects such as dropout use `rng`."""
        return self.gradients(stack, batch)

    def learning_pass(self, stack: Matrix, batch: Batch, rng: np.random.Generator) -> LearningPass:
        """Return `losses`, `correct` and `drawn_gradients`; override to need one pass only."""
        return LearningPass(
            self.losses(stack, batch),
            self.correct(stack, batch),
            self.drawn_gradients(stack, batch, rng),
        )

    @abstractmethod
    def predict(self, params: Vector, features: Floats) -> Vector:
        """Return the predicted label of every row."""

    def loss(self, params: Vector, batch: Batch, counts: Vector | None = None) -> float:
        """Return the mean loss f(x; xi) over the batch."""
        return float(self.losses(params, batch) @ row_shares(batch, counts))

    def gradient(self, params: Vector, batch: Batch, counts: Vector | None = None) -> Vector:
        """Return the gradient of `loss` (at a kink: a subgradient)."""
        stack = np.broadcast_to(params, (len(batch), len(params)))
        gradient: Vector = row_shares(batch, counts) @ self.gradients(stack, batch)
        return gradient

    @property
    def classifies(self) -> bool:
        """Whether a prediction is right or wrong, and not only near or far."""
        return self.labels != "number"

    def correct(self, params: Vector | Matrix, batch: Batch) -> Bools | None:
        """Return for every row whether its prediction is right; None if that has no meaning.

        As in `losses`, `params` is one vector for all rows or a stack with one row each.
        """
        if not self.classifies:
            return None
        if params.ndim == 1:
            return np.asarray(self.predict(params, batch.features) == batch.labels)
        return np.asarray(self.predictions(params, batch.features).predicted == batch.labels)

    def predictions(self, params: Vector | Matrix, features: Floats) -> Predictions:
        """Return the predictions for all rows, under `params[dim]` or a stack `params[row, dim]`.

        By `predict` and, if the model has them, `probabilities`.
        """
        stack = np.broadcast_to(params, (len(features), params.shape[-1]))
        rows = list(zip(stack, features[:, None], strict=True))
        predicted = np.array([self.predict(*row)[0] for row in rows], np.float64)
        if not (self.classifies and self.says_probabilities):
            return Predictions(predicted)
        found = [self.probabilities(*row) for row in rows]
        probabilities = np.array([it[0] for it in found if it is not None])
        return Predictions(predicted, log_odds(probabilities), probabilities)

    # Capabilities: None where a model cannot compute something.

    def probabilities(self, params: Vector, features: Floats) -> Matrix | None:
        """Return `[row, class]`; rows sum to 1, classes are in the order of their codes."""
        return None

    @property
    def says_probabilities(self) -> bool:
        """Whether `probabilities` returns some."""
        return type(self).probabilities is not Model.probabilities

    def hessian(self, params: Vector, batch: Batch, counts: Vector | None = None) -> Matrix | None:
        """Return the second derivative of `loss`, wherever there is one."""
        return None

    def curvature_bounds(self, features: Floats) -> Vector | None:
        """Return for every row the largest second derivative of its loss, in any direction.

        Limits a step. None also if the loss has a kink.
        """
        return None

    def coefficients(self, params: Vector) -> tuple[Matrix, Vector] | None:
        """Return `[score, feature]` and the constant of every score of a linear model.

        Of two classes the second has the only score, and is predicted from 0 on; of several, each
        has one, and the highest wins, the first of equals; a number is the score itself.
        Probabilities, if the model has any, are the logistic function or the softmax of the scores.
        """
        return None

    def base_losses(self, expected: Matrix, labels: Floats) -> Vector:
        """Return the loss of predictions that ignore the features: a baseline without l2 term.

        By default the cross-entropy, or half the squared error; a model with another loss overrides
        this.

        Args:
            expected: The share of each class, `[row, class]`; the mean of numbers, `[row, 1]`.
            labels: The actual labels, `[row]`.
        """
        if not self.classifies:
            losses: Vector = 0.5 * (expected[:, 0] - labels) ** 2
            return losses
        codes = labels > 0 if self.labels == "binary" else labels
        return -np.log(np.take_along_axis(expected, codes.astype(np.intp)[:, None], axis=1)[:, 0])

    def check_labels(self, labels: Floats) -> None:
        """Check that this model can learn from these labels.

        Raises:
            DataError: The first label that breaks the model's rule, and the rule.
        """
        known, rule, remedy = self._label_rule(labels)
        wrong = np.flatnonzero(~known)
        if wrong.size:
            raise DataError(
                f"label {labels.flat[wrong[0]]:g} of sample {wrong[0]} is not {rule}, as "
                f"{type(self).__name__} needs it to be; {remedy}"
            )

    def _label_rule(self, labels: Floats) -> tuple[Bools, str, str]:
        """Which labels suit the model, what they must be, and what to do about the others."""
        if self.labels == "binary":
            return np.abs(labels) == 1, "-1 or +1", "map the two classes to -1 and +1"
        return np.isfinite(labels), "finite", "remove the sample or repair its label"

    def options(self) -> dict[str, Any]:
        """Return what makes the same model again, in terms JSON can hold."""
        return {it.name: getattr(self, it.name) for it in fields(self)}  # type: ignore[arg-type]

    def describe(self) -> dict[str, Any]:
        """Return the model's name and parameters in terms JSON can hold."""
        parameters = {
            field.name: getattr(self, field.name)
            for field in fields(self)  # type: ignore[arg-type]
            # Options that few models need are left out at their default.
            if not (field.kw_only and getattr(self, field.name) == field.default)
        }
        return {"model": type(self).__name__, **parameters}


def rounded_units(center: float, scale: float) -> dict[str, Any]:
    """Return center and scale by name, rounded for people to a ten-thousandth of the scale.

    >>> rounded_units(250123.456, 80321.9)
    {'center': 250123.0, 'scale': 80320.0}
    """
    rounded = float(f"{scale:.4g}")
    return {"center": round(center, 4 - math.floor(math.log10(rounded))), "scale": rounded}


MODELS: Registry[type[Model]] = Registry("model")
"""The models by name."""


def typical_curvature(model: Model, num_features: int) -> float | None:
    """Curvature of a model's loss at a sample of standardised features; None if it has no bound.

    Each feature has variance 1, so the squared length of a sample is that of one made of ones.
    """
    bounds = model.curvature_bounds(np.ones((1, num_features)))
    return None if bounds is None else float(bounds[0])


def typical_sample(model: Model, num_features: int) -> tuple[float | None, int]:
    """Arguments of `Method.suited`: the typical curvature, and how many features count."""
    counted = num_features if model.typical_features is None else model.typical_features
    return typical_curvature(model, num_features), counted


def log_odds(probabilities: Matrix) -> Matrix:
    """Return log(p / (1 - p)) of probabilities; finite, also where they were rounded to 0 or 1.

    >>> log_odds(np.array([[0.5, 1.0]])).round(1)
    array([[ 0., 36.]])
    """
    inside = np.clip(probabilities, np.finfo(np.float64).eps, 1.0 - np.finfo(np.float64).eps)
    odds: Matrix = np.log(inside) - np.log1p(-inside)
    return odds


def row_shares(batch: Batch, counts: Vector | None) -> Vector:
    """Return what each row contributes to a mean over the batch; the shares sum to 1."""
    if counts is None:
        return np.full(len(batch), 1.0 / len(batch))
    shares: Vector = counts / counts.sum()
    return shares


def class_rule(labels: Floats, num_classes: float) -> tuple[Bools, str, str]:
    """Return which labels are classes, the rule, and a remedy; see `Model.check_labels`."""
    known = (labels >= 0) & (labels < num_classes) & (labels == np.floor(labels))
    rule = f"one of the classes 0..{num_classes - 1:g}"
    return known, rule, "number the classes from 0, or give more num_classes"


def check_number(
    model: str, name: str, value: float, above: float = -math.inf, least: float = -math.inf
) -> float:
    """Return a parameter as a plain float.

    Raises:
        ConfigError: It is not a finite number above one bound and at least the other.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_number and above < value < math.inf and value >= least):
        bounds = {"above": above, "of at least": least}.items()
        rules = [f" {text} {bound:g}" for text, bound in bounds if bound > -math.inf]
        rule = "a finite number" + "".join(rules)
        raise ConfigError(f"{model} got {name}={value!r}, but {name} must be {rule}")
    return float(value)


def check_intercept(model: str, intercept: bool) -> bool:
    """Return `intercept` as a plain bool.

    Raises:
        ConfigError: It is neither True nor False.
    """
    if not isinstance(intercept, bool | np.bool_):
        raise ConfigError(
            f"{model} got intercept={intercept!r}, but intercept must be True or False; "
            "True adds a constant feature"
        )
    return bool(intercept)
