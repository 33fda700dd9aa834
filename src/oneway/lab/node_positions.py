"""Graph layout: peers are drawn close to those they talk to, apart from others, and never move."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import networkx
import numpy as np

from oneway.records import Matrix
from oneway.topology import TrustGraph

Position: TypeAlias = tuple[float, float]
"""x and y, each from 0 to 1."""

LOW, HIGH = 0.06, 0.94
"""No peer is drawn nearer to the border: there is a name to be written, too."""

_FEW = 48
"""Of so many peers the slow layout is made, which is the better one."""
_SEED = 0
_PUSHES = 300
_CANDIDATES = 600


def node_positions(graph: TrustGraph, names: Sequence[str]) -> dict[str, Position]:
    """Where to draw the nodes of a graph, by name; the same for the same graph."""
    network = graph.to_networkx().to_undirected()
    nodes = list(network.nodes)
    start = networkx.spring_layout(network, seed=_SEED)
    if 3 < len(nodes) <= _FEW:
        start = networkx.kamada_kawai_layout(network, pos=start, weight=None)
    points = np.array([start[node] for node in nodes])
    apart = _apart(_into_box(points), least_distance(len(nodes)))
    return dict(zip(names, _as_positions(apart), strict=True))


def position_for_newcomer(known: Mapping[str, Position], friends: Collection[str]) -> Position:
    """A position near those a newcomer talks to, and on top of no other; all others stay."""
    others = np.array(list(known.values())).reshape(-1, 2)
    rng = np.random.default_rng([_SEED, len(known)])
    candidates = rng.uniform(LOW, HIGH, size=(_CANDIDATES, 2))
    if not len(others):
        return (0.5, 0.5)
    room = np.linalg.norm(candidates[:, None] - others, axis=2).min(axis=1)
    near = [known[friend] for friend in friends if friend in known] or list(known.values())
    away = np.linalg.norm(candidates - np.mean(near, axis=0), axis=1)
    # Room first, as far as there is any to be had; then nearness.
    enough = min(0.8 * least_distance(len(known) + 1), 0.9 * float(room.max()))
    best = int(np.argmin(np.where(room >= enough, away, np.inf)))
    return _as_positions(candidates[[best]])[0]


def least_distance(num_peers: int) -> float:
    """How far apart any two of so many peers are drawn."""
    return 0.62 / float(np.sqrt(max(num_peers, 2)))


def _into_box(points: Matrix) -> Matrix:
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.where(high > low, high - low, 1.0)
    centred = np.where(high > low, (points - low) / size, 0.5)
    scaled: Matrix = LOW + (HIGH - LOW) * centred
    return scaled


def _apart(points: Matrix, least: float) -> Matrix:
    """Push points apart that are too close, and back into the box, until all have room."""
    rng = np.random.default_rng(_SEED)
    moved = points + rng.uniform(-1e-3, 1e-3, points.shape)  # none may lie on another
    for _ in range(_PUSHES):
        offsets = moved[:, None] - moved
        distances = np.linalg.norm(offsets, axis=2)
        np.fill_diagonal(distances, np.inf)
        if distances.min() >= least and (moved >= LOW).all() and (moved <= HIGH).all():
            break
        # A little more than needed, so that it ends.
        lacking = np.maximum(1.05 * least - distances, 0.0) / distances
        moved = moved + 0.5 * (lacking[:, :, None] * offsets).sum(axis=1)
        moved = moved.clip(LOW, HIGH)
    return moved


def _as_positions(points: Matrix) -> list[Position]:
    return [(round(float(x), 4), round(float(y), 4)) for x, y in points]
