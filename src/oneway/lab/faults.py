"""Faults on purpose: a peer killed every now and then, and started again a moment later."""

from __future__ import annotations

import random
import re
from typing import Protocol

from oneway.errors import ConfigError

DOWN_SECONDS = 1.0
"""How long a killed peer stays down."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "": 1.0}


class Network(Protocol):
    """What a killer needs of a lab."""

    def running(self) -> list[int]:
        """The peers that run."""

    def kill(self, peer: int) -> object:
        """End a peer's process at once."""

    def restart(self, peer: int) -> object:
        """Start a peer that is down."""


class Killer:
    """Kills a random peer about every so many seconds, and restarts those that it killed.

    The pauses between two kills vary by half, so that no rhythm of the peers is met for ever.
    """

    def __init__(
        self, network: Network, every: float, rng: random.Random, down: float = DOWN_SECONDS
    ) -> None:
        """Prepare; time begins with the first `step`.

        Args:
            network: Whose peers die.
            every: Seconds between two kills, on average.
            rng: Decides who and when.
            down: Seconds until a killed peer starts again.

        Raises:
            ConfigError: If the seconds are not above 0.
        """
        if not 0.0 < every < float("inf"):
            raise ConfigError(
                f"a kill every {every:g} s is not possible; it must be above 0, as 5s"
            )
        self._network = network
        self._every = every
        self._rng = rng
        self._down = down
        self._next_kill: float | None = None
        self._victims: dict[int, float] = {}

    def step(self, now: float) -> None:
        """Do what is due: bring back those who were down long enough, kill the next."""
        for victim, since in list(self._victims.items()):
            if now - since >= self._down:
                del self._victims[victim]
                self._restart(victim)
        if self._next_kill is None:
            self._next_kill = now + self._pause()
        elif now >= self._next_kill:
            self._next_kill = now + self._pause()
            alive = self._network.running()
            if alive:
                victim = self._rng.choice(alive)
                self._network.kill(victim)
                self._victims[victim] = now

    def forget(self, peer: int) -> None:
        """Leave a peer to somebody else, who has just killed or started it."""
        self._victims.pop(peer, None)

    def finish(self) -> None:
        """Kill nobody any more, and bring everybody back."""
        for victim in self._victims:
            self._restart(victim)
        self._victims.clear()

    def _restart(self, victim: int) -> None:
        if victim not in self._network.running():
            self._network.restart(victim)

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
