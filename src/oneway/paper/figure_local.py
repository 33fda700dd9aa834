"""Is communication worth it? OPS against everybody learning alone."""

from __future__ import annotations

from oneway.paper.panel import Figure, Line, Panel, Scale, names, reference_world


def figure(scale: Scale) -> Figure:
    """Two panels: what varies is whether models travel."""
    panels = []
    for stochastic in (1.0, 0.5):
        name, title = names("susy", stochastic)
        world = reference_world("susy", stochastic, scale)
        panels.append(
            Panel(
                name=f"local-{name}",
                title=title,
                caption=f"{world.num_nodes} nodes, at most {world.max_receivers} receivers each.",
                lines=tuple(Line(method, method, world) for method in ("ops", "local")),
            )
        )
    return Figure("local", "OPS and local online gradient descent", tuple(panels))
