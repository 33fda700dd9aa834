"""What a peer asks for beyond the privacy of its task, in peer.toml."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from msgspec import Meta

from oneway.errors import ConfigError
from oneway.files.validation import check_fields
from oneway.privacy import epsilon_of, mu_for
from oneway.task.privacy import DEFAULT_DELTA, Privacy
from oneway.task.task import Task


@dataclass(frozen=True)
class OwnPrivacy:
    """More privacy than all have agreed on; less is refused.

    Attributes:
        epsilon: Of this peer's own samples.
        samples_per_push: Of this peer's own pushes.
        require_epsilon: Tasks that promise less are refused: to run, to trust and to admit.

    Raises:
        ConfigError: One of them breaks its rule.
    """

    epsilon: Annotated[
        Annotated[float, Meta(ge=1e-3)] | Literal["task"],
        Meta(description='its own epsilon, at most the task\'s; "task" is that of the task'),
    ] = "task"
    samples_per_push: Annotated[
        Annotated[int, Meta(ge=1)] | Literal["task"],
        Meta(description='its own, at least the task\'s; "task" is that of the task'),
    ] = "task"
    require_epsilon: Annotated[
        Annotated[float, Meta(gt=0)] | Literal["any"],
        Meta(description='tasks that promise others less than this are refused; or "any"'),
    ] = "any"

    def __post_init__(self) -> None:
        check_fields(self)

    def applied(self, task: Task) -> Task:
        """The task as this peer learns by it; for its method only, all else is as agreed.

        Raises:
            ConfigError: This peer asks for less than the task, or the task promises less than this
                peer requires.
        """
        self.check(task)
        privacy, samples = task.privacy, task.samples_per_push
        if self.epsilon != "task":
            if privacy and self.epsilon > privacy.epsilon:
                raise ConfigError(
                    f"epsilon under [privacy] in peer.toml is {self.epsilon:g}, and all peers of "
                    f"the task have agreed on at most {privacy.epsilon:g}; a peer may ask for a "
                    "smaller one only, or leave it out"
                )
            privacy = replace(privacy if privacy else Privacy(), epsilon=self.epsilon)
        if self.samples_per_push != "task":
            if self.samples_per_push < samples:
                raise ConfigError(
                    f"samples_per_push under [privacy] in peer.toml is {self.samples_per_push}, "
                    f"and all peers of the task have agreed on at least {samples}; a peer may ask "
                    "for more only, or leave it out"
                )
            samples = self.samples_per_push
        return replace(task, privacy=privacy, samples_per_push=samples)

    def check(self, task: Task) -> None:
        """Check that a task promises enough to others for this peer to take part.

        Raises:
            ConfigError: It does not.
        """
        if self.require_epsilon == "any":
            return
        if not task.privacy or _epsilon_at_default(task.privacy) > self.require_epsilon:
            raise ConfigError(
                f"the task has privacy {task.privacy.brief}, and this peer requires an epsilon of "
                f"at most {self.require_epsilon:g} at delta {DEFAULT_DELTA:g} (require_epsilon "
                "under [privacy] in peer.toml); agree on a task with more privacy, or require less"
            )


def _epsilon_at_default(privacy: Privacy) -> float:
    """What a task promises at the delta that tasks have by default, or at a smaller one of its own.

    Any epsilon can be promised at a delta near 1, and then means nothing.
    """
    if privacy.delta <= DEFAULT_DELTA:
        return privacy.epsilon
    return epsilon_of(mu_for(privacy.epsilon, privacy.delta), DEFAULT_DELTA)
