"""Limits on what one sender may do: how far it may move this peer, and how often it may ask.

A sender moves a peer at once, by a model with mass, and later, by steps in a parcel. Honest ones
pull to and fro: noise, and what each learned since. A liar pulls in one direction for ever. So what
counts is the sum of a sender's moves, as a vector, over this peer's last steps: it may be as long
as a part of those steps would be, did they all go in one direction. A peer's own steps then bring
it back faster than one sender can carry it away, whatever the task, the learning rate or the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from oneway.protocol.incoming import Allowance
from oneway.protocol.state import Key
from oneway.records import Vector

STEPS = 32
"""The sum of a sender's moves is over about so many steps of this peer."""

PART = 0.1
"""It is no longer than this part of those steps, laid end to end."""

FIRST = 2.0
"""How long the first step is taken to be where nothing limits it: what "auto" would allow."""

SECONDS_PER_STEP = 10.0
"""In so much time without a step a sender may move a peer as far as after one: a peer without
samples follows its senders, too, but slowly."""

HELLOS, HELLOS_PER_SECOND = 8.0, 4.0
"""How many hellos of a sender are answered in a row, and in the long run: each costs a model."""


@dataclass
class _Moves:
    """By what one sender moved this peer lately, as of when this peer had made so many steps."""

    total: Vector
    steps: float


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
        longest = FIRST if math.isinf(longest_step) else longest_step
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
        moves = self._senders.get(sender)
        heavy = max(1.0, min(mass, self._heaviest) / 2.0)
        most, step = PART * STEPS * self.own_step / heavy, self.own_step
        if moves is None:
            return Allowance(None, most, step, self._heaviest)
        steps = self._now(now)
        moves.total *= np.float32((1.0 - 1.0 / STEPS) ** (steps - moves.steps))
        moves.steps = steps
        return Allowance(moves.total, most, step, self._heaviest)

    def moved(self, sender: Key, move: Vector | None, now: float) -> None:
        """A sender moved this peer."""
        if move is None:
            return
        known = self.allowance(sender, now).moved
        if known is None:
            # Half the memory of what moves a model, for each sender, is precise enough.
            self._senders[sender] = _Moves(move.astype(np.float32), self._now(now))
        else:
            known += move

    def _now(self, now: float) -> float:
        return self._steps + max(0.0, now - self._last_step) / SECONDS_PER_STEP


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
