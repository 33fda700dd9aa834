"""Where a model starts: at what labels are expected to be, not at zero.

A model that knows nothing of the features does best with the share of each class, or with the mean.
Where the learning rate is chosen (`auto`), a specification made from a table lets the model start
there, and numbers are learned in units of their spread, so that one rate suits any. Like centers
and scales of features, these are statistics of the data that a task was made from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oneway.methods import AUTO
from oneway.records import Floats, Ints, Vector
from oneway.task.learning import Learning


def start_options(learning: Learning, num_classes: int, labels: Floats) -> dict[str, Any]:
    """The options of a specification, with those that let its model start from its labels.

    Nothing changes where the rate is a number, or where options of the model say how it starts.

    Args:
        learning: The specification.
        num_classes: Of the labels; 0 for numbers.
        labels: As the model has them: -1 and +1, class codes, or numbers.
    """
    kind = learning.kind_for(num_classes)
    if kind == "number":
        deviation = float(np.std(labels, dtype=np.float64))
        return with_start(learning, num_classes, np.array([np.mean(labels)], float), deviation)
    codes = labels > 0 if kind == "binary" else labels
    counts = np.bincount(codes.astype(np.intp), minlength=num_classes)
    return with_start(learning, num_classes, shares_of(counts))


def with_start(
    learning: Learning, num_classes: int, expected: Vector, deviation: float = 1.0
) -> dict[str, Any]:
    """As `start_options`, given the shares of the classes, or mean and deviation of numbers."""
    given = learning.options
    if learning.learning_rate != AUTO:
        return dict(given)
    start = learning.model_for(num_classes).start_options(expected, deviation or 1.0)
    if not start or start.keys() & given.get(learning.model, {}).keys():
        return dict(given)
    return {**given, learning.model: {**given.get(learning.model, {}), **start}}


def shares_of(counts: Vector | Ints) -> Vector:
    """The share of every class, none of them 0: one more of each is counted (Laplace).

    >>> shares_of(np.array([3, 0])).tolist()
    [0.8, 0.2]
    """
    more = np.asarray(counts, np.float64) + 1.0
    shares: Vector = more / more.sum()
    return shares
