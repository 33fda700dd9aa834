"""Gradient transforms: what happens to a gradient before the step, in a chain as in optax.

Rows are nodes. A transform has `init` and `update`; its memory is found by its place in the chain
and its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from oneway.errors import ConfigError
from oneway.records import Matrix
from oneway.registry import Registry, describe

MARKS = 8
"""How many restarts, the last ones, `Restart` remembers."""


@dataclass(frozen=True)
class Transform(ABC):
    """A pure function of gradients and its own memory; all randomness comes in as `rng`.

    Memory is arrays by name with one row per node. It never travels; a peer stores it with the rest
    of its state.
    """

    name: ClassVar[str]
    """Short name, as in a task and on the command line."""

    def init(self, params: Matrix) -> dict[str, Matrix]:
        """The memory before the first step, for `params[node, dim]`."""
        return {}

    @abstractmethod
    def update(
        self, gradients: Matrix, memory: Mapping[str, Matrix], rng: np.random.Generator
    ) -> tuple[Matrix, dict[str, Matrix]]:
        """What goes on instead of `gradients[node, dim]`, and the memory after this step."""

    def squares_kept(self, memory: Mapping[str, Matrix]) -> Matrix | float:
        """Which share of what a chosen learning rate goes by stays at this step; by default all.

        Args:
            memory: After `update`. A share is one number for all nodes, or `[node, 1]`.
        """
        return 1.0

    def describe(self) -> dict[str, Any]:
        """Name and parameters, in terms JSON can hold."""
        return describe(self)


TRANSFORMS: Registry[type[Transform]] = Registry("transform")
"""The transforms by name."""


def transform_memory(chain: Iterable[Transform], params: Matrix) -> dict[str, Matrix]:
    """The memory of a chain before the first step, by place in the chain and name."""
    return {
        f"{place}.{transform.name}.{key}": array
        for place, transform in enumerate(chain)
        for key, array in transform.init(params).items()
    }


def transformed(
    chain: Iterable[Transform],
    memory: Mapping[str, Matrix],
    updates: Matrix,
    rng: np.random.Generator,
) -> tuple[Matrix, dict[str, Matrix]]:
    """What comes out of a chain of transforms, and their memory after it."""
    after: dict[str, Matrix] = {}
    for place, transform in enumerate(chain):
        start = f"{place}.{transform.name}."
        updates, own = transform.update(updates, _below(start, memory), rng)
        after |= {start + key: array for key, array in own.items()}
    return updates, after


def kept_share(chain: Iterable[Transform], memory: Mapping[str, Matrix]) -> Matrix | float:
    """Which share of what a chosen learning rate goes by all transforms together let stay."""
    share: Matrix | float = 1.0
    for place, transform in enumerate(chain):
        share = share * transform.squares_kept(_below(f"{place}.{transform.name}.", memory))
    return share


def _below(start: str, memory: Mapping[str, Matrix]) -> dict[str, Matrix]:
    return {
        key.removeprefix(start): array for key, array in memory.items() if key.startswith(start)
    }


@TRANSFORMS.register
@dataclass(frozen=True)
class Clip(Transform):
    """g * min(1, norm / ||g||): no gradient is longer than `norm`."""

    name = "clip"
    norm: float = 1.0

    def __post_init__(self) -> None:
        if not (isinstance(self.norm, int | float) and 0 < self.norm < np.inf):
            raise ConfigError(f"norm is {self.norm!r}; it must be a finite number above 0")

    def update(
        self, gradients: Matrix, memory: Mapping[str, Matrix], rng: np.random.Generator
    ) -> tuple[Matrix, dict[str, Matrix]]:
        """Shorten the rows that are too long."""
        lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
        return gradients * (self.norm / np.maximum(lengths, self.norm)), {}


@TRANSFORMS.register
@dataclass(frozen=True)
class Momentum(Transform):
    """m' = beta m + (1 - beta) g, and m' goes on: an exponential mean of the gradients."""

    name = "momentum"
    beta: float = 0.9

    def __post_init__(self) -> None:
        if not (isinstance(self.beta, int | float) and 0 <= self.beta < 1):
            raise ConfigError(f"beta is {self.beta!r}; it must be in [0, 1)")

    def init(self, params: Matrix) -> dict[str, Matrix]:
        """No gradient has been seen."""
        return {"mean": np.zeros_like(params)}

    def update(
        self, gradients: Matrix, memory: Mapping[str, Matrix], rng: np.random.Generator
    ) -> tuple[Matrix, dict[str, Matrix]]:
        """Move the mean towards the gradients."""
        mean = self.beta * memory["mean"] + (1.0 - self.beta) * gradients
        return mean, {"mean": mean}


@TRANSFORMS.register
@dataclass(frozen=True)
class AdaGrad(Transform):
    """s' = s + g^2, and g / (sqrt(s') + epsilon) goes on: Duchi, Hazan and Singer (2011).

    Parameters that move rarely move far when they do. Whatever the size of the gradients, steps
    begin with the learning rate and fall like one over the root of their number.
    """

    name = "adagrad"
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        if not (isinstance(self.epsilon, int | float) and 0 < self.epsilon < np.inf):
            raise ConfigError(f"epsilon is {self.epsilon!r}; it must be a finite number above 0")

    def init(self, params: Matrix) -> dict[str, Matrix]:
        """No gradient has been seen."""
        return {"squares": np.zeros_like(params)}

    def update(
        self, gradients: Matrix, memory: Mapping[str, Matrix], rng: np.random.Generator
    ) -> tuple[Matrix, dict[str, Matrix]]:
        """Add the squares, and scale by their root."""
        squares = memory["squares"] + gradients**2
        return gradients / (np.sqrt(squares) + self.epsilon), {"squares": squares}


@TRANSFORMS.register
@dataclass(frozen=True)
class Forget(Transform):
    """s' = factor * s + ||g||^2: the rate never falls below what the last updates ask for.

    About 1 / (1 - factor) updates are remembered, each of them a sample or a batch: models follow
    what changes more slowly than that, and are the noisier for it where nothing changes. A learning
    rate that is a number never falls, so that there is nothing to forget.
    """

    name = "forget"
    factor: float = 0.97

    def __post_init__(self) -> None:
        if not (isinstance(self.factor, int | float) and 0 < self.factor < 1):
            raise ConfigError(f"factor is {self.factor!r}; it must be above 0 and below 1")

    def update(
        self, gradients: Matrix, memory: Mapping[str, Matrix], rng: np.random.Generator
    ) -> tuple[Matrix, dict[str, Matrix]]:
        """Nothing happens to the gradients."""
        return gradients, {}

    def squares_kept(self, memory: Mapping[str, Matrix]) -> float:
        """The factor."""
        return float(self.factor)


@TRANSFORMS.register
@dataclass(frozen=True)
class Restart(Transform):
    """Restart a learning rate that is chosen when updates keep pointing one way.

    At a model that suits its samples, updates point in all directions. After a change they keep
    pointing one way, since the rate has become too small to follow. With m a mean of the updates
    before,

        h' = max(0, h + cos(g, m) - slack)

    is Page's test (1954) for a cosine above the slack. When h exceeds `sure`, the rate starts as it
    did at first: s = 0. A loss would show the change sooner, but depends on single samples; updates
    are already clipped and noised, so restarts cost no privacy.

    A learning rate that is a number never falls, so that there is nothing to restart.

    Attributes:
        sure: How much must speak for it: the larger, the later and the surer.
        slack: Mean cosines up to this one are no reason to restart.
        beta: How much of the mean of the updates stays at each of them.
    """

    name = "restart"
    sure: float = 2.0
    slack: float = 0.2
    beta: float = 0.9

    def __post_init__(self) -> None:
        for name, low, high in (("sure", 0, np.inf), ("slack", 0, 1), ("beta", 0, 1)):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and low < value < high):
                bound = "" if high == np.inf else f" and below {high}"
                raise ConfigError(f"{name} is {value!r}; it must be above {low}{bound}")

    def init(self, params: Matrix) -> dict[str, Matrix]:
        """No update has been seen."""
        return {
            "mean": np.zeros_like(params),
            "height": np.zeros((len(params), 1)),
            "updates": np.zeros((len(params), 1)),
            "at": np.zeros((len(params), MARKS)),
        }

    def update(
        self, gradients: Matrix, memory: Mapping[str, Matrix], rng: np.random.Generator
    ) -> tuple[Matrix, dict[str, Matrix]]:
        """Nothing happens to the gradients; they are compared with those before."""
        mean = memory["mean"]
        lengths = np.linalg.norm(gradients, axis=1) * np.linalg.norm(mean, axis=1)
        products = np.einsum("nd,nd->n", gradients, mean)
        cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0.0)
        height = np.maximum(0.0, memory["height"] + cosines[:, None] - self.slack)
        updates = memory["updates"] + 1.0
        fired = height > self.sure
        newest = np.hstack([updates, memory["at"][:, :-1]])
        return gradients, {
            "mean": np.where(fired, 0.0, self.beta * mean + (1.0 - self.beta) * gradients),
            "height": np.where(fired, 0.0, height),
            "updates": updates,
            "at": np.where(fired, newest, memory["at"]),
        }

    def squares_kept(self, memory: Mapping[str, Matrix]) -> Matrix:
        """Nothing where the rate restarts now, all elsewhere."""
        return np.where(memory["at"][:, :1] == memory["updates"], 0.0, 1.0)


def restarts(memory: Mapping[str, Matrix]) -> list[int]:
    """After how many updates the rate of the first node restarted, the last times, in order."""
    name = next((it for it in memory if it.endswith(f".{Restart.name}.at")), None)
    marks = [] if name is None else memory[name][0].astype(int).tolist()
    return sorted(mark for mark in marks if mark > 0)
