"""Events in order, and frames that arrive as late and as seldom as they are told to."""

from __future__ import annotations

import numpy as np
import pytest

from oneway.asynchronous.virtual_links import Chance, EventQueue, VirtualLinks
from oneway.peer.node import Frame
from oneway.task.conditions import Conditions, Delay
from oneway.testing.memory_network import Datagram, MemoryNetwork

ALICE, BOB = b"a" * 32, b"b" * 32


class Street:
    """Alice pushes to Bob; what arrives, when."""

    def __init__(self, **told) -> None:
        self.queue, self.network = EventQueue(), MemoryNetwork()
        self.alice = self.network.endpoint(ALICE)
        bob = self.network.endpoint(BOB)
        self.alice.dial(BOB, bob.address)
        self.arrivals: list[tuple[float, bytes]] = []
        self.links = VirtualLinks(
            self.network,
            {ALICE: 0, BOB: 1},
            self.queue,
            Conditions(**told),
            Chance(np.random.default_rng(5)),
            self._arrive,
        )

    def _arrive(self, receiver: int, datagram: Datagram) -> None:
        assert receiver == 1
        self.arrivals.append((self.queue.now, datagram.frame))

    def send(self, *contents: bytes) -> list[tuple[float, bytes]]:
        """Send all at once, and wait."""
        self.links.send(self.alice, [Frame(BOB, "push", content) for content in contents])
        self.queue.run_until(1e6)
        return self.arrivals


def test_events_of_one_moment_come_by_owner_and_then_as_they_were_called() -> None:
    queue, seen = EventQueue(), []
    for moment, owner, what in ((2.0, 0, "c"), (1.0, 7, "b"), (1.0, 3, "a"), (2.0, 0, "d")):
        queue.at(moment, owner, lambda what=what: seen.append((queue.now, what)))
    queue.run_until(1.5)
    assert (seen, queue.now) == ([(1.0, "a"), (1.0, "b")], 1.5)
    queue.run_until(2.0)
    assert [what for _, what in seen] == ["a", "b", "c", "d"]
    assert queue.done == 4


def test_as_many_frames_are_lost_as_is_said() -> None:
    street = Street(delay=Delay.fixed(0.0), loss=0.25)
    arrived = len(street.send(*[b"x"] * 4000))
    assert (street.links.messages, street.links.bytes_sent) == (4000, 4000)
    assert arrived + street.links.lost == 4000
    assert street.links.lost / 4000 == pytest.approx(0.25, abs=0.03)
    assert street.links.under_way == 0
