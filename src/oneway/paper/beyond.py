"""Beyond the paper: methods that come near a server's loss without one, measured together.

Not in the paper. Every sample a step and all in lockstep, as in the paper; then as peers learn, in
batches with noise; then asynchronously; then where nodes differ. Every method is at the best
learning rate of one grid for that very setting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from oneway.datasets import info
from oneway.paper.bias import RATES as BIAS_RATES
from oneway.paper.bias import ROUNDS, Bias, biases
from oneway.paper.figures import Scale
from oneway.paper.methods import make
from oneway.paper.privacy import NO_NOISE, name_of
from oneway.paper.run_grid import Cell, Need, run_cells
from oneway.paper.world import World, trust_network
from oneway.records import Vector, checksum
from oneway.simulator.executors import Executor, Job, Local
from oneway.simulator.result_folder import ResultFolder, key_of
from oneway.topology import TrustGraph

NAME = "beyond"
SHOWS = "Relay, Tracking and Pull beside OPS, real trust networks, delays; not in the paper"
NEEDS = "susy, occupancy, advogato, epinions"
RATES = (0.003, 0.01, 0.03, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""The grid of learning rates, the same for all methods."""
SERVER, PUBLISHED_OPS, ALONE = "col-published", "ops-published", "local-published"
OPS_BY_RULE = (PUBLISHED_OPS, "ops-capped", "ops-mass", "ops-curvature")
"""OPS with every step rule there is."""
TWICE = "ops-mass-twice"
"""Costs as much as a method that sends two vectors a push."""
NEW = ("pull-plain", "tracking-plain", "relay-plain", "relay-mass")
LOCKSTEP = (
    SERVER,
    *OPS_BY_RULE,
    TWICE,
    "ops-mass-adagrad",
    ALONE,
    "dol-symm-published",
    "dol-asymm-published",
    *NEW,
    "relay-adagrad",
)
PRIVATE = (SERVER, *OPS_BY_RULE, TWICE, ALONE, *NEW, "relay-curvature", "relay-adagrad")
ASYNCHRONOUS = (SERVER, *OPS_BY_RULE, TWICE, ALONE, *NEW, "relay-curvature")
CONTESTED = ("ops", "ops-capped", "ops-mass", "ops-curvature", "pull", "relay", "tracking")
"""What is measured where nodes differ."""
EPSILONS = (NO_NOISE, 8.0, 1.0)
NETWORKS = {"advogato": ("Advogato", 4), "epinions": ("Epinions", 2)}
"""Titles, and how many seeds at most: ten times the nodes take ten times as long."""
HELD = {
    "wiki-vote": ("wiki-Vote", 3),
    "bitcoin-alpha": ("Bitcoin Alpha", 3),
    "bitcoin-otc": ("Bitcoin OTC", 3),
}
"""Networks that were not looked at while methods were chosen; measured if their files are there."""
FEW = 3
"""Seeds at most with batches, without lockstep and where nodes differ."""
SHORT = 500
"""Samples a node on SUSY at most where nothing is in lockstep."""


@dataclass(frozen=True)
class Setting:
    """A column of a table: one world, with or without batches and noise.

    Attributes:
        title: What it is called.
        world: Data, dealing and graph.
        methods: The rows.
        most_seeds: Use at most so many.
        epsilon: As in `Need`.
    """

    title: str
    world: World
    methods: tuple[str, ...]
    most_seeds: int
    epsilon: float | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """What a setting says, each method at its best learning rate there.

    Attributes:
        setting: Where it was measured.
        rates: The grid.
        cells: By method, one cell per seed.
    """

    setting: Setting
    rates: tuple[float, ...]
    cells: Mapping[str, Sequence[Cell]]

    @property
    def title(self) -> str:
        """Of the setting."""
        return self.setting.title

    @property
    def num_seeds(self) -> int:
        """How many seeds there are."""
        return len(next(iter(self.cells.values())))

    def best(self, method: str) -> int:
        """The place of the rate with the smallest mean loss over seeds."""
        return int(np.argmin(np.mean([cell.losses for cell in self.cells[method]], axis=0)))

    def at_edge(self, method: str) -> bool:
        """Whether the best rate is the smallest or largest: a better one may lie beyond."""
        return self.best(method) in (0, len(self.rates) - 1)

    def losses(self, method: str) -> Vector:
        """Average loss per seed, at the best rate."""
        place = self.best(method)
        return np.array([cell.losses[place] for cell in self.cells[method]])

    def closed(self, method: str) -> Vector:
        """Of the gap between published OPS and the server, the share that is closed, per seed."""
        published = self.losses(PUBLISHED_OPS)
        with np.errstate(divide="ignore", invalid="ignore"):  # there may be no gap
            share: Vector = (published - self.losses(method)) / (published - self.losses(SERVER))
        return share


@dataclass(frozen=True, eq=False)
class Results:
    """All that was measured.

    Attributes:
        lockstep: Every sample a step, everybody in every round.
        private: Batches as peers have them, with and without noise.
        asynchronous: Nodes act at random, and pushes take time.
        differing: By network and method, one bias per seed.
        rounds: Over which it was measured.
        absent: Titles of held networks whose files are not there.
    """

    lockstep: Sequence[Measured]
    private: Sequence[Measured]
    asynchronous: Sequence[Measured]
    differing: Mapping[str, Mapping[str, Sequence[Bias]]]
    rounds: int
    absent: Sequence[str]

    @property
    def all(self) -> list[Measured]:
        """Every setting in which losses were measured."""
        return [*self.lockstep, *self.private, *self.asynchronous]


