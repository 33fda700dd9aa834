"""The graph of a run, made again from its config and drawn if it is small enough."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nicegui import ui

from oneway.dashboard.components.frame import card
from oneway.dashboard.components.trust_graph import TrustGraph as Picture
from oneway.dashboard.runs.facts import Facts
from oneway.dashboard.runs.tables import fact_list
from oneway.errors import GraphError, OnewayError

if TYPE_CHECKING:
    from oneway.topology import TrustGraph

MOST_NODES = 64
MOST_EDGES = 1_200
_SHOWN = 12
_FILL = "#9ecae8"
_LEGEND = """<span><svg viewBox="0 0 40 14" aria-hidden="true"><path d="M2 7H30"
 stroke="var(--ow-oneway)" stroke-width="2.5"/><path d="M28 2 38 7 28 12z"
 fill="var(--ow-oneway)"/></svg>one-way trust</span><span><svg viewBox="0 0 40 14"
 aria-hidden="true"><path d="M9 7H31" stroke="var(--ow-mutual)" stroke-width="4"/><path
 d="M11 1 1 7 11 13zM29 1 39 7 29 13z" fill="var(--ow-mutual)"/></svg>mutual trust</span>"""
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
        fact_list(graph_facts(graph, checked=origin.get("checksum") is not None))
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
        _picture(graph, labels, masses if len(masses) >= graph.num_nodes else ())


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
            graph = rebuild(origin)
        except GraphError:
            if edges is None:
                raise
            graph = _listed_graph(edges)
        _ = graph.is_strongly_connected, graph.reciprocity
    except OnewayError as error:
        return None, str(error)
    except ModuleNotFoundError as error:
        return None, f"{error.name} is not installed; run: pip install 'oneway[lab]'"
    return graph, ""


def _listed_graph(edges: object) -> TrustGraph:
    """The graph with the edges that a lab has written down."""
    from oneway.topology import TrustGraph

    given = edges if isinstance(edges, list) else []
    pairs: list[Any] = [tuple(edge) for edge in given if isinstance(edge, list)]
    return TrustGraph.from_edges(pairs)


def _picture(graph: TrustGraph, labels: list[str], masses: Sequence[float]) -> None:
    def pick(name: str | None) -> None:
        picture.pick(name)
        told.text = _about(graph, labels, name)

    picture = _StillGraph(graph, labels, masses, pick)
    legend = _LEGEND + (_AREA if len(masses) else "")
    ui.html(f'<div class="ow-legend">{legend}</div>', sanitize=False)
    told = ui.label(_about(graph, labels, None)).classes("ow-soft").props("role=status")


class _StillGraph(Picture):
    """A picture in which nothing happens: nodes on a circle, in the order of their numbers."""

    def __init__(
        self,
        graph: TrustGraph,
        labels: list[str],
        masses: Sequence[float],
        on_pick: Callable[[str | None], None],
    ) -> None:
        super().__init__(on_pick, lambda sender, _: on_pick(sender))
        senders, receivers = (ends.tolist() for ends in graph.edges())
        self._props.update(
            {
                "nodes": [
                    _node(graph, node, label, float(masses[node]) if len(masses) else None)
                    for node, label in enumerate(labels)
                ],
                "edges": [
                    _edge(labels[sender], labels[receiver])
                    for sender, receiver in zip(senders, receivers, strict=True)
                ],
                "label": f"Trust between {graph.num_nodes} nodes, {graph.num_edges} arrows",
            }
        )

    def pick(self, name: str | None) -> None:
        """Highlight a node and its edges; None for no node."""
        self._props["picked"] = name
        self.update()


def _node(graph: TrustGraph, node: int, label: str, mass: float | None) -> dict[str, Any]:
    turn = 2 * math.pi * node / graph.num_nodes - math.pi / 2
    held = "" if mass is None else f", mass {mass:.3g} at the end"
    to, by = len(graph.receivers_of(node)), len(graph.senders_of(node))
    return {
        "name": label,
        "state": "up",
        "x": 0.5 + 0.5 * math.cos(turn),
        "y": 0.5 + 0.5 * math.sin(turn),
        "mass": 1.0 if mass is None else mass,
        "colour": _FILL,
        "title": f"node {label}: sends to {to}, is sent to by {by}{held}",
    }


def _edge(sender: str, receiver: str) -> dict[str, Any]:
    return {
        "sender": sender,
        "receiver": receiver,
        "arrived": 0,
        "waiting": 0,
        "cut": False,
        "title": f"{sender} sends to {receiver}",
    }


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
