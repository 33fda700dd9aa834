"""The paper's figures as declarations: what every panel shows, and in which worlds it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from oneway.paper.world import World, data_table

TITLES = {"susy": "SUSY", "occupancy": "Room Occupancy"}
SHORT = {"susy": "susy", "occupancy": "room"}
STOCHASTIC = (1.0, 0.5)
"""The stochastic parts the paper runs."""
LESS_STOCHASTIC = (0.5, 0.0)
"""The parts that are compared with all of it."""
SETTINGS = tuple((data, stochastic) for data in TITLES for stochastic in STOCHASTIC)
"""Data sets and stochastic parts, in the order of the paper's panels."""
NODES = {"susy": 128, "occupancy": 20}
BOUNDS = {"susy": 32, "occupancy": 10}
"""The paper's main setting for a data set: nodes, and the bound on receivers."""
SIZES = {"susy": (128, 256, 512, 1024), "occupancy": (6, 10, 15, 20)}
SIZE_BOUNDS = {"susy": (32,), "occupancy": (2, 1)}
"""Bounds on receivers where the size varies. The paper says 2 neighbours for Room Occupancy, their
number being smaller than the bound: read strictly that is one, a directed cycle."""
SIZE_SETTINGS = tuple(
    (*setting, bound) for setting in SETTINGS for bound in SIZE_BOUNDS[setting[0]]
)
DENSITIES = {"susy": (0.0625, 0.125, 0.25, 0.5, 0.9), "occupancy": (0.1, 0.25, 0.5, 0.75, 0.95)}
DENSITY_NODES = {"susy": 512, "occupancy": 20}
DEALINGS: dict[str, dict[str, Any]] = {
    "": {},
    ", cluster first": {"shuffled": False},
    ", overflow to the next node": {"overflow": "next"},
}
"""Ways to deal clusters that the paper's text allows, as changes of a world."""
COMPARED = ("ops", "dol-symm", "dol-asymm", "col")


@dataclass(frozen=True)
class Scale:
    """How long the reproduction may take.

    Attributes:
        susy_rounds: Rounds on SUSY at every size; the paper's 128 nodes see 39,062.
        room_rounds: Rounds on Room Occupancy where they are fixed; None for all of the data.
        trust_rounds: Rounds on the real trust networks.
    """

    susy_rounds: int = 2000
    room_rounds: int | None = None
    trust_rounds: int = 150

    def rounds(self, data: str) -> int | None:
        """Rounds on a data set."""
        return self.susy_rounds if data == "susy" else self.room_rounds


@dataclass(frozen=True)
class Line:
    """One curve of a panel; its label is a method's short name, or says what else varies."""

    label: str
    method: str
    world: World


@dataclass(frozen=True)
class Panel:
    """One panel of a figure.

    Attributes:
        name: Unique; names the files.
        title: Above the panel.
        caption: Below it; says how it differs from the paper, where it does.
        lines: The curves.
    """

    name: str
    title: str
    caption: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Figure:
    """One of the paper's figures, or one beside them.

    Attributes:
        name: As on the command line.
        title: Its heading.
        shows: What it shows, in one line.
        needs: The data sets it needs.
        text: What there is to know before looking at it, in paragraphs.
        lines: For every panel, what gives its curves at a scale.
        caption: Of every panel; may name attributes of its first world, and how many `receivers` a
            node has there.
    """

    name: str
    title: str
    shows: str
    needs: str
    text: tuple[str, ...]
    lines: tuple[Callable[[Scale], list[Line]], ...]
    caption: str = "{world.num_nodes} nodes, {receivers} each."

    def panels(self, scale: Scale) -> list[Panel]:
        """The panels at a scale."""
        return [self._panel(tuple(lines(scale))) for lines in self.lines]

    def _panel(self, lines: tuple[Line, ...]) -> Panel:
        world = lines[0].world
        is_cycle = world.max_receivers == 1
        return Panel(
            f"{self.name}-{SHORT[world.data]}-{100 * world.stochastic:.0f}{'-cycle' * is_cycle}",
            setting_title(world.data, world.stochastic) + ", cycle" * is_cycle,
            self.caption.format(world=world, receivers=receivers_text(world)),
            lines,
        )


def setting_title(data: str, stochastic: float) -> str:
    """How a data set with this stochastic part is called."""
    return f"{TITLES[data]}, {stochastic:.0%} stochastic"


def receivers_text(world: World) -> str:
    """How many receivers a node of a random graph has."""
    bound = world.max_receivers
    return "one receiver (a directed cycle)" if bound == 1 else f"at most {bound} receivers"


