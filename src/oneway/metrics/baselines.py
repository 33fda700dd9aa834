"""Baselines of a loss: the running base rate, and whether a loss is worse beyond doubt.

The base rate predicts every sample from the labels before it, without its features: the shares of
the classes, or the mean. Successive losses are not independent, so the standard error of a
difference comes from batch means.
"""

from __future__ import annotations

import math

import numpy as np

from oneway.metrics.tally import CLASS_PRIOR, class_codes
from oneway.models import Model
from oneway.personal.words import verdict
from oneway.records import Bools, Floats, Ints, Vector
from oneway.records.curve import Curve
from oneway.records.measures import Baselines

ENOUGH_SAMPLES = 200
"""Fewer samples give no verdict."""
LATELY_SAMPLES = 1000
"""About how many of the last samples are compared."""
_BATCHES = 20
_SURE = 3.58
"""Student's t with 19 degrees of freedom is above this once in a thousand times."""
_LIKELY = 2.093
"""It is further from 0 than this once in twenty times."""
_HAIR = 0.01
"""A difference below this share of the baseline is too small to report."""
_BLOCK_ENTRIES = 2**17


def lately(curve: Curve) -> Baselines | None:
    """Compare the last samples of a learner with the baselines; None if there are too few.

    Takes the last groups of the curve that have `LATELY_SAMPLES` samples, as far as the base rate
    is known, but at least 20 groups.
    """
    known = 0
    while known < len(curve.base_sums) and curve.base_sums[-1 - known] is not None:
        known += 1
    count = min(known, max(_BATCHES, -(-LATELY_SAMPLES // curve.width)))
    first = len(curve.loss_sums) - count
    sizes: Vector = np.full(count, float(curve.width))
    if count:
        sizes[-1] = curve.samples - (len(curve.loss_sums) - 1) * curve.width
    samples = int(sizes.sum())
    if samples < ENOUGH_SAMPLES or count < _BATCHES:
        return None
    losses = np.array(curve.loss_sums[first:])
    base = np.array(curve.base_sums[first:], np.float64)
    shared, alone = (
        None if None in sums[first:] or not sums else np.array(sums[first:], np.float64)
        for sums in (curve.shared_sums, curve.alone_sums)
    )
    return Baselines(
        samples=samples,
        loss=_mean(losses, samples),
        base_loss=_mean(base, samples),
        shared_loss=None if shared is None else _mean(shared, samples),
        alone_loss=None if alone is None else _mean(alone, samples),
        base_error=_standard_error(losses - base, sizes),
        alone_error=None if alone is None else _standard_error(losses - alone, sizes),
    )


def is_worse(loss: float, baseline: float | None, error: float | None) -> bool:
    """Whether a mean loss is above a baseline, significantly and by more than 1 %.

    >>> is_worse(0.70, 0.65, 0.005), is_worse(0.70, 0.65, 0.02), is_worse(0.651, 0.65, 1e-9)
    (True, False, False)
    """
    if baseline is None or error is None or not math.isfinite(error):
        return False
    return loss - baseline > max(_SURE * error, _HAIR * abs(baseline))


def curve_verdict(curve: Curve, step: float = 0.1) -> str:
    """Whether a learner lost less than it would have alone, over its whole curve, as a sentence.

    Of the samples of which both are known; empty if there are none.

    Args:
        curve: Of the learner.
        step: Numbers are rounded to multiples of so many per cent.
    """
    ends = np.minimum(np.arange(len(curve.loss_sums) + 1) * curve.width, curve.samples)
    known = np.array([it is not None for it in curve.alone_sums], np.bool_)
    if not known.any():
        return ""
    counts = np.diff(ends)[known]
    alone = np.array(curve.alone_sums, np.float64)[known]
    difference, half = difference_interval(np.array(curve.loss_sums)[known] - alone, counts)
    return verdict(difference, half, _mean(alone, int(counts.sum())), step)


def half_width(error: float) -> float:
    """Return half the width of the interval that `is_worse` goes by, 99.9 % on either side."""
    return _SURE * error


def base_rate_sums(
    model: Model,
    num_classes: int,
    labels: Floats,
    rows: Ints,
    known_rows: Ints | None = None,
    most: int = _BLOCK_ENTRIES,
) -> Vector:
    """Return per round the summed loss of the base rate of every node, each of its own samples.

    Args:
        model: The model whose loss is computed.
        num_classes: Number of classes; ignored for numbers.
        labels: The table's labels, `[row]`.
        rows: The table's row that each node sees in each round, `[round, node]`; -1 means none.
        known_rows: The row whose label each node learns in each round, after predicting; by
            default the row it sees.
        most: Largest number of entries in a block of rounds.
    """
    known_rows = rows if known_rows is None else known_rows
    num_rounds, num_nodes = rows.shape
    width, prior = (num_classes, CLASS_PRIOR) if model.classifies else (1, 0.0)
    sums, seen, counts = np.zeros(num_rounds), np.zeros((num_nodes, width)), np.zeros(num_nodes)
    height = max(1, most // (num_nodes * width))
    for first in range(0, num_rounds, height):
        part, known = (it[first : first + height] for it in (rows, known_rows))
        there: Bools = part >= 0
        learned: Bools = known >= 0
        came = np.where(learned, labels[known], 0.0)[:, :, None]
        if model.classifies:
            codes = class_codes(model.labels, came)
            came = (codes == np.arange(width)) & learned[:, :, None]
        so_far = seen + np.cumsum(came, axis=0, dtype=np.float64)
        totals = counts + np.cumsum(learned, axis=0)
        before = np.concatenate([seen[None], so_far[:-1]])[there]
        had = np.concatenate([counts[None], totals[:-1]])[there][:, None]
        expected = (before + prior) / np.maximum(had + prior * width, 1.0)
        losses = np.zeros(part.shape)
        losses[there] = model.base_losses(expected, labels[part[there]])
        sums[first : first + height] = losses.sum(axis=1)
        seen, counts = so_far[-1], totals[-1]
    return sums


def _mean(sums: Vector, samples: int) -> float:
    return float(sums.sum()) / samples


def _standard_error(differences: Vector, sizes: Vector) -> float:
    """Of the mean of differences, given by sums over groups; by means of 20 batches of groups."""
    width = len(sizes) // _BATCHES
    kept = slice(len(sizes) - width * _BATCHES, None)
    batches = differences[kept].reshape(_BATCHES, width).sum(axis=1)
    return _error_of(batches / sizes[kept].reshape(_BATCHES, width).sum(axis=1))


def _error_of(means: Vector) -> float:
    return float(means.std(ddof=1) / math.sqrt(_BATCHES))


def difference_interval(sums: Vector, counts: Ints) -> tuple[float, float]:
    """Return the mean of differences per sample, and half the width of its 95 % interval.

    By means of 20 batches of neighbouring rounds, with about as many samples each; nan without
    enough samples for it.

    Args:
        sums: Per round, the sum of the differences.
        counts: Per round, how many samples there were.
    """
    samples = int(counts.sum())
    mean = _mean(sums, samples) if samples else math.nan
    ends = np.cumsum(counts)
    batch = np.minimum((ends - 1) * _BATCHES // max(samples, 1), _BATCHES - 1)
    there = counts > 0
    sizes = np.bincount(batch[there], counts[there], minlength=_BATCHES)
    if samples < ENOUGH_SAMPLES or not sizes.all():
        return mean, math.nan
    means = np.bincount(batch[there], sums[there], minlength=_BATCHES) / sizes
    return mean, _LIKELY * _error_of(means)
