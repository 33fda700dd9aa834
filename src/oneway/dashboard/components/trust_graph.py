"""The picture of who sends to whom: one-way and mutual trust, mass, loss, and pushes arriving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nicegui.element import Element
from nicegui.events import GenericEventArguments

from oneway.dashboard.components.colours import UNKNOWN_LOSS, loss_colour
from oneway.records.network import EdgeView, PeerView


class TrustGraph(Element, component="trust_graph.js", default_classes="w-full"):
    """Peers as circles (area is mass, colour is recent loss), trust as arrows.

    A peer can be picked with the pointer or the keyboard, an edge with the pointer.
    """

    def __init__(
        self,
        on_pick_peer: Callable[[str | None], None],
        on_pick_edge: Callable[[str, str], None],
    ) -> None:
        """Make an empty picture.

        Args:
            on_pick_peer: Called with the name of a peer, or None for the empty space.
            on_pick_edge: Called with a sender and a receiver.
        """
        super().__init__()

        def peer_picked(event: GenericEventArguments) -> None:
            on_pick_peer(event.args if isinstance(event.args, str) else None)

        def edge_picked(event: GenericEventArguments) -> None:
            on_pick_edge(event.args["sender"], event.args["receiver"])

        self.on("pick_peer", peer_picked)
        self.on("pick_edge", edge_picked)
        self._props.update({"nodes": [], "edges": [], "label": "No peers yet", "picked": None})

    def show(
        self,
        peers: Sequence[PeerView],
        edges: Sequence[EdgeView],
        *,
        losses: tuple[float, float] | None,
        picked: str | None = None,
    ) -> None:
        """Replace what is shown.

        Args:
            peers: With their places.
            edges: Between these peers.
            losses: The losses at the ends of the colour scale; None while nobody has one.
            picked: The peer to highlight.
        """
        self._props.update(
            {
                "nodes": [_node(peer, losses) for peer in peers],
                "edges": [_edge(edge) for edge in edges],
                "label": f"Trust between {len(peers)} peers, {len(edges)} arrows",
                "picked": picked,
            }
        )
        self.update()


def _node(peer: PeerView, losses: tuple[float, float] | None) -> dict[str, Any]:
    loss = peer.recent_loss
    said = "no samples yet" if loss is None else f"recent loss {loss:.3f}"
    return {
        "name": peer.name,
        "state": peer.state,
        "x": peer.x,
        "y": peer.y,
        "mass": peer.mass,
        "colour": UNKNOWN_LOSS if loss is None or losses is None else loss_colour(loss, *losses),
        "title": f"{peer.name}: {peer.state}, mass {peer.mass:.3f}, {said}, "
        f"{peer.samples:,} samples",
    }


def _edge(edge: EdgeView) -> dict[str, Any]:
    state = "cut" if edge.cut else f"{edge.arrived:,} pushes arrived"
    waiting = f", {edge.waiting:,} on the way" if edge.waiting else ""
    return {
        "sender": edge.sender,
        "receiver": edge.receiver,
        "arrived": edge.arrived,
        "waiting": edge.waiting,
        "cut": edge.cut,
        "title": f"{edge.sender} sends to {edge.receiver}: {state}{waiting}",
    }
