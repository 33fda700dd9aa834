"""All chances of a schedule, drawn from its seed before anything runs.

So two runs of a seed differ by nothing but what their peers do.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from bad_neighbours import (
    ByzantineReceiver,
    ByzantineSender,
    Drain,
    ForgingSender,
    MintingSender,
    SilentReceiver,
)

HONEST = 6
TICK = 4.0
"""Seconds."""
TICKS = 60
KINDS = (
    SilentReceiver,
    ByzantineReceiver,
    ByzantineSender,
    ForgingSender,
    MintingSender,
    Drain,
)
WIDTH = HONEST + 3
"""Keys begin with a byte below this."""


@dataclass(frozen=True)
class Event:
    """Something that happens to one honest peer.

    Attributes:
        kind: The name of a method of `Neighbourhood`.
        who: The peer's number.
        chance: A number below 1 for the event to choose by.
        whom: Which of the peer's first two receivers it concerns.
    """

    kind: str
    who: int
    chance: float = 0.0
    whom: int = 0


class Weather:
    """What one seed brings.

    Attributes:
        is_rough: Whether there may be events that move mass by themselves; otherwise there is one
            bad neighbour, and what it does can be told from what would be without it.
        payload: Which of `storm.PAYLOADS` peers hold; most relay.
        chances: How often each kind of event happens, per tick.
        events: By tick.
    """

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.payload = (1, 0, 1, 2)[seed // 2 % 4]
        self.mass_cap = rng.choice([1.0, 1.0, 4.0, 16.0])
        self.clip = rng.choice([np.inf, 0.3, 0.3, 0.3])
        self.trusted = [self._receivers(index) for index in range(HONEST)]
        self.is_rough = rng.random() < 0.6
        drawn = (
            rng.choices([None, *KINDS], k=2)
            if self.is_rough
            else rng.choices(KINDS, [3, 2, 1, 3, 2, 1])
        )
        self.bad = [kind for kind in drawn if kind is not None]
        self.beside_bad = [rng.sample(range(HONEST), rng.randint(3, 5)) for _ in self.bad]
        self.chances = {
            "crash": rng.choice([0.0, 0.03, 0.1]),
            "backup": 0.5,
            "quarrel": rng.choice([0.0, 0.0, 0.4]),
            "power_cut": rng.choice([0.0, 0.03, 0.03]) * self.is_rough,
            "restore": rng.choice([0.0, 0.12]) * self.is_rough,
            "leave": rng.choice([0.0, 0.2, 0.2, 0.2]) * self.is_rough,
            "clone": rng.choice([0.0, 0.08]) * self.is_rough,
        }
        self.events = self._events()
        self.learns = [[rng.random() < 0.8 for _ in range(HONEST)] for _ in range(TICKS)]
        loss, delay, twice = rng.choice([0.0, 0.1, 0.3]), rng.choice([0.0, 0.2]), 0.05
        weights = (loss, delay, twice, 1.0 - loss - delay - twice)
        fates = ("lost", "late", "twice", "arrives")
        self._fates = [rng.choices(fates, weights, k=2 * WIDTH**2) for _ in range(TICKS)]
        self.clocks = random.Random(f"clocks of {seed}")
        self._lay_a_street(random.Random(f"street of {seed}"))

    def _receivers(self, index: int) -> list[int]:
        ring = (index + 1) % HONEST
        further = [other for other in range(HONEST) if other not in (index, ring)]
        return [ring, self.rng.choice(further)]

    def _lay_a_street(self, rng: random.Random) -> None:
        """Perhaps one way only: two receive from all, and send to nobody."""
        if rng.random() < 0.4:
            ends = rng.sample(range(HONEST), 2)
            for index, trusted in enumerate(self.trusted):
                trusted += [end for end in ends if end not in trusted]
                if index in ends:
                    trusted.clear()

    def _events(self) -> dict[int, list[Event]]:
        rng = self.rng
        quarrelling = rng.randrange(HONEST), rng.randrange(2)
        events: dict[int, list[Event]] = {}
        for tick in range(TICKS):
            for kind, chance in self.chances.items():
                happens, who, whom = rng.random() < chance, rng.randrange(HONEST), rng.randrange(2)
                if kind == "quarrel" and rng.random() < 0.8:
                    who, whom = quarrelling
                event = Event(kind, who, rng.random(), whom)
                if happens:
                    events.setdefault(tick, []).append(event)
        return events

    def fate(self, tick: int, sender: bytes, receiver: bytes, is_push: bool) -> str:
        """What becomes of all that one peer says to another in a tick."""
        return self._fates[tick][2 * (sender[0] * WIDTH + receiver[0]) + is_push]
