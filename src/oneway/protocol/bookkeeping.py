"""How the books change: edges put and taken, gains and losses, debts, edges that are retired.

A peer restored from a backup may learn that it had handed over more than it now holds. That is
booked at once, so that both ends of the edge agree, but mass never falls below zero: what is
missing is owed, and half of whatever comes in pays for it. Since the same mass is elsewhere in the
network, paying takes away only what is there twice. Only mass is paid back, at the estimate that
the peer has now: at the one it had when it handed the mass over, a large debt would carry the
little that remains far away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from oneway.protocol.fixed_point import ONE, Fixed, mass_of, portion
from oneway.protocol.rules import Rules
from oneway.protocol.state import EdgeId, InEdge, Key, OutEdge, PeerState, Settled, Told

RETIRED = 0
"""The epoch that stands for all retired edges of a peer; no edge has it."""

Ended = TypeVar("Ended", InEdge, Settled)


def booked(state: PeerState, gained: Fixed) -> PeerState:
    """Add an amount to what is held; what would bring its mass below half of it is owed."""
    gained = state.layout.booked(gained)
    mass, held = mass_of(gained), mass_of(state.holding)
    if mass >= 0:
        return paid(replace(state, holding=state.holding + gained), mass // 2)
    if -mass <= held // 2:
        return replace(state, holding=state.holding + gained)
    # Both sides of the identity grow by what is lost; then what there is pays for it.
    owing = replace(state, holding=state.holding, owed=state.owed - gained)
    return paid(owing, max(held, 0) // 2)


def paid(state: PeerState, most: int) -> PeerState:
    """Pay back what is owed, with no more units of mass than `most`; the estimate stays."""
    state = _paid_with_burned(state)
    owed, held = mass_of(state.owed), mass_of(state.holding)
    if owed == 0 or most <= 0:
        return state
    part = _of_mass(state.owed, min(most, owed))
    given = part.copy()
    if not state.layout.copies_model:
        given[state.layout.model] = portion(state.holding[state.layout.model], part[-1] / held)
    return replace(
        state,
        holding=state.holding - given,
        owed=state.owed - part,
        clipped=state.clipped + (given - part),
    )


def paid_with_all(state: PeerState) -> PeerState:
    """Pay back what is owed with all that is held: nothing else is to come."""
    state = _paid_with_burned(state)
    held = state.layout.booked(state.holding)
    if mass_of(state.owed) <= mass_of(held):
        return paid(state, mass_of(held))
    # A numerator without mass could be handed to nobody: it goes with the mass.
    return replace(state, holding=state.holding - held, owed=state.owed - held)


def taken_in(state: PeerState, amount: Fixed) -> PeerState:
    """Add what came from a sender: of it, half pays for what is owed, and all above one unit.

    But half a unit is kept: a neighbour that was restored, too, may have burned what is owed here,
    and paying with all that comes in would drain the whole network.
    """
    after = replace(state, holding=state.holding + amount)
    held = mass_of(after.holding)
    return paid(after, max(0, min(mass_of(amount) // 2, held - ONE // 2), held - ONE))


def with_out(state: PeerState, edge: OutEdge, gained: Fixed | None = None) -> PeerState:
    """Put an edge to a receiver."""
    out = {**state.out, (edge.receiver, edge.epoch): edge}
    state = replace(state, out=out)
    return state if gained is None else booked(state, gained)


def without_out(state: PeerState, edge: OutEdge, gained: Fixed | None = None) -> PeerState:
    """Forget an edge to a receiver."""
    gone = (edge.receiver, edge.epoch)
    out = {name: other for name, other in state.out.items() if name != gone}
    state = replace(state, out=out)
    return state if gained is None else booked(state, gained)


def with_in(state: PeerState, edge: InEdge) -> PeerState:
    """Put an edge from a sender."""
    return replace(state, in_={**state.in_, (edge.sender, edge.epoch): edge})


def _paid_with_burned(state: PeerState) -> PeerState:
    """Let mass that was burned, perhaps before it was known to be owed, pay for what is owed."""
    owed, burned = mass_of(state.owed), mass_of(state.clipped)
    if owed == 0 or burned <= 0:
        return state
    part = _of_mass(state.owed, min(burned, owed))
    return replace(state, owed=state.owed - part, clipped=state.clipped - part)


def _of_mass(owed: Fixed, mass: int) -> Fixed:
    """The part of what is owed that has so many units of mass."""
    if mass == mass_of(owed):
        return owed
    part = portion(owed, mass / mass_of(owed))
    part[-1] = mass
    return part


def settle(state: PeerState, edge: OutEdge, seq: int, heard: Fixed, rules: Rules) -> PeerState:
    """Close the books on an edge: what was counted as handed over and not heard comes back."""
    if seq:  # otherwise nothing was heard, and there is nothing to remember
        end = Settled(edge.receiver, edge.epoch, edge.ledger, seq, heard)
        state = replace(state, settled={**state.settled, (edge.receiver, edge.epoch): end})
        state = _retire_crowded(state, edge, rules)
    return without_out(state, edge, gained=edge.counted - heard)


# Edges that have ended, and that both ends know of.


def is_retired(ends: Mapping[EdgeId, Ended], peer: Key, epoch: int) -> bool:
    """Whether an edge was folded into the sum of retired ones."""
    retired = ends.get((peer, RETIRED))
    return retired is not None and epoch <= retired.seq and (peer, epoch) not in ends


def retire_in(state: PeerState, sender: Key, rules: Rules) -> PeerState:
    """Fold the oldest edges of a sender that both know to have ended, if there are too many."""
    edges = sorted(
        (edge for edge in state.in_.values() if edge.sender == sender and edge.epoch != RETIRED),
        key=lambda edge: edge.epoch,
    )
    known = [edge for edge in edges if edge.told is Told.SENDER]
    # From the oldest on, without a gap: whatever is older than the last retired one is retired for
    # its sender. But one that lost its disk never tells of an edge before that: it may go on, too.
    while len(known) > rules.most_edges and (
        edges[0] is known[0] or len(edges) >= 2 * rules.most_edges
    ):
        oldest = known.pop(0)
        edges.remove(oldest)
        in_ = dict(state.in_)
        before = in_.get((sender, RETIRED))
        total = oldest.heard if before is None else before.heard + oldest.heard
        del in_[sender, oldest.epoch]
        in_[sender, RETIRED] = InEdge(
            sender,
            RETIRED,
            state.layout.booked(total),
            seq=oldest.epoch,
            closed=True,
            told=Told.SENDER,
        )
        state = replace(state, in_=in_)
    return state


def retire_settled(state: PeerState, end: Settled, until: int) -> PeerState:
    """Fold an edge that its receiver has retired; it has retired all up to an epoch."""
    settled = dict(state.settled)
    before = settled.get((end.receiver, RETIRED))
    total = end.total if before is None else before.total + end.total
    last = max(until, end.epoch, before.seq if before else 0)
    settled.pop((end.receiver, end.epoch), None)
    settled[end.receiver, RETIRED] = Settled(
        end.receiver, RETIRED, end.ledger, last, state.layout.booked(total)
    )
    return replace(state, settled=settled)


def _retire_crowded(state: PeerState, last: OutEdge, rules: Rules) -> PeerState:
    """Fold the oldest ends that a receiver never retires: an honest one knows of fewer itself."""
    ends = sorted(
        (
            end
            for end in state.settled.values()
            if end.receiver == last.receiver and end.epoch not in (RETIRED, last.epoch)
        ),
        key=lambda end: end.epoch,
    )
    for end in ends[: max(0, len(ends) - 4 * rules.most_edges)]:
        state = retire_settled(state, end, end.epoch)
    return state
