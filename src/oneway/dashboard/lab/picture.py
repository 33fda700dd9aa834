"""How the peers of a lab and the edges between them are drawn."""

from __future__ import annotations

from oneway.dashboard.components.colours import UNKNOWN_LOSS, loss_colour
from oneway.dashboard.components.trust_picture import Arrow, Circle
from oneway.records.network import EdgeView, PeerView


def circle(peer: PeerView, usual_mass: float, losses: tuple[float, float] | None) -> Circle:
    """A peer: its area is its mass lately, its colour its recent loss.

    Args:
        peer: With its place.
        usual_mass: Its mean over some seconds.
        losses: The losses at the ends of the colour scale; None while nobody has one.
    """
    loss = peer.recent_loss
    return Circle(
        peer.name,
        peer.x,
        peer.y,
        usual_mass,
        loss_colour(loss, *losses) if loss is not None and losses is not None else UNKNOWN_LOSS,
        about(peer, usual_mass),
        peer.state,
    )


def arrow(edge: EdgeView) -> Arrow:
    """An edge."""
    state = "cut" if edge.cut else f"{edge.arrived:,} pushes arrived"
    waiting = f", {edge.waiting:,} on the way" if edge.waiting else ""
    return Arrow(
        edge.sender,
        edge.receiver,
        f"{edge.sender} sends to {edge.receiver}: {state}{waiting}",
        edge.arrived,
        edge.waiting,
        edge.cut,
    )


def about(peer: PeerView, usual_mass: float) -> str:
    """One line about a peer: state, mass, loss, accuracy, samples and restarts."""
    loss, right = peer.recent_loss, peer.accuracy
    said = [
        peer.state,
        f"mass {peer.mass:.3f} (lately {usual_mass:.3f})",
        "no samples yet" if loss is None else f"recent loss {loss:.3f} per sample",
        *([] if right is None else [f"{100 * right:.1f} % right so far"]),
        f"{peer.samples:,} samples",
        *([f"restarted {peer.restarts:,} times"] if peer.restarts > 1 else []),
        *(["restarted once"] if peer.restarts == 1 else []),
    ]
    return f"{peer.name}: {', '.join(said)}"
