"""Taking in a newer total: what is allowed, what is clipped, and the first inflow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from oneway.protocol.bookkeeping import taken_in
from oneway.protocol.compact import Packed, flaw, unpack
from oneway.protocol.fixed_point import (
    LARGEST,
    ONE,
    Fixed,
    extent,
    fixed,
    length_of,
    mass_of,
    pieces,
    portion,
)
from oneway.protocol.layout import Layout
from oneway.protocol.memo import extent_of_all
from oneway.protocol.messages import Close, Compact, Data
from oneway.protocol.pace import part_within
from oneway.protocol.rules import Rules
from oneway.protocol.state import InEdge, PeerState
from oneway.protocol.tags import digest_meanwhile, digest_of
from oneway.records import Vector

ROUNDING = 2
"""Units by which the floor of a numerator may leave the radius, per push."""

MOST_ROUNDINGS = 64
"""As many pushes may be unacknowledged at most."""
MOST_PUSHES = 2**20
"""A total counts as no more pushes than this, whatever number its sender gives it."""

CARRIED = 16.0
"""How long what a push carries beside its model may be, in units of how far a model may lie."""

DEPOSITED = 0.4
"""How much of a parcel moves its receiver, roughly: a little more than Relay deposits at once."""

SPARE = 2.0
"""A parcel may be this many times as long as the longest steps in it: pushes may be rounded."""


@dataclass(frozen=True)
class Objection:
    """Why a message was refused: a word to count it by, and a sentence about this one."""

    kind: str
    sentence: str


@dataclass(frozen=True, eq=False)
class Move:
    """By what a push moves its receiver.

    Attributes:
        now: By what the estimate moves at once.
        steps: The steps that came beside it, which a deposit will subtract; None if none did.
        length: How long the move is in all, with the largest deposit.
    """

    now: Vector
    steps: Vector | None = None
    length: float = 0.0

    def in_all(self, weight: float) -> Vector:
        """By what the estimate has moved once so much of the steps is deposited."""
        return self.now if self.steps is None else self.now - weight * self.steps


@dataclass(frozen=True, eq=False)
class Absorbed:
    """What came of a message.

    Attributes:
        state: The state to go on with; the old one if the message was refused.
        strike: Why an honest peer would not have said this; None if it may have.
        clipped: How far beyond the limit the sender's model, or what came beside it, lay, as a
            distance; 0 if nothing did.
        moved: By what the message moves the estimate; None if nobody counts that.
        waits: Why a push is not taken in for now; empty if it is. It is not acknowledged, so it
            stays in its sender's books, and comes again.
        is_older_life: Whether a newer life of its key has spoken: it was not taken in.
        is_claim: Whether one of the two was restored from a backup, and the other set it right.
        misleads: Whether a compact push did not lead to the total it names, which took long to see.
    """

    state: PeerState
    strike: Objection | None = None
    clipped: float = 0.0
    moved: Move | None = None
    waits: str = ""
    is_older_life: bool = False
    is_claim: bool = False
    misleads: bool = False


@dataclass(frozen=True, eq=False)
class Allowance:
    """How far one sender may move this peer.

    Attributes:
        moved: By what it moved the estimate lately, with the steps that still wait in the parcel
            beside it; None if it brought nothing.
        most: How long that may become, whatever is deposited of the steps.
        longest: How long a further move may be, whatever came before: to and fro is limited, too.
        step: How long this peer's own steps are; 0 if that is not known.
        heaviest: The most mass with which a parcel is deposited: what is more is burned before.
    """

    moved: Move | None
    most: float
    step: float = 0.0
    heaviest: float = math.inf
    longest: float = math.inf

    def part_of(self, move: Move, weight: float = 0.0) -> float:
        """How much of a further move is within the limit, from 0 to 1.

        Both without any deposit and with the largest one, of `weight`, and so with all in between.
        """
        weights = {0.0} if move.steps is None and weight == 0.0 else {0.0, weight}
        # The longest of moves with any deposit in between has none or all of it.
        far = max(float(np.linalg.norm(move.in_all(deposited))) for deposited in weights)
        return min(
            self.longest / far if far > self.longest else 1.0,
            *(
                self._part(
                    None if self.moved is None else self.moved.in_all(deposited),
                    move.in_all(deposited),
                )
                for deposited in weights
            ),
        )

    def _part(self, moved: Vector | None, move: Vector) -> float:
        before = np.zeros_like(move) if moved is None else moved
        return float(part_within(before[None], move[None], self.most)[0])


def absorb(
    state: PeerState,
    edge: InEdge,
    message: Data | Close,
    rules: Rules,
    allowance: Allowance | None = None,
    packed: Packed | None = None,
) -> Absorbed:
    """Add what is new in a total to `holding`, and remember the total as heard.

    What goes too far is dropped, and an entry of the books; the rest is taken in, so that nobody
    waits.

    Args:
        state: Before.
        edge: What was heard of it before.
        message: Brings the total.
        rules: Of this peer.
        allowance: How far the sender may move this peer; None if there is no such limit.
        packed: How the total followed from what was heard before, if it came like that.
    """
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
    kept = _without_surplus_mass(state, delta, rules)
    distance = 0.0
    if not _is_near(state, kept, message.seq - edge.seq, rules):
        excess, distance = _excess(state, kept, message.seq - edge.seq, rules)
        kept = kept - excess
    most = int(min(rules.radius * rules.mass_limit * ONE, LARGEST))
    if extent_of_all(state.holding) + extent(kept) > most:
        kept = _without_surplus(state, kept, most)
    moved = None
    if allowance is not None and mass_of(state.holding) > 0:
        kept, moved, beyond = _within(state, kept, allowance)
        distance = max(distance, beyond)
        kept = _without_surplus_count(state, kept, allowance.step)
    edge = replace(edge, heard=message.total, seq=message.seq, tag=message.tag, packed=packed)
    taken = taken_in(
        replace(
            state,
            # As it was if nothing is dropped: what does not change is not made durable again.
            clipped=state.clipped if kept is delta else state.clipped + (delta - kept),
            in_={**state.in_, (edge.sender, edge.epoch): edge},
        ),
        kept,
    )
    if not state.has_minted and mass_of(kept) > 0:
        # Minted at the model that arrived, a newcomer does not pull the others back to its start.
        model = layout.model_in(layout.with_copies(kept, brought))
        taken = mint(taken, layout.start(model.clip(-rules.radius, rules.radius), state.dim))
    return Absorbed(taken, clipped=distance, moved=moved)


def absorb_packed(
    state: PeerState,
    edge: InEdge,
    message: Compact,
    rules: Rules,
    allowance: Allowance | None = None,
) -> Absorbed:
    """Take in a compact push like the total that it stands for.

    Without its base it says nothing: nothing changes, and the answer brings a full total.
    """
    packed, layout = message.packed, state.layout
    if packed.base != edge.seq:
        return Absorbed(state)
    wrong = flaw(layout, edge.heard, packed)
    if wrong:
        return Absorbed(state, Objection("malformed", f"a push of its has {wrong}"))
    total = unpack(layout, edge.heard, packed)
    digest = digest_meanwhile(total)
    data = Data(
        message.epoch,
        message.life,
        message.ledger,
        message.session,
        message.granted,
        message.seq,
        total,
        message.tag,
        message.progress,
    )
    done = absorb(state, edge, data, rules, allowance, packed)
    return done if digest() == message.digest else Absorbed(state, misleads=True)


def total_of(layout: Layout, edge: InEdge, message: Compact) -> Fixed | None:
    """The total that a compact push stands for; None if what was heard does not lead to it."""
    packed = message.packed
    if packed.base != edge.seq or flaw(layout, edge.heard, packed):
        return None
    total = unpack(layout, edge.heard, packed)
    return total if digest_of(total) == message.digest else None


def objection(
    delta: Fixed, pushes: int, rules: Rules, layout: Layout | None = None
) -> Objection | None:
    """Why no honest peer would hand over this in so many pushes; None if one may."""
    layout = layout or Layout()
    mass, pushes = mass_of(delta), min(pushes, MOST_PUSHES)
    roundings = min(pushes, MOST_ROUNDINGS)
    if mass < 0:
        return Objection("shrinking mass", f"its mass shrinks by {-mass / ONE:.6g}")
    # The floor of each share may have lost a unit of mass, and with it a radius of numerator. The
    # part of one in 2^40 is for shares rounded in float64.
    most = rules.radius * (mass * (1 + 2**-40) + roundings) + ROUNDING * roundings
    if layout.copies_model:
        most = layout.model_limit(delta, rules.radius) + ROUNDING
    if extent(delta[layout.model]) > most:
        return Objection(
            "outside the radius", f"its estimate lies outside the radius of {rules.radius:g}"
        )
    if layout.parcel is not None:
        steps, count = layout.parcel
        many = int(delta[count][0]) / ONE
        if many < 0:
            return Objection("impossible parcel", f"it hands over {many:.6g} steps")
        rounded = 2 * roundings * (math.sqrt(steps.stop - steps.start) + rules.longest_step) / ONE
        if length_of(delta[steps]) > SPARE * rules.longest_step * many + rounded:
            return Objection(
                "impossible parcel",
                f"{many:.6g} steps of its are longer than {rules.longest_step:.6g} each",
            )
    # What is split adds up over pushes; what is copied is one value, however many were lost.
    copies = (delta[place] for place in layout.copied if place != layout.model)
    if any(extent(part) > rules.radius * ONE * pushes for part in layout.beside(delta)) or any(
        extent(part) > rules.radius * ONE for part in copies
    ):
        return Objection(
            "outside the radius", f"what it sends beside its model exceeds {rules.radius:g}"
        )
    return None


def mint(state: PeerState, at: np.ndarray) -> PeerState:
    """Bring one unit of mass into the network, at a model."""
    minted = fixed(at, 1.0)
    return replace(state, minted=state.minted + minted, holding=state.holding + minted)


def _is_near(state: PeerState, delta: Fixed, pushes: int, rules: Rules) -> bool:
    """Whether `_excess` would cut nothing off a delta, checked blockwise without allocating.

    Nearly all deltas are near.
    """
    layout, held, mass = state.layout, state.holding[state.layout.model], mass_of(delta)
    if math.isinf(rules.clip):
        return True
    if mass == 0 and not layout.copies_model:
        return False
    own_mass = mass_of(state.holding)
    divisor = float(ONE) if layout.copies_model else float(own_mass)
    is_inside = extent_of_all(state.holding) <= rules.radius * divisor
    squares, away_squares = 0.0, 0.0
    for piece in pieces(len(held)):
        own = held[piece] / divisor if own_mass > 0 else np.zeros(1)
        if not is_inside:
            own = own.clip(-rules.radius, rules.radius)
        squares += float(own @ own)
        if not layout.copies_model:
            away = delta[layout.model][piece] / mass
            away -= own
            away_squares += float(away @ away)
    reached = rules.clip * (1.0 + math.sqrt(squares))
    longest = min(pushes, MOST_ROUNDINGS) * CARRIED * reached
    return math.sqrt(away_squares) <= reached and all(
        length_of(delta[place]) <= longest for place in layout.carried
    )


def _excess(state: PeerState, delta: Fixed, pushes: int, rules: Rules) -> tuple[Fixed, float]:
    """What of a delta lies too far from the own estimate, and how far beyond the limit."""
    excess, layout = np.zeros_like(delta), state.layout
    if math.isinf(rules.clip):
        return excess, 0.0
    # At whatever mass, and around zero if there is no estimate yet: nobody is moved far at once.
    own = state.estimate
    own = np.zeros(1) if own is None else own.clip(-rules.radius, rules.radius)
    beyond, longest = 0.0, min(pushes, MOST_ROUNDINGS) * CARRIED * reach(own, rules)
    for place in layout.carried:
        length = float(np.linalg.norm(delta[place] / ONE))
        if length > longest:
            excess[place] = fixed(delta[place] / ONE * (1.0 - longest / length))[:-1]
            beyond = max(beyond, length - longest)
    if layout.copies_model:
        return excess, beyond
    mass = mass_of(delta)
    if mass == 0:  # a rounding, or one of many: without mass there is no model to be near
        excess[layout.model] = delta[layout.model]
        return excess, beyond
    kept, away = _near(layout.model_in(delta), own, rules)
    if away:
        excess[layout.model] = fixed(delta[layout.model] / ONE - kept * (mass / ONE))[:-1]
    return excess, max(beyond, away)


def _without_surplus_mass(state: PeerState, delta: Fixed, rules: Rules) -> Fixed:
    """A delta without the mass that is more than a peer may hold, and its part of the model."""
    mass, limit = mass_of(delta), int(rules.mass_limit * ONE)
    room = max(0, limit - mass_of(state.holding) + min(mass_of(state.owed), limit))
    if mass <= room:
        return delta
    kept, layout = delta.copy(), state.layout
    kept[-1] = room
    if not layout.copies_model:
        kept[layout.model] = portion(delta[layout.model], room / mass)
    return kept


def _without_surplus(state: PeerState, delta: Fixed, most: int) -> Fixed:
    """A delta without what nobody can hold beside a model."""
    kept = delta.copy()
    for held, more in zip(
        state.layout.beside(state.holding), state.layout.beside(kept), strict=True
    ):
        more.clip(-2 * most, 2 * most, out=more)
        more[:] = (held + more).clip(np.minimum(held, -most), np.maximum(held, most)) - held
    return kept


def _within(
    state: PeerState, delta: Fixed, allowance: Allowance
) -> tuple[Fixed, Move | None, float]:
    """What of a delta its sender may bring, by what it moves the estimate, and what is cut off.

    That is how far the estimate moves at once, and what parcels and trackers will move it by.
    """
    layout, mass = state.layout, mass_of(delta)
    pulls = mass > 0 and not layout.copies_model
    if not (pulls or any(delta[place].any() for place in layout.carried)):
        return delta, None, 0.0
    own = layout.model_in(state.holding)
    now = np.zeros_like(own)
    if pulls:
        now += layout.model_in(state.holding + delta) - own
    pull, steps, weight = now.copy(), None, 0.0
    for place in layout.carried:
        if place in layout.forwarded:
            steps = delta[place] / ONE
            weight = _deposited(state, delta, allowance.heaviest)
        else:
            now -= delta[place] / ONE
    move = Move(now, steps)
    length = float(np.linalg.norm(move.in_all(weight)))
    part = allowance.part_of(move, weight)
    if part == 1.0:
        return delta, Move(now, steps, length), 0.0
    kept = delta.copy()
    for place in layout.carried:
        kept[place] = portion(delta[place], part)
    if layout.parcel is not None:
        # With a count of less than a step more would be deposited of what is left; with all of
        # it, a sender could make so many steps of a few that nobody deposits any more.
        count = layout.parcel[1]
        kept[count] = np.maximum(portion(delta[count], part), np.minimum(delta[count], ONE))
    if pulls:
        there = (own + part * pull) * (mass_of(state.holding) + mass)
        kept[layout.model] = np.rint(there).astype(np.int64) - state.holding[layout.model]
    taken = Move(part * now, None if steps is None else part * steps, part * length)
    return kept, taken, (1.0 - part) * length


def _without_surplus_count(state: PeerState, delta: Fixed, step: float) -> Fixed:
    """A delta without steps that only keep others from being deposited.

    A parcel is deposited slowly to move its receiver no further than a step at once. For one that
    is only as long as c steps to and fro, a count of c is enough, whatever its sender says.
    """
    if state.layout.parcel is None or not step:
        return delta
    steps, count = state.layout.parcel
    enough = max(1.0, (length_of(state.holding[steps] + delta[steps]) / step) ** 2)
    room = max(0, int(min(enough * ONE, LARGEST)) - int(state.holding[count][0]))
    if int(delta[count][0]) <= room:
        return delta
    kept = delta.copy()
    kept[count] = room
    return kept


def _deposited(state: PeerState, delta: Fixed, heaviest: float) -> float:
    """How far a parcel moves its receiver at most, as a part of its length."""
    after, count = state.holding + delta, 1.0
    if state.layout.parcel is not None:
        count = int(after[state.layout.parcel[1]][0]) / ONE
    return float(deposited_weight(count, mass_of(after) / ONE, heaviest))


def deposited_weight(count: float | Vector, mass: float | Vector, heaviest: float) -> Vector:
    """How far a parcel of so many steps moves a receiver of this mass: phi / omega in Relay.

    Of few steps more is deposited, also if they were forwarded in many small parts.
    """
    many = np.clip(count, 1.0 / ONE, 1.0)
    found: Vector = np.minimum(DEPOSITED / np.sqrt(many), 1.0 / np.minimum(mass, heaviest))
    return found


def _near(model: Vector, own: Vector, rules: Rules) -> tuple[Vector, float]:
    """A model, moved to the limit of what may come from others; and how far beyond that it was."""
    away = model - own
    distance = float(np.linalg.norm(away))
    limit = reach(own, rules)
    if distance <= limit:
        return model, 0.0
    return own + away * (limit / distance), distance - limit


def reach(own: Vector, rules: Rules) -> float:
    """How far others may move an estimate at once: relative to its size, so that it may grow."""
    return rules.clip * (1.0 + float(np.linalg.norm(own)))


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
