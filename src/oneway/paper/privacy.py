"""What privacy costs: the loss against epsilon, together and alone, and the verdict on it.

Not in the paper. Every method learns as a new task does (batches, clip, band, delta, step rule),
noised for epsilon, at the best learning rate of one grid for that very epsilon and data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oneway.methods import DEFAULT_METHOD
from oneway.paper.figures import Scale
from oneway.paper.run_grid import Cell, Need, run_cells
from oneway.paper.verdict import Claim, Finding, everywhere, interval, paired
from oneway.paper.world import World, data_table
from oneway.records import Matrix, Vector
from oneway.simulator.executors import Executor

NAME = "privacy"
SHOWS = "loss against epsilon, together and alone, not in the paper; 5 panels"
NEEDS = "susy, occupancy, flights, adult"
NO_NOISE = math.inf
EPSILONS = (NO_NOISE, 8.0, 2.0, 1.0, 0.5)
JUDGED_EPSILON = 1.0
ALONE = "local"
"""It sends nothing, so it has neither batches nor noise at any epsilon."""
METHODS = (DEFAULT_METHOD, "ops", "dol-symm", ALONE, "col")
RATES = (0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""The grid of learning rates: finer than the paper's, as noise makes the best rate move."""
SMALL_SUSY_ROUNDS = 500
"""Twenty nodes see 10,000 rows once each."""


def places(scale: Scale) -> dict[str, World]:
    """The worlds by their titles."""
    some = scale.room_rounds
    few = min(SMALL_SUSY_ROUNDS, scale.susy_rounds)
    return {
        "Room Occupancy": World("occupancy", 20, max_receivers=10, rounds=some),
        "SUSY, 20 nodes": World("susy", 20, max_receivers=10, rounds=few),
        "SUSY, 128 nodes": World("susy", 128, max_receivers=32, rounds=scale.susy_rounds),
        "Flights": World("flights", 20, max_receivers=10, rounds=some),
        "Adult": World("adult", 20, max_receivers=10, rounds=some),
    }


def name_of(epsilon: float) -> str:
    """What an epsilon is called where nothing may be noised.

    >>> name_of(NO_NOISE), name_of(0.5)
    ('none', '0.5')
    """
    return "none" if epsilon == NO_NOISE else f"{epsilon:g}"


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """Loss against epsilon in one world.

    Attributes:
        title: What the world is called.
        world: Where it was measured.
        rates: The grid of learning rates.
        by_seed: By method and epsilon, `[seed, rate]` average losses; a method that sends nothing
            is there without noise only.
    """

    title: str
    world: World
    rates: tuple[float, ...]
    by_seed: Mapping[tuple[str, float], Matrix]

    def rate(self, method: str, epsilon: float) -> float:
        """The rate with the smallest mean over seeds."""
        return self.rates[self._best(method, epsilon)]

    def at_edge(self, method: str, epsilon: float) -> bool:
        """Whether the best rate is the smallest or largest: a better one may lie beyond."""
        return self._best(method, epsilon) in (0, len(self.rates) - 1)

    def losses(self, method: str, epsilon: float) -> Vector:
        """Average loss per seed, at the best rate."""
        column: Vector = self._losses(method, epsilon)[:, self._best(method, epsilon)]
        return column

    @property
    def resampled(self) -> bool:
        """Whether rows are drawn with replacement: each draw then counts as another sample."""
        wanted = (self.world.rounds or 0) * self.world.num_nodes
        return wanted > len(data_table(self.world.data))

    def _losses(self, method: str, epsilon: float) -> Matrix:
        return self.by_seed[method, NO_NOISE if method == ALONE else epsilon]

    def _best(self, method: str, epsilon: float) -> int:
        return int(np.argmin(self._losses(method, epsilon).mean(axis=0)))


def measure(
    scale: Scale,
    rates: tuple[float, ...],
    num_seeds: int,
    folder: Path,
    on_done: Callable[[int, int], None],
    executor: Executor | None = None,
) -> list[Tradeoff]:
    """Run every method at every epsilon, rate and seed; cells of the folder are not repeated."""
    worlds = places(scale)
    settings = [
        (method, epsilon)
        for method in METHODS
        for epsilon in EPSILONS
        if method != ALONE or epsilon == NO_NOISE
    ]
    needs = [
        Need(world, method, seed, epsilon)
        for world in worlds.values()
        for method, epsilon in settings
        for seed in range(num_seeds)
    ]
    cells = run_cells(needs, rates, folder, on_done, executor)

    def losses(world: World, method: str, epsilon: float) -> Matrix:
        found: list[Cell] = [cells[Need(world, method, s, epsilon)] for s in range(num_seeds)]
        return np.array([cell.losses for cell in found])

    return [
        Tradeoff(title, world, rates, {key: losses(world, *key) for key in settings})
        for title, world in worlds.items()
    ]


def together_beats_alone(tradeoffs: Sequence[Tradeoff]) -> Claim:
    """Judge whether learning together under noise is better than alone without any."""
    findings = tuple(_findings(tradeoffs))
    return Claim(
        f"Together under epsilon = {name_of(JUDGED_EPSILON)} beats alone without noise.",
        NAME,
        findings,
        everywhere(findings),
        "Not a claim of the paper. The default method with noise against local online gradient "
        "descent, which sends nothing and has no noise; both at their best rates, paired by seed. "
        "Mixed is undecided for one data set, and for all together that data sets differ.",
    )


def _findings(tradeoffs: Sequence[Tradeoff]) -> Iterator[Finding]:
    for tradeoff in tradeoffs:
        yield paired(
            tradeoff.title,
            tradeoff.losses(ALONE, NO_NOISE) - tradeoff.losses(DEFAULT_METHOD, JUDGED_EPSILON),
            f"loss alone without noise minus loss together under epsilon {name_of(JUDGED_EPSILON)}",
        )


def markdown(tradeoffs: Sequence[Tradeoff]) -> str:
    """Epsilon against loss as a table for a README: together, and alone in the last row.

    Together is the default method. Bold is better than alone: the whole 95 % interval of the paired
    difference is.
    """
    rows = [
        ["epsilon", *(tradeoff.title for tradeoff in tradeoffs)],
        ["---"] * (1 + len(tradeoffs)),
    ]
    for epsilon in EPSILONS:
        cells = []
        for tradeoff in tradeoffs:
            together = tradeoff.losses(DEFAULT_METHOD, epsilon)
            mean = f"{interval(together)[0]:.4f}"
            better = paired("", tradeoff.losses(ALONE, NO_NOISE) - together).verdict == "holds"
            cells.append(f"**{mean}**" if better else mean)
        rows.append([name_of(epsilon), *cells])
    alone = (f"{interval(tradeoff.losses(ALONE, NO_NOISE))[0]:.4f}" for tradeoff in tradeoffs)
    rows.append(["alone, nothing sent", *alone])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
