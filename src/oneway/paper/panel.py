"""What a panel of a figure is: a declaration of what varies."""

from __future__ import annotations

from dataclasses import dataclass

from oneway.paper.world import World

SUSY_NODES, SUSY_BOUND = 128, 32
ROOM_NODES, ROOM_BOUND = 20, 10
"""The paper's settings for its main comparison."""


@dataclass(frozen=True)
class Line:
    """One curve of a panel."""

    label: str
    method: str
    world: World


@dataclass(frozen=True)
class Panel:
    """One panel of one of the paper's figures.

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

    @property
    def data(self) -> str:
        """The data set of the panel."""
        return self.lines[0].world.data


@dataclass(frozen=True)
class Figure:
    """One of the paper's figures: some panels and what it is to show."""

    name: str
    title: str
    panels: tuple[Panel, ...]


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


def reference_world(data: str, stochastic: float, scale: Scale) -> World:
    """The paper's main setting for a data set; learning rates are tuned there."""
    if data == "susy":
        return World("susy", SUSY_NODES, stochastic, SUSY_BOUND, scale.susy_rounds)
    return World("occupancy", ROOM_NODES, stochastic, ROOM_BOUND, scale.room_rounds)


def names(data: str, stochastic: float) -> tuple[str, str]:
    """How a data set with this stochastic part is called: in a file name, in a title."""
    short = "susy" if data == "susy" else "room"
    title = "SUSY" if data == "susy" else "Room Occupancy"
    return f"{short}-{stochastic:.0%}".rstrip("%"), f"{title}, {stochastic:.0%} stochastic"


SETTINGS = tuple((data, stochastic) for data in ("susy", "occupancy") for stochastic in (1.0, 0.5))
"""Data sets and stochastic parts, in the order of the paper's panels."""
