"""Everything that can happen to a peer: a state in, a new state out.

There is no clock, socket, file or randomness here. Whoever calls these functions makes the result
durable before anything derived from it is said (`outgoing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from oneway.protocol.fixed_point import ONE, Fixed, extent, fixed, mass_of, zeros
from oneway.protocol.incoming import ROUNDING, Absorbed, Objection, absorb, mint
from oneway.protocol.messages import (
    Ack,
    Close,
    Closed,
    Data,
    Gone,
    Hello,
    Push,
    Reply,
    Stale,
    State,
)
from oneway.protocol.rules import Rules
from oneway.protocol.stamps import later_stamp
from oneway.protocol.state import (
    LIVE,
    EdgeId,
    InEdge,
    Key,
    OutEdge,
    OutPhase,
    PeerState,
    Settled,
)
from oneway.protocol.tags import digest_of, is_mine
from oneway.records import Vector

__all__ = [
    "descend",
    "distrust",
    "leave",
    "mint",
    "presume_dead",
    "push",
    "receive_push",
    "receive_reply",
    "restart",
    "trust",
]

MOST_EDGES = 100
"""From one sender, open and closed: it makes a new one when trust in a receiver is given anew."""

TOO_MANY = Objection("too many edges", f"it opened more than {MOST_EDGES:,} edges")
NEVER_SENT = Objection("false claim", "it claims to have heard what was never sent")


# What the peer does itself.


def restart(state: PeerState, boot: int) -> PeerState:
    """Begin a new life: ask every receiver what it heard, since this state may be an old one.

    Args:
        state: As it was stored.
        boot: A `first_stamp`.
    """
    state = replace(state, boot=later_stamp(state.boot, boot))
    return replace(
        state,
        out={
            name: _resync(state, edge) if edge.phase in LIVE else edge
            for name, edge in state.out.items()
        },
    )


def descend(state: PeerState, step: Vector) -> PeerState:
    """Take the local step z - step; mass is unchanged.

    Raises:
        OverflowError: If the step is not finite or too large to be represented.
    """
    units = fixed(step)
    return replace(
        state, holding=state.holding - units, gradient_steps=state.gradient_steps + units
    )


def push(state: PeerState, shares: Mapping[Key, float], rules: Rules) -> PeerState:
    """Hand a share of what is held to every receiver whose edge is open and has room.

    What is handed over leaves `holding` exactly. Shares of receivers that cannot take theirs stay
    here. A peer that leaves keeps nothing: the shares are then relative.
    """
    able = [
        edge
        for edge in state.out.values()
        if edge.phase is OutPhase.OPEN
        and edge.in_flight < rules.window
        and shares.get(edge.receiver, 0.0) > 0.0
    ]
    wanted = [shares[edge.receiver] for edge in able]
    if state.leaving:
        parts = _everything(state, wanted, rules)
    elif state.is_sound(rules.radius, rules.mass_floor):
        of_all = sum(shares.values())
        parts = [_capped(state, share, of_all, rules) for share in wanted]
    else:
        parts = []
    holding, out = state.holding, dict(state.out)
    for edge, part in zip(able, parts, strict=False):
        holding = holding - part
        total = state.layout.with_copies(edge.sent + part, state.holding)
        totals = {**edge.totals, edge.seq + 1: total}
        out[edge.receiver, edge.epoch] = replace(edge, seq=edge.seq + 1, totals=totals)
    return replace(state, holding=holding, out=out) if parts else state


def trust(state: PeerState, receiver: Key, epoch: int) -> PeerState:
    """Open an edge under a fresh, random epoch, unless one to this receiver is live."""
    if state.leaving or any(
        edge.receiver == receiver and edge.phase in LIVE for edge in state.out.values()
    ):
        return state
    return _with_out(state, OutEdge(receiver, epoch, state.boot, OutPhase.RESYNC, _none(state)))


def distrust(state: PeerState, receiver: Key) -> PeerState:
    """Hand nothing more to a receiver, and ask for what has not arrived."""
    for edge in list(state.out.values()):
        if edge.receiver == receiver and edge.phase in LIVE:
            # Nothing was sent on a new edge. Should that be a lapse of memory, the receiver's
            # next reply brings the edge back.
            unused = edge.seq == 0
            state = (
                _without_out(state, edge)
                if unused
                else _with_out(state, replace(edge, phase=OutPhase.CLOSING))
            )
    return state


def presume_dead(state: PeerState, edge_id: EdgeId) -> PeerState:
    """Take back what a long silent receiver never acknowledged; should it live, it will tell."""
    edge = state.out[edge_id]
    dead = replace(edge, phase=OutPhase.DEAD)
    return _with_out(state, dead, gained=edge.counted - dead.counted)


def leave(state: PeerState) -> PeerState:
    """Close every edge in; from now on, `push` hands everything over."""
    closed = {name: replace(edge, closed=True) for name, edge in state.in_.items()}
    return replace(state, leaving=True, in_=closed)


# What the senders of edges say to their receiver.


def receive_push(state: PeerState, sender: Key, message: Push, rules: Rules) -> Absorbed:
    """Take in what a sender says about its edge to this peer."""
    if message.ledger not in (0, state.ledger):
        return Absorbed(state)  # it means somebody this peer no longer is: the answer is Gone
    edge_id = (sender, message.epoch)
    if edge_id not in state.in_ and _count_from(state, sender) >= MOST_EDGES:
        return Absorbed(state, TOO_MANY)
    edge = state.in_.get(edge_id) or InEdge(
        sender, message.epoch, zeros(state.dim), closed=state.leaving
    )
    match message:
        case Hello():
            if message.session > edge.session:
                edge = replace(edge, session=message.session, granted=state.boot)
            return Absorbed(_with_in(state, edge))
        case Data():
            agreed = (message.session, message.granted) == (edge.session, edge.granted)
            if edge.closed or not agreed or message.seq <= edge.seq:
                return Absorbed(state)
            return absorb(state, edge, message, rules)
        case Close():
            if message.total.shape != edge.heard.shape:
                return absorb(state, edge, message, rules)  # a strike: no backup explains it
            # Any other total that cannot be absorbed comes from before its sender was restored
            # from a backup; both will go by what was heard, so it is no strike.
            done = Absorbed(state)
            if message.seq > edge.seq:
                done = absorb(state, edge, message, rules)
            edge = done.state.in_.get(edge_id, edge)
            closed = _with_in(done.state, replace(edge, closed=True))
            return Absorbed(closed, clipped=done.clipped)


# What the receivers of edges answer to their sender.


def receive_reply(state: PeerState, receiver: Key, reply: Reply, rules: Rules) -> Absorbed:
    """Take in what a receiver says about an edge of this peer."""
    edge = state.out.get((receiver, reply.epoch))
    if edge is None:
        return _about_the_past(state, receiver, reply, rules)
    match reply:
        case Ack():
            return Absorbed(_acknowledged(state, edge, reply))
        case State():
            return _resynced(state, edge, reply, rules)
        case Closed():
            return _closed(state, edge, reply, rules)
        case Stale():
            return Absorbed(_ask_again(state, edge))
        case Gone():
            if reply.ledger != edge.ledger or edge.ledger == 0:
                return Absorbed(state)
            # What was confirmed is lost with the receiver's disk; the rest comes back.
            return Absorbed(_settle(state, edge, edge.acked, edge.confirmed, edge.their_boot))


def _acknowledged(state: PeerState, edge: OutEdge, reply: Ack) -> PeerState:
    if edge.phase is OutPhase.RESYNC:
        return state  # the answer to the hello says more
    if reply.boot < edge.their_boot:
        return _ask_again(state, edge)
    known = edge.totals.get(reply.seq)
    if known is not None and digest_of(known) == reply.digest:
        totals = {seq: total for seq, total in edge.totals.items() if seq >= reply.seq}
        after = replace(edge, acked=reply.seq, totals=totals, their_boot=reply.boot)
        if edge.phase is OutPhase.DEAD:  # more had arrived than was taken back
            return _with_out(state, after, gained=edge.counted - after.counted)
        return _with_out(state, after)
    if reply.seq < edge.acked and reply.boot == edge.their_boot:
        return state  # overtaken by a later one
    return _ask_again(state, edge)  # one of us was restored from a backup


def _resynced(state: PeerState, edge: OutEdge, reply: State, rules: Rules) -> Absorbed:
    if edge.phase is not OutPhase.RESYNC or edge.ledger not in (0, reply.ledger):
        return Absorbed(state)
    if reply.session > edge.session:  # my clock was set back
        return Absorbed(
            _with_out(state, replace(edge, session=later_stamp(reply.session, state.boot)))
        )
    if reply.session < edge.session:
        return Absorbed(state)
    seq = max(edge.seq, reply.seq) + 1
    if _remembers(edge, reply):
        totals = {number: total for number, total in edge.totals.items() if number >= reply.seq}
        opened = replace(edge, acked=reply.seq, totals={**totals, seq: edge.sent})
    elif _believes(state, edge.receiver, reply, rules):
        opened = replace(edge, acked=seq, totals={seq: reply.total})
    else:
        return Absorbed(state, NEVER_SENT)
    opened = replace(
        opened,
        seq=seq,
        phase=OutPhase.OPEN,
        ledger=reply.ledger,
        granted=reply.granted,
        their_boot=reply.boot,
    )
    return Absorbed(_with_out(state, opened, gained=edge.counted - opened.counted))


def _closed(state: PeerState, edge: OutEdge, reply: Closed, rules: Rules) -> Absorbed:
    if not (_remembers(edge, reply) or _believes(state, edge.receiver, reply, rules)):
        return Absorbed(state, NEVER_SENT)
    return Absorbed(_settle(state, edge, reply.seq, reply.total, reply.boot))


def _about_the_past(state: PeerState, receiver: Key, reply: Reply, rules: Rules) -> Absorbed:
    """A reply about an edge that is settled, or that this peer has forgotten."""
    settled = state.settled.get((receiver, reply.epoch))
    if settled is not None:
        if not isinstance(reply, Closed):
            return Absorbed(state)
        if not _believes(state, receiver, reply, rules):
            return Absorbed(state, NEVER_SENT)
        return Absorbed(_settled_anew(state, settled, reply))
    if not isinstance(reply, Ack | State | Closed) or reply.seq == 0:
        return Absorbed(state)
    digest = reply.digest if isinstance(reply, Ack) else digest_of(reply.total)
    if not is_mine(reply.tag, rules.secret, state.ledger, receiver, reply.epoch, reply.seq, digest):
        return Absorbed(state)
    # Restored from a backup that is older than this edge: close it, and count what was heard.
    forgotten = OutEdge(receiver, reply.epoch, state.boot, OutPhase.CLOSING, _none(state))
    return Absorbed(_with_out(state, forgotten))


def _settled_anew(state: PeerState, end: Settled, reply: Closed) -> PeerState:
    """The receiver ended with another total after all, unless this was overtaken."""
    if reply.seq <= end.seq and reply.boot <= end.their_boot:
        return state
    boot = max(reply.boot, end.their_boot)
    anew = replace(end, seq=reply.seq, total=reply.total, their_boot=boot)
    return replace(
        state,
        holding=state.holding + state.layout.booked(end.total - anew.total),
        settled={**state.settled, (end.receiver, end.epoch): anew},
    )


# Details.


def _remembers(edge: OutEdge, claim: State | Closed) -> bool:
    """Whether a claim about what was heard is one of the totals still at hand."""
    known = edge.totals.get(claim.seq)
    return known is not None and np.array_equal(known, claim.total)


def _believes(state: PeerState, receiver: Key, claim: State | Closed, rules: Rules) -> bool:
    """Whether a claim beyond one's own memory is proven by one's own tag, or needs no proof."""
    if claim.total.shape != state.holding.shape:
        return False
    if claim.seq == 0:
        return not claim.total.any()
    digest = digest_of(claim.total)
    return is_mine(claim.tag, rules.secret, state.ledger, receiver, claim.epoch, claim.seq, digest)


def _resync(state: PeerState, edge: OutEdge) -> OutEdge:
    return replace(edge, phase=OutPhase.RESYNC, session=later_stamp(edge.session, state.boot))


def _ask_again(state: PeerState, edge: OutEdge) -> PeerState:
    return _with_out(state, _resync(state, edge)) if edge.phase is OutPhase.OPEN else state


def _settle(state: PeerState, edge: OutEdge, seq: int, heard: Fixed, boot: int) -> PeerState:
    """Close the books on an edge: what was counted as handed over and not heard comes back."""
    end = Settled(edge.receiver, edge.epoch, edge.ledger, seq, heard, boot)
    state = replace(state, settled={**state.settled, (edge.receiver, edge.epoch): end})
    return _without_out(state, edge, gained=edge.counted - heard)


def _gain(state: PeerState, gained: Fixed | None) -> Fixed:
    return state.holding if gained is None else state.holding + state.layout.booked(gained)


def _with_out(state: PeerState, edge: OutEdge, gained: Fixed | None = None) -> PeerState:
    holding = _gain(state, gained)
    out = {**state.out, (edge.receiver, edge.epoch): edge}
    return replace(state, holding=holding, out=out)


def _without_out(state: PeerState, edge: OutEdge, gained: Fixed | None = None) -> PeerState:
    holding = _gain(state, gained)
    gone = (edge.receiver, edge.epoch)
    out = {name: other for name, other in state.out.items() if name != gone}
    return replace(state, holding=holding, out=out)


def _with_in(state: PeerState, edge: InEdge) -> PeerState:
    return replace(state, in_={**state.in_, (edge.sender, edge.epoch): edge})


def _count_from(state: PeerState, sender: Key) -> int:
    return sum(edge.sender == sender for edge in state.in_.values())


def _none(state: PeerState) -> Mapping[int, Fixed]:
    return {0: zeros(state.dim)}


def _capped(state: PeerState, share: float, of_all: float, rules: Rules) -> Fixed:
    """The part for one receiver, of no more mass than one push may carry."""
    most = rules.mass_cap * ONE / max(mass_of(state.holding), 1)
    return state.layout.portion(state.holding, min(share, most), of_all)


def _everything(state: PeerState, weights: list[float], rules: Rules) -> list[Fixed]:
    """Split all that is held by weight; the last gets the remainders. Nothing if it is unsound."""
    holding = state.layout.booked(state.holding)
    mass = mass_of(holding)
    limit = state.layout.model_limit(holding, rules.radius) + ROUNDING
    sound = mass >= 0 and extent(holding[state.layout.model]) <= limit
    if not (weights and sound and holding.any()):
        return []
    parts = [_capped(state, weight / sum(weights), 1.0, rules) for weight in weights]
    rest = holding - sum(parts, start=0 * holding)
    if mass_of(parts[-1] + rest) <= rules.mass_cap * ONE:
        parts[-1] = parts[-1] + rest
    return parts
