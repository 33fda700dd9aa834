"""Baselines of a loss: the running base rate, and whether a loss is worse beyond doubt.

The base rate answers every sample with what was seen before it, features aside: the shares of the
classes, or the mean. Losses that follow one another are not independent, so how sure a difference
is comes from means over batches of neighbours.
"""

from __future__ import annotations

import math

import numpy as np

from oneway.metrics.tally import class_codes, smoothed_shares
from oneway.models import Model
from oneway.records import Bools, Floats, Ints, Vector
from oneway.records.curve import Curve
from oneway.records.measures import Baselines

ENOUGH_SAMPLES = 200
"""With fewer samples there is no verdict."""
LATELY_SAMPLES = 1000
"""About as many of the last samples are compared."""
_BATCHES = 20
_SURE = 3.58
"""Student's t with 19 degrees of freedom is above this once in a thousand times."""
_HAIR = 0.01
"""A difference below this share of the baseline is none worth a sentence."""
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
    alone_sums = curve.alone_sums[first:]
    alone = None if None in alone_sums or not alone_sums else np.array(alone_sums, np.float64)
    return Baselines(
        samples=samples,
        loss=_mean(losses, samples),
        base_loss=_mean(base, samples),
        alone_loss=None if alone is None else _mean(alone, samples),
        base_error=_standard_error(losses - base, sizes),
        alone_error=None if alone is None else _standard_error(losses - alone, sizes),
    )


def is_worse(loss: float, baseline: float | None, error: float | None) -> bool:
    """Whether a mean loss is above a baseline: beyond chance, and by more than a hair.

    >>> is_worse(0.70, 0.65, 0.005), is_worse(0.70, 0.65, 0.02), is_worse(0.651, 0.65, 1e-9)
    (True, False, False)
    """
    if baseline is None or error is None or not math.isfinite(error):
        return False
    return loss - baseline > max(_SURE * error, _HAIR * abs(baseline))


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
        model: Whose loss it is.
        num_classes: How many classes there are; any number where labels are numbers.
        labels: The table's labels, `[row]`.
        rows: The table's row that each node sees in each round, `[round, node]`; -1 means none.
        known_rows: The row whose label each node gets to know in each round, after it has
            predicted; by default the row it sees.
        most: Entries that are worked on at once.
    """
    known_rows = rows if known_rows is None else known_rows
    num_rounds, num_nodes = rows.shape
    width = num_classes if model.classifies else 1
    sums, seen = np.zeros(num_rounds), np.zeros((num_nodes, width))
    counts = np.zeros(num_nodes)
    height = max(1, most // (num_nodes * width))
    for first in range(0, num_rounds, height):
        part, known = (it[first : first + height] for it in (rows, known_rows))
        there: Bools = part >= 0
        learned: Bools = known >= 0
        values = np.where(learned, labels[known], 0.0)
        if model.classifies:
            codes = class_codes(model.labels, values)
            came = (codes[:, :, None] == np.arange(width)) & learned[:, :, None]
        else:
            came = values[:, :, None]
        so_far = seen + np.cumsum(came, axis=0, dtype=np.float64)
        before = np.concatenate([seen[None], so_far[:-1]])[there]
        seen = so_far[-1]
        if model.classifies:
            expected = smoothed_shares(before)
        else:
            totals = counts + np.cumsum(learned, axis=0)
            had = np.concatenate([counts[None], totals[:-1]])[there][:, None]
            expected = before / np.maximum(had, 1.0)
            counts = totals[-1]
        losses = np.zeros(part.shape)
        losses[there] = model.base_losses(expected, labels[part[there]])
        sums[first : first + height] = losses.sum(axis=1)
    return sums


def _mean(sums: Vector, samples: int) -> float:
    return float(sums.sum()) / samples


def _standard_error(differences: Vector, sizes: Vector) -> float:
    """Of the mean of differences, given by sums over groups; by means of 20 batches of groups."""
    width = len(sizes) // _BATCHES
    kept = slice(len(sizes) - width * _BATCHES, None)
    batches = differences[kept].reshape(_BATCHES, width).sum(axis=1)
    means = batches / sizes[kept].reshape(_BATCHES, width).sum(axis=1)
    return float(means.std(ddof=1) / math.sqrt(_BATCHES))
