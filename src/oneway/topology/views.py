"""Views of a trust graph: its statistics, its HTML in a notebook, and its chart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oneway.display.html import Html, card, facts
from oneway.errors import ConfigError, needs_extra
from oneway.records import Matrix
from oneway.topology.edges import node_label
from oneway.topology.graph import TrustGraph
from oneway.topology.stationary import stationary_masses

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NODES, MOST_EDGES = 60, 400
"""A larger graph is not drawn."""
_MEASURED_EDGES = 200_000
"""Above this number of edges a view shows no statistics, which would take too long."""


@dataclass(frozen=True)
class GraphStatistics:
    """Numbers about a graph; masses are those of its largest strong component."""

    num_nodes: int
    num_edges: int
    weighted: bool
    reciprocity: float
    strong_components: int
    largest_component: int
    upstream: int
    middle: int
    downstream: int
    apart: int
    most_receivers: int
    most_senders: int
    smallest_stationary_mass: float
    largest_stationary_mass: float

    def as_facts(self) -> dict[str, str]:
        """For people."""
        whole = self.largest_component == self.num_nodes
        return {
            "nodes": f"{self.num_nodes:,}",
            "edges": f"{self.num_edges:,}{', weighted' if self.weighted else ''}",
            "reciprocity": f"{self.reciprocity:.1%} of the edges go both ways",
            "strong components": f"{self.strong_components:,}"
            + (", the graph is strongly connected" if whole else "")
            + ("" if whole else f", the largest has {self.largest_component:,} of the nodes"),
            **({} if whole else {"one-way streets": self._one_way_streets}),
            "most receivers": f"{self.most_receivers:,} of one node",
            "most senders": f"{self.most_senders:,} to one node",
            "stationary mass": f"{self.smallest_stationary_mass:.3g} to "
            f"{self.largest_stationary_mass:.3g}, where 1 is an equal share"
            + ("" if whole else " of the largest component"),
        }

    @property
    def _one_way_streets(self) -> str:
        return (
            f"{self.upstream:,} nodes upstream (no edge into their component), {self.downstream:,} "
            f"downstream (no edge out of it), {self.middle:,} in the middle, {self.apart:,} apart"
        )


def graph_statistics(graph: TrustGraph) -> GraphStatistics:
    """Measure a graph."""
    count, labels = graph.strong_components()
    component = graph if count == 1 else graph.largest_strong_component()
    masses = stationary_masses(component.mixing())
    sides = {name: int(nodes.sum()) for name, nodes in graph.sides()._asdict().items()}
    degrees = (np.bincount(nodes, minlength=1) for nodes in graph.edges())
    most_receivers, most_senders = (int(degree.max()) for degree in degrees)
    return GraphStatistics(
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges,
        weighted=graph.weights is not None,
        reciprocity=graph.reciprocity,
        strong_components=count,
        largest_component=int(np.bincount(labels).max()),
        **sides,
        most_receivers=most_receivers,
        most_senders=most_senders,
        smallest_stationary_mass=float(masses.min()),
        largest_stationary_mass=float(masses.max()),
    )


def graph_html(graph: TrustGraph) -> Html:
    """The statistics of a graph, unless it is very large."""
    kind = str(graph.origin.get("graph", "")).replace("_", " ")
    if graph.num_edges <= _MEASURED_EDGES:
        about = facts(graph_statistics(graph).as_facts())
    else:
        about = facts({"nodes": f"{graph.num_nodes:,}", "edges": f"{graph.num_edges:,}"})
    return card("TrustGraph", about, quiet=kind)


def plot_graph(graph: TrustGraph, ax: Axes | None) -> Figure:
    """Draw a graph on a circle.

    Raises:
        ConfigError: If it is too large to be drawn.
    """
    with needs_extra("a plot", "lab"):
        from oneway.display.charts import graph_chart
    if graph.num_nodes > MOST_NODES or graph.num_edges > MOST_EDGES:
        raise ConfigError(
            f"the graph has {graph.num_nodes:,} nodes and {graph.num_edges:,} edges; a picture "
            f"shows at most {MOST_NODES} and {MOST_EDGES}, so print its statistics instead"
        )
    names = [node_label(node, graph.names) for node in range(graph.num_nodes)]
    return graph_chart(places_on_circle(graph.num_nodes), *graph.edges(), names, ax)


def places_on_circle(num_nodes: int) -> Matrix:
    """X and y of every node, from 0 to 1: clockwise on a screen, the first one at the top.

    >>> places_on_circle(4).round(6).tolist()
    [[0.5, 0.0], [1.0, 0.5], [0.5, 1.0], [0.0, 0.5]]
    """
    turns = 2.0 * np.pi * np.arange(num_nodes) / max(num_nodes, 1)
    places: Matrix = 0.5 + 0.5 * np.column_stack([np.sin(turns), -np.cos(turns)])
    return places
