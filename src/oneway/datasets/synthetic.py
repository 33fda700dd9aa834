"""Made-up samples whose best model is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from oneway.datasets.data_set import DATASETS, DataSet
from oneway.errors import DataError
from oneway.files.validation import whole_number
from oneway.records import Vector
from oneway.tables.table import Table

SAMPLES, FEATURES, NOISE = 20_000, 30, 0.2
"""Of the data set: with so many features and so little noise there is much to learn from others."""


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A table, and the parameters of the model that its labels were drawn from.

    Attributes:
        table: Standard normal features, as drawn (not standardised again), and labels.
        params: One per feature: with these a model without intercept (or with intercept 0) has
            the smallest expected loss.
    """

    table: Table
    params: Vector


def synthetic(
    num_samples: int,
    num_features: int,
    seed: int = 0,
    *,
    noise: float = 0.5,
    task: Literal["binary", "number"] = "binary",
) -> Synthetic:
    """Draw standard normal features, and labels from a known linear model.

    A direction u of length 1 is drawn first. For "number", the label is `features @ u` plus
    normal noise with the standard deviation `noise`, and the best parameters are u. For
    "binary", it is the sign of `features @ u` plus logistic noise with the scale `noise`: the
    logistic model with the parameters u / noise, exactly.

    Args:
        num_samples: How many rows.
        num_features: How many features.
        seed: What the draws start from.
        noise: How noisy the labels are; above 0 for "binary".
        task: "binary" for logistic regression, "number" for linear regression.

    Raises:
        DataError: If an argument is out of range.

    >>> made = synthetic(1000, 3, seed=7, noise=0.5)
    >>> made.table.features.shape, float(np.linalg.norm(made.params).round(6))
    ((1000, 3), 2.0)
    """
    num_samples = whole_number("num_samples", num_samples, 1, DataError)
    num_features = whole_number("num_features", num_features, 1, DataError)
    seed = whole_number("seed", seed, 0, DataError)
    _check(noise, task)
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(num_features)
    direction /= np.linalg.norm(direction)
    features = rng.standard_normal((num_samples, num_features), dtype=np.float32)
    if task == "binary":
        disturbed = features @ direction + rng.logistic(scale=noise, size=num_samples)
        labels, params = np.where(disturbed > 0, 1.0, -1.0), direction / noise
    else:
        labels = features @ direction + noise * rng.standard_normal(num_samples)
        params = direction
    table = Table.from_arrays(
        features,
        labels,
        name="synthetic",
        task=task,
        standardise=False,
        origin={"kind": "synthetic", "seed": seed, "noise": noise, "params": params.tolist()},
    )
    return Synthetic(table, params)


def load_synthetic(
    *, seed: int = 0, samples: int = SAMPLES, task: Literal["binary", "number"] = "binary"
) -> Table:
    """The table of `synthetic` with 30 features and little noise; see there.

    Raises:
        DataError: If an argument is out of range.
    """
    return synthetic(samples, FEATURES, seed, noise=NOISE, task=task).table


SYNTHETIC = DATASETS.register(
    DataSet(
        name="synthetic",
        about="synthetic: normal features and labels of a linear model, for any seed",
        rows=SAMPLES,
        licence="CC0",
        load=load_synthetic,
        comes_with="it is drawn when it is loaded",
    )
)


def _check(noise: float, task: str) -> None:
    if task not in ("binary", "number"):
        raise DataError(
            f"task {task!r} has no synthetic data: it needs a file whose label is a class",
            remedy="choose 'binary' or 'number'",
            flag_remedy="choose another --data than synthetic, or another --model",
        )
    is_number = isinstance(noise, int | float | np.number) and math.isfinite(noise)
    if not is_number or noise < 0 or (noise == 0 and task == "binary"):
        raise DataError(
            f"noise is {noise}; it must be a finite number, and above 0 for task='binary' "
            "(without noise no model is best)"
        )
