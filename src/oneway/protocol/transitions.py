"""What a peer does, and what it takes in from its senders: a state in, a new state out.

There is no clock, socket, file or randomness here. Whoever calls these functions makes the result
durable before anything derived from it is said (`outgoing`). Answers of receivers: `replies`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from oneway.protocol.bookkeeping import (
    RETIRED,
    is_retired,
    paid_with_all,
    retire_in,
    with_in,
    with_out,
    without_out,
)
from oneway.protocol.compact import Packed, packed_total
from oneway.protocol.fixed_point import (
    LARGEST,
    ONE,
    Fixed,
    extent,
    fixed,
    length_of,
    mass_of,
    portion,
    zeros,
)
from oneway.protocol.incoming import (
    CARRIED,
    ROUNDING,
    Absorbed,
    Allowance,
    absorb,
    absorb_packed,
)
from oneway.protocol.layout import Layout
from oneway.protocol.lives import meet
from oneway.protocol.memo import extent_of_all
from oneway.protocol.messages import NO_PROGRESS, Close, Compact, Data, Hello, Push
from oneway.protocol.pace import LEAST, fraction_to_hand_over, recovered_mass
from oneway.protocol.rules import Rules
from oneway.protocol.stamps import later_stamp
from oneway.protocol.state import LIVE, EdgeId, InEdge, Key, OutEdge, OutPhase, PeerState, Told
from oneway.records import Vector

TOO_MANY = "more edges than one sender needs"


# What the peer does itself.


def restart(state: PeerState, boot: int) -> PeerState:
    """Begin a new life: ask every receiver what it heard, since this state may be an old one.

    Args:
        state: As it was stored.
        boot: A `first_stamp`.
    """
    return ask_everybody(replace(state, boot=later_stamp(state.boot, boot), over=0))


def ask_everybody(state: PeerState) -> PeerState:
    """Ask every receiver what it heard, in new sessions."""
    return replace(
        state,
        out={
            name: resync(state, edge) if edge.phase in LIVE else edge
            for name, edge in state.out.items()
        },
    )


def resync(state: PeerState, edge: OutEdge) -> OutEdge:
    """The edge while its receiver is asked what it heard."""
    return replace(edge, phase=OutPhase.RESYNC, session=later_stamp(edge.session, state.boot))


def descend(state: PeerState, step: Vector) -> PeerState:
    """Take the local step z - step; mass is unchanged.

    Raises:
        OverflowError: If the step is not finite, or what it leads to is too large.
    """
    units = fixed(step)
    del step  # room for what follows: its caller may need it no more
    after = replace(state, holding=state.holding - units)
    if extent_of_all(after.holding) > LARGEST:
        raise OverflowError("what is held would no longer fit into 63 bits")
    units += state.gradient_steps
    return replace(after, gradient_steps=units)


def keep_mass(state: PeerState, bounds: tuple[float, float]) -> PeerState:
    """Mint the mass that is lacking, or burn what is too much, at the peer's own estimate.

    As `Method.bounded`: the estimate stays. What is minted and burned are entries of the books. A
    peer without mass, or that leaves, is left as it is.
    """
    mass, layout = mass_of(state.holding), state.layout
    lowest, highest = (bound * ONE for bound in bounds)
    kept = round(min(max(mass, lowest), highest))
    if kept == mass or mass <= 0 or state.leaving:
        return state
    gained = np.zeros_like(state.holding)
    gained[-1] = kept - mass
    if not layout.copies_model:
        held = state.holding[layout.model]
        gained[layout.model] = np.rint(held * ((kept - mass) / mass))
    holding = state.holding + gained
    if kept > mass:
        return replace(state, holding=holding, minted=state.minted + gained)
    return replace(state, holding=holding, clipped=state.clipped - gained)


def recover(state: PeerState) -> PeerState:
    """Mint a part of the mass that a push left, up to enough.

    For a peer that was drained, and now distrusts who did it: among peers of hardly any mass nobody
    would ever take in a whole step. Not without such a reason: where a neighbour is only away for a
    while, all would mint, and the mass comes back later.
    """
    return keep_mass(state, (recovered_mass(mass_of(state.holding) / ONE), math.inf))


def let_go(state: PeerState, share: float) -> PeerState:
    """Burn what nobody can be handed: all that is forwarded, and a share of model and mass."""
    layout, held = state.layout, state.holding
    if state.leaving or not layout.forwarded:
        return state
    part = layout.portion(held, share, share) if share else np.zeros_like(held)
    for place in layout.forwarded:
        part[place] = held[place]
    if not part.any():
        return state
    return replace(state, holding=held - part, clipped=state.clipped + part)


def push(state: PeerState, shares: Mapping[Key, float], rules: Rules) -> PeerState:
    """Hand a share of what is held to every receiver whose edge is open and has room.

    To one receiver, never more mass is unacknowledged than its share of what is held and of that.
    What is handed over leaves `holding` exactly. Shares of receivers that cannot take theirs stay
    here. A peer that leaves keeps nothing: the shares are then relative.
    """
    able = [
        edge
        for edge in state.out.values()
        if edge.phase is OutPhase.OPEN
        and edge.in_flight < _window(rules)
        and shares.get(edge.receiver, 0.0) > 0.0
    ]
    if state.leaving:
        state = _without_orphans(paid_with_all(_without_momenta(state)), rules)
        able = [edge for edge in able if _room(edge, rules) >= LEAST * rules.mass_cap * ONE]
        parts = _everything(state, able, shares, rules)
    elif state.is_sound(rules.radius):
        of_all = sum(shares.values())
        fractions = [_fraction(state, edge, shares[edge.receiver], rules) for edge in able]
        if not state.layout.copied:
            able = [edge for edge, fraction in zip(able, fractions, strict=True) if fraction]
            fractions = [fraction for fraction in fractions if fraction]
        parts = [state.layout.portion(state.holding, fraction, of_all) for fraction in fractions]
    else:
        parts = []
    holding, out = state.holding, dict(state.out)
    for edge, part in zip(able, parts, strict=False):
        _keep_surplus(part, rules, state.layout)
        packed = None
        if not rules.compact or state.leaving:  # who leaves must not keep a remainder
            total = state.layout.with_copies(edge.sent + part, state.holding)
        else:
            packed, total, part = _coded(state, edge, part, rules)
        holding = np.subtract(holding, part, out=part)
        totals = {**edge.totals, edge.seq + 1: total}
        out[edge.receiver, edge.epoch] = replace(
            edge, seq=edge.seq + 1, totals=totals, packed=packed
        )
    return replace(state, holding=holding, out=out) if parts else state


def trust(state: PeerState, receiver: Key, epoch: int) -> PeerState:
    """Open an edge under a fresh epoch, a stamp, unless one to this receiver is live.

    A peer that leaves opens one only while it has something to hand over.
    """
    has_nothing = state.leaving and not state.layout.booked(state.holding).any()
    if has_nothing or any(
        edge.receiver == receiver and edge.phase in LIVE for edge in state.out.values()
    ):
        return state
    # Epochs to a receiver grow, so that what is retired can be told from what is new.
    known = [number for key, number in (*state.out, *state.settled) if key == receiver]
    retired = state.settled.get((receiver, RETIRED))
    last = max((*known, retired.seq if retired else 0), default=0)
    fresh = epoch if epoch > last else later_stamp(last, epoch)
    return with_out(state, OutEdge(receiver, fresh, state.boot, OutPhase.RESYNC, none_yet(state)))


def distrust(state: PeerState, receiver: Key) -> PeerState:
    """Hand nothing more to a receiver, and ask for what has not arrived."""
    for edge in list(state.out.values()):
        if edge.receiver == receiver and edge.phase in LIVE:
            # Nothing was sent on a new edge. Should that be a lapse of memory, the receiver's
            # next reply brings the edge back.
            unused = edge.seq == 0
            state = (
                without_out(state, edge)
                if unused
                else with_out(state, replace(edge, phase=OutPhase.CLOSING))
            )
    return state


def presume_dead(state: PeerState, edge_id: EdgeId) -> PeerState:
    """Take back what a long silent receiver never acknowledged; should it live, it will tell."""
    edge = state.out[edge_id]
    dead = replace(edge, phase=OutPhase.DEAD)
    return with_out(state, dead, gained=edge.counted - dead.counted)


def leave(state: PeerState) -> PeerState:
    """Close every edge in; from now on, `push` hands everything over.

    What tracks this peer's momenta no longer does: without them it is not to be handed over.
    """
    closed = {name: replace(edge, closed=True) for name, edge in state.in_.items()}
    return _without_momenta(replace(state, leaving=True, in_=closed))


def stay(state: PeerState) -> PeerState:
    """Leave no more: the edges that were closed for it are opened anew by their senders."""
    return replace(state, leaving=False)


# What the senders of edges say to their receiver.


def receive_push(
    state: PeerState, sender: Key, message: Push, rules: Rules, allowance: Allowance | None = None
) -> Absorbed:
    """Take in what a sender says about its edge to this peer; `allowance` as for `absorb`."""
    state = _with_progress(state, sender, message)
    known = meet(state, sender, message.life)
    if known is None:
        return Absorbed(state, is_older_life=True)
    state = known
    if message.ledger not in (0, state.ledger):
        return Absorbed(state)  # it means somebody this peer no longer is: the answer is Gone
    edge_id = (sender, message.epoch)
    if message.epoch == RETIRED or is_retired(state.in_, sender, message.epoch):
        return Absorbed(state)
    if edge_id not in state.in_:
        if isinstance(message, Close) and message.seq == 0:
            return Absorbed(state)  # nothing came, and nothing will
        state = _without_unused(state, sender, message.epoch)
        if not _has_room(state, sender, rules):
            return Absorbed(state, waits=TOO_MANY)
    edge = state.in_.get(edge_id) or InEdge(
        sender, message.epoch, zeros(state.dim), closed=state.leaving
    )
    match message:
        case Hello():
            if message.session > edge.session:
                edge = replace(edge, session=message.session, granted=state.boot)
            return Absorbed(with_in(state, edge))
        case Data() | Compact():
            agreed = (message.session, message.granted) == (edge.session, edge.granted)
            if edge.closed or not agreed or message.seq <= edge.seq:
                return Absorbed(state)
            if isinstance(message, Compact):
                return absorb_packed(state, edge, message, rules, allowance)
            return absorb(state, edge, message, rules, allowance)
        case Close():
            return _closed(state, edge, message, rules, allowance)


def _closed(
    state: PeerState, edge: InEdge, message: Close, rules: Rules, allowance: Allowance | None
) -> Absorbed:
    if message.total.shape != edge.heard.shape:
        return absorb(state, edge, message, rules)  # a strike: no backup explains it
    # Any other total that cannot be absorbed comes from before its sender was restored from a
    # backup; both will go by what was heard, so it is no strike.
    done = Absorbed(state)
    if message.seq > edge.seq:
        done = absorb(state, edge, message, rules, allowance)
    edge = done.state.in_.get((edge.sender, edge.epoch), edge)
    same = edge.seq == message.seq and np.array_equal(edge.heard, message.total)
    told = Told.SENDER if same or edge.told is Told.SENDER else edge.told
    closed = with_in(done.state, replace(edge, closed=True, told=told))
    return Absorbed(retire_in(closed, edge.sender, rules), clipped=done.clipped, moved=done.moved)


# Details.


def none_yet(state: PeerState) -> Mapping[int, Fixed]:
    """The totals of an edge over which nothing was handed over."""
    return {0: zeros(state.dim)}


def _with_progress(state: PeerState, sender: Key, message: Push) -> PeerState:
    """Remember how far a sender's stream had come, whatever else comes of its message."""
    if isinstance(message, Hello):
        return state
    known = state.heard_progress.get(sender, NO_PROGRESS)
    if message.progress.learned <= known.learned:
        return state
    return replace(state, heard_progress={**state.heard_progress, sender: message.progress})


