"""Worlds in which every transport is put through the same checks."""

import asyncio
import contextlib
import hashlib
import random
from collections.abc import Callable, Iterator

import pytest
import zmq
from transport_checks import MemoryWorld, World

from oneway.transport import ConnectionLimits, Faults, Faulty, Transport
from oneway.transport.keys import KeyPair, public_of
from oneway.transport.zeromq import ZeroMQ

FAST = ConnectionLimits(
    max_frame=10_000, heartbeat=1.0, reconnect=0.01, reconnect_max=0.1, redial=0.2, handshake=2.0
)


def secret_of(name: str) -> bytes:
    """A secret key for every name, the same in every test."""
    return hashlib.sha256(name.encode()).digest()


class ZeroMQWorld:
    max_frame = FAST.max_frame

    async def start(self, name: str, address: str | None = None) -> Transport:
        return ZeroMQ(secret_of(name), address or "127.0.0.1:0", limits=FAST)

    async def pass_time(self) -> None:
        await asyncio.sleep(0.005)


class LossyMemoryWorld(MemoryWorld):
    async def start(self, name: str, address: str | None = None) -> Transport:
        transport = await super().start(name, address)
        faults = Faults(loss=0.3)
        later = asyncio.get_running_loop().call_later
        return Faulty(transport, faults, random.Random(transport.address), later)


WORLDS = {
    "memory": MemoryWorld,
    "zeromq": ZeroMQWorld,
    "lossy memory": LossyMemoryWorld,
}


@pytest.fixture(params=WORLDS.values(), ids=WORLDS.keys())
def new_world(request: pytest.FixtureRequest) -> Callable[[], World]:
    return request.param


@pytest.fixture(scope="session")
def listen() -> Callable[..., ZeroMQ]:
    """Start a ZeroMQ transport on loopback by name; its keys follow from the name."""

    def listen(name: str, address: str = "127.0.0.1:0", limits: ConnectionLimits = FAST) -> ZeroMQ:
        return ZeroMQ(secret_of(name), address, limits=limits)

    return listen


@pytest.fixture(scope="session")
def identity_of() -> Callable[[str], KeyPair]:
    """The keys that follow from a name."""
    return lambda name: KeyPair(public_of(secret_of(name)), secret_of(name))


@pytest.fixture(scope="session")
def bare_dealer(identity_of):
    """A DEALER with a valid key and none of our manners, and its key."""

    @contextlib.contextmanager
    def bare_dealer(
        name: str, receiver: Transport, address: str = "", **options: int
    ) -> Iterator[tuple]:
        identity = identity_of(name)
        with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
            dealer.set(zmq.LINGER, 0)
            dealer.set(zmq.CURVE_PUBLICKEY, identity.public)
            dealer.set(zmq.CURVE_SECRETKEY, identity.secret)
            dealer.set(zmq.CURVE_SERVERKEY, receiver.key)
            for option, value in options.items():
                setattr(dealer, option, value)
            dealer.connect(f"tcp://{address or receiver.address}")
            yield dealer, identity.public

    return bare_dealer
