"""The transport is an argument of a peer: any registered one, with faults only while there are."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from builders import replace
from plain import PLAIN_TOML
from rewritten import rewrite

from oneway.errors import ConfigError
from oneway.peer.home.config import PeerConfig
from oneway.peer.home.config_file import config_toml, parse_config
from oneway.peer.home.home import Home
from oneway.peer.peer import Peer
from oneway.testing import MemoryNetwork
from oneway.transport import TRANSPORTS, Faults, Faulty
from oneway.transport.keys import public_of

PATIENCE = 240.0
TASK = f"""
{PLAIN_TOML}label = "late"
classes = ["no", "yes"]
model = "logistic"
learning_rate = 0.3
[features]
rain = {{}}
"""


class Pigeons:
    """A transport of somebody's own: an in-memory network, and what peers asked it for."""

    def __init__(self):
        self.network = MemoryNetwork()
        self.asked = []

    def listen(self, secret_key, address, *, limits, clock):
        self.asked.append((address, limits.max_frame))
        return self.network.endpoint(public_of(secret_key), address)

    async def until(self, condition):
        """Deliver what is in flight until the condition holds."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self.network.deliver_all()
                await asyncio.sleep(0.01)


@pytest.fixture
def homes(tmp_path):
    """Alice, who sends to Bob."""
    (tmp_path / "task.toml").write_text(TASK)
    alice, bob = [
        Home.create(tmp_path / name, name, tmp_path / "task.toml", f"127.0.0.1:{port}")
        for name, port in (("alice", 1), ("bob", 2))  # never listened on
    ]
    alice.change(lambda mine: mine.with_receiver(card_of(bob), own_key=alice.keys().public))
    bob.change(lambda mine: mine.with_sender(card_of(alice), own_key=bob.keys().public))
    return alice, bob


def card_of(home):
    return home.config().card(home.keys().public)


async def exchange(pigeons, alice, bob):
    """Run two peers until Bob has heard of what Alice learned."""
    runs = [asyncio.ensure_future(peer.run()) for peer in (alice, bob)]
    try:
        await pigeons.until(lambda: alice._runtime and alice._runtime._node.connected)
        alice.learn_one({"rain": 1.0}, "yes")
        key = alice._keys.public
        await pigeons.until(
            lambda: any(
                edge.sender == key and edge.seq for edge in bob.node.snapshot.state.in_.values()
            )
        )
    finally:
        for peer in (alice, bob):
            peer.stop()
        await asyncio.gather(*runs, return_exceptions=True)
        for peer in (alice, bob):
            peer.close()
    for run in runs:
        run.result()


def test_peers_exchange_models_over_a_transport_given_as_an_argument(homes):
    pigeons = Pigeons()
    peers = [Peer(home.folder, transport=pigeons.listen) for home in homes]
    asyncio.run(exchange(pigeons, *peers))
    assert [address for address, _ in pigeons.asked] == ["127.0.0.1:1", "127.0.0.1:2"]
    assert {size for _, size in pigeons.asked} == {
        homes[0].config().limits.frame_for(homes[0].task().dim)
    }


def test_peers_exchange_models_over_a_registered_transport_that_peer_toml_names(homes, monkeypatch):
    pigeons = Pigeons()
    monkeypatch.setitem(TRANSPORTS._entries, "pigeon", pigeons.listen)
    for home in homes:
        rewrite(home, transport="pigeon")
    asyncio.run(exchange(pigeons, *(Peer(home.folder) for home in homes)))
    assert len(pigeons.asked) == 2


def test_the_transport_in_peer_toml_is_zeromq_unless_another_registered_one_is_named():
    config = PeerConfig("alice", "127.0.0.1:7701")
    assert config.transport == "zeromq"
    assert parse_config(config_toml(config)) == config
    with pytest.raises(ConfigError, match=r"transport .*is 'zeromk'.*'zeromq'"):
        parse_config(config_toml(config).replace('"zeromq"', '"zeromk"'))
    for wrong in ("3", "[]", "true", "{}"):
        with pytest.raises(ConfigError, match=r"transport .*is "):
            parse_config(config_toml(config).replace('"zeromq"', wrong))


def test_faults_come_and_go_in_a_running_peer_and_without_them_nothing_is_in_the_path(homes):
    pigeons, home = Pigeons(), homes[0]

    async def scenario():
        peer = Peer(home.folder, transport=pigeons.listen)
        run = asyncio.ensure_future(peer.run())

        def in_path():
            return peer._runtime is not None and isinstance(peer._runtime._transport, Faulty)

        try:
            await pigeons.until(lambda: peer._runtime is not None)
            [endpoint] = pigeons.network.listeners.values()
            assert peer._runtime._transport is endpoint
            home.change(lambda mine: replace(mine, faults=Faults(loss=0.5, cut=("bob",))))
            await pigeons.until(in_path)
            assert peer._runtime._transport.cut == {homes[1].keys().public}
            home.change(lambda mine: replace(mine, faults=Faults()))
            await pigeons.until(lambda: not in_path())
            assert peer._runtime._transport is endpoint
        finally:
            peer.stop()
            await asyncio.gather(run, return_exceptions=True)
            peer.close()
        run.result()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "module", ["oneway.transport", "oneway.testing", "oneway.peer.peer", "oneway.peer.home.home"]
)
def test_zeromq_is_loaded_only_by_a_peer_that_listens_with_it(module):
    code = f"import sys, {module}; sys.exit('zmq' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
