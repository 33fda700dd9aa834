"""The graph of a run, made again from its config and drawn if it is small enough."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nicegui import ui

from oneway.dashboard.components.facts import FactList
from oneway.dashboard.components.frame import card
from oneway.dashboard.components.legend import trust_legend_html
from oneway.dashboard.components.trust_picture import Arrow, Circle, TrustPicture
from oneway.dashboard.runs.facts import Facts
from oneway.errors import GraphError, OnewayError

if TYPE_CHECKING:
    from oneway.topology import TrustGraph

MOST_NODES = 64
MOST_EDGES = 1_200
MADE_AGAIN = 200_000
"""So many edges, or nodes, a graph may have to be made again for a page."""
_SHOWN = 12
_FILL = "#9ecae8"
_AREA = "<span>area of a circle: the node's mass at the end</span>"


async def graph_card(
    config: Mapping[str, Any], masses: Sequence[float] = (), names: Sequence[str] = ()
) -> None:
    """Show how a run's graph looks; if it cannot be made again, say why.

    Args:
        config: Of the run: how its graph was made, and maybe its edges.
        masses: What every node held at the end, if that is known.
        names: Of the nodes, if they have some.
    """
    with card("Graph: who sends to whom"):
        origin = config.get("graph")
        if not isinstance(origin, Mapping):
            ui.label("This method needs no graph: nobody sends to anybody, or all to one.")
            return
        waiting = ui.label("Making the graph again ...").classes("ow-soft")
        graph, problem = await asyncio.to_thread(_made_again, origin, config.get("edges"))
        waiting.delete()
        if graph is None:
            ui.label(f"It cannot be shown: {problem}.").classes("ow-bad")
            return
        FactList().show(graph_facts(graph, checked=origin.get("checksum") is not None))
        if config.get("events"):
            ui.label("This is the trust at the start; what was changed is in the log.")
        if graph.num_nodes > MOST_NODES or graph.num_edges > MOST_EDGES:
            ui.label(
                f"It is not drawn: a picture is readable up to {MOST_NODES} nodes and "
                f"{MOST_EDGES:,} edges."
            ).classes("ow-soft")
            return
        labels = [str(node) for node in range(graph.num_nodes)]
        if graph.names is not None:
            labels = list(graph.names)
        elif len(set(names)) == len(names) >= graph.num_nodes:
            labels = list(names[: graph.num_nodes])
        known = len(masses) >= graph.num_nodes and all(map(math.isfinite, masses))
        _picture(graph, labels, masses if known else ())


def graph_facts(graph: TrustGraph, *, checked: bool) -> Facts:
    """What is to say about a graph of any size."""
    return [
        ("nodes", f"{graph.num_nodes:,}"),
        ("edges", f"{graph.num_edges:,}; an edge each way counts as two"),
        ("reciprocity", f"{100 * graph.reciprocity:.0f} % of the edges go both ways"),
        ("everybody reaches everybody", "yes" if graph.is_strongly_connected else "no"),
        ("made again", "its checksum is the run's" if checked else "the run has no checksum of it"),
    ]


def _made_again(origin: Mapping[str, Any], edges: object = None) -> tuple[TrustGraph | None, str]:
    try:
        # It needs scipy, and for some graphs polars or networkx: a page of runs does not.
        from oneway.topology.rebuild import rebuild

        try:
            graph = rebuild(origin, MADE_AGAIN)
        except GraphError:
            if edges is None:
                raise
            graph = _listed_graph(edges)
        _ = graph.is_strongly_connected, graph.reciprocity
    except OnewayError as error:
        return None, str(error)
    except ModuleNotFoundError as error:
        return None, f"{error.name} is not installed; run: pip install 'oneway[lab]'"
    except Exception as error:
        # What a stranger wrote down must not stop the rest of the page.
        return None, f"what was written down about it is damaged ({type(error).__name__})"
    return graph, ""


def _listed_graph(edges: object) -> TrustGraph:
    """The graph with the edges that a lab has written down."""
    from oneway.topology import TrustGraph

    given = edges if isinstance(edges, list) else []
    if len(given) > MADE_AGAIN:
        raise GraphError(
            f"the graph has {len(given):,} edges, and no more than {MADE_AGAIN:,} are looked at"
        )
    pairs: list[Any] = [tuple(edge) for edge in given if isinstance(edge, list)]
    if any(isinstance(node, int) and node >= MADE_AGAIN for pair in pairs for node in pair):
        raise GraphError(f"the graph has more than {MADE_AGAIN:,} nodes, too many to be looked at")
    return TrustGraph.from_edges(pairs)


def _picture(graph: TrustGraph, labels: list[str], masses: Sequence[float]) -> None:
    circles, arrows = _circles(graph, labels, masses), _arrows(graph, labels)

    def pick(name: str | None) -> None:
        picture.show(circles, arrows, name)
        told.text = _about(graph, labels, name)

    picture = TrustPicture(pick)
    ui.html(trust_legend_html(_AREA if len(masses) else ""), sanitize=False)
    told = ui.label("").classes("ow-soft").props("role=status")
    pick(None)


def _circles(graph: TrustGraph, labels: list[str], masses: Sequence[float]) -> list[Circle]:
    """Nodes on a circle, in the order of their numbers."""
    from oneway.topology.circle import places_on_circle

    circles = []
    for node, (x, y) in enumerate(places_on_circle(graph.num_nodes).tolist()):
        to, by = len(graph.receivers_of(node)), len(graph.senders_of(node))
        held = f", mass {masses[node]:.3g} at the end" if len(masses) else ""
        title = f"node {labels[node]}: sends to {to}, is sent to by {by}{held}"
        mass = float(masses[node]) if len(masses) else 1.0
        circles.append(Circle(labels[node], x, y, mass, _FILL, title))
    return circles


def _arrows(graph: TrustGraph, labels: list[str]) -> list[Arrow]:
    ends = ([labels[node] for node in nodes.tolist()] for nodes in graph.edges())
    return [
        Arrow(sender, receiver, f"{sender} sends to {receiver}")
        for sender, receiver in zip(*ends, strict=True)
    ]


def _about(graph: TrustGraph, labels: list[str], name: str | None) -> str:
    if name not in labels:
        return "Pick a node to see whom it sends to."
    node = labels.index(name)
    to, by = (
        [labels[other] for other in others.tolist()]
        for others in (graph.receivers_of(node), graph.senders_of(node))
    )
    return f"Node {name} sends to {_listed(to)}; it is sent to by {_listed(by)}."


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(names[:_SHOWN]) or "nobody") + more
