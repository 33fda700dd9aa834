"""Gradient transform: `init` and `update` in the manner of optax, rows are nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from oneway.records import Matrix
from oneway.registry import Registry, describe


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
