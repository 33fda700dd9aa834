"""Does a larger network learn better? The paper does not say what is held fixed, so both are shown.

The panels hold the rounds fixed, so that a larger network sees more samples; `same_samples` are the
same worlds with the samples of the whole network held fixed.
"""

from __future__ import annotations

from dataclasses import replace

from oneway.paper.panel import (
    ROOM_NODES,
    SETTINGS,
    SUSY_BOUND,
    SUSY_NODES,
    Figure,
    Line,
    Panel,
    Scale,
    names,
)
from oneway.paper.world import World, data_table

SUSY_SIZES = (128, 256, 512, 1024)
ROOM_SIZES = (6, 10, 15, 20)
ROOM_SIZE_BOUND = 2


def worlds(data: str, stochastic: float, scale: Scale) -> list[World]:
    """The worlds of one panel, by size: the rounds are the same."""
    if data == "susy":
        return [World("susy", n, stochastic, SUSY_BOUND, scale.susy_rounds) for n in SUSY_SIZES]
    rounds = scale.room_rounds or len(data_table("occupancy")) // ROOM_NODES
    return [World("occupancy", n, stochastic, ROOM_SIZE_BOUND, rounds) for n in ROOM_SIZES]


def same_samples(world: World) -> World:
    """The same world with rounds cut or added: all sizes see as many samples, but for a round."""
    assert world.rounds is not None
    base = SUSY_NODES if world.data == "susy" else ROOM_NODES
    return replace(world, rounds=max(1, world.rounds * base // world.num_nodes))


def figure(scale: Scale) -> Figure:
    """Four panels: what varies is the number of nodes."""
    panels = []
    for data, stochastic in SETTINGS:
        name, title = names(data, stochastic)
        shown = worlds(data, stochastic, scale)
        panels.append(
            Panel(
                name=f"size-{name}",
                title=title,
                caption=f"OPS, at most {shown[0].max_receivers} receivers each; every network runs "
                f"{shown[0].rounds:,} rounds, so a larger one sees more samples.",
                lines=tuple(Line(f"n = {world.num_nodes}", "ops", world) for world in shown),
            )
        )
    return Figure("size", "Network size", tuple(panels))
