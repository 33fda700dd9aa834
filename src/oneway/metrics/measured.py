"""From a tally to measures: accuracy, ROC AUC, log loss, Brier, calibration, RMSE, MAE, R2."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oneway.metrics.tally import Tally
from oneway.records import Matrix
from oneway.records.measures import Baselines, CalibrationBin, ClassMeasure, Measures


def measures_of(
    tally: Tally, classes: Sequence[str] = (), lately: Baselines | None = None
) -> Measures | None:
    """Return what a tally tells; None if it has no samples.

    Args:
        tally: Of predictions.
        classes: What the data calls them; numbered from 0 if they have no names.
        lately: What is known of the last samples.
    """
    if not tally:
        return None
    samples, loss_sum, base_sum = tally["losses"].tolist()
    so_far = Baselines(
        samples=int(samples),
        loss=loss_sum / samples,
        base_loss=base_sum / samples,
        alone_loss=float(tally["alone"][0]) / samples if "alone" in tally else None,
    )
    if "counts" not in tally:
        return _of_numbers(tally, so_far, lately)
    counts = tally["counts"]
    names = list(classes) or [str(code) for code in range(counts.shape[1])]
    most = int(counts[0].argmax())
    area, error = roc_auc(tally["scores"]) if "scores" in tally else (None, None)
    log_loss, brier = tally["chances"].tolist() if "chances" in tally else (None, None)
    return Measures(
        so_far=so_far,
        lately=lately,
        answer=names[most],
        answer_share=float(counts[0, most] / samples),
        accuracy=float(counts[2].sum() / samples),
        roc_auc=area,
        roc_auc_error=error,
        log_loss=None if log_loss is None else log_loss / samples,
        brier=None if brier is None else brier / samples,
        calibration=_calibration(tally["tenths"]) if "tenths" in tally else [],
        classes=[
            ClassMeasure(
                name=name,
                samples=int(labelled),
                predicted=int(said),
                recall=right / labelled if labelled else None,
                precision=right / said if said else None,
            )
            for name, (labelled, said, right) in zip(names, counts.T.tolist(), strict=True)
        ],
        confusion=tally["table"].astype(int).tolist() if "table" in tally else [],
    )


def roc_auc(scores: Matrix) -> tuple[float | None, float | None]:
    """Return the area under the ROC curve of binned scores, and how far off it can be.

    Of a pair in the same bin it is not known which score is larger: it counts one half, as ties do.
    In truth it counts 0 to 1, so the area of the scores themselves is not further away than half
    the share of such pairs. Of several columns it is the mean over those that have both kinds.

    Args:
        scores: `[column, 2, bin]`: counts of others and of the column's class.

    Returns:
        None and None if no column has both kinds.

    >>> import numpy as np
    >>> roc_auc(np.array([[[1.0, 1.0], [0.0, 2.0]]]))
    (0.75, 0.25)
    """
    others, own = scores[:, 0], scores[:, 1]
    pairs = own.sum(axis=1) * others.sum(axis=1)
    known = pairs > 0
    if not known.any():
        return None, None
    above = own.sum(axis=1, keepdims=True) - own.cumsum(axis=1)
    tied = 0.5 * (others * own).sum(axis=1)
    areas = ((others * above).sum(axis=1) + tied)[known] / pairs[known]
    return float(areas.mean()), float((tied[known] / pairs[known]).mean())


def _calibration(tenths: Matrix) -> list[CalibrationBin]:
    return [
        CalibrationBin(
            samples=int(count),
            predicted=total / count if count else None,
            observed=times / count if count else None,
        )
        for count, total, times in tenths.T.tolist()
    ]


def _of_numbers(tally: Tally, so_far: Baselines, lately: Baselines | None) -> Measures:
    squares, sizes = tally["errors"].tolist()
    _, mean, spread = tally["labels"].tolist()
    explained = 1.0 - squares / spread if spread > 0.0 else -math.inf
    return Measures(
        so_far=so_far,
        lately=lately,
        answer=f"{mean:.6g}",
        rmse=math.sqrt(squares / so_far.samples),
        mae=sizes / so_far.samples,
        r2=explained if math.isfinite(explained) else None,
    )
