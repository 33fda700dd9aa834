"""Learning curve of one learner: moving averages over the groups of samples of a `Curve`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeVar

import numpy as np

from oneway.records import Ints, Vector
from oneway.records.curve import Curve

_Number = TypeVar("_Number", int, float)

RECENT_SAMPLES = 200
"""About as many of the last samples are "lately"."""


def last_samples(curve: Curve) -> list[int]:
    """Return for each group the number of its last sample, counted from the learner's first."""
    return [int(done) for done in curve.before + np.cumsum(_sizes(curve))]


def mean_losses(curve: Curve, *, recent: bool = False) -> list[float]:
    """Return after each group the mean loss of all samples so far, or lately: `recent_width`."""
    return _means(curve.loss_sums, curve, recent)


def accuracies(curve: Curve, *, recent: bool = False) -> list[float]:
    """Return after each group the share of right predictions so far, or lately."""
    return _means(curve.correct, curve, recent)


def known_means(sums: Sequence[float | None], curve: Curve) -> list[float | None]:
    """Return after each group the mean of a baseline over all groups so far that have one.

    None before the first of these; empty if there is none.
    """
    if all(value is None for value in sums):
        return []
    known = np.array([value is not None for value in sums])
    totals = np.cumsum([value or 0.0 for value in sums])
    counts = np.cumsum(known * np.array(_sizes(curve)))
    pairs = zip(totals.tolist(), counts.tolist(), strict=True)
    return [total / count if count else None for total, count in pairs]


def recent_width(curve: Curve) -> int:
    """Return how many samples a recent average takes in at most.

    As many whole groups as have `RECENT_SAMPLES` samples, but one at least.
    """
    return max(1, RECENT_SAMPLES // curve.width) * curve.width


def coarser(curve: Curve, most_groups: int) -> Curve:
    """Return the same samples in wider groups, so that there are no more groups than that.

    >>> wide = coarser(Curve(samples=3, loss_sums=(3.0, 2.0, 1.0), times=(7.0, 8.0, 9.0)), 2)
    >>> wide.width, wide.loss_sums, wide.times
    (2, (5.0, 1.0), (8.0, 9.0))
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
        base_sums=_merged_known(curve.base_sums, merged),
        alone_sums=_merged_known(curve.alone_sums, merged),
    )


def spread_losses(curve: Curve) -> Vector:
    """Return the loss of each sample: of those in one group, their mean."""
    sizes = _sizes(curve)
    return np.repeat(np.array(curve.loss_sums) / sizes, sizes)


def spread_known(curve: Curve, name: Literal["base", "alone"]) -> Vector | None:
    """Return the loss of a baseline at each sample; None if that is not known for all."""
    sums = curve.base_sums if name == "base" else curve.alone_sums
    if None in sums or len(sums) != len(curve.loss_sums):
        return None
    sizes = _sizes(curve)
    return np.repeat(np.array(sums, np.float64) / sizes, sizes)


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


def _merged_known(values: Sequence[float | None], size: int) -> tuple[float | None, ...]:
    """The same where a sum is not known if one of its values is not."""
    known = _merged([math.nan if value is None else value for value in values], size)
    return tuple(None if math.isnan(value) else value for value in known)


def _sizes(curve: Curve) -> list[int]:
    """How many samples each group has: all have the same number, but the last may have fewer."""
    full = len(curve.loss_sums) - 1
    return [curve.width] * full + [curve.samples - full * curve.width] if full >= 0 else []


def _means(sums: Sequence[float], curve: Curve, recent: bool) -> list[float]:
    """Means over the groups that end with each; each is summed anew, so no error builds up."""
    if not sums:
        return []
    window = recent_width(curve) // curve.width if recent else len(sums)
    totals, counts = (
        np.convolve(values, np.ones(window))[: len(sums)]
        for values in (sums, _sizes(curve)[: len(sums)])
    )
    return [float(mean) for mean in totals / counts]