def reference_world(data: str, stochastic: float, scale: Scale) -> World:
    """The paper's main setting for a data set; learning rates are tuned there."""
    return World(data, NODES[data], stochastic, BOUNDS[data], scale.rounds(data))


def size_worlds(data: str, stochastic: float, bound: int, scale: Scale) -> list[World]:
    """Worlds by size: the rounds are the same, so a larger network sees more samples."""
    rounds = scale.rounds(data) or len(data_table(data)) // NODES[data]
    return [World(data, n, stochastic, bound, rounds) for n in SIZES[data]]


def same_samples(world: World) -> World:
    """The same world with rounds cut or added: all sizes see as many samples, but for a round."""
    assert world.rounds is not None
    return replace(world, rounds=max(1, world.rounds * NODES[world.data] // world.num_nodes))


def dealt_worlds(data: str, stochastic: float, scale: Scale) -> dict[str, World]:
    """The main world of a data set by how its clusters are dealt."""
    world = reference_world(data, stochastic, scale)
    return {choice: replace(world, **changes) for choice, changes in DEALINGS.items()}


def density_worlds(data: str, stochastic: float, scale: Scale) -> dict[float, World]:
    """Worlds by density: the bound on receivers as a fraction of the nodes."""
    nodes, rounds = DENSITY_NODES[data], scale.rounds(data)
    return {
        density: World(data, nodes, stochastic, round(density * nodes), rounds)
        for density in DENSITIES[data]
    }


def _by_method(
    data: str, stochastic: float, scale: Scale, methods: Sequence[str] = COMPARED
) -> list[Line]:
    """Methods in the paper's main world of a data set."""
    world = reference_world(data, stochastic, scale)
    return [Line(method, method, world) for method in methods]


def _by_size(data: str, stochastic: float, bound: int, scale: Scale) -> list[Line]:
    worlds = size_worlds(data, stochastic, bound, scale)
    return [Line(f"n = {world.num_nodes}", "ops", world) for world in worlds]


def _by_density(data: str, stochastic: float, scale: Scale) -> list[Line]:
    worlds = density_worlds(data, stochastic, scale)
    return [Line(f"density {density:g}", "ops", world) for density, world in worlds.items()]


FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "comparison",
            "OPS, DOL-Symm, DOL-Asymm and COL",
            "OPS, DOL-Symm, DOL-Asymm and COL; 4 panels",
            "susy, occupancy",
            (
                "Every method learns the same stream over the same one-way graph. OPS uses all "
                "edges and corrects by mass; DOL-Symm throws one-way edges away; DOL-Asymm uses "
                "them without correction; COL is a server that averages everybody.",
                "The learning rate of each method is the best of the grid for its data set, chosen "
                "on the mean over seeds and both stochastic parts. The table also shows every "
                "method at OPS's rate and at its own best rate in that very panel.",
            ),
            tuple(partial(_by_method, *setting) for setting in SETTINGS),
        ),
        Figure(
            "size",
            "Network size",
            "OPS in networks of different sizes; 4 panels, and 2 for another reading",
            "susy, occupancy",
            (
                "OPS in networks of different sizes, all with the same bound on receivers. More "
                "nodes average more gradients in every round.",
                "On Room Occupancy the bound is 2, and the paper draws the number of neighbours "
                "“smaller than a fixed upper bound”. Both readings are shown: at most 2 "
                "receivers, and fewer than 2. The latter is one receiver and one sender for "
                "everybody, a directed cycle: all masses stay 1, and OPS is the classical method.",
            ),
            tuple(partial(_by_size, *setting) for setting in SIZE_SETTINGS),
            "OPS, {receivers} each; every network runs {world.rounds:,} rounds, so a larger one "
            "sees more samples.",
        ),
        Figure(
            "density",
            "Network density",
            "OPS with different bounds on receivers; 4 panels",
            "susy, occupancy",
            (
                "OPS with different bounds on the number of receivers. Every node draws how many "
                "receivers it has, uniformly from 1 to the bound.",
            ),
            tuple(partial(_by_density, *setting) for setting in SETTINGS),
            "OPS, {world.num_nodes} nodes; density is the bound on receivers over the nodes.",
        ),
        Figure(
            "local",
            "OPS and local online gradient descent",
            "OPS against everybody learning alone; 2 panels",
            "susy",
            ("What is gained by sending models at all: OPS against everybody learning alone.",),
            tuple(partial(_by_method, "susy", s, methods=("ops", "local")) for s in STOCHASTIC),
        ),
    )
}
"""What can be reproduced, by name."""