def _without_unused(state: PeerState, sender: Key, epoch: int) -> PeerState:
    """Forget edges of a sender over which nothing came: it has begun a later one."""
    unused = [
        name
        for name, edge in state.in_.items()
        if edge.sender == sender and edge.seq == 0 and name[1] < epoch
    ]
    if not unused:
        return state
    return replace(
        state, in_={name: edge for name, edge in state.in_.items() if name not in unused}
    )


def _without_momenta(state: PeerState) -> PeerState:
    """The state of a peer whose momenta are 0, and what tracks them is less by as much."""
    if not any(state.gradient_steps[place].any() for place in state.layout.momenta.values()):
        return state
    holding, steps = state.holding.copy(), state.gradient_steps.copy()
    for place in state.layout.momenta.values():
        holding[place] += steps[place]
        steps[place] = 0
    return replace(state, holding=holding, gradient_steps=steps)


def _has_room(state: PeerState, sender: Key, rules: Rules) -> bool:
    mine = [edge for edge in state.in_.values() if edge.sender == sender]
    untold = sum(edge.told is not Told.SENDER for edge in mine)
    return untold < rules.most_edges and len(mine) <= 2 * rules.most_edges


def _window(rules: Rules) -> int:
    """How many pushes may be under way; before a compact one, all are acknowledged."""
    return 1 if rules.compact else rules.window


