"""Views of a trust graph: its HTML in a notebook, and its chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oneway.display.html import Html, card, facts, side_by_side
from oneway.display.pictures import MOST_EDGES, MOST_NODES, graph_picture
from oneway.errors import needs_extra
from oneway.topology.circle import places_on_circle
from oneway.topology.edges import node_label
from oneway.topology.graph import TrustGraph
from oneway.topology.statistics import graph_statistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MEASURED_EDGES = 200_000
"""Of a graph with more edges a view shows only how many there are: it must not take long."""


def graph_html(graph: TrustGraph) -> Html:
    """A picture if the graph is small, and its statistics unless it is very large."""
    kind = str(graph.origin.get("graph", "")).replace("_", " ")
    if graph.num_edges <= _MEASURED_EDGES:
        about = facts(graph_statistics(graph).as_facts())
    else:
        about = facts({"nodes": f"{graph.num_nodes:,}", "edges": f"{graph.num_edges:,}"})
    # Looked at before names are made: there may be millions.
    if graph.num_nodes <= MOST_NODES and graph.num_edges <= MOST_EDGES:
        picture = graph_picture(places_on_circle(graph.num_nodes), *graph.edges(), _names(graph))
        if picture is not None:
            return card("TrustGraph", side_by_side(picture, about), quiet=kind)
    return card("TrustGraph", about, quiet=kind)


def plot_graph(graph: TrustGraph, ax: Axes | None) -> Figure:
    """Draw a small graph on a circle, of a larger one how many receivers and senders nodes have."""
    with needs_extra("a plot", "lab"):
        from oneway.display.graph_chart import degree_chart, graph_chart
    senders, receivers = graph.edges()
    if graph.num_nodes <= MOST_NODES and graph.num_edges <= MOST_EDGES:
        places = places_on_circle(graph.num_nodes)
        return graph_chart(places, senders, receivers, _names(graph), ax)
    num_receivers = np.bincount(senders, minlength=graph.num_nodes)
    num_senders = np.bincount(receivers, minlength=graph.num_nodes)
    return degree_chart(num_receivers, num_senders, ax)


def _names(graph: TrustGraph) -> list[str]:
    return [node_label(node, graph.names) for node in range(graph.num_nodes)]
