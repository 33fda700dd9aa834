"""Cells of a reproduction: many small simulations on all cores, each remembered, to be resumed."""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import joblib
import numba
import numpy as np

import oneway
from oneway.errors import DivergenceError
from oneway.files.atomic import write_atomically
from oneway.methods import Method
from oneway.metrics import evenly_spread
from oneway.models import LogisticRegression
from oneway.paper.methods import PUBLISHED, make, make_private
from oneway.paper.world import World, data_table
from oneway.records import Ints, Matrix, Vector
from oneway.simulator import simulate
from oneway.simulator.parallel import in_parallel

_POINTS = 240
"""Points of a remembered curve."""
_TOGETHER = 4
"""Cells that one process runs before they are written."""


@dataclass(frozen=True)
class Need:
    """What identifies a cell: one method in one world with one seed.

    Attributes:
        epsilon: As a new task would learn, noised for this; infinite for batches without noise.
            None for the paper's own way: every sample a step, as published.
    """

    world: World
    method: str
    seed: int
    epsilon: float | None = None


@dataclass(frozen=True)
class Cell:
    """One method in one world with one seed, at every learning rate of the grid.

    Attributes:
        rates: The grid.
        losses: Average loss at each rate; infinite where the run diverged.
        rounds: The rounds at which the curves are remembered.
        curves: `curves[rate, point]`, the running average loss.
        last_disagreement: After the last round, at each rate.
        adversarial_share: The share of the samples that really was dealt by cluster.
    """

    rates: Vector
    losses: Vector
    rounds: Ints
    curves: Matrix
    last_disagreement: Vector
    adversarial_share: float

    def at(self, rate: float) -> int:
        """The index of a learning rate."""
        return int(np.flatnonzero(self.rates == rate)[0])


def run_cells(
    needs: Iterable[Need],
    rates: Sequence[float],
    folder: Path,
    on_done: Callable[[int, int], None],
) -> dict[Need, Cell]:
    """Get every cell: from the folder if it was computed before, otherwise by running it.

    A few cells of the same world and seed are run together, because they share stream and graph;
    such groups run in parallel processes. What a group has finished is written at once, so an
    interrupted call goes on where it stopped.

    Args:
        needs: What to compute; duplicates are computed once.
        rates: The grid of learning rates, the same for all.
        folder: Where cells are remembered, by a hash of everything that determines them.
        on_done: Called with the number of finished cells and of all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = {need: folder / f"{_key(need, rates)}.npz" for need in dict.fromkeys(needs)}
    cells: dict[Need, Cell] = {}
    groups: dict[tuple[World, int], list[Need]] = {}
    for need, path in paths.items():
        found = _read(path)
        if found is None:
            groups.setdefault((need.world, need.seed), []).append(need)
        else:
            cells[need] = found
    on_done(len(cells), len(paths))
    for need, cell in _run_groups(groups, rates):
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, **vars(cell))
        write_atomically(paths[need], content.getvalue())
        cells[need] = cell
        on_done(len(cells), len(paths))
    return cells


def _run_groups(
    groups: Mapping[tuple[World, int], list[Need]], rates: Sequence[float]
) -> Iterator[tuple[Need, Cell]]:
    # The longest first, so that no core is left waiting for one at the end.
    order = sorted(groups, key=lambda group: -_work(group[0]) * len(groups[group]))
    for finished in in_parallel(
        joblib.delayed(_run_group)(world, seed, some, tuple(rates))
        for world, seed in order
        for some in _few(groups[world, seed])
    ):
        yield from finished


def _few(needs: Sequence[Need]) -> Iterator[Sequence[Need]]:
    for begin in range(0, len(needs), _TOGETHER):
        yield needs[begin : begin + _TOGETHER]


def _work(world: World) -> float:
    receivers = world.max_receivers or 20
    return (world.rounds or 1000) * world.num_nodes * (receivers / 2 + 5)


def _run_group(
    world: World, seed: int, needs: Sequence[Need], rates: tuple[float, ...]
) -> list[tuple[Need, Cell]]:
    numba.set_num_threads(1)
    stream, graph = world.stream(seed), world.graph(seed)
    model = LogisticRegression()
    shown = evenly_spread(stream.num_rounds, _POINTS)
    cells = []
    for need in needs:
        losses, last = (np.full(len(rates), math.inf) for _ in range(2))
        curves = np.full((len(rates), len(shown)), math.inf)
        for i, rate in enumerate(rates):
            try:
                method = _method(need, rate, model.dim(stream.dim))
                options = world.run_options(seed)
                run = simulate(method, model, stream, graph, progress=False, **options)
            except DivergenceError:
                continue
            losses[i] = run.average_loss
            curves[i] = run.loss_curve[shown]
            last[i] = run.disagreement[-1]
        share = stream.adversarial_share
        cell = Cell(np.array(rates), losses, shown + 1, curves, last, share)
        cells.append((need, cell))
    return cells


def _method(need: Need, rate: float, dim: int) -> Method:
    if need.epsilon is None:
        return make(need.method, rate)
    return make_private(need.method, rate, need.epsilon, dim)


def _key(need: Need, rates: Sequence[float]) -> str:
    """A hash of all that determines a cell."""
    described = {
        "version": oneway.__version__,
        "world": need.world.describe(),
        "model": LogisticRegression().describe(),
        "method": need.method,
        "seed": need.seed,
        "rates": list(rates),
    }
    if need.epsilon is None and need.method not in PUBLISHED:
        described["variant"] = make(need.method, 1.0).describe()
    if need.epsilon is not None:
        dim = LogisticRegression().dim(data_table(need.world.data).num_features)
        described["private"] = make_private(need.method, 1.0, need.epsilon, dim).describe()
        if need.epsilon < math.inf:
            # Cells of all seeds had the same noise before: those are not found any more.
            described["noise"] = "by seed"
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:24]


def _read(path: Path) -> Cell | None:
    """A remembered cell; None if there is none or it is damaged, which is then computed again."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            values = {name: stored[name] for name in stored.files}
        return Cell(**values | {"adversarial_share": float(values["adversarial_share"])})
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile):
        return None