def held_networks() -> dict[str, tuple[str, int]]:
    """The held networks whose files are there."""
    return {name: about for name, about in HELD.items() if info(name).present}


def settings(scale: Scale) -> dict[str, list[Setting]]:
    """The settings by the part they belong to."""
    room = World("occupancy", 20, max_receivers=10, rounds=scale.room_rounds)
    susy = World("susy", 128, max_receivers=32, rounds=scale.susy_rounds)
    short = World("susy", 128, max_receivers=32, rounds=min(SHORT, scale.susy_rounds))
    networks = {
        about: _on_network(name, scale) for name, about in (NETWORKS | held_networks()).items()
    }
    advogato = networks[NETWORKS["advogato"]]
    random = {("Room Occupancy", 10): room, ("SUSY, 128 nodes", 5): susy}
    few = {"Room Occupancy": room, "SUSY, 128 nodes": susy, "Advogato": advogato}
    late = {"Room Occupancy": room, "SUSY, 128 nodes": short, "Advogato": advogato}
    return {
        "lockstep": [
            Setting(title, world, LOCKSTEP, most)
            for (title, most), world in (random | networks).items()
        ],
        "private": [
            Setting(f"{title}, epsilon {name_of(epsilon)}", world, PRIVATE, FEW, epsilon)
            for title, world in few.items()
            for epsilon in EPSILONS
        ],
        "asynchronous": [
            Setting(
                f"{title}, {said}", replace(world, asynchronous=True), ASYNCHRONOUS, FEW, epsilon
            )
            for epsilon, said in ((None, "every sample a step"), (8.0, "batches, epsilon 8"))
            for title, world in late.items()
        ],
    }


def _on_network(name: str, scale: Scale) -> World:
    """SUSY rows over the largest strong component of a trust network."""
    nodes = trust_network(name).num_nodes
    return World("susy", nodes, rounds=scale.trust_rounds, network=name)


def measure(
    scale: Scale,
    rates: tuple[float, ...],
    num_seeds: int,
    folder: Path,
    on_done: Callable[[int, int], None],
    executor: Executor | None = None,
) -> Results:
    """Run every method at every rate and seed; cells of the folder are not repeated."""
    parts = settings(scale)
    needs = {
        (setting, method): [
            Need(setting.world, method, seed, setting.epsilon)
            for seed in range(min(num_seeds, setting.most_seeds))
        ]
        for part in parts.values()
        for setting in part
        for method in setting.methods
    }
    wanted = (need for some in needs.values() for need in some)
    cells = run_cells(wanted, rates, folder, on_done, executor)

    def measured(setting: Setting) -> Measured:
        found = {
            method: [cells[need] for need in needs[setting, method]] for method in setting.methods
        }
        return Measured(setting, rates, found)

    held = held_networks()
    lockstep, private, asynchronous = (
        [measured(setting) for setting in part] for part in parts.values()
    )
    rounds = min(ROUNDS, 20 * scale.trust_rounds)
    memory: ResultFolder[dict[str, Bias]] = ResultFolder(folder, dict[str, Bias])
    differing = _differing(rounds, min(num_seeds, FEW), held, memory, executor or Local())
    absent = [title for name, (title, _) in HELD.items() if name not in held]
    return Results(lockstep, private, asynchronous, differing, rounds, absent)


def _differing(
    rounds: int,
    num_seeds: int,
    held: Mapping[str, tuple[str, int]],
    memory: ResultFolder[dict[str, Bias]],
    executor: Executor,
) -> dict[str, dict[str, list[Bias]]]:
    """The bias of methods on the paper's random graph, on Advogato and on held networks."""
    networks = {
        "random, 128 nodes": None,
        "Advogato": "advogato",
        **{title: name for name, (title, _) in held.items()},
    }
    graphs = {
        (title, seed): TrustGraph.random(128, 32, seed) if name is None else trust_network(name)
        for title, name in networks.items()
        for seed in range(num_seeds)
    }
    keys = {place: _bias_key(graph, place[1], rounds) for place, graph in graphs.items()}
    found = dict(
        memory.results(keys, lambda it: Job(_biases_of, (it, graphs[it], rounds)), executor)
    )
    return {
        title: {
            method: [found[title, seed][method] for seed in range(num_seeds)]
            for method in CONTESTED
        }
        for title in networks
    }


def _biases_of(
    place: tuple[str, int], graph: TrustGraph, rounds: int
) -> tuple[tuple[str, int], dict[str, Bias]]:
    return place, biases(graph, place[1], rounds, BIAS_RATES, CONTESTED)


def _bias_key(graph: TrustGraph, seed: int, rounds: int) -> str:
    """A hash of all that determines the biases on a graph."""
    return key_of(
        {
            "graph": checksum(graph.indptr, graph.receivers),
            "seed": seed,
            "rounds": rounds,
            "rates": BIAS_RATES,
            "methods": [make(method, 1.0).describe() for method in CONTESTED],
        }
    )
