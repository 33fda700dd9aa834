"""What every model offers: losses and gradients for one parameter vector, or for one per node.

The convex functions f of the paper, each with its l2 term. Models hold no parameters: a model is a
frozen description, parameters are passed in, and all results are float64 whatever the samples are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np

from oneway.errors import ConfigError
from oneway.records import Batch, Bools, Floats, Matrix, Vector


class Model(ABC):
    """A loss function with its derivatives.

    `loss`, `gradient` and `hessian` are means over a batch with at least one row; with `counts`,
    row i is taken `counts[i]` times. `losses`, `gradients` and `correct` go row by row.
    """

    @abstractmethod
    def dim(self, num_features: int) -> int:
        """Return the length d of a parameter vector."""

    @abstractmethod
    def losses(self, params: Vector | Matrix, batch: Batch) -> Vector:
        """Return the loss of every row, under `params[dim]` or under a stack `params[row, dim]`."""

    @abstractmethod
    def gradients(self, stack: Matrix, batch: Batch) -> Matrix:
        """Return `[row, dim]`: the gradient of row i of the batch at row i of the stack."""

    def loss(self, params: Vector, batch: Batch, counts: Vector | None = None) -> float:
        """Return the mean loss f(x; xi) over the batch."""
        return float(self.losses(params, batch) @ row_shares(batch, counts))

    @abstractmethod
    def gradient(self, params: Vector, batch: Batch, counts: Vector | None = None) -> Vector:
        """Return the gradient of `loss` (at a kink: a subgradient)."""

    @abstractmethod
    def hessian(self, params: Vector, batch: Batch, counts: Vector | None = None) -> Matrix:
        """Return the second derivative of `loss`, wherever there is one."""

    @abstractmethod
    def curvature_bounds(self, features: Floats) -> Vector | None:
        """Return for every row the largest second derivative its loss has, in any direction.

        None if there is a kink somewhere.
        """

    @abstractmethod
    def predict(self, params: Vector, features: Floats) -> Vector:
        """Return the predicted label of every row."""

    @abstractmethod
    def correct(self, params: Vector | Matrix, batch: Batch) -> Bools | None:
        """Return for every row whether its prediction is right; None if that has no meaning.

        As in `losses`, `params` is one vector for all rows or a stack with one row each.
        """

    @abstractmethod
    def check_labels(self, labels: Floats) -> None:
        """Check that this model can learn from these labels.

        Raises:
            DataError: The first label that breaks the model's rule, and the rule.
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the model's name and parameters in terms JSON can hold."""


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
