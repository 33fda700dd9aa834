"""What everybody learns together: the shared task.toml.

All peers of a network have the same task. Its fingerprint goes into every message, so that a model
of other features, or of the same ones scaled otherwise, can never be mixed in.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from oneway.errors import DataError, TaskError
from oneway.files.toml import checked_bool, checked_number, read_text
from oneway.models import (
    Hinge,
    LogisticRegression,
    Model,
    RidgeRegression,
    SoftmaxRegression,
)
from oneway.protocol.fixed_point import LARGEST, ONE
from oneway.records import Vector
from oneway.sentences import nearest, shown
from oneway.tables.class_labels import ClassLabels
from oneway.tables.numbers import as_number
from oneway.task.differences import differences
from oneway.task.text import task_table, task_toml

__all__ = ["Feature", "ModelName", "Schedule", "Step", "Task", "differences"]

ModelName: TypeAlias = Literal["logistic", "ridge", "hinge", "softmax"]

Schedule: TypeAlias = Literal["constant", "inverse-sqrt"]

Step: TypeAlias = Literal["capped", "mass", "paper"]
"""How a step depends on the mass: see PROTOCOL.md; "paper" is the published, fragile rule."""

_LINEAR: Mapping[str, Callable[[float, bool], Model]] = {
    "logistic": LogisticRegression,
    "ridge": RidgeRegression,
    "hinge": Hinge,
}

_LONGEST_NAME = 200


@dataclass(frozen=True)
class Feature:
    """A number of every sample, learned from as (value - center) / scale.

    Raises:
        TaskError: If the name, the center or the scale breaks its rule.
    """

    name: str
    center: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        _check_column("a feature", self.name)
        what = f"feature {shown(self.name)}:"
        center = checked_number(
            f"{what} center", self.center, "a finite number", lambda _: True, TaskError
        )
        scale = checked_number(
            f"{what} scale", self.scale, "a finite number above 0", lambda v: v > 0, TaskError
        )
        object.__setattr__(self, "center", center)
        object.__setattr__(self, "scale", scale)


@dataclass(frozen=True)
class Task:
    """What is learned, from what, and how fast; the same for all peers of a network.

    Attributes:
        model: Which model.
        label: The name of what is predicted.
        features: What it is predicted from, in the order of the parameters.
        classes: The raw labels of a classifier, in order: for two, the first means -1 and the
            second +1. None for ridge.
        learning_rate: gamma, at the first sample.
        schedule: Whether the learning rate stays, or falls with the square root of the samples
            seen.
        step: How the step depends on the peer's mass.
        l2: The paper's lambda.
        intercept: Whether the model has a constant feature.
        radius: The largest absolute parameter that is believed of another peer.
        mass_cap: The most mass that one push may carry.

    Raises:
        TaskError: If one of them breaks its rule.
    """

    model: ModelName
    label: str
    features: tuple[Feature, ...]
    classes: tuple[str, ...] = ()
    learning_rate: float = 0.3
    schedule: Schedule = "constant"
    step: Step = "capped"
    l2: float = 1e-4
    intercept: bool = True
    radius: float = 1000.0
    mass_cap: float = 16.0

    def __post_init__(self) -> None:
        _check_choice("model", self.model, get_args(ModelName))
        _check_choice("schedule", self.schedule, get_args(Schedule))
        _check_choice("step", self.step, get_args(Step))
        _check_column("label", self.label)
        self._check_features()
        object.__setattr__(self, "classes", tuple(self.classes))
        ClassLabels(self.label, self.classes, self.model)
        checked_bool("intercept", self.intercept, TaskError)
        self._check_number("learning_rate", "a number above 0", lambda rate: rate > 0)
        self._check_number("l2", "a number of at least 0", lambda l2: l2 >= 0)
        self._check_number("radius", "a number above 0", lambda radius: radius > 0)
        self._check_number("mass_cap", "a number of at least 1", lambda mass: mass >= 1)
        if self.radius * self.mass_cap > LARGEST / ONE:
            raise TaskError(
                f"radius {self.radius:g} times mass_cap {self.mass_cap:g} is more than "
                f"{LARGEST / ONE:,.0f}, the largest number that peers can hand over; scale the "
                "features, or the label, so that a smaller radius is enough"
            )

    def _check_number(self, name: str, rule: str, holds: Callable[[float], bool]) -> None:
        value = checked_number(name, getattr(self, name), rule, holds, TaskError)
        object.__setattr__(self, name, value)

    def _check_features(self) -> None:
        features = tuple(self.features)
        object.__setattr__(self, "features", features)
        if not features:
            raise TaskError("the task has no features; list at least one under [features]")
        counts = Counter(feature.name for feature in features)
        twice, count = counts.most_common(1)[0]
        if count > 1:
            raise TaskError(f"feature {shown(twice)} is listed twice; remove one of the two")
        if self.label in counts:
            raise TaskError(
                f"{shown(self.label)} is both the label and a feature; what is to be predicted "
                "cannot be known beforehand: remove it from [features]"
            )

    @classmethod
    def parse(cls, text: str, where: str = "task.toml") -> Task:
        """Return the task that a TOML text describes.

        Raises:
            TaskError: If it is not TOML, or a key is missing, unknown or breaks its rule.
        """
        table = task_table(text, where, [field.name for field in fields(cls)])
        try:
            features = tuple(Feature(name, **scaling) for name, scaling in table.pop("features"))
            return cls(**table, features=features)
        except TaskError as error:
            raise TaskError(f"{where}: {error}") from None

    @classmethod
    def read(cls, path: Path) -> Task:
        """Return the task in a file.

        Raises:
            TaskError: If it cannot be read, or does not describe a task.
        """
        remedy = "get the task.toml that the other peers have, or derive one from your data"
        return cls.parse(read_text(path, TaskError, remedy), str(path))

    def to_toml(self) -> str:
        """Return the text of a task.toml that reads back as this task."""
        return task_toml(self.fields())

    def fields(self) -> dict[str, Any]:
        """Return all that matters about the task in terms JSON can hold."""
        return asdict(self) | {
            "features": [asdict(feature) for feature in self.features],
            "classes": list(self.classes),
        }

    @cached_property
    def fingerprint(self) -> bytes:
        """16 bytes that two tasks share only if they are the same, order of features included."""
        text = json.dumps(self.fields(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return blake2b(text.encode(), digest_size=16, person=b"oneway task").digest()

    @property
    def dim(self) -> int:
        """The number of parameters."""
        return self.build_model().dim(len(self.features))

    @property
    def classifies(self) -> bool:
        """Whether classes are predicted, so that a prediction is right or wrong; or numbers."""
        return self.model != "ridge"

    @property
    def says_probabilities(self) -> bool:
        """Whether the model says how probable a class is."""
        return self.model in ("logistic", "softmax")

    def build_model(self) -> Model:
        """Return the model to learn."""
        if self.model == "softmax":
            return SoftmaxRegression(len(self.classes), self.l2, self.intercept)
        return _LINEAR[self.model](self.l2, self.intercept)

    def rate(self, samples_seen: int) -> float:
        """Return the learning rate gamma for the next sample."""
        falls = self.schedule == "inverse-sqrt"
        return self.learning_rate / math.sqrt(samples_seen + 1) if falls else self.learning_rate

    def vector(self, features: Mapping[str, object]) -> Vector:
        """Return a sample's features, scaled and in order.

        Raises:
            DataError: If one is missing, is not a number, or is not finite.
        """
        return np.array([self._scaled(feature, features) for feature in self.features])

    def _scaled(self, feature: Feature, features: Mapping[str, object]) -> float:
        if feature.name not in features:
            known = {other.name for other in self.features}
            near = nearest(feature.name, (str(n) for n in islice(features, 100) if n not in known))
            raise DataError(
                f"the sample has no feature {shown(feature.name)}, which the task needs{near}"
            )
        raw = features[feature.name]
        number = as_number(raw)
        if number is None or not math.isfinite(number):
            raise DataError(
                f"feature {shown(feature.name)} is {shown(raw)}; it must be a finite number"
            )
        scaled = (number - feature.center) / feature.scale
        if not math.isfinite(scaled):
            raise DataError(
                f"feature {shown(feature.name)} is {shown(raw)}, which is not finite after scaling "
                f"by center {feature.center:g} and scale {feature.scale:g}; it is far too large"
            )
        return scaled

    def label_value(self, raw: object) -> float:
        """Return a raw label as the model wants it: -1 or +1, a class code, or a number.

        Raises:
            DataError: If it is not one of the classes, or not a finite number.
        """
        if self.classifies:
            return self._labels.code_of(raw)
        number = as_number(raw)
        if number is None or not math.isfinite(number):
            raise DataError(
                f"label {shown(self.label)} is {shown(raw)}; it must be a finite number"
            )
        return number

    def label_name(self, value: float) -> str:
        """Return what the data calls a predicted label; a number for ridge.

        Raises:
            DataError: If a classifier of this task cannot have predicted it.
        """
        return self._labels.name_of(value) if self.classifies else f"{value:.12g}"

    @cached_property
    def _labels(self) -> ClassLabels:
        return ClassLabels(self.label, self.classes, self.model)


def _check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        near = nearest(value, known) if isinstance(value, str) else ""
        choices = ", ".join(known)
        raise TaskError(f"{name} is {shown(value)}; it must be one of {choices}{near}")


def _check_column(what: str, name: object) -> None:
    try:
        if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.encode():
            return
    except UnicodeEncodeError:
        pass
    raise TaskError(
        f"{what} is named {shown(name)}; it must be the name of a column, "
        f"text of 1 to {_LONGEST_NAME} characters"
    )
