"""Card of a run's graph, made again from its config and drawn if it is small enough."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
from nicegui import ui

from oneway.dashboard.components.elements import FactList, card
from oneway.dashboard.components.trust_picture import (
    Arrow,
    Circle,
    TrustPicture,
    trust_legend_html,
)
from oneway.errors import GraphError, OnewayError, needs_extra
from oneway.sentences import listed, shown

if TYPE_CHECKING:
    from oneway.topology import TrustGraph

MOST_NODES = 64
MOST_EDGES = 1_200
MADE_AGAIN = 200_000
"""So many edges, or nodes, a graph may have to be made again for a page."""
_Node: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MADE_AGAIN)]
_Edges: TypeAlias = Annotated[list[tuple[_Node, _Node]], msgspec.Meta(max_length=MADE_AGAIN)]
_SHOWN = 12
_FILL = "#9ecae8"
_AREA = "<span>area of a circle: the node's mass at the end</span>"


async def graph_card(
    config: Mapping[str, Any], masses: Sequence[float] = (), names: Sequence[str] = ()
) -> None:
    """Show how the graph in a run's config looks; if it cannot be made again, say why.

    `masses` are what the nodes held at the end, `names` what they are called, if that is known.
    """
    with card("Graph: who sends to whom"):
        origin = config.get("graph")
        if not isinstance(origin, Mapping):
            ui.label("This method needs no graph: nobody sends to anybody, or all to one.")
            return
        waiting = ui.label("Making the graph again ...").classes("ow-soft")
        try:
            graph, facts = await asyncio.to_thread(made_again, origin, config.get("edges"))
        except OnewayError as error:
            ui.label(f"It cannot be shown: {error}.").classes("ow-bad")
            return
        finally:
            waiting.delete()
        FactList().show(facts)
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


def made_again(
    origin: Mapping[str, Any], edges: object = None
) -> tuple[TrustGraph, list[tuple[str, str]]]:
    """Make a run's graph again from its origin, or from the edges that a lab wrote down.

    Returns it with what is to say about it.

    Raises:
        GraphError: If what was written down is damaged, not enough, or too much.
        MissingExtraError: If a package is needed that is not installed.
    """
    # It needs scipy, and for some graphs polars or networkx: a page of runs does not.
    with needs_extra("its picture", "lab"):
        from oneway.topology import TrustGraph
        from oneway.topology.rebuild import rebuild

        try:
            graph = rebuild(origin, MADE_AGAIN)
        except GraphError:
            if edges is None:
                raise
            graph = TrustGraph.from_edges(_checked(edges))
        connected = "yes" if graph.is_strongly_connected else "no"
    is_checked = origin.get("checksum") is not None
    checked = "its checksum is the run's" if is_checked else "the run has no checksum of it"
    return graph, [
        ("nodes", f"{graph.num_nodes:,}"),
        ("edges", f"{graph.num_edges:,}; an edge each way counts as two"),
        ("reciprocity", f"{100 * graph.reciprocity:.0f} % of the edges go both ways"),
        ("everybody reaches everybody", connected),
        ("made again", checked),
    ]


def _checked(edges: object) -> list[tuple[int, int]]:
    """Edges that a lab has written down, once they are known to be some, and not too many.

    Raises:
        GraphError: If they are not.
    """
    try:
        return msgspec.convert(edges, _Edges)
    except msgspec.ValidationError as error:
        raise GraphError(
            f"the edges that were written down, {shown(edges)}, are damaged or too many to be "
            f"looked at: {error}; make the run again"
        ) from error


def _picture(graph: TrustGraph, labels: list[str], masses: Sequence[float]) -> None:
    """Nodes on a circle, in the order of their numbers."""
    from oneway.topology.circle import places_on_circle

    to, by = (
        [[labels[other] for other in ends(node).tolist()] for node in range(graph.num_nodes)]
        for ends in (graph.receivers_of, graph.senders_of)
    )
    circles = []
    for node, (x, y) in enumerate(places_on_circle(graph.num_nodes).tolist()):
        name, mass = labels[node], float(masses[node]) if len(masses) else 1.0
        held = f", mass {mass:.3g} at the end" if len(masses) else ""
        title = f"node {name}: sends to {len(to[node])}, is sent to by {len(by[node])}{held}"
        circles.append(Circle(name, x, y, mass, _FILL, title))
    arrows = [
        Arrow(sender, receiver, f"{sender} sends to {receiver}")
        for sender, receivers in zip(labels, to, strict=True)
        for receiver in receivers
    ]

    def pick(name: str | None) -> None:
        picture.show(circles, arrows, name)
        told.text = "Pick a node to see whom it sends to."
        if name in labels:
            node = labels.index(name)
            receivers, senders = (listed(ends[node], _SHOWN) or "nobody" for ends in (to, by))
            told.text = f"Node {name} sends to {receivers}; it is sent to by {senders}."

    picture = TrustPicture(pick)
    ui.html(trust_legend_html(_AREA if len(masses) else ""), sanitize=False)
    told = ui.label("").classes("ow-soft").props("role=status")
    pick(None)
