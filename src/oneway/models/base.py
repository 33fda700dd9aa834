"""What every model offers: losses and gradients for one parameter vector, or for one per node.

Models hold no parameters: a model is a frozen description, parameters are passed in, and all
results are float64 whatever the samples are. What only some models can say is a capability: a
protocol that a model has or has not, asked for by `isinstance`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from oneway.errors import ConfigError, DataError
from oneway.records import Batch, Bools, Floats, Matrix, Vector
from oneway.registry import Registry

LabelKind: TypeAlias = Literal["binary", "classes", "number"]
"""What is predicted: one of two values, -1 or +1; one of the classes 0, 1, 2, ...; or a number."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says about rows before their labels are known.

    Attributes:
        predicted: The label of every row.
        scores: `[row, column]`, the larger the more probable: one column for the second of two
            classes, or one per class. None where a model ranks nothing.
        probabilities: `[row, class]`; None where a model does not say.
    """

    predicted: Vector
    scores: Matrix | None = None
    probabilities: Matrix | None = None


@dataclass(frozen=True, eq=False)
class Lesson:
    """What samples tell, row by row, each at a model of its own.

    Attributes:
        losses: Of predictions, before the label is known.
        correct: Whether a prediction is right; None if that has no meaning.
        gradients: `[row, dim]`.
        owned: Whether nobody else has the gradients: who asked for them may write there.
    """

    losses: Vector
    correct: Bools | None
    gradients: Matrix
    owned: bool = False


class Model(ABC):
    """A loss function with its derivatives, and a frozen dataclass of its parameters.

    `loss` and `gradient` are means over a batch with at least one row; with `counts`, row i is
    taken `counts[i]` times. `losses`, `gradients` and `correct` go row by row.
    """

    name: ClassVar[str]
    """Short name, as in a task and on the command line."""
    labels: LabelKind
    """Which labels it learns from: of a class, or of a model where options decide."""
    dtype: type[np.float32] | type[np.float64] = np.float64
    """The kind of number that parameters are; `init` and `gradients` return such."""

    skips: ClassVar[bool] = False
    """Whether a sample without a finite gradient is skipped and counted, as where a module or a
    loss has none; otherwise a run ends there, since the model has left the finite numbers."""

    usual_data: ClassVar[str] = ""
    """The data set that a run learns from if nobody names one; "" for that of all models."""

    site_options: ClassVar[tuple[str, ...]] = ()
    """Options that change nothing but where and how fast a model is computed: every site says its
    own, in peer.toml, and they are no part of a task."""

    typical_features: ClassVar[int | None] = None
    """Of how many standardised features gradients are about as long as this model's, whatever its
    size: what a rate that is chosen and a clip go by. None: of as many as there are."""

    @classmethod
    def kind_of_labels(cls, options: Mapping[str, Any]) -> LabelKind | None:  # noqa: ARG003
        """Return which labels a model with these options learns from; None if these decide."""
        return cls.labels

    @classmethod
    def for_labels(cls, num_classes: int, **options: Any) -> Self:  # noqa: ARG003
        """Return a model for labels with so many classes (0 for numbers), as a task needs it."""
        return cls(**options)

    @abstractmethod
    def dim(self, num_features: int) -> int:
        """Return the length d of a parameter vector."""

    def init(self, num_features: int, rng: np.random.Generator) -> Vector:
        """Return the parameters to start from, the same at all nodes; zeros for convex losses."""
        return np.zeros(self.dim(num_features))

    def start_options(self, expected: Vector, deviation: float) -> dict[str, Any]:
        """Return options of a model that starts from what is known about labels; none by default.

        Args:
            expected: The share of each class, none of them 0; of numbers their mean.
            deviation: Of numbers, above 0.
        """
        return {}

    def task_options(self) -> dict[str, Any]:
        """Return options that a task has to say for all sites to have the same; none by default."""
        return {}

    def told(self, num_features: int, labels: Floats) -> Model:
        """Return the model with what it is told by samples; by default itself."""
        return self

    def shaped(self, shape: tuple[int, ...]) -> Self:
        """Return the model for samples that are arrays of a shape; by default rows are flat."""
        return self

    @abstractmethod
    def losses(self, params: Vector | Matrix, batch: Batch) -> Vector:
        """Return the loss of every row, under `params[dim]` or under a stack `params[row, dim]`."""

    @abstractmethod
    def gradients(self, stack: Matrix, batch: Batch) -> Matrix:
        """Return `[row, dim]`: the gradient of row i of the batch at row i of the stack."""

    def drawn_gradients(self, stack: Matrix, batch: Batch, rng: np.random.Generator) -> Matrix:
        """Return `gradients` to learn from; what a model draws for them, as dropout, is of `rng`.

        By default nothing is drawn.
        """
        return self.gradients(stack, batch)

    def lesson(self, stack: Matrix, batch: Batch, rng: np.random.Generator) -> Lesson:
        """Return losses, whether predictions are right, and `drawn_gradients`, of every row.

        To be overridden by who needs one pass for what three methods say by default.
        """
        return Lesson(
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
        rows = zip(params, batch.features, strict=True)
        guesses = np.array([self.predict(row, features[None])[0] for row, features in rows])
        return np.asarray(guesses == batch.labels)

    def answers(self, params: Vector | Matrix, features: Floats) -> Answers:
        """Return what is said about every row, under `params[dim]` or a stack `params[row, dim]`.

        By `predict` and, where the model has them, `probabilities`.
        """
        stack = np.broadcast_to(params, (len(features), params.shape[-1]))
        rows = list(zip(stack, features[:, None], strict=True))
        predicted = np.array([self.predict(*row)[0] for row in rows], np.float64)
        if not (self.classifies and isinstance(self, HasProbabilities)):
            return Answers(predicted)
        chances = np.array([self.probabilities(*row)[0] for row in rows])
        return Answers(predicted, log_odds(chances), chances)

    def base_losses(self, expected: Matrix, labels: Floats) -> Vector:
        """Return the loss of answers that know nothing of the features: a baseline.

        Args:
            expected: What is known about labels, `[row, class]`: the share of each class; of
                numbers `[row, 1]`: their mean.
            labels: What comes, `[row]`.

        By default the cross-entropy, or half the squared error; a model with another loss has to
        say so. A constant answer has no parameters, and so no l2 term.
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
            # What only some need is said by those.
            if not (field.kw_only and getattr(self, field.name) == field.default)
        }
        return {"model": type(self).__name__, **parameters}


