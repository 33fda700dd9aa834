"""Presentation of measures, once for terminal, pages, JSON and Prometheus: name, value and text."""

from __future__ import annotations

import math
from typing import NamedTuple

from oneway.records.measures import Measures


class MeasureRow(NamedTuple):
    """One measure: its key for programs, as in `Measures`, and its name, text and meaning."""

    key: str
    name: str
    value: float
    text: str
    meaning: str


YOURS = "yours"
SHARED = "shared"
ALONE = "alone"
BASE_RATE = "base rate"


def base_answer(*, classifies: bool) -> str:
    """Description of the base rate's prediction."""
    return "what was frequent so far" if classifies else "the mean so far"


def baseline_rows(measures: Measures) -> list[MeasureRow]:
    """The loss of the predictions, and the known baselines."""
    losses, answer = measures.so_far, base_answer(classifies=measures.answer_share is not None)
    own = ("loss", losses.loss, "of the model")
    if losses.shared_loss is not None:
        own = (YOURS, losses.loss, "of your personal predictions")
    numbers = {
        "loss": own,
        "shared_loss": (SHARED, losses.shared_loss, "of the network's model"),
        "alone_loss": (ALONE, losses.alone_loss, "of the same samples without the others"),
        "base_loss": (BASE_RATE, losses.base_loss, f"of always answering {answer}"),
    }
    return [
        MeasureRow(key, name, value, loss_number(value), meaning)
        for key, (name, value, meaning) in numbers.items()
        if value is not None
    ]


def measure_rows(measures: Measures) -> list[MeasureRow]:
    """The other measures that apply to the model."""
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
    """Baselines of a loss on one line; empty without measures.

    >>> from oneway.records.measures import Baselines
    >>> losses = Baselines(samples=9, loss=0.5, shared_loss=0.6, alone_loss=0.55, base_loss=0.6931)
    >>> beside(Measures(so_far=losses)), beside(None)
    ('shared 0.6000, alone 0.5500, base rate 0.6931', '')
    """
    rows = [] if measures is None else baseline_rows(measures)[1:]
    return ", ".join(f"{row.name} {row.text}" for row in rows)


def in_words(measures: Measures | None) -> dict[str, str]:
    """Sentences about personal predictions: the experts' weights, the verdict, failures."""
    if measures is None or not measures.weights:
        return {}
    shares = ", ".join(f"{name} {share:.0%}" for name, share in measures.weights.items())
    words = {"believes": f"{measures.believes} ({shares})", "verdict": measures.verdict}
    if measures.left_out:
        times = ", ".join(f"{name} {count:,} times" for name, count in measures.left_out.items())
        words["left out"] = f"{times}, for want of a finite answer"
    return {name: text for name, text in words.items() if text}


def class_table(measures: Measures) -> list[dict[str, str]]:
    """One row per class, as cells by heading."""
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
        {"label": name} | {f"said {it}": f"{count:,}" for it, count in zip(names, row, strict=True)}
        for name, row in zip(names, measures.confusion, strict=True)
    ]


def calibration_table(measures: Measures) -> list[dict[str, str]]:
    """Calibration by tenths of probability, without empty ones."""
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
    """A loss as text.

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
