"""Every peer has a position of its own, near those it talks to, and keeps it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import oneway as ow
from oneway.lab.node_positions import (
    HIGH,
    LOW,
    least_distance,
    node_positions,
    position_for_newcomer,
)


def closest(found: dict[str, tuple[float, float]]) -> float:
    return min(
        float(np.hypot(a[0] - b[0], a[1] - b[1]))
        for a, b in itertools.combinations(found.values(), 2)
    )


GRAPHS = {
    "two": ow.TrustGraph.ring(2),
    "ring of 32": ow.TrustGraph.ring(32),
    "all to all": ow.TrustGraph.complete(32),
    "random": ow.TrustGraph.random(32, max_receivers=3, seed=1),
    "random of 128": ow.TrustGraph.random(128, max_receivers=3, seed=1),
    "star": ow.TrustGraph.from_edges(
        [(0, i) for i in range(1, 32)] + [(i, 0) for i in range(1, 32)]
    ),
}


@pytest.mark.parametrize("case", GRAPHS)
def test_peers_are_drawn_apart_within_the_picture_and_always_there(case):
    graph = GRAPHS[case]
    names = [f"peer{node}" for node in range(graph.num_nodes)]
    found = node_positions(graph, names)
    assert found == node_positions(graph, names)
    assert all(LOW <= part <= HIGH for position in found.values() for part in position)
    assert closest(found) >= 0.9 * least_distance(graph.num_nodes)


def test_newcomers_are_drawn_near_their_friends_and_on_nobody():
    graph = ow.TrustGraph.random(16, max_receivers=3, seed=1)
    found = node_positions(graph, [f"peer{node}" for node in range(16)])
    before = dict(found)
    for number in range(6):
        found[f"new{number}"] = position_for_newcomer(found, ["peer3"])
    assert {name: found[name] for name in before} == before
    assert closest(found) >= 0.5 * least_distance(16)
    near = np.hypot(*(np.array(found["new0"]) - found["peer3"]))
    assert near < 0.35
