"""Real peers at the defaults of a new task, where trust is one-sided or abused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hostile import ForgedEdge, amount_of, parcel_of
from real_peers import PATIENCE, Town, admit, befriend, is_well, mass, trust, types, until

from oneway.lab.peer_process import PeerProcess
from oneway.methods import Relay
from oneway.peer.identity.keys import key_text
from oneway.protocol.fixed_point import Fixed

SOON = 400
"""Samples after which a model is better than none, however noisy."""

MANY = 1200
"""Samples over which losses are compared: their means differ by a few per cent at most."""


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with Town(tmp_path / "town", defaults=True) as made:
        yield made


class Losses(NamedTuple):
    """Sums of losses over the samples so far."""

    samples: int
    yours: float
    shared: float
    alone: float


def losses(peer: PeerProcess) -> Losses:
    status = peer.status()
    found = status.measures.so_far if status and status.measures else None
    if found is None:
        return Losses(0, 0.0, 0.0, 0.0)
    many = found.samples
    return Losses(many, many * found.loss, many * found.shared_loss, many * found.alone_loss)


def since(before: Losses, peer: PeerProcess) -> Losses:
    """Mean losses since then."""
    now = losses(peer)
    many = now.samples - before.samples
    sums = (one - other for one, other in zip(now[1:], before[1:], strict=True))
    return Losses(many, *(total / many for total in sums))


def until_measured(peer: PeerProcess, more: int, meanwhile: Callable[[], None] = lambda: None):
    goal = losses(peer).samples + more

    def is_there() -> bool:
        meanwhile()
        return losses(peer).samples >= goal

    until(is_there, f"{peer.name} predicts {more} more samples")


def pushes(peer: PeerProcess) -> int:
    snapshot = peer.snapshot()
    return sum(edge.seq for edge in snapshot.state.out.values()) if snapshot else 0


# One-way streets.


def test_nobody_loses_where_mass_drains_to_a_peer_that_sends_to_nobody(town: Town):
    """Alice and carol send to each other, and alice to bob, who sends to nobody."""
    alice, bob, carol = (town.peer(name, 10_000 * i) for i, name in enumerate(("a", "b", "c")))
    befriend(alice, carol)
    admit(bob, alice)
    trust(alice, bob)
    peers = (alice, bob, carol)
    for peer in peers:
        peer.start()
    until_measured(bob, SOON)
    before = {peer.name: losses(peer) for peer in peers}
    pushed = pushes(alice), pushes(carol)
    for peer in peers:
        until_measured(peer, MANY)
    lowest = Relay.usual_bounds[0]
    for peer in peers:
        is_well(peer)
        found = since(before[peer.name], peer)
        assert found.yours <= 1.02 * found.alone, (peer.name, found)
        assert found.shared <= 1.1 * found.alone, (peer.name, found)
        # After a push, until the next step, a part of it is in somebody else's hands.
        assert mass(peer) >= lowest / 8, peer.name
    steps = MANY / town.task.samples_per_push
    for peer, then in zip((alice, carol), pushed, strict=True):
        assert pushes(peer) - then >= steps, "each step is pushed, for ever"
    assert "less mass comes back than you hand out" in types(alice, "doctor", code=None)
    # Distrust heals: what alice and carol hold stays with them, and they get back what they lost.
    alice.change(lambda config: config.without_receiver(bob.name))
    until_measured(carol, 2 * SOON)
    then = sum(peer.status().replenished for peer in (alice, carol))
    before = {peer.name: losses(peer) for peer in (alice, carol)}
    for peer in (alice, carol):
        until_measured(peer, MANY)
    for peer in (alice, carol):
        found = since(before[peer.name], peer)
        assert found.shared <= 1.1 * found.alone, (peer.name, found)
        assert 0.05 < mass(peer) < Relay.most_in_peer
    now = sum(peer.status().replenished for peer in (alice, carol))
    assert now <= then + 2 * lowest, "nothing drains any more"


def test_a_clinic_that_only_sends_goes_on_sending(town: Town):
    clinic, hospital = town.peer("clinic"), town.peer("hospital", 10_000)
    admit(hospital, clinic)
    trust(clinic, hospital)
    for peer in (clinic, hospital):
        peer.start()
    until_measured(hospital, SOON)
    before = {peer.name: losses(peer) for peer in (clinic, hospital)}
    then = pushes(clinic)
    for peer in (clinic, hospital):
        until_measured(peer, MANY)
    assert pushes(clinic) - then >= MANY / town.task.samples_per_push
    for peer in (clinic, hospital):
        is_well(peer)
        found = since(before[peer.name], peer)
        assert found.yours <= 1.02 * found.alone, (peer.name, found)
        assert found.shared <= 1.1 * found.alone, (peer.name, found)


# Whoever is admitted, and lies.


class Forger:
    """An admitted sender that pulls its victim towards the opposite of what is true."""

    def __init__(self, town: Town, victim: PeerProcess) -> None:
        self.mallory, self.task, self.taken = town.hostile(), town.task, 0
        admit(victim, self.mallory)
        self.wrong = np.zeros(town.task.dim)
        self.wrong[: len(town.truth)] = -town.truth
        until(lambda: self._dials(victim), "the victim lets its new sender in")

    def _dials(self, victim: PeerProcess) -> bool:
        """Whether the victim, which may not have read its peer.toml again yet, lets it in."""
        self.edge: ForgedEdge = self.mallory.dial(victim.card).edge(epoch=7)
        return self.edge.open(3.0)

    def forge(self, steps: float) -> None:
        """Hand over a parcel of steps that lead away from the truth."""
        self._push(parcel_of(self.task, steps, self.wrong))

    def mint(self, mass: float) -> None:
        """Hand over mass at a model on the wrong side, far away."""
        self._push(amount_of(mass, 100.0 * self.wrong, self.task.layout))

    def _push(self, amount: Fixed) -> None:
        if self.edge.is_open or self.edge.open(PATIENCE):
            self.taken += bool(self.edge.hand_over(self.edge.next_total(amount, pushes=1), 5.0))


@pytest.mark.parametrize("steps", [0.1, 200.0])
def test_forged_steps_move_nobody_far_and_are_soon_forgotten(town: Town, steps: float):
    alice, carol = town.peer("alice"), town.peer("carol", 10_000)
    befriend(alice, carol)
    for peer in (alice, carol):
        peer.start()
    for peer in (alice, carol):
        until_measured(peer, SOON)
    forger = Forger(town, alice)
    before = {peer.name: losses(peer) for peer in (alice, carol)}
    until_measured(alice, MANY, lambda: forger.forge(steps))
    under_attack = {peer.name: since(before[peer.name], peer) for peer in (alice, carol)}
    assert forger.taken > 20, "it is taken in, or it would be no attack"
    is_well(alice)
    alice.change(lambda config: config.without_sender(key_text(forger.mallory.key)))
    until_measured(alice, SOON)
    after = {peer.name: losses(peer) for peer in (alice, carol)}
    until_measured(alice, MANY)
    for peer, most in ((alice, 1.5), (carol, 1.1)):
        found = under_attack[peer.name]
        assert found.yours <= 1.02 * found.alone, (peer.name, found)
        assert found.shared <= most * found.alone, (peer.name, found)
        healed = since(after[peer.name], peer)
        assert healed.shared <= 1.1 * healed.alone, (peer.name, healed)


def test_minted_mass_does_not_stop_the_exchange_of_others(town: Town):
    alice, bob = town.peer("alice"), town.peer("bob", 10_000)
    befriend(alice, bob)
    for peer in (alice, bob):
        peer.start()
    for peer in (alice, bob):
        until_measured(peer, SOON)

    def rate() -> float:
        """Pushes for each sample."""
        pushed, samples = [pushes(peer) for peer in (alice, bob)], losses(alice).samples
        until_measured(alice, SOON)
        more = [pushes(peer) - then for peer, then in zip((alice, bob), pushed, strict=True)]
        return min(more) / (losses(alice).samples - samples)

    usual = rate()
    forger = Forger(town, alice)
    for _ in range(17):
        forger.mint(1.0)
    assert forger.taken > 10
    alice.change(lambda config: config.without_sender(key_text(forger.mallory.key)))
    assert rate() >= usual / 2
    for peer in (alice, bob):
        is_well(peer)
        assert mass(peer) <= Relay.most_in_peer + 2 * town.task.mass_at_once


def test_a_receiver_that_acknowledges_and_returns_nothing_costs_its_sender_nothing(town: Town):
    alice, carol, mallory = town.peer("alice"), town.peer("carol", 10_000), town.hostile()
    befriend(alice, carol)
    hole = mallory.listen()
    trust(alice, hole)
    for peer in (alice, carol):
        peer.start()
    for peer in (alice, carol):
        until_measured(peer, SOON, lambda: hole.swallow(0.0))
    before = {peer.name: losses(peer) for peer in (alice, carol)}
    swallowed = 0

    def go_on() -> None:
        nonlocal swallowed
        swallowed += hole.swallow(0.0)

    for peer in (alice, carol):
        until_measured(peer, MANY, go_on)
    assert swallowed >= MANY / town.task.samples_per_push
    for peer in (alice, carol):
        is_well(peer)
        found = since(before[peer.name], peer)
        assert found.yours <= 1.02 * found.alone, (peer.name, found)
        assert found.shared <= 1.1 * found.alone, (peer.name, found)
