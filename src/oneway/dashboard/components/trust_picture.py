"""Trust picture: circles are peers, arrows one-way and mutual trust, dots pushes arriving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from nicegui.element import Element
from nicegui.events import GenericEventArguments

from oneway.records.network import PeerLife

_ARROWS = """<span><svg viewBox="0 0 40 14" aria-hidden="true"><path d="M2 7h28"
 stroke="var(--ow-oneway)" stroke-width="2.5"/><path d="M28 2l10 5-10 5z"
 fill="var(--ow-oneway)"/></svg>one-way trust</span><span><svg viewBox="0 0 40 14"
 aria-hidden="true"><path d="M10 7h20" stroke="var(--ow-mutual)" stroke-width="5"/><path
 d="M28 1l10 6-10 6zM12 1L2 7l10 6z" fill="var(--ow-mutual)"/></svg>mutual trust</span>"""


class Circle(NamedTuple):
    """A peer as it is drawn: x and y from 0 to 1, its area is its mass, its title one line."""

    name: str
    x: float
    y: float
    mass: float
    colour: str
    title: str
    state: PeerLife = "up"


class Arrow(NamedTuple):
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

    Clicking an arrow selects its sender.
    """

    def __init__(self, on_pick: Callable[[str | None], None]) -> None:
        """Make an empty picture; `on_pick` gets the name of a circle, or None for none."""
        super().__init__()

        def picked(event: GenericEventArguments) -> None:
            on_pick(event.args if isinstance(event.args, str) else None)

        self.on("pick", picked)
        self.show([], [])

    def show(
        self, circles: Sequence[Circle], arrows: Sequence[Arrow], picked: str | None = None
    ) -> None:
        """Replace what is shown; circles have unique names, the picked one is highlighted."""
        self._props.update(
            {
                "nodes": [circle._asdict() for circle in circles],
                "edges": [arrow._asdict() for arrow in arrows],
                "label": f"Trust between {len(circles)} peers, {len(arrows)} arrows",
                "picked": picked,
            }
        )
        self.update()


def trust_legend_html(more: str = "") -> str:
    """What the arrows mean, as HTML; `more` is what else is in the picture, as HTML of ours."""
    return f'<div class="ow-legend">{_ARROWS}{more}</div>'
