"""OPS against gossip over mutual edges, gossip over one-way edges without mass, and COL."""

from __future__ import annotations

from oneway.paper.panel import SETTINGS, Figure, Line, Panel, Scale, names, reference_world

METHODS = ("ops", "dol-symm", "dol-asymm", "col")


def figure(scale: Scale) -> Figure:
    """Four panels: what varies is the method."""
    panels = []
    for data, stochastic in SETTINGS:
        name, title = names(data, stochastic)
        world = reference_world(data, stochastic, scale)
        panels.append(
            Panel(
                name=f"comparison-{name}",
                title=title,
                caption=f"{world.num_nodes} nodes, at most {world.max_receivers} receivers each.",
                lines=tuple(Line(method, method, world) for method in METHODS),
            )
        )
    return Figure("comparison", "OPS, DOL-Symm, DOL-Asymm and COL", tuple(panels))
