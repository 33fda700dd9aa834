"""Every transport keeps the same promise, and a transport that breaks it is caught."""

import asyncio

import pytest
import transport_checks as checks

from oneway.testing import MemoryEndpoint
from oneway.transport import Arrival


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
def test_every_transport_passes(check, new_world):
    asyncio.run(check(new_world()))


class AdmitsAnyone(MemoryEndpoint):
    def admit(self, senders):
        super().admit(None)


class MisnamesTheSender(MemoryEndpoint):
    def receive_now(self):
        arrival = super().receive_now()
        return arrival and Arrival(bytes(32), arrival.frame, arrival.via)


class AltersFrames(MemoryEndpoint):
    def push(self, receiver, frame):
        super().push(receiver, frame[:-1])


class LosesReplies(MemoryEndpoint):
    def take_reply(self, parcel):
        pass


class TakesRepliesForPushes(MemoryEndpoint):
    def take_reply(self, parcel):
        self._queue(Arrival(parcel.sender, parcel.frame, "push"))


class SendsToWhoeverIsThere(MemoryEndpoint):
    def push(self, receiver, frame):
        if address := self._dialled.get(receiver):
            listener = self._network.listeners.get(address)
            super().push(receiver, frame)
            if listener is not None and listener.key != receiver:
                listener._queue(Arrival(self.key, frame, "push"))


class SleepsThroughArrivals(MemoryEndpoint):
    async def receive(self):
        if arrival := self.receive_now():
            return arrival
        return await asyncio.Future()


class RaisesForAbsentReceivers(MemoryEndpoint):
    def push(self, receiver, frame):
        if receiver not in self._dialled:
            raise KeyError(receiver)
        super().push(receiver, frame)


class KeepsTheFirstAddress(MemoryEndpoint):
    def dial(self, receiver, address):
        super().dial(receiver, self._dialled.get(receiver, address))


class NeverHangsUp(MemoryEndpoint):
    def hang_up(self, receiver):
        pass


BROKEN = MemoryEndpoint.__subclasses__()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_transport_that_breaks_the_promise_is_caught(broken, monkeypatch):
    monkeypatch.setattr(checks, "PATIENCE", 0.1)

    class BrokenWorld(checks.MemoryWorld):
        async def start(self, name, address=None):
            sound = await super().start(name, address)
            await sound.close()
            return broken(self.network, sound.key, sound.address)

    with pytest.raises((AssertionError, TimeoutError, KeyError)):
        asyncio.run(checks.check_transport(BrokenWorld))
