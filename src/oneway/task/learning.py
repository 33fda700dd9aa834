"""How a model is learned: the keys that a task and the settings of a run have in common.

Each key is declared once, with its type, bounds and description: TOML files, flags of the command
line and Python arguments are all checked by it. Choices come from the registries.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Annotated, Any, Literal, Self

from msgspec import Meta

from oneway.errors import ConfigError
from oneway.files.typed_values import check_fields
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
from oneway.models import MODELS, LabelKind, Model
from oneway.registry import build
from oneway.sentences import listed, nearest, shown
from oneway.task.keys import key, one_of
from oneway.task.privacy import Privacy

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
        Annotated[float, Meta(ge=0)] | Literal["auto"],
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
    mixes: Annotated[int, key("how many pushes follow a step", "N", ge=1)] = 1
    l2: Annotated[float, key("how strongly parameters are pulled towards 0", "X", ge=0)] = 1e-4
    intercept: Annotated[bool, key("whether the model has a constant")] = True
    options: Annotated[
        dict[str, dict[str, Any]], key("further parameters, as NAME.OPTION=VALUE", "TEXT")
    ] = field(default_factory=dict)
    samples_per_push: Annotated[
        int, key("a push carries the steps of at least so many samples", "N", "Privacy", ge=1)
    ] = DEFAULT_SAMPLES
    privacy: Annotated[
        Privacy, key('"none": samples can be read from what is sent', '"none"', "Privacy")
    ] = field(default_factory=Privacy)

    def __post_init__(self) -> None:
        check_fields(self)
        for name in self.transforms:
            TRANSFORMS[name]
        models = (self.model,) if self.model in MODELS else tuple(MODELS)  # one of them, later
        chosen = (*models, self.method, self.step, *self.transforms)
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

    def batches(self, dim: int) -> Batches | None:
        """How samples become pushes of a model with so many parameters.

        None if every sample is a step of its own: also where nothing is ever sent.
        """
        if not METHODS[self.method].payload:
            return None
        typical = MODELS[self.model].typical_features if self.model in MODELS else None
        size = dim if typical is None else typical + 1
        return self.privacy.batches(self.samples_per_push, size)

    def with_method(self, method: str, step: str | None = None) -> Self:
        """The same model, rate and transforms with another method, and perhaps another step rule.

        Options of what is no longer used are left out.
        """
        step = self.step if step is None else step
        used = (method, step, self.model, *self.transforms)
        options = {name: given for name, given in self.options.items() if name in used}
        return replace(self, method=method, step=step, options=options)

    @property
    def privacy_in_words(self) -> str:
        """What is promised about samples in a few words, or that nothing is ever sent."""
        return self.privacy.brief if METHODS[self.method].payload else "nothing is sent"

    @property
    def privacy_sentence(self) -> str:
        """The same in full."""
        guarantee = self.privacy.guarantee if METHODS[self.method].payload else None
        return self.privacy_in_words if guarantee is None else guarantee.sentence

    def build_method(self, dim: int = 1) -> Method:
        """The method for a model with so many parameters, with all that it is told."""
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

    def told_kind(self) -> LabelKind | None:
        """Which labels the model learns from, as its name and options say; None if they do not."""
        return MODELS[self.model].kind_of_labels(self._options(self.model))

    def kind_for(self, num_classes: int) -> LabelKind:
        """Which labels the model learns from if there are so many classes; 0 for numbers."""
        return self.told_kind() or KIND_OF_COUNT.get(num_classes, "classes")

    def model_for(self, num_classes: int) -> Model:
        """The model, for labels with so many classes; 0 for numbers."""
        entry = MODELS[self.model]
        known = set(signature(entry.__init__).parameters) - {"self"}
        given = {
            name: getattr(self, name) for name in ("l2", "intercept") if name in known
        } | self._options(self.model)
        for name in given:
            if name not in known:
                raise ConfigError(
                    f"model {self.model} has no option {shown(name)}{nearest(name, known)}"
                )
        try:
            return entry.for_labels(num_classes, **given)
        except TypeError as error:
            raise ConfigError(
                f"model {self.model} cannot be made with {shown(str(given))}: {error}; leave out "
                "the option that the labels decide, or correct its value"
            ) from None

    def _options(self, name: str) -> dict[str, Any]:
        return dict(self.options.get(name, {}))


def parse_options(texts: list[str]) -> dict[str, dict[str, Any]]:
    """Options as flags give them: `momentum.beta=0.8`.

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


def spelled_out(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values in which a model that names its module says so among the options.

    >>> spelled_out({"model": "torch:my.nets:digits"})
    {'model': 'torch', 'options': {'torch': {'module': 'my.nets:digits'}}}
    """
    name, colon, module = str(values.get("model", "")).partition(":")
    if not colon or name not in MODELS:
        return dict(values)
    options = values.get("options", {})
    own = {**options.get(name, {}), "module": module}
    return {**values, "model": name, "options": {**options, name: own}}


def without_site_options(
    model: str, options: Mapping[str, dict[str, Any]]
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Options without those that every site says for itself, and these."""
    given = options.get(model, {})
    own = {name: given[name] for name in MODELS[model].site_options if name in given}
    if not own:
        return dict(options), {}
    rest = {name: value for name, value in given.items() if name not in own}
    return {**options, model: rest}, own


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def without_former_names(
    values: Mapping[str, Any], where: str = ""
) -> tuple[dict[str, Any], list[str]]:
    """Values by today's keys, and a sentence for every former key among them.

    >>> without_former_names({"algorithm": "local", "cap_step": True})[0]
    {'method': 'local', 'step': 'capped'}
    """
    result, sentences = dict(values), []
    place = f" in {where}" if where else ""
    if "algorithm" in result:
        result["method"] = result.pop("algorithm")
        sentences.append(f"algorithm{place} is now called method, which does the same")
    if "cap_step" in result:
        capped = result.pop("cap_step")
        if not isinstance(capped, bool):
            raise ConfigError(f"cap_step{place} is {shown(capped)}; it must be true or false")
        result["step"] = "capped" if capped else "paper"
        sentences.append(f'cap_step{place} is now step = "{result["step"]}"')
    return result, sentences
