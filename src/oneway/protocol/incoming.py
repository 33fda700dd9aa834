"""Taking in a newer total: what is allowed, what is clipped, and the first inflow."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from oneway.protocol.fixed_point import ONE, Fixed, extent, fixed, mass_of
from oneway.protocol.layout import Layout
from oneway.protocol.messages import Close, Data
from oneway.protocol.rules import Rules
from oneway.protocol.state import InEdge, PeerState
from oneway.records import Vector

ROUNDING = 2
"""Units by which the floor of a numerator may leave the radius, per push."""

MOST_PUSHES = 64
"""A total counts as no more pushes than this, whatever number its sender gives it."""


@dataclass(frozen=True)
class Objection:
    """Why a message was refused: a word to count it by, and a sentence about this one."""

    kind: str
    sentence: str


@dataclass(frozen=True, eq=False)
class Absorbed:
    """What came of a message.

    Attributes:
        state: The state to go on with; the old one if the message was refused.
        strike: Why an honest peer would not have said this; None if it may have.
        clipped: How far beyond the limit the sender's model lay, as a distance; 0 if it did not.
    """

    state: PeerState
    strike: Objection | None = None
    clipped: float = 0.0


def absorb(state: PeerState, edge: InEdge, message: Data | Close, rules: Rules) -> Absorbed:
    """Add what is new in a total to `holding`, and remember the total as heard."""
    if message.total.shape != edge.heard.shape:
        wanted, got = len(edge.heard) - 1, len(message.total) - 1
        return Absorbed(
            state, Objection("dimension", f"its model has {got} parameters instead of {wanted}")
        )
    layout = state.layout
    delta = layout.booked(message.total - edge.heard)
    brought = layout.with_copies(delta, message.total)
    strike = objection(brought, message.seq - edge.seq, rules, layout)
    if strike is not None:
        return Absorbed(state, strike)
    try:
        excess, distance = _excess(state, delta, rules)
    except OverflowError as error:
        return Absorbed(state, Objection("too large", f"what it hands over is too large: {error}"))
    edge = replace(edge, heard=message.total, seq=message.seq, tag=message.tag)
    taken = replace(
        state,
        holding=state.holding + delta - excess,
        clipped=state.clipped + excess,
        in_={**state.in_, (edge.sender, edge.epoch): edge},
    )
    if not state.has_minted and mass_of(delta) > 0:
        # Minted at the model that arrived, a newcomer does not pull the others back to its start.
        model = layout.model_in(brought).clip(-rules.radius, rules.radius)
        taken = mint(taken, layout.start(model, state.dim))
    return Absorbed(taken, clipped=distance)


def objection(
    delta: Fixed, pushes: int, rules: Rules, layout: Layout | None = None
) -> Objection | None:
    """Why no honest peer would hand over this in so many pushes; None if one may."""
    layout = layout or Layout()
    mass, pushes = mass_of(delta), min(pushes, MOST_PUSHES)
    if mass < 0:
        return Objection("shrinking mass", f"its mass shrinks by {-mass / ONE:.6g}")
    if mass > rules.mass_cap * ONE * pushes:
        return Objection(
            "mass above the cap",
            f"it hands over a mass of {mass / ONE:.6g} in {pushes} pushes; the cap for one is "
            f"{rules.mass_cap:g}",
        )
    # The floor of each share may have lost a unit of mass, and with it a radius of numerator. The
    # part of one in 2^40 is for shares rounded in float64.
    most = rules.radius * (mass * (1 + 2**-40) + pushes) + ROUNDING * pushes
    if layout.copies_model:
        most = layout.model_limit(delta, rules.radius) + ROUNDING
    if extent(delta[layout.model]) > most:
        return Objection(
            "outside the radius", f"its estimate lies outside the radius of {rules.radius:g}"
        )
    if any(extent(part) > rules.radius * ONE * pushes for part in layout.beside(delta)):
        return Objection(
            "outside the radius", f"what it sends beside its model exceeds {rules.radius:g}"
        )
    return None


def mint(state: PeerState, at: np.ndarray) -> PeerState:
    """Bring one unit of mass into the network, at a model."""
    minted = fixed(at, 1.0)
    return replace(state, minted=minted, holding=state.holding + minted)


def _excess(state: PeerState, delta: Fixed, rules: Rules) -> tuple[Fixed, float]:
    """What of a delta lies too far from the own estimate, and how far beyond the limit."""
    nothing, layout = np.zeros_like(delta), state.layout
    mass = mass_of(delta)
    if mass == 0 or layout.copies_model or not state.is_sound(rules.radius, rules.mass_floor):
        return nothing, 0.0
    kept, beyond = _near(layout.model_in(delta), layout.model_in(state.holding), rules)
    if not beyond:
        return nothing, 0.0
    excess = nothing
    excess[layout.model] = fixed(delta[layout.model] / ONE - kept * (mass / ONE))[:-1]
    return excess, beyond


def _near(model: Vector, own: Vector, rules: Rules) -> tuple[Vector, float]:
    """A model, moved to the limit of what may come from others; and how far beyond that it was."""
    away = model - own
    distance = float(np.linalg.norm(away))
    # Relative to the own size, so that a model may grow to any, in steps.
    limit = rules.clip * (1.0 + float(np.linalg.norm(own)))
    if distance <= limit:
        return model, 0.0
    return own + away * (limit / distance), distance - limit


def averaged(state: PeerState, rules: Rules) -> Fixed:
    """What is held, with every copied segment averaged over the senders' last values and one's own.

    Senders and self weigh alike; a model that lies too far from one's own is moved to the limit.
    """
    layout = state.layout
    heard = [edge.heard for edge in state.in_.values() if edge.seq and not edge.closed]
    if not (layout.copied and heard):
        return state.holding
    average = state.holding.copy()
    for place in layout.copied:
        own = state.holding[place] / ONE
        copies = [copy[place] / ONE for copy in heard]
        if place == layout.model:
            copies = [_near(copy, own, rules)[0] for copy in copies]
        average[place] = fixed(sum(copies, start=own) / (len(copies) + 1))[:-1]
    return average
