"""How the methods are named and drawn, everywhere the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Label:
    """A method as a reader sees it.

    Attributes:
        title: What it is called.
        meaning: What it does, in a few words.
        color: From the Okabe-Ito palette, told apart with any colour vision.
        dashes: Line style, told apart without colour.
    """

    title: str
    meaning: str
    color: str
    dashes: str | tuple[int, tuple[int, ...]]


LABELS = {
    "ops": Label("Online Push-Sum", "one-way edges, corrected by mass", "#0072b2", "solid"),
    "dol-symm": Label(
        "Mutual gossip (DOL-Symm)", "only edges that go both ways", "#d55e00", "dashed"
    ),
    "dol-asymm": Label(
        "Naive gossip (DOL-Asymm)", "one-way edges, no correction", "#cc79a7", "dashdot"
    ),
    "col": Label("Centralised (COL)", "a server everybody trusts", "#009e73", "dotted"),
    "local": Label("Isolated (local)", "everybody learns alone", "#7f7f7f", (0, (5, 1))),
    "ops-capped": Label(
        "Online Push-Sum, capped step", "step shortened below mass 1", "#56b4e9", "dashed"
    ),
    "ops-mass": Label(
        "Online Push-Sum, mass step", "step in proportion to mass", "#e69f00", "solid"
    ),
}
