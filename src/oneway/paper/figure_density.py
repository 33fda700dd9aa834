"""Does a denser network learn better?"""

from __future__ import annotations

from oneway.paper.panel import ROOM_NODES, SETTINGS, Figure, Line, Panel, Scale, names
from oneway.paper.world import World

SUSY_DENSITY_NODES = 512
SUSY_DENSITIES = (0.0625, 0.125, 0.25, 0.5, 0.9)
ROOM_DENSITIES = (0.1, 0.25, 0.5, 0.75, 0.95)


def worlds(data: str, stochastic: float, scale: Scale) -> dict[float, World]:
    """The worlds of one panel, by density: the bound on receivers as a fraction of the nodes."""
    if data == "susy":
        nodes, rounds, densities = SUSY_DENSITY_NODES, scale.susy_rounds, SUSY_DENSITIES
        return {d: World("susy", nodes, stochastic, round(d * nodes), rounds) for d in densities}
    nodes = ROOM_NODES
    return {
        d: World("occupancy", nodes, stochastic, round(d * nodes), scale.room_rounds)
        for d in ROOM_DENSITIES
    }


def figure(scale: Scale) -> Figure:
    """Four panels: what varies is the bound on receivers."""
    panels = []
    for data, stochastic in SETTINGS:
        name, title = names(data, stochastic)
        shown = worlds(data, stochastic, scale)
        nodes = next(iter(shown.values())).num_nodes
        panels.append(
            Panel(
                name=f"density-{name}",
                title=title,
                caption=f"OPS, {nodes} nodes; density is the bound on receivers over the nodes.",
                lines=tuple(
                    Line(f"density {density:g}", "ops", world) for density, world in shown.items()
                ),
            )
        )
    return Figure("density", "Network density", tuple(panels))
