"""Colours that people with any kind of colour vision can tell apart, on light and on dark pages.

Lines: the palette of Okabe and Ito (2008). Losses: cividis, by Nuñez, Anderton and Renslow (2018),
whose lightness grows evenly. Methods: as the registry of methods says.
"""

from __future__ import annotations

from typing import TypeAlias

from oneway.methods.base import label_of

Colour: TypeAlias = tuple[str, str]
"""On a light and on a dark page, each as #rrggbb."""

BLUE: Colour = ("#0072b2", "#4fa8e0")
ORANGE: Colour = ("#d55e00", "#f08a45")
GREEN: Colour = ("#009e73", "#2cc196")
PINK: Colour = ("#cc79a7", "#cc79a7")
SKY: Colour = ("#56b4e9", "#56b4e9")
AMBER: Colour = ("#e69f00", "#e69f00")
INK: Colour = ("#1f2328", "#e6e9ec")
"""That of text, as in page.css."""

SERIES = (BLUE, ORANGE, GREEN, PINK, SKY, AMBER)
"""For lines that are compared; where there are more, dashes tell them apart."""

_DARK = dict([*SERIES, ("#7f7f7f", "#a6adb5")])
"""Of a colour on a light page, that on a dark one."""

UNKNOWN_LOSS = "#c4cad1"

_CIVIDIS = ("#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838")


def method_style(name: str) -> tuple[str, Colour]:
    """What a method is called, and its colour; as in reports."""
    label = label_of(name)
    return label.title, (label.color, _DARK.get(label.color, label.color))


def loss_colour(loss: float, best: float, worst: float) -> str:
    """The colour of a loss: yellow is the best, dark blue the worst.

    >>> loss_colour(0.2, 0.2, 0.7), loss_colour(0.7, 0.2, 0.7), loss_colour(5.0, 0.2, 0.7)
    ('#fee838', '#00224e', '#00224e')
    """
    share = 1.0 if worst <= best else min(1.0, max(0.0, (worst - loss) / (worst - best)))
    place = share * (len(_CIVIDIS) - 1)
    low = min(int(place), len(_CIVIDIS) - 2)
    return _between(_CIVIDIS[low], _CIVIDIS[low + 1], place - low)


def loss_gradient() -> str:
    """The whole scale as a CSS background, from the worst to the best."""
    return f"linear-gradient(to right, {', '.join(_CIVIDIS)})"


def _between(one: str, other: str, share: float) -> str:
    parts = [
        round((1 - share) * int(one[at : at + 2], 16) + share * int(other[at : at + 2], 16))
        for at in (1, 3, 5)
    ]
    return "#" + "".join(f"{part:02x}" for part in parts)
