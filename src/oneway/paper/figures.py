"""The paper's figures as declarations: what every panel shows, and in which worlds it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from oneway.paper.world import World, data_table, trust_network

TITLES = {"susy": "SUSY", "occupancy": "Room Occupancy"}
SHORT = {"susy": "susy", "occupancy": "room"}
STOCHASTIC = (1.0, 0.5)
"""The stochastic parts the paper runs."""
SETTINGS = tuple((data, stochastic) for data in TITLES for stochastic in STOCHASTIC)
"""Data sets and stochastic parts, in the order of the paper's panels."""
NODES = {"susy": 128, "occupancy": 20}
BOUNDS = {"susy": 32, "occupancy": 10}
"""The paper's main setting for a data set: nodes, and the bound on receivers."""
SIZES = {"susy": (128, 256, 512, 1024), "occupancy": (6, 10, 15, 20)}
SIZE_BOUNDS = {"susy": 32, "occupancy": 2}
DENSITIES = {"susy": (0.0625, 0.125, 0.25, 0.5, 0.9), "occupancy": (0.1, 0.25, 0.5, 0.75, 0.95)}
DENSITY_NODES = {"susy": 512, "occupancy": 20}
COMPARED = ("ops", "dol-symm", "dol-asymm", "col")
TRUST_COMPARED = ("col", "ops-mass", "ops-capped", "dol-symm", "local", "ops", "dol-asymm")
TRUST_NETWORKS: dict[str, int | None] = {"advogato": None, "epinions": 3}
"""The networks, and how many seeds at most: ten times the nodes take ten times as long."""


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
        most_seeds: Use at most this many seeds, where a run is long; None for all.
    """

    name: str
    title: str
    caption: str
    lines: tuple[Line, ...]
    most_seeds: int | None = None


@dataclass(frozen=True)
class Figure:
    """One of the paper's figures, or one beside them.

    Attributes:
        name: As on the command line.
        title: Its heading.
        shows: What it shows, in one line.
        needs: The data sets it needs.
        text: What there is to know before looking at it, in paragraphs.
        lines: The curves of a panel.
        caption: Of every panel; may name attributes of its first world, or of a trust network.
        settings: The first arguments of `lines` for every panel.
    """

    name: str
    title: str
    shows: str
    needs: str
    text: tuple[str, ...]
    lines: Callable[[str, float, Scale], list[Line]]
    caption: str = "{world.num_nodes} nodes, at most {world.max_receivers} receivers each."
    settings: tuple[tuple[str, float], ...] = SETTINGS

    def panels(self, scale: Scale) -> list[Panel]:
        """The panels at a scale."""
        panels = []
        for setting in self.settings:
            lines = tuple(self.lines(*setting, scale))
            world = lines[0].world
            graph = trust_network(world.network) if world.network else None
            short = world.network or f"{SHORT[world.data]}-{100 * world.stochastic:.0f}"
            panels.append(
                Panel(
                    f"{self.name}-{short}",
                    f"{world.network.capitalize()}, SUSY, all stochastic"
                    if world.network
                    else setting_title(*setting),
                    self.caption.format(world=world, graph=graph),
                    lines,
                    TRUST_NETWORKS[world.network] if world.network else None,
                )
            )
        return panels


def setting_title(data: str, stochastic: float) -> str:
    """How a data set with this stochastic part is called."""
    return f"{TITLES[data]}, {stochastic:.0%} stochastic"


def reference_world(data: str, stochastic: float, scale: Scale) -> World:
    """The paper's main setting for a data set; learning rates are tuned there."""
    return World(data, NODES[data], stochastic, BOUNDS[data], scale.rounds(data))


def size_worlds(data: str, stochastic: float, scale: Scale) -> list[World]:
    """Worlds by size: the rounds are the same, so a larger network sees more samples."""
    rounds = scale.rounds(data) or len(data_table(data)) // NODES[data]
    return [World(data, n, stochastic, SIZE_BOUNDS[data], rounds) for n in SIZES[data]]


