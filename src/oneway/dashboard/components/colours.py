"""Colours that people with any kind of colour vision can tell apart.

Lines: the palette of Okabe and Ito (2008). Losses: cividis, by Nuñez, Anderton and Renslow (2018),
whose lightness grows evenly.
"""

from __future__ import annotations

BLUE = "#0072b2"
ORANGE = "#d55e00"
GREEN = "#009e73"
PINK = "#cc79a7"
SKY = "#56b4e9"
AMBER = "#e69f00"

SERIES = (BLUE, ORANGE, GREEN, PINK, SKY, AMBER)
"""For lines that are compared; where there are more, dashes tell them apart."""

UNKNOWN_LOSS = "#c4cad1"

_CIVIDIS = ("#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838")


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