MODELS: Registry[type[Model]] = Registry("model")
"""The models by name."""


@runtime_checkable
class HasCurvature(Protocol):
    """Knows how strongly the loss of a sample bends: limits a step."""

    def curvature_bounds(self, features: Floats) -> Vector | None:
        """Return for every row the largest second derivative its loss has, in any direction.

        None if there is a kink somewhere.
        """


def typical_curvature(model: Model, num_features: int) -> float | None:
    """Curvature of a model's loss at a sample of standardised features; None if it has no bound.

    Each feature has variance 1, so the squared length of a sample is that of one made of ones.
    """
    if not isinstance(model, HasCurvature):
        return None
    bounds = model.curvature_bounds(np.ones((1, num_features)))
    return None if bounds is None else float(bounds[0])


def typical_sample(model: Model, num_features: int) -> tuple[float | None, int]:
    """What `Method.suited` asks for: the typical curvature, and how many features count."""
    counted = num_features if model.typical_features is None else model.typical_features
    return typical_curvature(model, num_features), counted


@runtime_checkable
class HasHessian(Protocol):
    """Knows second derivatives: finds the best fixed model by Newton's method."""

    def hessian(self, params: Vector, batch: Batch, counts: Vector | None = None) -> Matrix:
        """Return the second derivative of `loss`, wherever there is one."""


@runtime_checkable
class HasProbabilities(Protocol):
    """Says how probable each class is."""

    def probabilities(self, params: Vector, features: Floats) -> Matrix:
        """Return `[row, class]`; rows sum to 1, classes are in the order of their codes."""


@runtime_checkable
class HasCoefficients(Protocol):
    """Predicts by scores that are linear in the features: a model that can be written down.

    Of two classes the second has the only score, and is predicted from 0 on; of several, each has
    one, and the highest wins, the first of equals; a number is the score itself. Probabilities, if
    the model says them, are the logistic function or the softmax of the scores.
    """

    def coefficients(self, params: Vector) -> tuple[Matrix, Vector]:
        """Return `[score, feature]`, and the constant of every score (0 without an intercept)."""


@runtime_checkable
class HasModule(Protocol):
    """Predicts by the outputs of a PyTorch module, one for each score of `HasCoefficients`.

    A number is `center + scale` times the only output.
    """

    center: float
    scale: float
    shape: tuple[int, ...] | None
    """Of a sample as the module sees it; None for a flat row."""

    def filled(self, params: Vector) -> Any:
        """Return a module of its own with these parameters, an `nn.Module` that predicts."""


def log_odds(chances: Matrix) -> Matrix:
    """Return log(p / (1 - p)) of probabilities; finite, also where they were rounded to 0 or 1.

    >>> log_odds(np.array([[0.5, 1.0]])).round(1)
    array([[ 0., 36.]])
    """
    inside = np.clip(chances, np.finfo(np.float64).eps, 1.0 - np.finfo(np.float64).eps)
    odds: Matrix = np.log(inside) - np.log1p(-inside)
    return odds


def row_shares(batch: Batch, counts: Vector | None) -> Vector:
    """Return what each row contributes to a mean over the batch; the shares sum to 1."""
    if counts is None:
        return np.full(len(batch), 1.0 / len(batch))
    shares: Vector = counts / counts.sum()
    return shares


def check_l2(model: str, l2: float) -> float:
    """Return `l2` as a plain float.

    Raises:
        ConfigError: It is not a finite number of at least 0.
    """
    if not isinstance(l2, Real) or isinstance(l2, bool) or not 0.0 <= l2 < math.inf:
        raise ConfigError(
            f"{model} got l2={l2!r}, but l2 must be a finite number >= 0; the paper uses 1e-4"
        )
    return float(l2)


def check_number(model: str, name: str, value: float, above: float = -math.inf) -> float:
    """Return a parameter as a plain float.

    Raises:
        ConfigError: It is not a finite number above the bound.
    """
    if not isinstance(value, Real) or isinstance(value, bool) or not above < value < math.inf:
        rule = "a finite number" if above == -math.inf else f"a finite number above {above:g}"
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
