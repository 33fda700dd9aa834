"""Departure by the books of a peer: whether all is handed over, and who has to hear of it."""

from __future__ import annotations

from oneway.protocol.state import InEdge, Key, PeerState, Told


def is_drained(state: PeerState) -> bool:
    """Whether a leaving peer has handed over everything, and knows that it arrived."""
    if not state.leaving or state.layout.booked(state.holding).any():
        return False
    waits = any(edge.waits and edge.seq for edge in state.out.values())
    return not waits and all(edge.told is not Told.NOBODY for edge in _heard_edges(state))


def unheard(state: PeerState) -> list[Key]:
    """The senders that have not confirmed yet that they know that a leaving peer leaves."""
    edges = [edge for edge in _heard_edges(state) if edge.told is not Told.SENDER]
    return list(dict.fromkeys(edge.sender for edge in edges))


def _heard_edges(state: PeerState) -> list[InEdge]:
    return [edge for edge in state.in_.values() if edge.seq]
