"""How far the models of the peers are apart, by what their stores hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from oneway.errors import StoreError
from oneway.lab.setup import Member
from oneway.metrics import Thinned, disagreement_of_holders
from oneway.peer.store.store import read_snapshot
from oneway.protocol.fixed_point import ONE, mass_of, numerator_of
from oneway.records import NetworkState, Vector

TURN_SECONDS = 0.1
TURN_EFFORT = 0.01
"""How long one look may take, and how much of it computing; the next one goes on where it ended."""

SHARE = 0.03
"""Of a core, no more is spent on looks."""

ROUND_SECONDS = 2.0
"""All stores are not read more often than this."""

MOST_NUMBERS = 4_000_000
"""Of all models together: those of larger networks would not fit into a lab's memory."""

MOST_POINTS = 2048


class Gauge:
    """Measures the disagreement of a lab a few stores at a time, so that it never stalls.

    Stores are read one after the other, so the models are as of slightly different moments; each
    is as its peer held it.

    Attributes:
        value: The disagreement after the last round through all stores; None before the first.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        effort: Callable[[], float] = time.thread_time,
    ) -> None:
        """Begin; nothing is read yet.

        Args:
            clock: Seconds that only grow.
            effort: Seconds that this thread has computed.
        """
        self.value: float | None = None
        self._clock = clock
        self._effort = effort
        self._rest_until = 0.0
        self._due: list[Member] = []
        self._held: dict[bytes, tuple[Vector, int, int]] = {}
        self._points = Thinned(MOST_POINTS)

    @property
    def points(self) -> list[tuple[float, float]]:
        """What was measured: after how many samples of each peer on average, and how much."""
        return self._points.points

    def look(self, members: Sequence[Member], dim: int) -> None:
        """Read some stores, if it is time; to be called again and again.

        Args:
            members: The peers.
            dim: How many parameters a model has.
        """
        began, computed = self._clock(), self._effort()
        if began < self._rest_until or dim * len(members) > MOST_NUMBERS:
            return
        self._due = self._due or list(reversed(members))
        while self._due:
            self._read(self._due.pop())
            late = self._clock() - began >= TURN_SECONDS
            if late or self._effort() - computed >= TURN_EFFORT:
                break
        pause = (self._effort() - computed) / SHARE
        if not self._due:
            self._measure()
            pause = max(pause, ROUND_SECONDS)
        self._rest_until = self._clock() + pause

    def _read(self, member: Member) -> None:
        try:
            snapshot = read_snapshot(member.home.store_path)
        except StoreError:
            return  # not made yet, or damaged, which the ledger tells
        holding = snapshot.state.holding
        self._held[member.key] = (
            numerator_of(holding),
            mass_of(holding),
            snapshot.journal.samples,
        )

    def _measure(self) -> None:
        if not self._held:
            return
        numerators, masses, samples = zip(*self._held.values(), strict=True)
        state = NetworkState(np.array(numerators), np.array(masses) / ONE)
        found = disagreement_of_holders(state)
        if found is not None:
            self.value = found
            self._points.add(float(np.mean(samples)), found)
