"""Comparator: the best fixed model in hindsight, x* of the paper, and its losses.

The samples of a run are rows of one table, each taken any number of times. Newton's method sums
loss, gradient and Hessian over blocks of the table, so a large float32 table is never copied to
float64 as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from oneway.errors import ComparatorError, DataError
from oneway.models import Hinge, Model
from oneway.models.base import row_shares
from oneway.models.linear import LinearClassifier
from oneway.records import Batch, Floats, Ints, Matrix, Vector

REQUIRED_NORM = 1e-6
"""The gradient norm at which a model counts as the best one."""
AIMED_NORM = 1e-9
"""The gradient norm to aim at; rounding errors may forbid it."""
_FADING_NORM = 1e-14
"""Below this, without fast convergence before, the gradient is fading along a way to infinity."""
_FAST_FACTOR = 0.2
"""Near a minimiser Newton's method shrinks the gradient by ever larger factors; on the way to
infinity, where the loss falls like exp(-s), by a factor e per step at best."""
_HINGE_EXCESS = 5e-7
"""What rounding the hinge may cost in mean loss."""
_SHARPENING = 5.0
_MAX_STEPS, _MAX_HALVINGS = 200, 40
_BLOCK_ENTRIES = 2**17
"""A megabyte as float64, which a core's own cache can hold."""


class _Point(NamedTuple):
    """The mean loss and its derivatives at some parameters."""

    params: Vector
    loss: float
    gradient: Vector
    hessian: Matrix

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.gradient))


class _Samples(NamedTuple):
    """Rows of a table, row i taken `counts[i]` times."""

    features: Floats
    labels: Floats
    counts: Ints

    def batches(self) -> Iterator[tuple[float, Batch, Vector]]:
        """Yield batches: the share of all samples, the rows, and their counts."""
        total = float(self.counts.sum())
        for block in _blocks(self.features):
            taken = np.flatnonzero(self.counts[block])
            if taken.size:
                counts = self.counts[block][taken].astype(np.float64)
                batch = _float64_batch(self.features[block][taken], self.labels[block][taken])
                yield float(counts.sum()) / total, batch, counts

    def evaluate(self, model: Model, params: Vector) -> _Point:
        loss, gradient, hessian = 0.0, np.zeros(len(params)), np.zeros((len(params), len(params)))
        for share, batch, counts in self.batches():
            loss += share * model.loss(params, batch, counts)
            gradient += share * model.gradient(params, batch, counts)
            hessian += share * _hessian(model, params, batch, counts)
        return _Point(params, loss, gradient, hessian)


@dataclass(frozen=True)
class RoundedHinge(LinearClassifier):
    """max(0, t) of the gap t = 1 - y s replaced by the hyperbola (t + sqrt(t^2 + 4 width^2)) / 2.

    It exceeds the hinge by at most `width`, at the kink. Unlike a hinge with a quadratic piece it
    is curved everywhere, so that Newton's method needs few steps however small the width.
    """

    width: float = 1.0

    @property
    def largest_curvature(self) -> float:
        """1 / (4 width), at the kink."""
        return 0.25 / self.width

    def sample_losses(self, scores: Vector, labels: Floats) -> Vector:
        """Return the hyperbola's height."""
        gaps = 1.0 - labels * scores
        losses: Vector = 0.5 * (gaps + np.hypot(gaps, 2.0 * self.width))
        return losses

    def slopes(self, scores: Vector, labels: Floats) -> Vector:
        """Return -y steepness, with a steepness between 0 and 1."""
        slopes: Vector = -labels * self._steepness(1.0 - labels * scores)
        return slopes

    def curvatures(self, scores: Vector, labels: Floats) -> Vector:
        """Return 2 width^2 / (t^2 + 4 width^2)^(3/2)."""
        heights = np.hypot(1.0 - labels * scores, 2.0 * self.width)
        curvatures: Vector = 2.0 * self.width**2 / heights**3
        return curvatures

    def excess(self, params: Vector, batch: Batch, counts: Vector) -> float:
        """Bound what a minimiser of this model costs more, in mean hinge loss, than the best does.

        Whatever the parameters, a gap t costs at least steepness * t for any steepness from 0 to
        1. With the steepnesses at `params` that lower bound is linear, and if this model's gradient
        vanishes at `params`, the bound plus the l2 term is smallest right there. So the best
        hinge loss is at least the mean of steepness * t here, whereas ours is that of max(0, t).
        """
        gaps = 1.0 - batch.labels * self.scores(params, batch.features)
        excesses = np.maximum(0.0, gaps) - self._steepness(gaps) * gaps
        return float(excesses @ row_shares(batch, counts))

    def _steepness(self, gaps: Vector) -> Vector:
        steepness: Vector = 0.5 * (1.0 + gaps / np.hypot(gaps, 2.0 * self.width))
        return steepness


def best_fixed_model(model: Model, features: Floats, labels: Floats, rows: Ints) -> Vector:
    """Return the parameters that minimise the mean loss over all samples of a stream.

    Newton's method with backtracking, to a gradient norm of at most 1e-6 (1e-9 unless rounding
    errors forbid it). The hinge has a kink and is minimised through ever sharper rounded hinges,
    each started from the last one's minimiser, until its mean loss is within 1e-6 of the best.

    Args:
        model: The model that was learned.
        features: The table's features, `[row, feature]`.
        labels: The table's labels, `[row]`.
        rows: The table's row of each sample, in an array of any shape; a row may come several
            times, and -1 means no sample.

    Raises:
        DataError: There is no sample.
        ComparatorError: No parameters attain the minimum (separable samples and l2=0), or the
            required gradient norm was not reached.
    """
    taken = rows[rows >= 0]
    if not taken.size:
        raise DataError(
            "the stream has 0 samples, but the best fixed model needs at least 1; deal it from a "
            "table with rows"
        )
    samples = _Samples(features, labels, np.bincount(taken, minlength=len(labels)))
    params = np.zeros(model.dim(features.shape[1]))
    with _one_thread():
        if isinstance(model, Hinge):
            return _minimise_hinge(model, samples, params)
        return _minimise(model, samples, params)


