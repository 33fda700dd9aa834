"""How well one learner does: averages over the groups of samples of a `Curve`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

import numpy as np

from oneway.records import Ints, Vector
from oneway.records.curve import Curve

_Number = TypeVar("_Number", int, float)

RECENT_SAMPLES = 200
"""About as many of the last samples are "lately"."""


def last_samples(curve: Curve) -> list[int]:
    """Return for each group the number of its last sample, counted from the learner's first."""
    done = accumulate(_sizes(curve), initial=curve.before)
    return list(done)[1:]


def average_losses(curve: Curve) -> list[float]:
    """Return after each group the mean loss of all samples so far."""
    return _averages(curve.loss_sums, curve)


def recent_losses(curve: Curve) -> list[float]:
    """Return after each group the mean loss of the last samples: see `recent_width`."""
    return _recent(curve.loss_sums, curve)


def accuracies(curve: Curve) -> list[float]:
    """Return after each group the share of right predictions so far."""
    return _averages(curve.correct, curve)


def recent_accuracies(curve: Curve) -> list[float]:
    """Return after each group the share of right predictions lately: see `recent_width`."""
    return _recent(curve.correct, curve)


def recent_width(curve: Curve) -> int:
    """Return how many samples a recent average takes in at most.

    As many whole groups as have `RECENT_SAMPLES` samples, but one at least.
    """
    return max(1, RECENT_SAMPLES // curve.width) * curve.width


def coarser(curve: Curve, most_groups: int) -> Curve:
    """Return the same samples in wider groups, so that there are no more groups than that.

    >>> coarser(Curve(samples=3, loss_sums=(3.0, 2.0, 1.0), times=(7.0, 8.0, 9.0)), 2)
    Curve(width=2, samples=3, loss_sums=(5.0, 1.0), correct=(), times=(8.0, 9.0), before=0)
    """
    merged = 1
    while len(curve.loss_sums) > merged * most_groups:
        merged *= 2
    if merged == 1:
        return curve
    ends = [*curve.times[merged - 1 :: merged]]
    if len(curve.times) % merged:
        ends.append(curve.times[-1])
    return Curve(
        width=merged * curve.width,
        samples=curve.samples,
        loss_sums=_merged(curve.loss_sums, merged),
        correct=_merged(curve.correct, merged),
        times=tuple(ends),
        before=curve.before,
    )


def spread_losses(curve: Curve) -> Vector:
    """Return the loss of each sample: of those in one group, their mean."""
    sizes = _sizes(curve)
    return np.repeat(np.array(curve.loss_sums) / sizes, sizes)


def spread_correct(curve: Curve) -> Ints:
    """Return which samples were foreseen, as 0 and 1: those of a group are spread over it."""
    if not curve.samples:
        return np.zeros(0, dtype=np.int64)
    ends = np.cumsum([0, *_sizes(curve)])
    totals = np.cumsum([0, *curve.correct])
    so_far = np.rint(np.interp(np.arange(curve.samples + 1), ends, totals)).astype(np.int64)
    spread: Ints = np.diff(so_far)
    return spread


def _merged(values: Sequence[_Number], size: int) -> tuple[_Number, ...]:
    """Sums of so many values each; of the rest, if there is one, at the end."""
    return tuple(sum(values[first : first + size]) for first in range(0, len(values), size))


def _sizes(curve: Curve) -> list[int]:
    """How many samples each group has: all have the same number, but the last may have fewer."""
    full = len(curve.loss_sums) - 1
    return [curve.width] * full + [curve.samples - full * curve.width] if full >= 0 else []


def _averages(sums: Sequence[float], curve: Curve) -> list[float]:
    counts = accumulate(_sizes(curve))
    return [total / count for total, count in zip(accumulate(sums), counts, strict=False)]


def _recent(sums: Sequence[float], curve: Curve) -> list[float]:
    """Means over a window that ends with each group; each is summed anew, so no error builds up."""
    sizes, window = _sizes(curve), recent_width(curve) // curve.width
    return [
        sum(sums[max(0, end - window) : end]) / sum(sizes[max(0, end - window) : end])
        for end in range(1, len(sums) + 1)
    ]
