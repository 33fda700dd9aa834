"""Privacy: the differential privacy that a task guarantees for a sample, or for a group of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

from msgspec import Meta

from oneway.errors import ConfigError, OnewayError
from oneway.files.validation import check_fields, convert
from oneway.methods import Batches
from oneway.privacy import Guarantee, sensitivity
from oneway.sentences import shown
from oneway.task.keys import key

NONE = "none"
"""The value of `privacy` that disables differential privacy; it must be written out."""
DEFAULT_EPSILON = 8.0
DEFAULT_DELTA = 1e-5
LARGEST_DELTA = 0.01
"""A whole sample may be revealed with this probability; a promise that fails more often is none."""
CLIP_PER_ROOT = 0.6
"""The default clip, per square root of the number of parameters, which is about the norm of a
sample of features with variance 1. With it, epsilon 8 costs less than 5 % of the loss on the data
sets here at the default learning rate; half of it learns too slowly at that rate."""


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The privacy of a task, a floor: a peer may demand more, not less.

    Attributes:
        unit: What epsilon protects: a sample, or a group; "none" disables privacy.

    Raises:
        ConfigError: A value breaks its rule.
    """

    epsilon: Annotated[
        float,
        key("how much pushes may reveal about one sample", "E", "Privacy", ge=1e-3, le=1e3),
    ] = DEFAULT_EPSILON
    delta: Annotated[
        float, key("probability that more is revealed", "D", "Privacy", ge=1e-12, le=LARGEST_DELTA)
    ] = DEFAULT_DELTA
    clip: Annotated[
        Annotated[float, Meta(ge=1e-9, le=1e6)] | Literal["auto"],
        key("largest gradient of one sample; auto: by the size of the model", "X", "Privacy"),
    ] = "auto"
    unit: Annotated[
        Literal["sample", "group", "none"],
        key("what epsilon protects: one sample, or all samples of a group", "NAME", "Privacy"),
    ] = "sample"
    group: Annotated[str, key("the column that names the group", "COLUMN", "Privacy")] = ""
    records_per_group: Annotated[
        int,
        key("the most samples of a group that are learned from", "N", "Privacy", ge=1, le=10**6),
    ] = 1
    band: Annotated[
        int,
        key("number of pushes over which noise is taken back", "N", "Privacy", ge=1, le=1024),
    ] = 32

    def __post_init__(self) -> None:
        check_fields(self)
        if self.unit == "group" and not self.group:
            raise ConfigError(
                'unit is "group" and group is empty; it must be the column of your data that names '
                "the group of a row"
            )
        if self.unit != "group" and (self.group or self.records_per_group != 1):
            fact = f"group is {shown(self.group)}" if self.group else "records_per_group is set"
            raise ConfigError(f'{fact} and unit is "{self.unit}"; groups need unit = "group"')

    def __bool__(self) -> bool:
        """Whether differential privacy is on."""
        return self.unit != NONE

    @property
    def guarantee(self) -> Guarantee | None:
        """The guarantee; None without differential privacy."""
        if self.unit == "none":
            return None
        return Guarantee(self.epsilon, self.delta, self.unit, self.records_per_group)

    @property
    def brief(self) -> str:
        """The guarantee in a few words.

        >>> Privacy(epsilon=1.0).brief
        'epsilon 1, delta 1e-05 per sample'
        """
        if not self:
            return "none: samples can be read from what is sent"
        unit = f"group of {self.records_per_group}" if self.unit == "group" else "sample"
        return f"epsilon {self.epsilon:g}, delta {self.delta:g} per {unit}"

    def batches(self, samples: int, dim: int) -> Batches | None:
        """Return how gradients with `dim` parameters become pushes of at least `samples` samples.

        None if every sample is a push of its own, without noise.
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
            ConfigError: It is so large that a whole sample might be revealed.
        """
        if self and self.delta * expected > 1:
            raise ConfigError(
                f"delta is {self.delta:g} and {expected:,} samples are expected; it must be at "
                f"most 1/{expected:,}, or a whole sample might be revealed: choose "
                f"{_below(1 / expected):g} or less"
            )

    def as_json(self) -> str | dict[str, Any]:
        """Return "none" or a table, as in a task file, in terms JSON can hold."""
        if not self:
            return NONE
        table = asdict(self)
        if self.unit != "group":
            del table["group"], table["records_per_group"]
        return table


PRIVACY_KEYS = tuple(field.name for field in fields(Privacy))
NO_PRIVACY = Privacy(unit="none")


def parse_privacy(value: object, where: str, error: type[OnewayError] = ConfigError) -> Privacy:
    """Return the privacy of a task or settings file, given its value of `privacy`.

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
    return convert(value, Privacy, f"[privacy] of {where}", error)


def with_changes(privacy: Privacy, changes: Mapping[str, Any]) -> Privacy:
    """Return the privacy after the flags of a command line: `privacy="none"`, or keys of the table.

    Raises:
        ConfigError: They contradict each other, or a value breaks its rule.
    """
    named = {name: value for name, value in changes.items() if name in PRIVACY_KEYS}
    word = changes.get("privacy")
    if word is not None and word != NONE:
        raise ConfigError(
            f'privacy is {shown(word)}; it must be "none", or be left out: epsilon and delta set '
            "the level"
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
    before = asdict(privacy) if privacy else {}
    return Privacy(**before | named)


def _below(bound: float) -> float:
    """Return the largest power of ten up to a bound."""
    return float(10.0 ** math.floor(math.log10(bound)))
