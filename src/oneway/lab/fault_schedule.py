"""Fault injection on a schedule: a random peer is killed, and started again a moment later."""

from __future__ import annotations

import random
import re
from collections.abc import Collection

from oneway.errors import ConfigError
from oneway.lab.lab import Lab

DOWN_SECONDS = 1.0
"""How long a killed peer stays down."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "": 1.0}


class KillSchedule:
    """Kills a random peer at about regular intervals, and restarts its victims.

    The intervals are jittered by ±50 % to avoid aliasing with the peers' own timers.
    """

    def __init__(self, lab: Lab, every: float, rng: random.Random) -> None:
        """Kill every `every` seconds on average, from the first `step` on; `rng` chooses victims.

        Raises:
            ConfigError: If the seconds are not above 0.
        """
        if not 0.0 < every < float("inf"):
            raise ConfigError(
                f"a kill every {every:g} s is not possible; it must be above 0, as 5s"
            )
        self._lab = lab
        self._every = every
        self._rng = rng
        self._next_kill: float | None = None
        self._victims: dict[str, float] = {}

    def step(self, now: float) -> None:
        """Do what is due: bring back those who were down long enough, kill the next."""
        for victim, since in list(self._victims.items()):
            if now - since >= DOWN_SECONDS:
                del self._victims[victim]
                self._restart(victim)
        if self._next_kill is None:
            self._next_kill = now + self._pause()
        elif now >= self._next_kill:
            self._next_kill = now + self._pause()
            alive = self._lab.running()
            if alive:
                victim = self._rng.choice(alive)
                self._lab.kill(victim)
                self._victims[victim] = now

    @property
    def victims(self) -> Collection[str]:
        """The peers that are down and will be restarted."""
        return self._victims.keys()

    def forget(self, peer: str) -> None:
        """Leave a peer alone that was just killed or started by hand."""
        self._victims.pop(peer, None)

    def finish(self) -> None:
        """Restart the victims that are still down, and kill no more."""
        for victim in self._victims:
            self._restart(victim)
        self._victims.clear()

    def _restart(self, victim: str) -> None:
        if victim not in self._lab.running():
            self._lab.restart(victim)

    def _pause(self) -> float:
        return self._every * self._rng.uniform(0.5, 1.5)


def parse_seconds(text: str) -> float:
    """Read a duration such as 5s, 0.5, 500ms or 2m.

    Raises:
        ConfigError: If it is none, or not above 0.

    >>> parse_seconds("500ms"), parse_seconds("2m"), parse_seconds("7")
    (0.5, 120.0, 7.0)
    """
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*(ms|s|m|)", text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not seconds > 0.0:
        raise ConfigError(f"{text!r} is not a time above 0; write it as 5s, 500ms or 2m")
    return seconds
