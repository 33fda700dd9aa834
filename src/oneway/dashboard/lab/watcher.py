"""Shared watch of a lab: its latest frame, and how its curves went so far, for all open pages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from oneway.dashboard.lab.client import LabClient
from oneway.errors import OnewayError, TransportError
from oneway.metrics import Thinned
from oneway.records.network import NetworkFrame, ReferenceCurve

PAUSE_SECONDS = 0.5
"""Between two looks: a page that shows more frames than two a second only costs more."""

MOST_POINTS = 4000
"""Of the loss curves of all peers together: what a browser draws again every second or two."""

CURVE_POINTS = 160
MEMORY_FRAMES = 20
"""What jumps from frame to frame is shown as its mean over so many, about ten seconds."""


@dataclass
class Smoothed:
    """Moving mean: of all numbers so far, the last ones, about `memory` of them, counting more.

    >>> lately = Smoothed(memory=2)
    >>> lately.add(4.0), lately.add(2.0), lately.add(2.0)
    (4.0, 3.0, 2.5)
    """

    memory: int
    _count: int = field(default=0, init=False)
    _value: float = field(default=0.0, init=False)

    def add(self, number: float) -> float:
        """Take a number in, and return what the mean is now."""
        self._count = min(self._count + 1, self.memory)
        self._value += (number - self._value) / self._count
        return self._value


@dataclass
class SlowRange:
    """Moving range, smallest and largest number: wider at once, narrower in about `memory` steps.

    >>> scale = SlowRange(memory=2)
    >>> scale.add([1.0, 3.0]), scale.add([2.0]), scale.add([0.0])
    ((1.0, 3.0), (1.5, 2.5), (0.0, 1.25))
    """

    memory: int
    _ends: tuple[float, float] | None = field(default=None, init=False)

    def add(self, numbers: Sequence[float]) -> tuple[float, float] | None:
        """Take numbers in, and return the range; None while there never were any."""
        if numbers:
            low, high = min(numbers), max(numbers)
            before = self._ends or (low, high)
            self._ends = (
                min(low, before[0] + (low - before[0]) / self.memory),
                max(high, before[1] + (high - before[1]) / self.memory),
            )
        return self._ends


class LabWatcher:
    """Long-polling reader of a lab's frames, one for all open pages.

    Attributes:
        client: The lab.
        frame: Its latest frame; None before the first.
        references: The simulator's curves; None until they are ready.
        problem: Why there is no news, as a sentence; empty if there is.
        losses: Average loss so far over samples, by peer.
        disagreement: Over seconds.
        usual_mass: By peer, its mean lately: what it holds jumps with every push.
        loss_range: The best and the worst recent loss lately; None while nobody has one.
    """

    def __init__(self, client: LabClient) -> None:
        self.client = client
        self.frame: NetworkFrame | None = None
        self.references: list[ReferenceCurve] | None = None
        self.problem = ""
        self.losses: dict[str, Thinned] = {}
        self.disagreement = Thinned(CURVE_POINTS)
        self.usual_mass: dict[str, float] = {}
        self.loss_range: tuple[float, float] | None = None
        self._masses: dict[str, Smoothed] = {}
        self._range = SlowRange(MEMORY_FRAMES)

    async def watch(self) -> None:
        """Look again and again; ends when cancelled."""
        async with aclosing(self.client):
            while True:
                await self.look()
                await asyncio.sleep(PAUSE_SECONDS)

    async def look(self) -> None:
        """Wait for a newer frame, a moment at most; what goes wrong is told in `problem`."""
        try:
            frame = await self.client.frame(0 if self.frame is None else self.frame.number)
            if self.references is None:
                self.references = await self.client.references()
        except TransportError as error:
            self.problem = str(error)
            return
        except OnewayError as error:
            self.problem = f"the lab says: {error}"
            return
        self.problem = ""
        if frame is not None:
            self._remember(frame)

    def _remember(self, frame: NetworkFrame) -> None:
        self.frame = frame
        limit = max(24, min(CURVE_POINTS, MOST_POINTS // max(1, len(frame.peers))) // 2 * 2)
        for peer in frame.peers:
            mass = self._masses.setdefault(peer.name, Smoothed(MEMORY_FRAMES))
            self.usual_mass[peer.name] = mass.add(peer.mass)
            if peer.average_loss is not None:
                curve = self.losses.setdefault(peer.name, Thinned(limit))
                curve.add(peer.samples, peer.average_loss)
        losses = [peer.recent_loss for peer in frame.peers if peer.recent_loss is not None]
        self.loss_range = self._range.add(losses)
        if frame.disagreement is not None and frame.disagreement > 0.0:
            self.disagreement.add(frame.seconds, frame.disagreement)
