"""Privacy: what a task promises everybody about a sample, or about all samples of one person."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

from msgspec import Meta

from oneway.errors import ConfigError, OnewayError
from oneway.files.typed_values import check_fields, from_table
from oneway.methods import Batches
from oneway.privacy import Guarantee, sensitivity
from oneway.sentences import shown
from oneway.task.keys import key

NONE = "none"
"""How a task says that there is no noise; it must be written out."""
DEFAULT_EPSILON = 8.0
DEFAULT_DELTA = 1e-5
CLIP_PER_ROOT = 0.6
"""The clip where none is given, times the square root of the number of parameters, which is about
the norm of a sample of features with variance 1. With it, epsilon 8 costs less than 5 % of the loss
on the data sets here at the default learning rate; half of it learns too slowly at that rate."""


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The privacy of a task, a floor: peers may ask for more of themselves, not for less.

    Attributes:
        unit: Whose contribution is hidden; "none" means that nothing is.

    Raises:
        ConfigError: A value breaks its rule.
    """

    epsilon: Annotated[
        float, key("how much what is sent may tell about one sample", "E", "Privacy", gt=0)
    ] = DEFAULT_EPSILON
    delta: Annotated[
        float, key("with which probability it may tell more", "D", "Privacy", ge=1e-12, lt=1)
    ] = DEFAULT_DELTA
    clip: Annotated[
        Annotated[float, Meta(ge=1e-9)] | Literal["auto"],
        key("how far one sample may move the model; auto: by its size", "X", "Privacy"),
    ] = "auto"
    unit: Annotated[
        Literal["sample", "group", "none"],
        key("what epsilon is about: one sample, or all of a group", "NAME", "Privacy"),
    ] = "sample"
    group: Annotated[str, key("the column that names the group", "COLUMN", "Privacy")] = ""
    records_per_group: Annotated[
        int, key("so many samples of a group are learned from", "N", "Privacy", ge=1)
    ] = 1
    band: Annotated[
        int, key("over so many pushes noise is taken back", "N", "Privacy", ge=1, le=1024)
    ] = 32

    def __post_init__(self) -> None:
        check_fields(self)
        if self.unit == "group" and not self.group:
            raise ConfigError(
                'unit is "group" and group is empty; it must be the column of your data that says '
                "whose a row is"
            )
        if self.unit != "group" and (self.group or self.records_per_group != 1):
            said = f"group is {shown(self.group)}" if self.group else "records_per_group is set"
            raise ConfigError(f'{said} and unit is "{self.unit}"; groups need unit = "group"')

    def __bool__(self) -> bool:
        """Whether anything is promised."""
        return self.unit != NONE

    @property
    def guarantee(self) -> Guarantee | None:
        """What is promised; None if nothing is."""
        if self.unit == "none":
            return None
        return Guarantee(self.epsilon, self.delta, self.unit, self.records_per_group)

    @property
    def brief(self) -> str:
        """What is promised, in a few words.

        >>> Privacy(epsilon=1.0).brief
        'epsilon 1, delta 1e-05 per sample'
        """
        if not self:
            return "none: samples can be read from what is sent"
        unit = f"group of {self.records_per_group}" if self.unit == "group" else "sample"
        return f"epsilon {self.epsilon:g}, delta {self.delta:g} per {unit}"

    def batches(self, samples: int, dim: int) -> Batches | None:
        """How gradients with so many parameters become pushes of at least so many samples.

        None if every sample is a push of its own, as it is.
        """
        guarantee = self.guarantee
        if guarantee is None:
            return Batches(samples) if samples > 1 else None
        clip = CLIP_PER_ROOT * math.sqrt(dim) if self.clip == "auto" else self.clip
        noise = guarantee.noise_multiplier * sensitivity(self.band)
        return Batches(samples, clip, noise, self.band)

    def check_samples(self, expected: int) -> None:
        """Check that delta suits the number of samples that one peer expects.

        Raises:
            ConfigError: It is so large that all of a sample might be told.
        """
        if self and self.delta * expected > 1:
            raise ConfigError(
                f"delta is {self.delta:g} and {expected:,} samples are expected; it must be at "
                f"most 1/{expected:,}, or a sample might be told as a whole: choose "
                f"{_below(1 / expected):g} or less"
            )

    def said(self) -> str | dict[str, Any]:
        """As a task file says it: "none" or a table, in terms JSON can hold."""
        if not self:
            return NONE
        table = asdict(self)
        if self.unit != "group":
            del table["group"], table["records_per_group"]
        return table


PRIVACY_KEYS = tuple(field.name for field in fields(Privacy))
NO_PRIVACY = Privacy(unit="none")


def parse_privacy(value: object, where: str, error: type[OnewayError] = ConfigError) -> Privacy:
    """What a task or settings file says under `privacy`.

    Raises:
        OnewayError: Of the class `error`, if it breaks a rule.
    """
    if value == NONE:
        return NO_PRIVACY
    if not isinstance(value, Mapping):
        raise error(
            f'privacy in {where} is {shown(value)}; it must be "none", or a table [privacy] with '
            "epsilon and delta"
        )
    return from_table(value, Privacy, f"[privacy] of {where}", error)


def with_changes(privacy: Privacy, changes: Mapping[str, Any]) -> Privacy:
    """What holds after the flags of a command line: `privacy="none"`, or keys of the table.

    Raises:
        ConfigError: They contradict each other, or a value breaks its rule.
    """
    named = {name: value for name, value in changes.items() if name in PRIVACY_KEYS}
    word = changes.get("privacy")
    if word is not None and word != NONE:
        raise ConfigError(
            f'privacy is {shown(word)}; it must be "none", or be left out: epsilon and delta say '
            "how much"
        )
    if word == NONE:
        if named:
            name, value = next(iter(named.items()))
            raise ConfigError(
                f'privacy is "none" and {name} is {shown(value)}; leave out one of the two'
            )
        return NO_PRIVACY
    if not named:
        return privacy
    kept = asdict(privacy) if privacy else {}
    return Privacy(**kept | named)


def _below(bound: float) -> float:
    """The largest power of ten at most this."""
    return float(10.0 ** math.floor(math.log10(bound)))