def same_samples(world: World) -> World:
    """The same world with rounds cut or added: all sizes see as many samples, but for a round."""
    assert world.rounds is not None
    return replace(world, rounds=max(1, world.rounds * NODES[world.data] // world.num_nodes))


def density_worlds(data: str, stochastic: float, scale: Scale) -> dict[float, World]:
    """Worlds by density: the bound on receivers as a fraction of the nodes."""
    nodes, rounds = DENSITY_NODES[data], scale.rounds(data)
    return {
        density: World(data, nodes, stochastic, round(density * nodes), rounds)
        for density in DENSITIES[data]
    }


def _by_method(*methods: str) -> Callable[[str, float, Scale], list[Line]]:
    """Every method in the paper's main world of a data set."""

    def lines(data: str, stochastic: float, scale: Scale) -> list[Line]:
        world = reference_world(data, stochastic, scale)
        return [Line(method, method, world) for method in methods]

    return lines


def _by_size(data: str, stochastic: float, scale: Scale) -> list[Line]:
    worlds = size_worlds(data, stochastic, scale)
    return [Line(f"n = {world.num_nodes}", "ops", world) for world in worlds]


def _by_density(data: str, stochastic: float, scale: Scale) -> list[Line]:
    worlds = density_worlds(data, stochastic, scale)
    return [Line(f"density {density:g}", "ops", world) for density, world in worlds.items()]


def _on_network(network: str, stochastic: float, scale: Scale) -> list[Line]:
    """Every method on SUSY rows over a trust network's largest strong component."""
    nodes = trust_network(network).num_nodes
    world = World("susy", nodes, stochastic, rounds=scale.trust_rounds, network=network)
    return [Line(method, method, world) for method in TRUST_COMPARED]


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
            _by_method(*COMPARED),
        ),
        Figure(
            "size",
            "Network size",
            "OPS in networks of different sizes; 4 panels",
            "susy, occupancy",
            (
                "OPS in networks of different sizes, all with the same bound on receivers. More "
                "nodes average more gradients in every round.",
            ),
            _by_size,
            "OPS, at most {world.max_receivers} receivers each; every network runs "
            "{world.rounds:,} rounds, so a larger one sees more samples.",
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
            _by_density,
            "OPS, {world.num_nodes} nodes; density is the bound on receivers over the nodes.",
        ),
        Figure(
            "local",
            "OPS and local online gradient descent",
            "OPS against everybody learning alone; 2 panels",
            "susy",
            ("What is gained by sending models at all: OPS against everybody learning alone.",),
            _by_method("ops", "local"),
            settings=tuple(setting for setting in SETTINGS if setting[0] == "susy"),
        ),
        Figure(
            "trust",
            "Real trust networks (not in the paper)",
            "two real trust networks, not in the paper; 2 panels",
            "susy, advogato, epinions",
            (
                "Who trusts whom on two real sites. Unlike the paper's random graphs these are "
                "skewed: a few nodes receive much, many receive almost nothing. A node's mass "
                "settles at its share of what flows through the network, and published OPS moves a "
                "node's model by learning rate / mass. Where the mass is 7e-5 that is fourteen "
                "thousand times the step that was meant, so the learning rate must be tiny for "
                "everybody, and nobody learns.",
                "Two remedies need only what a node knows about itself. The capped step uses "
                "learning rate x min(1, mass): no model moves by more than the learning rate. The "
                "mass step uses learning rate x mass: every model moves by exactly the learning "
                "rate. Both let the whole network learn at a useful rate; the price is a bias, in "
                "the last table.",
            ),
            _on_network,
            "{graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {graph.reciprocity:.0%} of them "
            "mutual; equal shares.",
            tuple((network, 1.0) for network in TRUST_NETWORKS),
        ),
    )
}
"""What can be reproduced, by name."""
