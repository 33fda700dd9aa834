"""How a model is learned: the keys that a task and the settings of a run have in common.

Each key is declared once, with its type, bounds and description: TOML files, flags of the command
line and Python arguments are all checked by it. Choices come from the registries.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
from msgspec import Meta

from oneway.errors import ConfigError
from oneway.files.validation import check_fields
from oneway.methods import (
    AUTO,
    DEFAULT_METHOD,
    DEFAULT_STEP,
    METHODS,
    SCHEDULES,
    STEP_RULES,
    TRANSFORMS,
    Batches,
    Method,
)
from oneway.methods.batches import DEFAULT_SAMPLES
from oneway.models import MODELS, LabelKind, Model, model_from, options_of
from oneway.models.standardised import UNITS
from oneway.records import Floats, Ints, Vector
from oneway.registry import build
from oneway.sentences import listed, nearest, shown
from oneway.task.keys import key, one_of
from oneway.task.privacy import Privacy

MODEL_FOR: dict[LabelKind, str] = {"binary": "logistic", "classes": "softmax", "number": "ridge"}
"""The default model of a kind of label."""

KIND_OF_COUNT: dict[int, LabelKind] = {0: "number", 2: "binary"}
"""Which labels there are by the number of classes; all others are classes."""


@dataclass(frozen=True, kw_only=True)
class Learning:
    """Model, method and their parameters, by the names of their registries.

    Attributes:
        options: Further parameters by the name of the entry they belong to, for example
            `{"momentum": {"beta": 0.8}}`.

    Raises:
        ConfigError: A value breaks its rule, or there is no such entry or option.
    """

    model: Annotated[str, one_of(MODELS, "what is learned")] = "logistic"
    method: Annotated[str, one_of(METHODS, "how nodes learn together")] = DEFAULT_METHOD
    learning_rate: Annotated[
        Annotated[float, Meta(ge=0, le=1e6)] | Literal["auto"],
        key("how far one sample moves the model; auto: chosen while learning", "RATE"),
    ] = AUTO
    schedule: Annotated[str, one_of(SCHEDULES, "how the learning rate goes on")] = "constant"
    step: Annotated[str, one_of(STEP_RULES, "how far, given a node's mass")] = DEFAULT_STEP
    transforms: Annotated[
        tuple[str, ...],
        key(
            "what happens to gradients before the step, in order",
            "NAMES",
            choices=TRANSFORMS.__iter__,
        ),
    ] = ()
    mixes: Annotated[int, key("how many pushes follow a step", "N", ge=1, le=1000)] = 1
    l2: Annotated[float, key("how strongly parameters are pulled towards 0", "X", ge=0, le=1e6)] = (
        1e-4
    )
    intercept: Annotated[bool, key("whether the model has a constant")] = True
    options: Annotated[
        dict[str, dict[str, Any]], key("further parameters, as NAME.OPTION=VALUE", "TEXT")
    ] = field(default_factory=dict)
    samples_per_push: Annotated[
        int,
        key("a push carries the steps of at least so many samples", "N", "Privacy", ge=1, le=10**6),
    ] = DEFAULT_SAMPLES
    privacy: Annotated[
        Privacy,
        key('"none" disables it: receivers can reconstruct samples', '"none"', "Privacy"),
    ] = field(default_factory=Privacy)

    def __post_init__(self) -> None:
        check_fields(self)
        for name in self.transforms:
            TRANSFORMS[name]
        chosen = (*self._possible_models, self.method, self.step, *self.transforms)
        for name in self.options:
            if name not in chosen:
                raise ConfigError(
                    f"options are given for {shown(name)}, which is not used here"
                    f"{nearest(name, chosen) or f'; there are {listed(chosen)}'}"
                )
        if self.learning_rate == AUTO and self.schedule != "constant":
            raise ConfigError(
                f'learning_rate is "{AUTO}" and schedule is {shown(self.schedule)}; a rate that is '
                "chosen falls by itself: leave the schedule out, or give a number"
            )
        self.build_method(dim=1)  # a model of any size: whether there is one is checked later

    @property
    def _possible_models(self) -> tuple[str, ...]:
        """The models that options may be given for."""
        return (self.model,)

    def batches(self, dim: int) -> Batches | None:
        """Return how samples become pushes of a model with `dim` parameters.

        None if every sample is a step of its own, or the method never sends.
        """
        if not METHODS[self.method].payload:
            return None
        typical = MODELS[self.model].typical_features if self.model in MODELS else None
        size = dim if typical is None else typical + 1
        return self.privacy.batches(self.samples_per_push, size)

    def with_method(self, method: str, step: str | None = None) -> Self:
        """Return the same model, rate and transforms with another method and step rule.

        Options of the former method and step rule are dropped.
        """
        step = self.step if step is None else step
        used = (method, step, self.model, *self.transforms)
        options = {name: given for name, given in self.options.items() if name in used}
        return replace(self, method=method, step=step, options=options)

    @property
    def privacy_in_words(self) -> str:
        """The privacy guarantee in a few words, or that the method sends nothing."""
        return self.privacy.brief if METHODS[self.method].payload else "nothing is sent"

    @property
    def privacy_sentence(self) -> str:
        """The privacy guarantee as a sentence."""
        guarantee = self.privacy.guarantee if METHODS[self.method].payload else None
        return self.privacy_in_words if guarantee is None else guarantee.sentence

    def build_method(self, dim: int = 1) -> Method:
        """Return the method for a model with `dim` parameters, with step rule and transforms."""
        given = self.learning_rate
        method: Method = build(
            METHODS,
            self.method,
            self._options(self.method),
            learning_rate=given if given == AUTO else SCHEDULES[self.schedule](given),
            step=build(STEP_RULES, self.step, self._options(self.step)),
            transforms=tuple(
                build(TRANSFORMS, name, self._options(name)) for name in self.transforms
            ),
            batches=self.batches(dim),
            mixes=self.mixes,
        )
        return method

    def model_label_kind(self) -> LabelKind | None:
        """Return which labels the model learns from by its name and options; None if any."""
        return MODELS[self.model].kind_of_labels(self._options(self.model))

    def kind_for(self, num_classes: int) -> LabelKind:
        """Return which labels the model learns from, given the number of classes; 0 for numbers."""
        return self.model_label_kind() or KIND_OF_COUNT.get(num_classes, "classes")

    def model_for(self, num_classes: int) -> Model:
        """Return the model for labels with `num_classes` classes; 0 for numbers.

        Raises:
            ConfigError: The model has no such option, or an option breaks its rule.
        """
        entry = MODELS[self.model]
        known = options_of(entry)
        if self.kind_for(num_classes) == "number":
            known |= set(UNITS)
        given = {
            name: getattr(self, name) for name in ("l2", "intercept") if name in known
        } | self._options(self.model)
        for name in given:
            if name not in known:
                raise ConfigError(
                    f"model {self.model} has no option {shown(name)}{nearest(name, known)}"
                )
        try:
            return model_from(self.model, given, num_classes)
        except TypeError as error:
            raise ConfigError(
                f"model {self.model} cannot be made with {shown(str(given))}: {error}; leave out "
                "the option that the labels decide, or correct its value"
            ) from None

    def _options(self, name: str) -> dict[str, Any]:
        return dict(self.options.get(name, {}))


def start_options(learning: Learning, num_classes: int, labels: Floats) -> dict[str, Any]:
    """Return the options of a specification, with those that make its model suit the labels.

    See `with_start`.

    Args:
        learning: The specification.
        num_classes: Of the labels; 0 for numbers.
        labels: As the model has them: -1 and +1, class codes, or numbers.
    """
    kind = learning.kind_for(num_classes)
    if kind == "number":
        deviation = float(np.std(labels, dtype=np.float64))
        mean = float(np.mean(labels, dtype=np.float64))
        return with_start(learning, num_classes, np.array([mean]), deviation)
    codes = labels > 0 if kind == "binary" else labels
    counts = np.bincount(codes.astype(np.intp), minlength=num_classes)
    return with_start(learning, num_classes, shares_of(counts))


def with_start(
    learning: Learning, num_classes: int, expected: Vector, deviation: float = 1.0
) -> dict[str, Any]:
    """Return the options of a specification, with those that make its model suit the labels.

    A regression model learns labels in units of their spread, so that one learning rate suits any.
    A classifier starts from the shares of the classes, the best model that knows nothing of the
    features, if the learning rate is chosen (`auto`). Like centers and scales of features, these
    are statistics of the data. Options that are given are kept.

    Args:
        learning: The specification.
        num_classes: Of the labels; 0 for numbers.
        expected: The share of each class; of numbers their mean.
        deviation: The standard deviation of numbers.
    """
    given = learning.options
    if learning.kind_for(num_classes) != "number" and learning.learning_rate != AUTO:
        return dict(given)
    start = learning.model_for(num_classes).start_options(expected, deviation or 1.0)
    if not start or start.keys() & given.get(learning.model, {}).keys():
        return dict(given)
    return {**given, learning.model: {**given.get(learning.model, {}), **start}}


def started_model(learning: Learning, num_classes: int, labels: Floats) -> Model:
    """Return the model that a new task with these labels starts from; arguments as above."""
    options = start_options(learning, num_classes, labels)
    return replace(learning, options=options).model_for(num_classes)


def shares_of(counts: Vector | Ints) -> Vector:
    """Return the share of every class, none of them 0: each count is increased by 1 (Laplace).

    >>> shares_of(np.array([3, 0])).tolist()
    [0.8, 0.2]
    """
    more = np.asarray(counts, np.float64) + 1.0
    shares: Vector = more / more.sum()
    return shares


def parse_options(texts: list[str]) -> dict[str, dict[str, Any]]:
    """Return options as flags give them: `momentum.beta=0.8`.

    Raises:
        ConfigError: One does not have that form.

    >>> parse_options(["momentum.beta=0.8", "huber.delta=2"])
    {'momentum': {'beta': 0.8}, 'huber': {'delta': 2}}
    """
    options: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, dot, rest = text.partition(".")
        option, equals, value = rest.partition("=")
        if not (name and dot and option and equals and value):
            raise ConfigError(
                f"option {shown(text)} is not of the form NAME.OPTION=VALUE; "
                "write for example momentum.beta=0.8"
            )
        options.setdefault(name, {})[option] = _toml_value(value)
    return options


def expand_model(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values in which the module of `model = "torch:module"` is an option of the model.

    >>> expand_model({"model": "torch:my.nets:digits"})
    {'model': 'torch', 'options': {'torch': {'module': 'my.nets:digits'}}}
    """
    name, colon, module = str(values.get("model", "")).partition(":")
    if not colon or name not in MODELS:
        return dict(values)
    options = values.get("options", {})
    own = {**options.get(name, {}), "module": module}
    return {**values, "model": name, "options": {**options, name: own}}


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
