"""Run many small simulations on all cores, remember each, and resume where one stopped."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import joblib
import numba
import numpy as np

import oneway
from oneway.errors import DivergenceError
from oneway.models import LogisticRegression
from oneway.paper.methods import make
from oneway.paper.world import World
from oneway.records import Ints, Matrix, Vector
from oneway.simulator import simulate

_POINTS = 240
"""Points of a remembered curve."""


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


@dataclass(frozen=True)
class Need:
    """A cell that somebody asks for."""

    world: World
    method: str
    seed: int


def run_cells(
    needs: Iterable[Need],
    rates: Sequence[float],
    folder: Path,
    on_done: Callable[[int, int], None],
) -> dict[Need, Cell]:
    """Get every cell: from the folder if it was computed before, otherwise by running it.

    Cells of the same world and seed are run together, because they share stream and graph; such
    groups run in parallel processes. Every finished cell is written at once, so an interrupted call
    goes on where it stopped.

    Args:
        needs: What to compute; duplicates are computed once.
        rates: The grid of learning rates, the same for all.
        folder: Where cells are remembered, by a hash of everything that determines them.
        on_done: Called with the number of finished cells and of all.
    """
    wanted = list(dict.fromkeys(needs))
    paths = {need: folder / f"{_key(need, rates)}.npz" for need in wanted}
    cells: dict[Need, Cell] = {}
    for need in wanted:
        found = _read(paths[need])
        if found is not None:
            cells[need] = found
    on_done(len(cells), len(wanted))
    groups: dict[tuple[World, int], list[str]] = {}
    for need in wanted:
        if need not in cells:
            groups.setdefault((need.world, need.seed), []).append(need.method)
    for need, cell in _run_groups(groups, rates):
        _write(paths[need], cell)
        cells[need] = cell
        on_done(len(cells), len(wanted))
    return cells


def _run_groups(
    groups: Mapping[tuple[World, int], list[str]], rates: Sequence[float]
) -> Iterator[tuple[Need, Cell]]:
    # The longest first, so that no core is left waiting for one at the end.
    order = sorted(groups, key=lambda group: -_work(group[0]) * len(groups[group]))
    workers = joblib.Parallel(n_jobs=os.cpu_count(), return_as="generator_unordered")
    for finished in workers(
        joblib.delayed(_run_group)(world, seed, groups[world, seed], tuple(rates))
        for world, seed in order
    ):
        yield from finished


def _work(world: World) -> float:
    receivers = world.max_receivers or 20
    return (world.rounds or 1000) * world.num_nodes * (receivers / 2 + 5)


def _run_group(
    world: World, seed: int, methods: Sequence[str], rates: tuple[float, ...]
) -> list[tuple[Need, Cell]]:
    numba.set_num_threads(1)
    stream, graph = world.stream(seed), world.graph(seed)
    model = LogisticRegression()
    shown = np.unique(np.linspace(0, stream.num_rounds - 1, _POINTS).astype(int))
    cells = []
    for method in methods:
        losses, last = (np.full(len(rates), math.inf) for _ in range(2))
        curves = np.full((len(rates), len(shown)), math.inf)
        for i, rate in enumerate(rates):
            try:
                run = simulate(make(method, rate), model, stream, graph, progress=False)
            except DivergenceError:
                continue
            losses[i] = run.average_loss
            curves[i] = run.loss_curve[shown]
            last[i] = run.disagreement[-1]
        share = stream.adversarial_share
        cell = Cell(np.array(rates), losses, shown + 1, curves, last, share)
        cells.append((Need(world, method, seed), cell))
    return cells


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
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:24]


def _write(path: Path, cell: Cell) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as draft:
        np.savez(draft, allow_pickle=False, **vars(cell))
    Path(draft.name).replace(path)


def _read(path: Path) -> Cell | None:
    """A remembered cell; None if there is none or it is damaged, which is then computed again."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            values = {name: stored[name] for name in stored.files}
        return Cell(**values | {"adversarial_share": float(values["adversarial_share"])})
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile):
        return None
