"""The lines of a lab's charts."""

from __future__ import annotations

from oneway.dashboard.components.chart import Dash, Line
from oneway.dashboard.components.colours import AMBER, BLUE
from oneway.dashboard.lab.watcher import LabWatcher
from oneway.report.labels import LABELS

_DASHES: dict[str, Dash] = {
    "ops": "solid",
    "dol-symm": "dashed",
    "dol-asymm": "dashed",
    "col": "dotted",
    "local": "dotted",
}
_EACH_PEER = "each peer"


def loss_lines(watcher: LabWatcher, picked: str | None) -> list[Line]:
    """The curves of all peers, and behind them those of the simulator.

    Args:
        watcher: Who has them.
        picked: The peer whose curve stands out.
    """
    behind = [
        Line(
            LABELS[curve.algorithm].title,
            list(zip(curve.samples, curve.average_loss, strict=True)),
            LABELS[curve.algorithm].color,
            _DASHES[curve.algorithm],
            width=3,
            opacity=0.75,
            behind=True,
        )
        for curve in watcher.references or []
    ]
    # One entry of the legend stands for them all.
    legend = [Line(_EACH_PEER, [], "ink")] if watcher.losses else []
    faint = 0.7 if len(watcher.losses) <= 40 else 0.3
    peers = [
        Line(name, curve.points, "ink", width=1.2, opacity=faint, in_legend=False)
        for name, curve in watcher.losses.items()
        if name != picked
    ]
    mine = watcher.losses.get(picked) if picked else None
    shown = [] if mine is None else [Line(str(picked), mine.points, AMBER, width=4)]
    return [*behind, *legend, *peers, *shown]


def disagreement_line(watcher: LabWatcher) -> Line:
    """How far the peers' models are apart."""
    return Line("disagreement", watcher.disagreement.points, BLUE, width=2)


def worth_of_one_way(watcher: LabWatcher) -> str:
    """What one-way trust is good for, on these samples; nothing before that is known."""
    ends = {curve.algorithm: curve for curve in watcher.references or []}
    if not {"ops", "dol-symm"} <= ends.keys():
        return ""
    ours, mutual = ends["ops"], ends["dol-symm"]
    return (
        f"{ours.one_way} of the {ours.arrows} arrows at the start go one way. Mutual gossip can "
        f"use only the others, and ends at a loss of {mutual.average_loss[-1]:.3f} per sample; "
        f"Online Push-Sum uses all: {ours.average_loss[-1]:.3f}."
    )
