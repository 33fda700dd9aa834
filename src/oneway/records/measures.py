"""Measures of predictions: how good they were, beside baselines that know less.

Every prediction is made before its label is known, and learned from afterwards (progressive, or
prequential, validation), so that no sample is needed for a test. What has no meaning for a model,
or no value yet, is None or empty.
"""

from __future__ import annotations

import msgspec


class Baselines(msgspec.Struct, frozen=True, kw_only=True):
    """A loss beside those that one could have had, on the same samples; each a mean per sample.

    Attributes:
        samples: How many these are.
        loss: Of the model that answers: for a peer, its personal prediction ("yours").
        shared_loss: Of the shared model; None if that is what answers.
        alone_loss: Of learning from the same samples without the network, at rates of its own;
            None if nothing is shared.
        base_loss: Of answering how frequent the labels were, or what their mean was, before each
            sample, in the same loss.
        base_error, alone_error: Standard errors of the differences to them, by batch means; None
            where there are too few samples.
    """

    samples: int
    loss: float
    base_loss: float
    shared_loss: float | None = None
    alone_loss: float | None = None
    base_error: float | None = None
    alone_error: float | None = None


class ClassMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """How one class was recognised.

    Attributes:
        name: As the data calls it.
        samples: How many samples are of it.
        predicted: How many were said to be.
        recall: The share of its samples that were said to be of it; None if there are none.
        precision: The share of what was said to be of it that is; None if nothing was.
    """

    name: str
    samples: int
    predicted: int
    recall: float | None
    precision: float | None


class CalibrationBin(msgspec.Struct, frozen=True, kw_only=True):
    """Predictions whose probability lies in the same tenth.

    Attributes:
        samples: How many there are; none of the others has a value if there is none.
        predicted: The mean of their probabilities.
        observed: How often it was so.
    """

    samples: int
    predicted: float | None
    observed: float | None


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """How good predictions were.

    Attributes:
        so_far: All samples that were measured.
        lately: The last of them, about a thousand; None if there are too few, or it is not known.
        answer: What the base rate answers now: the most frequent class, or the mean as text.
        answer_share: How frequent that class is; None for numbers.
        accuracy: The share of right predictions.
        roc_auc: The probability that a sample of a class is ranked above one that is not of it; of
            more than two classes the mean over them, each against the rest.
        roc_auc_error: How far at most it is from that of the scores themselves, which were counted
            in bins.
        log_loss: Mean of -log of the label's probability.
        brier: Mean squared error of the probability of the second of two classes; of more classes
            the sum over all.
        calibration: By tenths of the probability of the second of two classes; of more classes of
            the one that was predicted.
        classes: One by one.
        confusion: `confusion[label][prediction]`, counts; empty where there are too many classes.
        weights: How much the personal mixture believes each expert now, by name; empty without it.
        left_out: In how many predictions an expert was left out for want of a finite answer, by
            name; without those that never were.
        believes: Whom the mixture believes, in words; empty without it.
        verdict: Whether together loses less than alone, as a sentence; empty if nothing is shared.
        rmse, mae: Root of the mean squared error and mean absolute error, in the label's units.
        r2: Share of the labels' variance that is explained; below 0 worse than their mean.
    """

    so_far: Baselines
    lately: Baselines | None = None
    answer: str = ""
    answer_share: float | None = None
    accuracy: float | None = None
    roc_auc: float | None = None
    roc_auc_error: float | None = None
    log_loss: float | None = None
    brier: float | None = None
    calibration: list[CalibrationBin] = []
    classes: list[ClassMeasure] = []
    confusion: list[list[int]] = []
    weights: dict[str, float] = {}
    left_out: dict[str, int] = {}
    believes: str = ""
    verdict: str = ""
    rmse: float | None = None
    mae: float | None = None
    r2: float | None = None
