"""Disclosure: what a status and a curve reveal about the samples of a peer.

The mean loss of n samples and that of n + 1 give the loss of the last one, and with its features
its label. So losses and measures change only every `WINDOW` samples, and are rounded to a grid
whose step is worth at least `STEP_SAMPLES` samples: a mean of n samples to that fraction of n, or
to a thousandth where that is more. Of a window, a reader of every status then learns its sum up to
a step, and no sample in it. This is rounding, not noise: it carries no guarantee like epsilon.
"""

from __future__ import annotations

import math

from msgspec.structs import replace

from oneway.records.curve import Curve
from oneway.records.measures import Baselines, CalibrationBin, ClassMeasure, Measures
from oneway.records.status import Status

WINDOW = 16
"""Losses and measures change after at least this many samples."""
STEP_SAMPLES = 8
"""The grid of a mean is at least what this many average samples contribute."""
_FINEST = 1e-3


def disclosed(status: Status, before: Status | None, recent: int) -> Status:
    """Return a status that anybody may read.

    Args:
        status: Exact.
        before: The last one that was disclosed, in an earlier life too; None if there is none.
        recent: How many samples `recent_loss` covers.
    """
    samples = status.samples
    measured = before.measured_samples if before else 0
    if measured and abs(samples - measured) < WINDOW:
        return unchanged(status, before)
    return replace(
        status,
        average_loss=_mean(status.average_loss, samples),
        recent_loss=_mean(status.recent_loss, recent),
        accuracy=_share(status.accuracy, samples),
        measures=None if status.measures is None else _measures(status.measures),
        measured_samples=samples if samples >= WINDOW else 0,
    )


def unchanged(status: Status, before: Status | None) -> Status:
    """Return a status with the losses and measures of another one, or without any."""
    return replace(
        status,
        average_loss=before.average_loss if before else None,
        recent_loss=before.recent_loss if before else None,
        accuracy=before.accuracy if before else None,
        measures=before.measures if before else None,
        measured_samples=before.measured_samples if before else 0,
    )


def disclosed_curve(curve: Curve) -> Curve:
    """Return a curve whose groups are whole, have at least `WINDOW` samples, and are rounded."""
    merged = max(1, WINDOW // curve.width)
    width = merged * curve.width
    count = curve.samples // width

    def sums(values: tuple[float | None, ...]) -> tuple[float | None, ...]:
        groups = [values[at * merged : (at + 1) * merged] for at in range(count)]
        known = [None if None in group else math.fsum(filter(None, group)) for group in groups]
        return tuple(None if it is None else _rounded(it, it, width) for it in known)

    correct = [sum(curve.correct[at * merged : (at + 1) * merged]) for at in range(count)]
    return Curve(
        width=width,
        samples=count * width,
        loss_sums=tuple(it or 0.0 for it in sums(curve.loss_sums)),
        correct=tuple(round(_rounded(it, width, width)) for it in correct),
        times=curve.times[merged - 1 : count * merged : merged],
        before=curve.before,
        shared_sums=sums(curve.shared_sums),
        alone_sums=sums(curve.alone_sums),
        base_sums=sums(curve.base_sums),
    )


def _measures(exact: Measures) -> Measures | None:
    samples = exact.so_far.samples
    if samples < WINDOW:
        return None
    answer = exact.answer
    if exact.rmse is not None:
        # A mean near zero would show more digits of the labels than their spread allows.
        mean = float(answer)
        answer = f"{_rounded(mean, max(abs(mean), exact.rmse), samples):.6g}"
    return replace(
        exact,
        so_far=_baselines(exact.so_far),
        lately=None if exact.lately is None else _baselines(exact.lately),
        answer=answer,
        answer_share=_share(exact.answer_share, samples),
        accuracy=_share(exact.accuracy, samples),
        roc_auc=_share(exact.roc_auc, samples),
        roc_auc_error=_share(exact.roc_auc_error, samples),
        log_loss=_mean(exact.log_loss, samples),
        brier=_share(exact.brier, samples),
        calibration=[_bin(it) for it in exact.calibration],
        classes=[_class(it) for it in exact.classes],
        confusion=[[_count(it) for it in row] for row in exact.confusion],
        weights={name: _rounded(it, 1.0, samples) for name, it in exact.weights.items()},
        left_out={name: _count(it) for name, it in exact.left_out.items()},
        rmse=_mean(exact.rmse, samples),
        mae=_mean(exact.mae, samples),
        r2=_share(exact.r2, samples),
    )


def _baselines(exact: Baselines) -> Baselines:
    samples = exact.samples
    return replace(
        exact,
        loss=_rounded(exact.loss, exact.loss, samples),
        base_loss=_rounded(exact.base_loss, exact.base_loss, samples),
        shared_loss=_mean(exact.shared_loss, samples),
        alone_loss=_mean(exact.alone_loss, samples),
        base_error=_mean(exact.base_error, samples),
        alone_error=_mean(exact.alone_error, samples),
    )


def _bin(exact: CalibrationBin) -> CalibrationBin:
    samples = exact.samples
    return CalibrationBin(
        samples=_count(samples),
        predicted=_share(exact.predicted, samples),
        observed=_share(exact.observed, samples),
    )


def _class(exact: ClassMeasure) -> ClassMeasure:
    return replace(
        exact,
        samples=_count(exact.samples),
        predicted=_count(exact.predicted),
        recall=_share(exact.recall, exact.samples),
        precision=_share(exact.precision, exact.predicted),
    )


def _mean(value: float | None, samples: int) -> float | None:
    """A mean over samples, relative to its own size; None if they are too few."""
    return None if value is None or samples < WINDOW else _rounded(value, value, samples)


def _share(value: float | None, samples: int) -> float | None:
    """A mean of values between 0 and 1; None if they are too few."""
    return None if value is None or samples < WINDOW else _rounded(value, 1.0, samples)


def _count(exact: int) -> int:
    """A number of samples, rounded down to whole windows."""
    step = WINDOW
    while step < _FINEST * exact:
        step *= 2
    return exact - exact % step


def percent_step(samples: int) -> float:
    """The grid of per cents of a mean over samples.

    >>> percent_step(1000), percent_step(10**6)
    (1.0, 0.1)
    """
    return _step(100.0 * max(STEP_SAMPLES / max(samples, 1), _FINEST))


def _rounded(value: float, scale: float, samples: int) -> float:
    """The nearest multiple of the grid of `scale`."""
    least = max(STEP_SAMPLES / samples, _FINEST) * abs(scale)
    if not 1e-300 < least < 1e300:
        return value if value == 0.0 else math.copysign(least, value)
    step = _step(least)
    return float(f"{round(value / step) * step:.9g}")


def _step(least: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten from `least` on."""
    power = 10.0 ** math.floor(math.log10(least))
    return power * next(it for it in (1.0, 2.0, 5.0, 10.0) if it * power >= least * (1 - 1e-9))
