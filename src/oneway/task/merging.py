"""Merging of the tasks that several sites derived, each from its own rows, into one.

Nothing but the task files is read. Categories get the values of all sites, numbers the mean and
variance that all rows together have,

    center = sum of n_i c_i / N,    scale^2 = sum of n_i (s_i^2 + (c_i - center)^2) / N,

with n_i rows at site i. A time has the parts, and a column the flag of missing values, that it has
at any site.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from oneway.errors import TaskError
from oneway.models import MODELS
from oneway.models.base import rounded_units
from oneway.sentences import listed, shown
from oneway.tables.cells import label_key
from oneway.tables.encoder import in_order
from oneway.tables.features import PARTS, Array, Category, Feature, Number, Time
from oneway.task.differences import differences
from oneway.task.learning import with_start
from oneway.task.task import Task

_POOLED = ("features", "classes", "radius", "options", "model")
"""Keys that may differ between sites."""
_STARTS = {"start", "center", "scale"}
"""Options of models that come from a site's own labels."""


@dataclass(frozen=True)
class Merged:
    """A merged task, and how it came about.

    Attributes:
        task: For all peers.
        left_out: Features that only some sites have, and those sites.
        is_weighted: Whether sites are weighted by rows: all tasks give their number.
    """

    task: Task
    left_out: Mapping[str, tuple[str, ...]]
    is_weighted: bool


def merge_tasks(tasks: Mapping[str, Task]) -> Merged:
    """Return one task from those of several sites, by the names of their files.

    Features that only some sites have are left out: samples without them could not be learned from.
    The order is that of the first task.

    Raises:
        TaskError: If there are fewer than two, they disagree in what is not pooled, or a feature is
            of another kind at another site.
    """
    if len(tasks) < 2:
        raise TaskError(f"there is {len(tasks)} task to merge; name at least two files")
    names, first = list(tasks), next(iter(tasks.values()))
    for name, task in tasks.items():
        others = [_rest(each) for each in (first, task)]
        found = differences(others[0], others[1])
        if found:
            raise TaskError(
                f"{names[0]} and {name} cannot be merged: {listed(found, 3)}; derive them with the "
                "same label and flags"
            )
    classes = _classes(tasks)
    columns = [feature.name for feature in first.features]
    columns += [f.name for task in tasks.values() for f in task.features if f.name not in columns]
    by_column = {
        column: {
            name: feature
            for name, task in tasks.items()
            for feature in task.features
            if feature.name == column
        }
        for column in dict.fromkeys(columns)
    }
    is_weighted = all(task.rows for task in tasks.values())
    weights = {name: float(task.rows) if is_weighted else 1.0 for name, task in tasks.items()}
    kept = {column: having for column, having in by_column.items() if len(having) == len(tasks)}
    if not kept:
        raise TaskError(f"{listed(names)} have no feature in common; name the same columns alike")
    features = tuple(_pooled(column, having, weights) for column, having in kept.items())
    model = first.model
    if first.model_label_kind() == "binary" and len(classes) > 2:
        model = "softmax"  # another site has a third class
    options = {
        name: {key: value for key, value in it.items() if key not in _STARTS}
        for name, it in first.options.items()
        if name == model or name not in MODELS
    }
    options = {name: it for name, it in options.items() if it}
    task = replace(
        first,
        model=model,
        classes=classes,
        features=features,
        radius=max(task.radius for task in tasks.values()),
        options=options,
        rows=sum(task.rows for task in tasks.values()) if is_weighted else 0,
    )
    task = replace(task, options=_started(task, tasks, weights))
    left_out = {column: tuple(having) for column, having in by_column.items() if column not in kept}
    return Merged(task, left_out, is_weighted)


def _started(
    merged: Task, tasks: Mapping[str, Task], weights: Mapping[str, float]
) -> dict[str, Any]:
    """Return the options with those that come from the labels of all rows, if sites have them."""
    if not all(task.options.get(task.model) for task in tasks.values()):
        return merged.options
    if not merged.classes:
        units = [(name, task.options[task.model]) for name, task in tasks.items()]
        center, scale = _moments(
            [
                (weights[name], unit.get("center", 0.0), unit.get("scale", 1.0))
                for name, unit in units
            ]
        )
        return with_start(merged, 0, np.array([center]), scale)
    shares = dict.fromkeys(map(label_key, merged.classes), 0.0)
    for name, task in tasks.items():
        model, width = task.build_model(), task.encoder.width
        start = model.init(width, np.random.default_rng(0))
        own = model.probabilities(start, np.zeros((1, width)))
        if own is None:
            return merged.options
        for label, share in zip(task.classes, own[0].tolist(), strict=True):
            shares[label_key(label)] += weights[name] * share / sum(weights.values())
    return with_start(merged, len(shares), np.array(list(shares.values())))


def _rest(task: Task) -> dict[str, object]:
    """Return the keys that sites must agree on."""
    return {name: value for name, value in task.fields().items() if name not in _POOLED} | {
        "predicts": "a number" if task.label_kind == "number" else "a class",
        "options": {
            name: {key: value for key, value in it.items() if key not in _STARTS}
            for name, it in task.options.items()
            if name == task.model and it.keys() - _STARTS
        },
    }


def _classes(tasks: Mapping[str, Task]) -> tuple[str, ...]:
    found = [name for task in tasks.values() for name in task.classes]
    return tuple(in_order(found).values())


def _pooled(column: str, having: Mapping[str, Any], weights: Mapping[str, float]) -> Feature:
    kinds = {name: feature.kind for name, feature in having.items()}
    if len(set(kinds.values())) > 1:
        found = listed(f"a {kind} in {name}" for name, kind in kinds.items())
        raise TaskError(
            f"column {shown(column)} is {found}; derive it alike at all sites, with --numeric "
            f"{column} or --category {column}"
        )
    features = list(having.values())
    flagged = any(feature.missing_indicator for feature in features)
    first: Feature = msgspec.structs.replace(features[0], missing_indicator=flagged)
    if isinstance(first, Category):
        # Reversed: the first site's spelling of a value stays; 1 and 1.0 are the same.
        union = {label_key(value): value for each in reversed(features) for value in each.values}
        return Category(column, tuple(in_order(union.values()).values()), missing_indicator=flagged)
    if isinstance(first, Time):
        known = {part for each in features for part in each.parts}
        parts = tuple(part for part in PARTS if part in known)
        return Time(column, parts, missing_indicator=flagged)
    if not isinstance(first, Number | Array):
        return first
    for name, other in having.items():
        if isinstance(first, Array) and other.shape != first.shape:
            raise TaskError(
                f"column {shown(column)} of {name} has the shape {list(other.shape)}, and that of "
                f"{next(iter(having))} {list(first.shape)}; derive both from samples of one shape"
            )
    center, scale = _moments([(weights[name], *other.scaling) for name, other in having.items()])
    pooled: Feature = msgspec.structs.replace(first, center=center, scale=scale)
    return pooled


def _moments(sites: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Return center and scale of all rows, from weight, center and scale of every site.

    A scale of exactly 1 marks a column that is constant at its site, unless all sites have it.
    """
    total = sum(weight for weight, _, _ in sites)
    center = sum(weight * mean for weight, mean, _ in sites) / total
    varies = any(scale != 1.0 for _, _, scale in sites)
    variance = 0.0
    for weight, mean, scale in sites:
        own = 0.0 if scale == 1.0 and varies else scale**2
        variance += weight * (own + (mean - center) ** 2) / total
    pooled = rounded_units(center, math.sqrt(variance))
    return pooled["center"], pooled["scale"]
