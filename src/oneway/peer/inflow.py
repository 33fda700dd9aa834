"""Limits on what one sender may do: how far it may move this peer, and how often it may ask.

A sender moves a peer at once, by a model with mass, and later, by steps in a parcel. Honest ones
pull to and fro: noise, and what each learned since. A liar pulls in one direction for ever. So what
counts is the sum of a sender's moves, as a vector, over this peer's last steps: it may be as long
as a part of those steps would be, did they all go in one direction. A peer's own steps then bring
it back faster than one sender can carry it away, whatever the task, the learning rate or the noise.

How far steps in a parcel move it is known only when they are deposited: until then they stand in
the account as they came, and count for the most that a deposit could make of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from oneway.protocol.incoming import Allowance, Move
from oneway.protocol.pace import FIRST_STEP, PART, SECONDS_PER_STEP, STEPS, TO_AND_FRO
from oneway.protocol.state import Key, PeerState
from oneway.records import Vector

HELLOS, HELLOS_PER_SECOND = 8.0, 4.0
"""How many hellos of a sender are answered in a row, and in the long run: each costs a model."""


@dataclass
class _Moves:
    """What one sender did lately, as of when this peer had made so many steps.

    Attributes:
        total: By what it moved this peer.
        pending: The steps of its that are in this peer's parcel; None if there are none.
        steps: How many steps of this peer's own that was after.
        squares: The sum of the squared lengths of its moves.
    """

    total: Vector
    pending: Vector | None
    steps: float
    squares: float = 0.0


class Inflow:
    """Keeps every sender's account; time is an argument.

    Args:
        longest_step: The longest step that an honest peer takes; infinite if nothing limits it.
        steps: How many steps this peer made in former lives.
        now: When this life begins.
        heaviest: The most mass with which this peer takes a step.
    """

    def __init__(
        self, longest_step: float, steps: int, now: float, heaviest: float = math.inf
    ) -> None:
        # Until it takes a step, a peer's are as long as they should be after so many.
        longest = FIRST_STEP if math.isinf(longest_step) else longest_step
        self._first = longest / math.sqrt(max(steps, 1))
        self._heaviest = heaviest
        self._squares, self._weight = 0.0, 0.0
        self._steps, self._last_step = 0.0, now
        self._senders: dict[Key, _Moves] = {}

    def stepped(self, length: float, now: float) -> None:
        """This peer took a step that moved its estimate by so much, had it a mass of 1."""
        self._steps = self._now(now) + 1.0
        self._last_step = now
        self._squares = (1.0 - 1.0 / STEPS) * self._squares + length**2
        self._weight = (1.0 - 1.0 / STEPS) * self._weight + 1.0

    @property
    def own_step(self) -> float:
        """How long this peer's steps are: the root of their mean square."""
        return math.sqrt(self._squares / self._weight) if self._weight else self._first

    def allowance(self, sender: Key, now: float, mass: float = 1.0) -> Allowance:
        """How far a sender may move this peer, which holds so much mass.

        The own steps of a peer of more than two units or so bring it back more slowly.
        """
        heavy = max(1.0, min(mass, self._heaviest) / 2.0)
        most, step = PART * STEPS * self.own_step / heavy, self.own_step
        moves = self._senders.get(sender)
        moved, squares = None, 0.0
        if moves is not None:
            self._decay(moves, now)
            moved, squares = Move(moves.total, moves.pending), moves.squares
        longest = math.sqrt(max(0.0, STEPS * (TO_AND_FRO * step) ** 2 - squares))
        return Allowance(moved, most, step, self._heaviest, longest)

    def moved(self, sender: Key, move: Move | None, now: float) -> None:
        """A sender moved this peer."""
        if move is None:
            return
        # Half the memory of what moves a model, for each sender, is precise enough.
        steps: Vector | None = None
        if move.steps is not None:
            steps = np.asarray(move.steps, np.float32)
        moves = self._senders.get(sender)
        if moves is None:
            moves = _Moves(move.now.astype(np.float32), steps, self._now(now), move.length**2)
            self._senders[sender] = moves
            return
        self._decay(moves, now)
        moves.squares += move.length**2
        moves.total += move.now
        if moves.pending is None:
            moves.pending = steps
        elif steps is not None:
            moves.pending += steps

    def deposited(self, part: float, mass: float, now: float) -> None:
        """This peer, of so much mass, deposited a part of its parcel."""
        for moves in self._senders.values():
            if moves.pending is not None:
                self._decay(moves, now)
                moves.total -= np.float32(part / mass) * moves.pending
        self.handed_on(part)

    def handed_on(self, part: float) -> None:
        """A part of the parcel is in it no longer."""
        for moves in self._senders.values():
            if part >= 1.0:
                moves.pending = None
            elif moves.pending is not None:
                moves.pending *= np.float32(1.0 - part)

    def _decay(self, moves: _Moves, now: float) -> None:
        steps = self._now(now)
        decay = (1.0 - 1.0 / STEPS) ** (steps - moves.steps)
        moves.total *= np.float32(decay)
        moves.squares *= decay
        moves.steps = steps

    def _now(self, now: float) -> float:
        return self._steps + max(0.0, now - self._last_step) / SECONDS_PER_STEP


def handed_on(before: PeerState, after: PeerState) -> float:
    """Which part of its parcel a peer handed on with a push."""
    if before.layout.parcel is None:
        return 0.0
    count, left = (int(it.holding[before.layout.parcel[1]][0]) for it in (before, after))
    return 1.0 - left / count if count > 0 else 0.0


class AskLimit:
    """How often a sender is told what was heard; time is an argument."""

    def __init__(self) -> None:
        self._left: dict[Key, tuple[float, float]] = {}

    def may_ask(self, sender: Key, now: float) -> bool:
        """Whether a sender that asks now is answered."""
        may = self.has_left(sender, now)
        self._left[sender] = (self._left[sender][0] - may, now)
        return may

    def has_left(self, sender: Key, now: float) -> bool:
        """Whether a sender would be answered, should it ask now."""
        left, at = self._left.get(sender, (HELLOS, now))
        self._left[sender] = (min(HELLOS, left + HELLOS_PER_SECOND * (now - at)), now)
        return self._left[sender][0] >= 1.0
