"""Beyond the paper: real trust networks, whose masses are far from equal.

The paper's graphs are random with nearly equal masses. On Advogato the smallest stationary mass is
7e-5; published OPS moves that node's model by learning rate / mass, thousands of times the step
that was asked for. Every method runs on SUSY rows over the largest strong component.
"""

from __future__ import annotations

from oneway.paper.panel import Figure, Line, Panel, Scale
from oneway.paper.world import World, trust_network

NETWORKS: dict[str, int | None] = {"advogato": None, "epinions": 3}
"""The networks, and how many seeds at most: ten times the nodes take ten times as long."""
METHODS = ("col", "ops-mass", "ops-capped", "dol-symm", "local", "ops", "dol-asymm")


def world(network: str, scale: Scale) -> World:
    """SUSY rows, all stochastic, over a trust network's largest strong component."""
    nodes = trust_network(network).num_nodes
    return World("susy", nodes, rounds=scale.trust_rounds, network=network)


def figure(scale: Scale) -> Figure:
    """Two panels: what varies is the method."""
    panels = []
    for network, most_seeds in NETWORKS.items():
        shown = world(network, scale)
        graph = trust_network(network)
        panels.append(
            Panel(
                name=f"trust-{network}",
                title=f"{network.capitalize()}, SUSY, all stochastic",
                caption=f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges, "
                f"{graph.reciprocity:.0%} of them mutual; equal shares.",
                lines=tuple(Line(method, method, shown) for method in METHODS),
                most_seeds=most_seeds,
            )
        )
    return Figure("trust", "Real trust networks (not in the paper)", tuple(panels))
