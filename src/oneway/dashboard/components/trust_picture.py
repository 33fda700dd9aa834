"""The picture of who sends to whom: one-way and mutual trust, mass, and pushes arriving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nicegui.element import Element
from nicegui.events import GenericEventArguments

from oneway.records.network import PeerLife


@dataclass(frozen=True)
class Circle:
    """A peer as it is drawn.

    Attributes:
        x, y: Where, each from 0 to 1.
        mass: Its area.
        colour: As CSS says it.
        title: What there is to say about it, in one line.
    """

    name: str
    x: float
    y: float
    mass: float
    colour: str
    title: str
    state: PeerLife = "up"


@dataclass(frozen=True)
class Arrow:
    """Trust as it is drawn: the sender is willing to send to the receiver.

    Attributes:
        title: What there is to say about it, in one line.
        arrived: Number of the last push that arrived; when it grows, a dot runs along the arrow.
        waiting: How many pushes have not arrived.
        cut: Whether nothing can pass.
    """

    sender: str
    receiver: str
    title: str
    arrived: int = 0
    waiting: int = 0
    cut: bool = False


class TrustPicture(Element, component="trust_picture.js", default_classes="w-full"):
    """Circles and arrows; a circle is picked with the pointer or the keyboard.

    Who points at an arrow picks its sender.
    """

    def __init__(self, on_pick: Callable[[str | None], None]) -> None:
        """Make an empty picture.

        Args:
            on_pick: Called with the name of a circle, or None for the empty space.
        """
        super().__init__()

        def picked(event: GenericEventArguments) -> None:
            on_pick(event.args if isinstance(event.args, str) else None)

        self.on("pick", picked)
        self.show([], [])

    def show(
        self, circles: Sequence[Circle], arrows: Sequence[Arrow], picked: str | None = None
    ) -> None:
        """Replace what is shown.

        Args:
            circles: With unique names.
            arrows: Between these circles.
            picked: The circle to highlight.
        """
        self._props.update(
            {
                "nodes": [dict(vars(circle)) for circle in circles],
                "edges": [dict(vars(arrow)) for arrow in arrows],
                "label": f"Trust between {len(circles)} peers, {len(arrows)} arrows",
                "picked": picked,
            }
        )
        self.update()
