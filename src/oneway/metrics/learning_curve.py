"""Learning curves: moving averages over the groups of samples of a `Curve`, and thinning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import numpy as np
from msgspec.structs import replace

from oneway.records import Ints, Vector
from oneway.records.curve import Curve

_Number = TypeVar("_Number", int, float)
_Value = TypeVar("_Value")

RECENT_SAMPLES = 200
"""About how many of the last samples a recent average covers."""


def last_samples(curve: Curve) -> list[int]:
    """Return for each group the number of its last sample, counted from the learner's first."""
    return [int(done) for done in curve.before + np.cumsum(_sizes(curve))]


def mean_losses(curve: Curve, *, recent: bool = False) -> list[float]:
    """Return after each group the mean loss of all samples so far, or of the recent ones."""
    return _means(curve.loss_sums, curve, recent)


def accuracies(curve: Curve, *, recent: bool = False) -> list[float]:
    """Return after each group the share of right predictions so far, or of the recent ones."""
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
    """Return how many samples a recent average covers: whole groups, at least one."""
    return max(1, RECENT_SAMPLES // curve.width) * curve.width


def coarser(curve: Curve, most_groups: int) -> Curve:
    """Return the same samples in wider groups, so that there are no more groups than that.

    >>> wide = coarser(Curve(samples=3, loss_sums=(3.0, 2.0, 1.0), times=(7.0, 8.0, 9.0)), 2)
    >>> wide.width, wide.loss_sums, wide.times
    (2, (5.0, 1.0), (8.0, 9.0))
    """
    size = 1
    while len(curve.loss_sums) > size * most_groups:
        size *= 2
    known = {name: getattr(curve, name) for name in ("shared_sums", "alone_sums", "base_sums")}
    return replace(
        curve,
        width=size * curve.width,
        loss_sums=_merged(curve.loss_sums, size),
        correct=_merged(curve.correct, size),
        times=tuple(times[-1] for times in _groups(curve.times, size)),
        **{name: _merged_known(sums, size) for name, sums in known.items()},
    )


def spread_losses(curve: Curve) -> Vector:
    """Return the loss of each sample: the mean of its group."""
    sizes = _sizes(curve)
    return np.repeat(np.array(curve.loss_sums) / sizes, sizes)


def spread_known(curve: Curve, name: Literal["shared", "alone", "base"]) -> Vector | None:
    """Return the loss of a baseline at each sample; None if it is not known for all."""
    sums: Sequence[float | None] = getattr(curve, f"{name}_sums")
    if None in sums or len(sums) != len(curve.loss_sums):
        return None
    return np.repeat(np.array(sums, np.float64) / _sizes(curve), _sizes(curve))


def spread_correct(curve: Curve) -> Ints:
    """Return which samples were predicted right, as 0 and 1, spread evenly over each group."""
    if not curve.samples:
        return np.zeros(0, dtype=np.int64)
    ends = np.cumsum([0, *_sizes(curve)])
    totals = np.cumsum([0, *curve.correct])
    so_far = np.rint(np.interp(np.arange(curve.samples + 1), ends, totals)).astype(np.int64)
    spread: Ints = np.diff(so_far)
    return spread


def evenly_spread(num_points: int, most: int = 500) -> Ints:
    """Return which points to show: at most `most`, evenly spread, with the first and the last.

    >>> evenly_spread(3).tolist(), evenly_spread(10, most=4).tolist()
    ([0, 1, 2], [0, 3, 6, 9])
    """
    shown = min(num_points, most)
    places: Ints = np.round(np.linspace(0, num_points - 1, shown)).astype(np.int64)
    return places


class Thinned:
    """Points in the order of x, thinned out evenly: at most `limit`, and always the last one.

    When there are too many, every second one goes, and from then on every second one that comes.
    The limit is an even number, 4 or more.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._points: list[tuple[float, float]] = []
        self._every = 1
        self._count = 0

    def add(self, x: float, y: float) -> None:
        """Go on with a point; one that is not beyond the last takes its place."""
        if self._points and x <= self._points[-1][0]:
            self._points[-1] = (self._points[-1][0], y)
            return
        if self._count and (self._count - 1) % self._every:
            self._points.pop()  # it was there only for being the last
        self._points.append((x, y))
        if self._count % self._every == 0 and len(self._points) >= self._limit:
            del self._points[1::2]
            self._points.append((x, y))
            self._every *= 2
        self._count += 1

    @property
    def points(self) -> list[tuple[float, float]]:
        """What is left, with the last point at the end."""
        return list(self._points)


def _groups(values: Sequence[_Value], size: int) -> list[Sequence[_Value]]:
    return [values[first : first + size] for first in range(0, len(values), size)]


def _merged(values: Sequence[_Number], size: int) -> tuple[_Number, ...]:
    """Sums of so many values each; the last may be of fewer."""
    return tuple(sum(group) for group in _groups(values, size))


def _merged_known(values: Sequence[float | None], size: int) -> tuple[float | None, ...]:
    """The same for values of which some are unknown; so are then their sums."""
    groups = _groups(values, size)
    return tuple(None if None in it else sum(filter(None, it)) for it in groups)


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
