"""Evidence: what the cells of a reproduction say, asked by world, method and learning rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from oneway.paper.figures import STOCHASTIC, Scale, reference_world
from oneway.paper.run_grid import Cell, Need
from oneway.paper.world import World
from oneway.records import Vector


@dataclass(frozen=True, eq=False)
class Evidence:
    """All cells of a reproduction."""

    cells: Mapping[Need, Cell]
    rates: tuple[float, ...]
    seeds: Sequence[int]
    scale: Scale

    def has(self, world: World, *methods: str) -> bool:
        """Whether all these methods were run in a world."""
        return all(Need(world, method, self.seeds[0]) in self.cells for method in methods)

    def cells_of(self, world: World, method: str) -> list[Cell]:
        """One cell per seed that was run."""
        needs = [Need(world, method, seed) for seed in self.seeds]
        return [self.cells[need] for need in needs if need in self.cells]

    def losses(self, world: World, method: str, rate: float | None = None) -> Vector:
        """Average loss per seed, at a rate or at the one tuned for the data set."""
        rate = self.tuned_rate(world.data, method) if rate is None else rate
        return np.array([cell.losses[cell.at(rate)] for cell in self.cells_of(world, method)])

    def by_rate(self, world: World, method: str) -> Vector:
        """Average loss per learning rate, mean over seeds."""
        mean: Vector = np.mean([cell.losses for cell in self.cells_of(world, method)], axis=0)
        return mean

    def best_rate(self, world: World, method: str) -> float:
        """The rate with the smallest mean loss in this very world."""
        return self.rates[int(np.argmin(self.by_rate(world, method)))]

    @cache  # noqa: B019 - lives as long as one reproduction
    def tuned_rate(self, data: str, method: str) -> float:
        """The rate with the smallest mean loss in the paper's main worlds of a data set."""
        worlds = [reference_world(data, part, self.scale) for part in STOCHASTIC]
        means = [self.by_rate(world, method) for world in worlds if self.has(world, method)]
        return self.rates[int(np.argmin(np.mean(means, axis=0)))]

    def rate_past_best(self, data: str, method: str) -> float | None:
        """The next larger rate of the grid after the tuned one; None if that is the largest."""
        larger = [rate for rate in self.rates if rate > self.tuned_rate(data, method)]
        return min(larger, default=None)

    def excess(self, world: World, method: str, rate: float) -> Vector:
        """Loss per seed above that of the data set's all-stochastic main world, at a rate."""
        whole = reference_world(world.data, 1.0, self.scale)
        # Where both diverged the excess is no number, which says so.
        with np.errstate(invalid="ignore"):
            above: Vector = self.losses(world, method, rate) - self.losses(whole, method, rate)
        return above

    def at_edge(self, rate: float) -> bool:
        """Whether a rate is the smallest or largest of the grid: a better one may lie beyond."""
        return rate in (min(self.rates), max(self.rates))
