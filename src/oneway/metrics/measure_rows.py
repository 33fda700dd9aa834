"""Presentation of measures, once for terminal, pages, JSON and Prometheus: name, value and text."""

from __future__ import annotations

import math
from typing import NamedTuple

from oneway.records.measures import Measures


class MeasureRow(NamedTuple):
    """One measure.

    Attributes:
        key: For programs, as in `Measures`.
        name: For people.
        value: The number.
        text: The number as people read it, with its unit.
        meaning: In a few words.
    """

    key: str
    name: str
    value: float
    text: str
    meaning: str


BASE_RATE = "base rate"
ALONE = "alone"


def base_answer(*, classifies: bool) -> str:
    """What the base rate always answers, in words."""
    return "what was frequent so far" if classifies else "the mean so far"


def baseline_rows(measures: Measures) -> list[MeasureRow]:
    """The loss, and the two baselines beside it as far as they are known."""
    losses, answer = measures.so_far, base_answer(classifies=measures.answer_share is not None)
    numbers = {
        "loss": ("loss", losses.loss, "of the model"),
        "base_loss": (BASE_RATE, losses.base_loss, f"of always answering {answer}"),
        "alone_loss": (ALONE, losses.alone_loss, "of the same samples without the others"),
    }
    return [
        MeasureRow(key, name, value, loss_number(value), meaning)
        for key, (name, value, meaning) in numbers.items()
        if value is not None
    ]


def measure_rows(measures: Measures) -> list[MeasureRow]:
    """The single numbers besides losses, as far as they have a meaning."""
    area = measures.roc_auc_error
    numbers = {
        "accuracy": ("accuracy", measures.accuracy, "{:.2%}", "right predictions"),
        "roc_auc": (
            "ROC AUC",
            measures.roc_auc,
            "{:.4f}" if area is None else f"{{:.4f}} (binning error at most {area:.1g})",
            "pairs of samples in the right order",
        ),
        "log_loss": ("log loss", measures.log_loss, "{:.4f}", "without the l2 term"),
        "brier": ("Brier score", measures.brier, "{:.4f}", "squared error of probabilities"),
        "rmse": ("RMSE", measures.rmse, "{:.4g}", "in the label's units"),
        "mae": ("MAE", measures.mae, "{:.4g}", "in the label's units"),
        "r2": ("R2", measures.r2, "{:.4f}", "explained share of the labels' variance"),
    }
    return [
        MeasureRow(key, name, value, form.format(value), meaning)
        for key, (name, value, form, meaning) in numbers.items()
        if value is not None
    ]


def beside(measures: Measures | None) -> str:
    """The baselines in a few words, to stand behind a loss; empty without any.

    >>> from oneway.records.measures import Baselines
    >>> losses = Baselines(samples=9, loss=0.5, base_loss=0.6931, alone_loss=0.55)
    >>> beside(Measures(so_far=losses)), beside(None)
    ('base rate 0.6931, alone 0.5500', '')
    """
    rows = [] if measures is None else baseline_rows(measures)[1:]
    return ", ".join(f"{row.name} {row.text}" for row in rows)


def class_table(measures: Measures) -> list[dict[str, str]]:
    """The classes one by one, each as the cells of a row by their headings."""
    return [
        {
            "class": it.name,
            "samples": f"{it.samples:,}",
            "recall": _share(it.recall),
            "precision": _share(it.precision),
        }
        for it in measures.classes
    ]


def confusion_rows(measures: Measures) -> list[dict[str, str]]:
    """The confusion matrix: a row per label, a column per prediction."""
    if not measures.confusion:
        return []
    names = [it.name for it in measures.classes]
    return [
        {"label": name}
        | {f"said {said}": f"{count:,}" for said, count in zip(names, row, strict=True)}
        for name, row in zip(names, measures.confusion, strict=True)
    ]


def calibration_table(measures: Measures) -> list[dict[str, str]]:
    """Calibration by tenths of probability, without those that are empty."""
    return [
        {
            "probability": f"{tenth * 10} to {tenth * 10 + 10} %",
            "samples": f"{it.samples:,}",
            "said": _share(it.predicted),
            "was so": _share(it.observed),
        }
        for tenth, it in enumerate(measures.calibration)
        if it.samples
    ]


def loss_number(loss: float | None) -> str:
    """A loss as people read it.

    >>> loss_number(0.51234), loss_number(123456.0), loss_number(None), loss_number(math.inf)
    ('0.5123', '1.23e+05', '-', 'diverged')
    """
    if loss is None:
        return "-"
    if not math.isfinite(loss):
        return "diverged"
    return f"{loss:.4f}" if abs(loss) < 1000 else f"{loss:.3g}"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
