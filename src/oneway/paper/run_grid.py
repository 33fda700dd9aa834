"""Cells of a reproduction: many small simulations on all cores, each remembered, to be resumed."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np

from oneway.errors import DivergenceError
from oneway.methods import Method
from oneway.metrics import evenly_spread
from oneway.models import LogisticRegression
from oneway.paper.methods import PUBLISHED, make, make_private
from oneway.paper.world import World, data_table, trust_network
from oneway.records import Ints, Matrix, Vector
from oneway.simulator import simulate
from oneway.simulator.executors import Executor, Job, Local
from oneway.simulator.result_folder import ResultFolder, key_of, whole
from oneway.tables import Table
from oneway.topology import TrustGraph

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
    executor: Executor | None = None,
) -> dict[Need, Cell]:
    """Get every cell: from the folder if it was computed before, otherwise by running it.

    A few cells of the same world and seed are run together, because they share stream and graph;
    such groups run in parallel. What a group has finished is written at once, so an
    interrupted call goes on where it stopped.

    Args:
        needs: What to compute; duplicates are computed once.
        rates: The grid of learning rates, the same for all.
        folder: Where cells are remembered, by a hash of everything that determines them.
        on_done: Called with the number of finished cells and of all.
        executor: Where groups run; in processes of this machine if None.
    """
    keys = {need: _key(need, rates) for need in dict.fromkeys(needs)}
    memory = CellFolder(folder, Cell)
    cells: dict[Need, Cell] = {}
    groups: dict[tuple[World, int], list[Need]] = {}
    for need, key in keys.items():
        found = memory.get(key)
        if found is None:
            groups.setdefault((need.world, need.seed), []).append(need)
        else:
            cells[need] = found
    on_done(len(cells), len(keys))
    for need, cell in _run_groups(groups, rates, executor or Local()):
        memory.put(keys[need], cell)
        cells[need] = cell
        on_done(len(cells), len(keys))
    return cells


class CellFolder(ResultFolder[Cell]):
    """Cells in a folder, whose numbers are arrays."""

    suffix = ".npz"

    def read(self, content: bytes, key: str) -> Cell:
        """The cell in a file."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                values = {name: stored[name] for name in stored.files}
        except zipfile.BadZipFile as error:
            raise ValueError("a damaged cell") from error
        if str(values.pop("key", key)) != key:
            raise ValueError("another cell")
        return Cell(**values | {"adversarial_share": float(values["adversarial_share"])})

    def written(self, result: Cell, key: str) -> bytes:
        """The content of a cell's file."""
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, key=np.array(key), **vars(result))
        return content.getvalue()


def _run_groups(
    groups: Mapping[tuple[World, int], list[Need]], rates: Sequence[float], executor: Executor
) -> Iterator[tuple[Need, Cell]]:
    # The longest first, so that no core is left waiting for one at the end.
    order = sorted(groups, key=lambda group: -_work(group[0]) * len(groups[group]))
    # Data goes with the jobs: not every machine of a cluster has it.
    jobs = (
        Job(_run_group, (world, seed, some, tuple(rates), data_table(world.data), _held(world)))
        for world, seed in order
        for some in _few(groups[world, seed])
    )
    for finished in executor.results(jobs):
        yield from finished


def _held(world: World) -> TrustGraph | None:
    return None if world.network is None else trust_network(world.network)


def _few(needs: Sequence[Need]) -> Iterator[Sequence[Need]]:
    for begin in range(0, len(needs), _TOGETHER):
        yield needs[begin : begin + _TOGETHER]


def _work(world: World) -> float:
    receivers = world.max_receivers or 20
    return (world.rounds or 1000) * world.num_nodes * (receivers / 2 + 5)


def _run_group(
    world: World,
    seed: int,
    needs: Sequence[Need],
    rates: tuple[float, ...],
    table: Table,
    held: TrustGraph | None,
) -> list[tuple[Need, Cell]]:
    numba.set_num_threads(1)
    stream, graph = world.stream(seed, table), held or world.graph(seed)
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
                run = whole(simulate(method, model, stream, graph, progress=False, **options))
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
    return key_of(described)