def comparator_sums(
    model: Model, params: Vector, features: Floats, labels: Floats, rows: Ints
) -> Vector:
    """Return per round the summed loss of one fixed model over the nodes with a sample.

    Args:
        model: What was learned.
        params: The fixed model, say from `best_fixed_model`.
        features: The table's features, `[row, feature]`.
        labels: The table's labels, `[row]`.
        rows: The table's row that each node sees in each round, `[round, node]`; -1 means none.
    """
    # One element more than the table has rows: index -1, no sample, finds a loss of zero there.
    loss_of_row = np.zeros(len(labels) + 1)
    with _one_thread():
        for block in _blocks(features):
            batch = _float64_batch(features[block], labels[block])
            loss_of_row[:-1][block] = model.losses(params, batch)
    sums = np.empty(len(rows))
    for block in _blocks(rows):
        sums[block] = loss_of_row[rows[block]].sum(axis=1)
    return sums


def _minimise_hinge(model: Hinge, samples: _Samples, params: Vector) -> Vector:
    """Minimise through rounded hinges; see `RoundedHinge` for why the result is near the best."""
    rounded = RoundedHinge(model.l2, model.intercept, width=1.0)
    last = params
    while True:
        # Without l2 a rounded hinge may fall forever: stop it before the parameters get so large
        # that rounding errors disturb the sharper ones.
        good_enough = max(AIMED_NORM, REQUIRED_NORM * rounded.width)
        # Minimisers move about in proportion to the width: start where the next one should be.
        start = params + (params - last) / _SHARPENING
        last, params = params, _minimise(rounded, samples, start, good_enough)
        excess = sum(
            share * rounded.excess(params, batch, counts)
            for share, batch, counts in samples.batches()
        )
        if excess <= _HINGE_EXCESS:
            return params
        rounded = replace(rounded, width=rounded.width / _SHARPENING)


def _minimise(model: Model, samples: _Samples, params: Vector, good_enough: float = 0.0) -> Vector:
    """Run Newton's method; a gradient norm of `good_enough` always ends it."""
    point = samples.evaluate(model, params)
    converging = True
    for _ in range(_MAX_STEPS):
        if point.norm <= good_enough or (point.norm <= AIMED_NORM and converging):
            return point.params
        if point.norm <= _FADING_NORM:
            raise ComparatorError(
                f"{model!r} has no best fixed model, because its loss on these samples keeps "
                f"falling as the parameters grow (norm {np.linalg.norm(point.params):.3g} so far); "
                f"give it l2 > 0"
            )
        trial = _descend(model, samples, point)
        if trial is None or (point.norm <= REQUIRED_NORM and trial.norm >= point.norm):
            break  # Rounding errors are in the way of anything better.
        converging = trial.norm <= _FAST_FACTOR * point.norm
        point = trial
    if not point.norm <= REQUIRED_NORM:
        raise ComparatorError(
            f"the best fixed model of {model!r} was found to a gradient norm of {point.norm:.3g} "
            f"only, but {REQUIRED_NORM:g} is required; standardise the features or give a larger l2"
        )
    return point.params


def _descend(model: Model, samples: _Samples, point: _Point) -> _Point | None:
    """Take a Newton step, halved until the loss falls enough; None if it never does."""
    # In units that make the Hessian's diagonal 1, so that the scales of the features do not matter.
    diagonal = point.hessian.diagonal()
    units = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    hessian, gradient = point.hessian / np.outer(units, units), point.gradient / units
    # Damping keeps a singular Hessian solvable (collinear features, l2=0), and fades with the
    # gradient, so that convergence stays faster than linear.
    damping = 1e-14 + 1e-3 * float(np.linalg.norm(gradient))
    step = np.linalg.solve(hessian + damping * np.eye(len(units)), -gradient) / units
    slope = float(point.gradient @ step)
    noise = 1e-14 * abs(point.loss)

    for halvings in range(_MAX_HALVINGS):
        length = 0.5**halvings
        trial = samples.evaluate(model, point.params + length * step)
        if trial.loss <= point.loss + 1e-4 * length * slope + noise:
            return trial
    return None


def _blocks(table: Floats | Ints) -> Iterator[slice]:
    """Cut the rows of a table into blocks of a few megabytes."""
    num_rows, num_columns = table.shape
    height = max(1, _BLOCK_ENTRIES // max(1, num_columns))
    for start in range(0, num_rows, height):
        yield slice(start, min(start + height, num_rows))


def _one_thread() -> AbstractContextManager[object]:
    """Sums over several threads depend, in the last digits, on how many there are."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="blas")
    return limits


def _float64_batch(features: Floats, labels: Floats) -> Batch:
    return Batch(features.astype(np.float64), labels.astype(np.float64))


def _hessian(model: Model, params: Vector, batch: Batch, counts: Vector) -> Matrix:
    """The model's own second derivative, or the Jacobian of its gradient by central differences."""
    own = model.hessian(params, batch, counts)
    if own is not None:
        return own
    steps = np.diag(1e-5 * (1.0 + np.abs(params)))
    rises = [
        model.gradient(params + step, batch, counts) - model.gradient(params - step, batch, counts)
        for step in steps
    ]
    jacobian = np.column_stack(rises) / (2.0 * steps.diagonal())
    symmetric: Matrix = 0.5 * (jacobian + jacobian.T)
    return symmetric