def _room(edge: OutEdge, rules: Rules) -> float:
    """The units of mass that may still be sent: more than one push may carry is never under way."""
    return rules.mass_cap * ONE - edge.mass_in_flight


def _fraction(state: PeerState, edge: OutEdge, share: float, rules: Rules) -> float:
    """Which fraction of what is held goes to one receiver; 0 while it has enough under way."""
    held = max(mass_of(state.holding), 1)
    found = fraction_to_hand_over(share, held, edge.mass_in_flight, rules.mass_cap * ONE)
    return float(found)


def _without_orphans(state: PeerState, rules: Rules) -> PeerState:
    """A state without steps that lack a count: nobody would take them, and no count is to come."""
    kept = state.holding.copy()
    _keep_orphans(kept, rules, state.layout)
    dropped = state.holding - kept
    if not dropped.any():
        return state
    return replace(state, holding=kept, clipped=state.clipped + dropped)


def _keep_orphans(part: Fixed, rules: Rules, layout: Layout) -> None:
    """Leave for later the part of a parcel that is too long for its count (`objection`).

    Codes leave a remainder of a parcel whose count is gone, and a peer that was restored from a
    backup may have handed over more of a count than it still has.
    """
    if layout.parcel is None:
        return
    steps, count = layout.parcel
    part[count].clip(0, None, out=part[count])
    many, length = int(part[count][0]) / ONE, length_of(part[steps])
    if many == 0.0:
        part[steps] = 0
    elif length > rules.longest_step * many:
        part[steps] = portion(part[steps], rules.longest_step * many / length)


