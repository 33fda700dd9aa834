"""Restarted learning rate: begins anew when updates say that the model is left behind.

At a model that suits its samples, updates point here and there. After a change they point one way,
and go on to, since the rate has become too small to follow. With m a mean of the updates before,

    h' = max(0, h + cos(g, m) - slack)

is Page's test (1954) for a cosine above the slack. When h exceeds `sure`, the rate starts as it
did at first: s = 0. A loss would tell the same sooner, but it is a fact about single samples, and
updates are what is clipped and noised: restarts cost no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oneway.errors import ConfigError
from oneway.methods.transforms.base import TRANSFORMS, Transform
from oneway.records import Matrix

MARKS = 8
"""So many restarts, the last ones, are remembered."""


@TRANSFORMS.register
@dataclass(frozen=True)
class Restart(Transform):
    """Restart a learning rate that is chosen when updates keep pointing one way.

    A learning rate that is a number never falls, so that there is nothing to restart.

    Attributes:
        sure: How much must speak for it: the larger, the later and the surer.
        slack: Which mean cosine is none worth a restart.
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
