"""Views of a trust graph: its HTML in a notebook, and its chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oneway.display.html import Html, card, facts
from oneway.errors import ConfigError, needs_extra
from oneway.records import Matrix
from oneway.topology.edges import node_label
from oneway.topology.graph import TrustGraph
from oneway.topology.statistics import graph_statistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NODES, MOST_EDGES = 60, 400
"""A larger graph is not drawn."""
_MEASURED_EDGES = 200_000
"""Above this number of edges a view shows no statistics, which would take too long."""


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
    return graph_chart(places_on_circle(graph.num_nodes), *graph.edges(), _names(graph), ax)


def places_on_circle(num_nodes: int) -> Matrix:
    """X and y of every node, from 0 to 1: clockwise on a screen, the first one at the top.

    >>> places_on_circle(4).round(6).tolist()
    [[0.5, 0.0], [1.0, 0.5], [0.5, 1.0], [0.0, 0.5]]
    """
    turns = 2.0 * np.pi * np.arange(num_nodes) / max(num_nodes, 1)
    places: Matrix = 0.5 + 0.5 * np.column_stack([np.sin(turns), -np.cos(turns)])
    return places


def _names(graph: TrustGraph) -> list[str]:
    return [node_label(node, graph.names) for node in range(graph.num_nodes)]