def _keep_surplus(part: Fixed, rules: Rules, layout: Layout) -> None:
    """Leave for later what one push may not carry beside its model, whoever brought so much."""
    _keep_orphans(part, rules, layout)
    most = int(rules.radius * ONE)
    for beside in layout.beside(part):
        if extent(beside) > most:
            beside.clip(-most, most, out=beside)
    for place in layout.carried:
        # Half of what a receiver with this clip allows at least; a count goes with its parcel.
        factor = CARRIED / 2 * rules.clip / max(length_of(part[place]), 1e-300)
        if factor < 1.0:
            for scaled in layout.forwarded if place in layout.forwarded else (place,):
                part[scaled] = np.floor(part[scaled] * factor).astype(np.int64)


def _coded(
    state: PeerState, edge: OutEdge, part: Fixed, rules: Rules
) -> tuple[Packed, Fixed, Fixed]:
    """What codes can say of a part, the total that this leads to, and what it hands over.

    All that was sent is acknowledged: the receiver has this base, whatever gets lost.
    """
    wanted, base = state.layout.with_copies(part, state.holding), edge.confirmed
    packed, total = packed_total(state.layout, wanted, edge.acked, base, rules.radius)
    return packed, total, state.layout.booked(total - base)


def _everything(
    state: PeerState, edges: list[OutEdge], shares: Mapping[Key, float], rules: Rules
) -> list[Fixed]:
    """Split all that is held by share; the last gets the remainders. Nothing if it is unsound."""
    holding = state.layout.booked(state.holding)
    mass = mass_of(holding)
    limit = state.layout.model_limit(holding, rules.radius) + ROUNDING
    sound = mass >= 0 and extent(holding[state.layout.model]) <= limit
    if not (edges and sound and holding.any()):
        return []
    of_all = sum(shares[edge.receiver] for edge in edges)
    parts = [
        state.layout.portion(
            state.holding,
            min(shares[edge.receiver] / of_all, _room(edge, rules) / max(mass, 1)),
            1.0,
        )
        for edge in edges
    ]
    rest = holding - sum(parts, start=0 * holding)
    if mass_of(parts[-1] + rest) <= _room(edges[-1], rules):
        parts[-1] = parts[-1] + rest
    return parts
