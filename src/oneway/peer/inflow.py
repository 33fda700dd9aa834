"""Limits on what one sender may bring and ask: mass by what an honest network could send.

Mass that comes in was handed out before. What this peer hands out may come back through any sender,
but only once; beyond that a sender may bring little, since a network of honest peers has one unit
each. A push is taken in as a whole or not at all: whoever may bring anything may bring what one
push carries, and is behind by the rest afterwards. So only a peer that has gained several units
lets mass wait, which stays in its sender's books meanwhile, until it has handed some out. Where
there is not enough for all, whoever has brought less lately comes first: a sender that mints cannot
keep the others from being heard.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from oneway.protocol.fixed_point import ONE
from oneway.protocol.state import Key

FIRST_UNITS = ONE
"""What a sender may bring to a peer without mass, whatever that has handed out."""

UNITS_PER_SECOND = ONE / 300
"""What it may bring besides, on average, in the long run: one unit in five minutes.

A liar's mass pulls like steps of learning do, each unit by as much as the clip lets it: with one
unit a second, it outweighs eight peers that learn from ten samples a second each.
"""

POOR, POOR_UNITS_PER_SECOND = 4 * ONE, ONE / 10
"""The same for a peer that holds less than so much: a total that is far ahead of what a peer that
was restored from a backup has heard is taken in within minutes."""

TURN_SECONDS = 2.0
"""A push that has to wait is said again within this time; until then it has its turn."""

RECENT_SECONDS = 60.0
"""What was brought before that hardly counts when senders take turns."""

HELLOS, HELLOS_PER_SECOND = 8.0, 4.0
"""How many hellos of a sender are answered in a row, and in the long run: each costs a model."""


@dataclass
class _Sender:
    """One sender's account, in units.

    Attributes:
        left: What it may still bring besides what this peer handed out; below 0, it is behind.
        brought: What it has brought lately.
        at: When both were so.
        offers: What it has to wait with.
        waits_until: Until when it has a turn.
    """

    left: float
    at: float
    brought: float = 0.0
    offers: int = 0
    waits_until: float = -math.inf


class Inflow:
    """Keeps every sender's account; time is an argument.

    Attributes:
        held: The units of mass that this peer holds now; to be told before it is asked.
    """

    def __init__(self, mass_at_once: float, mass_limit: float, held: int = 0) -> None:
        """Begin a life, in which a sender may bring the less the more units are `held` already.

        Otherwise every restart would let in as much again.
        """
        self._one_push, self._most = mass_at_once * ONE, mass_limit * ONE
        self._first = float(max(FIRST_UNITS - held, 0))
        self.held = held
        self._returning = 0.0
        """What this peer handed out, and has not come back."""
        self._senders: dict[Key, _Sender] = {}

    def allowance(self, sender: Key, now: float) -> int:
        """The most units that may come from a sender now; 0 while it is behind."""
        known = self._of(sender, now)
        is_before = (
            other.waits_until > now
            and other.brought < known.brought
            and other.offers <= self._most_of(other)
            for other in self._senders.values()
        )
        return 0 if any(is_before) else int(self._most_of(known))

    def took(self, sender: Key, units: int, now: float) -> None:
        """Some units have come from a sender."""
        if units > 0:
            known = self._of(sender, now)
            returned = min(units, self._returning)
            self._returning -= returned
            known.left -= units - returned
            known.brought += units
            known.waits_until = -math.inf

    def waits(self, sender: Key, units: int, now: float) -> None:
        """A sender offers some units that are not taken in for now."""
        known = self._of(sender, now)
        known.offers, known.waits_until = units, now + TURN_SECONDS

    def handed_out(self, units: int) -> None:
        """This peer has handed out some units, which will come back one day."""
        self._returning = min(self._most, self._returning + max(0, units))

    def _most_of(self, known: _Sender) -> float:
        left = known.left + self._returning
        return max(left, self._one_push) if left > 0 else 0.0

    def _of(self, sender: Key, now: float) -> _Sender:
        known = self._senders.get(sender)
        if known is None:
            known = self._senders[sender] = _Sender(self._first, now)
        passed, known.at = now - known.at, now
        if passed > 0:
            rate = POOR_UNITS_PER_SECOND if self.held < POOR else UNITS_PER_SECOND
            known.left = min(self._most, known.left + rate * passed)
            known.brought *= math.exp(-passed / RECENT_SECONDS)
        return known


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
