"""Virtual time: its queue of events, and links over which frames arrive late or never."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import count

import numpy as np

from oneway.peer.node import Frame
from oneway.protocol.state import Key
from oneway.task.conditions import Conditions
from oneway.testing.memory_network import Datagram, MemoryEndpoint, MemoryNetwork

_BLOCK = 4096
"""Random numbers that are drawn at a time."""


class EventQueue:
    """What happens when; nothing waits.

    Attributes:
        now: Virtual time, in seconds.
        done: How many events were carried out.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.done = 0
        self._heap: list[tuple[float, int, int, Callable[[], None]]] = []
        self._numbers = count()

    def at(self, moment: float, owner: int, action: Callable[[], None]) -> None:
        """Let something happen; of the same moment, by owner, and then in the order of calls."""
        heapq.heappush(self._heap, (max(moment, self.now), owner, next(self._numbers), action))

    def run_until(self, moment: float) -> None:
        """Carry out all that happens up to a moment, which is the time then."""
        heap = self._heap
        while heap and heap[0][0] <= moment:
            self.now, _, _, action = heapq.heappop(heap)
            self.done += 1
            action()
        self.now = max(self.now, moment)


class Chance:
    """Uniform random numbers, one at a time, from a generator that is asked for many."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._drawn: list[float] = []

    def __call__(self) -> float:
        """A number from 0 to below 1."""
        if not self._drawn:
            self._drawn = self._rng.random(_BLOCK).tolist()
        return self._drawn.pop()

    def exponential(self, mean: float) -> float:
        """A duration without memory."""
        return -mean * math.log1p(-self())


class VirtualLinks:
    """Puts what endpoints send into the event queue, as the conditions say.

    Args:
        network: Where endpoints leave their datagrams.
        indices: Which peer has which key.
        deliver: Takes a datagram at its receiver, by index.

    Attributes:
        messages, bytes_sent: Of all that was sent.
        lost: What was lost by chance.
        under_way: How many datagrams are in flight.
    """

    def __init__(
        self,
        network: MemoryNetwork,
        indices: Mapping[Key, int],
        queue: EventQueue,
        conditions: Conditions,
        chance: Chance,
        deliver: Callable[[int, Datagram], None],
    ) -> None:
        self.messages = self.bytes_sent = self.lost = self.under_way = 0
        self._network, self._indices, self._queue = network, indices, queue
        self._conditions, self._chance, self._deliver = conditions, chance, deliver

    def send(self, endpoint: MemoryEndpoint, frames: Iterable[Frame]) -> None:
        """Put frames of a peer on their way; the order of sets, which differs, does not matter."""
        for frame in sorted(frames, key=lambda it: self._indices[it.peer]):
            (endpoint.push if frame.via == "push" else endpoint.reply)(frame.peer, frame.content)
        flying = self._network.in_flight
        if flying:
            for datagram in flying:
                self._send(datagram)
            flying.clear()

    def _send(self, datagram: Datagram) -> None:
        conditions = self._conditions
        self.messages += 1
        self.bytes_sent += len(datagram.frame)
        if conditions.loss and self._chance() < conditions.loss:
            self.lost += 1
            return
        receiver = self._indices[datagram.receiver]
        arrives = self._queue.now + float(conditions.delay.draw(self._chance()))
        self.under_way += 1
        self._queue.at(arrives, receiver, partial(self._arrive, receiver, datagram))

    def _arrive(self, receiver: int, datagram: Datagram) -> None:
        self.under_way -= 1
        self._deliver(receiver, datagram)
