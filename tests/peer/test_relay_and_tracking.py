"""Peers that relay gradients, or track momenta: what they deposit, pass on, and are not told."""

from __future__ import annotations

import numpy as np
import pytest
from builders import replace
from town import BOOT, LIMITS, SAMPLE, TASK, Town, config, key_of, life

from oneway.protocol.fixed_point import ONE, fixed, zeros
from oneway.protocol.messages import NO_PROGRESS, Data, Hello
from oneway.protocol.pace import IDLE_SECONDS
from oneway.protocol.tags import NO_TAG
from oneway.transport.base import Arrival
from oneway.transport.wire import encode

RELAY = replace(TASK, method="relay", step="paper")
TRACKING = replace(TASK, method="tracking", step="paper")
CLIPPED = replace(LIMITS, clip=0.5)


def founded(task, limits=LIMITS, **edges):
    """A town whose peers have their unit of mass and open edges."""
    town = Town(edges, task=task, limits=limits)
    town.exchange()
    for name in edges:
        town.nodes[name].ensure_minted()
    town.exchange()
    return town


def in_segment(town, name, segment):
    """What a peer holds in one of its segments."""
    node = town.nodes[name]
    return town.state(name).holding[node.learner.layout.places[segment]] / ONE


def with_parcel(town, name, parcel, count=1.0):
    """Let a peer hold a parcel, as if it had come from its own learning."""
    node, state = town.nodes[name], town.state(name)
    units = fixed(np.array([0.0, 0.0, *parcel, count]))
    held = replace(
        state, holding=state.holding + units, gradient_steps=state.gradient_steps - units
    )
    node.snapshot = replace(node.snapshot, state=held)


def test_a_parcel_that_arrives_is_deposited_and_passed_on_without_a_sample():
    town = founded(RELAY, alice=["bob"], bob=["carol"], carol=["alice"])
    with_parcel(town, "bob", [1.0, -1.0], count=4.0)
    before = in_segment(town, "bob", "numerator")
    town.pass_time(IDLE_SECONDS)
    # phi = 0.3 * 1 / sqrt(4): that much is deposited, and all the rest goes on to carol.
    town.pass_time(IDLE_SECONDS)
    for _ in range(200):
        town.pass_time(IDLE_SECONDS)
    assert not any(node.is_restless for node in town.nodes.values())
    sums = sum(in_segment(town, name, "numerator") for name in town.nodes)
    np.testing.assert_allclose(sums, 3 * before + [-1.0, 1.0], atol=1e-4)
    town.check_exact()


def test_a_deposit_moves_an_estimate_no_further_than_others_may():
    """Whoever filled the parcel."""
    town = founded(RELAY, CLIPPED, alice=[])
    for _ in range(5):
        with_parcel(town, "alice", [900.0, 0.0], count=1e-6)
        before = town.nodes["alice"].estimate
        town.pass_time(2 * IDLE_SECONDS)
        moved = np.linalg.norm(town.nodes["alice"].estimate - before)
        assert 0 < moved <= 0.5 * (1 + np.linalg.norm(before)) * (1 + 1e-9)
    town.check_books()


def test_several_pushes_follow_a_step_if_the_task_says_so():
    for mixes in (1, 3):
        town = founded(replace(RELAY, mixes=mixes), alice=["bob"], bob=[])
        [edge] = town.state("alice").out.values()
        town.learn("alice")
        for _ in range(10):  # too soon to pass on anything else
            town.pass_time(IDLE_SECONDS / 100)
        [later] = town.state("alice").out.values()
        assert later.seq - edge.seq == mixes


@pytest.mark.parametrize("task", [RELAY, TRACKING])
def test_who_leaves_and_learns_on_has_nothing_more_to_hand_over(task):
    town = founded(task, alice=["bob"], bob=["alice"])
    town.learn("alice", times=3)
    alice = town.nodes["alice"]
    alice.follow(replace(alice.config, leaving=True))
    for _ in range(20):
        town.pass_time(1.0)
    assert not town.state("alice").holding[-1]
    alice.learn(SAMPLE, "yes")
    state = town.state("alice")
    assert not state.layout.booked(state.holding).any()
    town.check_books()


# What a sender can do with what travels beside its model.

MALLORY = key_of("mallory")


class Liar:
    """A sender that hands over whatever it likes, to one peer of a town."""

    def __init__(self, town, victim):
        self.node, self.seq = town.nodes[victim], 0
        self.total = zeros(self.node.learner.layout.width)
        self.say(Hello(1, life(), 0, 1))

    def say(self, message):
        frame = encode(message, self.node.task.fingerprint)
        self.node.take(Arrival(MALLORY, frame, "push"))

    def push(self, pushes=1, mass=0.0, **segments):
        """Hand over so much of some segments, as if in so many pushes."""
        for name, numbers in segments.items():
            place = self.node.learner.layout.places[name]
            self.total[place] += np.rint(np.array(numbers) * ONE).astype(np.int64)
        self.total[-1] += round(mass * ONE)
        self.seq += pushes
        ledger = self.node.snapshot.state.ledger
        total = self.total.copy()
        self.say(Data(1, life(), ledger, 1, BOOT, self.seq, total, NO_TAG, NO_PROGRESS))
        assert self.node.snapshot.state.in_[MALLORY, 1].seq == self.seq


def commits(town, name, seconds):
    """How often a peer commits in some time."""
    count = 0
    for _ in range(round(seconds / IDLE_SECONDS)):
        before = town.durable[name]
        town.pass_time(IDLE_SECONDS)
        count += town.durable[name] is not before
    return count


def test_no_parcel_brings_an_estimate_out_of_the_radius():
    """There it could not be shown to anybody, and nothing would ever bring it back."""
    town = founded(RELAY, CLIPPED, bob=[])
    bob = town.nodes["bob"]
    for number in range(100):
        with_parcel(town, "bob", [500.0, -300.0 * (number % 2)])
        town.pass_time(2 * IDLE_SECONDS)
        assert town.state("bob").is_sound(bob.rules.radius)
    assert np.abs(bob.estimate).max() > 900  # and there it is held
    town.check_books()
    town.pass_time(IDLE_SECONDS)
    commits(town, "bob", 40.0)  # without samples of its own it deposits once a second
    assert np.abs(in_segment(town, "bob", "parcel")).max() < 1e-2
    before = bob.estimate[0]
    with_parcel(town, "bob", [-1.0, 0.0])
    commits(town, "bob", 4.0)
    assert bob.estimate[0] > before + 0.25  # an honest step leads back


def test_a_parcel_moves_no_newcomer_without_mass():
    town = Town({"bob": []}, task=RELAY, limits=CLIPPED)
    bob, liar = town.nodes["bob"], Liar(town, "bob")
    liar.push(pushes=64, parcel=[500.0, 0.0], count=200.0)
    for _ in range(10):
        town.pass_time(IDLE_SECONDS)
    bob.ensure_minted()
    np.testing.assert_array_equal(bob.estimate, bob.learner.start)
    town.pass_time(2 * IDLE_SECONDS)
    assert 0 < np.linalg.norm(bob.estimate) <= 0.5 * (1 + 1e-9)
    town.check_books()


def test_a_parcel_that_cannot_go_anywhere_costs_no_commit():
    newcomer = Town({"bob": []}, task=RELAY, limits=CLIPPED)
    Liar(newcomer, "bob").push(parcel=[1.0, 0.0], count=1.0)
    newcomer.pass_time(1.0)
    assert commits(newcomer, "bob", 5.0) == 0


def test_who_neither_sends_nor_receives_deposits_each_step_once_and_keeps_its_mass():
    town = founded(RELAY, CLIPPED, bob=[])
    town.learn("bob")
    before = town.nodes["bob"].estimate
    with_parcel(town, "bob", [1.0, 0.0])
    commits(town, "bob", 10.0)
    np.testing.assert_allclose(town.nodes["bob"].estimate - before, [-0.3, 0.0], atol=1e-5)
    assert not in_segment(town, "bob", "parcel").any()
    assert town.state("bob").mass == 1.0


def test_who_receives_and_sends_to_nobody_lets_go_of_what_one_receiver_would_get():
    """Of a parcel it deposits once, also of one that comes after its own last step."""
    town = founded(RELAY, CLIPPED, alice=["bob"], bob=[])
    town.learn("alice")
    town.pass_time(1.0)
    before, steps = town.state("bob"), -town.state("alice").gradient_steps
    town.learn("bob", 2)
    after = town.state("bob")
    assert after.mass == before.mass / 4
    assert not any(after.holding[place].any() for place in after.layout.forwarded)
    assert steps.any()
    Liar(town, "bob").push(parcel=[1.0, 0.0], count=1.0)
    there = town.nodes["bob"].estimate
    commits(town, "bob", 10.0)
    np.testing.assert_allclose(town.nodes["bob"].estimate - there, [-0.3, 0.0], atol=1e-5)
    assert not in_segment(town, "bob", "parcel").any()
    town.check_books()


def test_while_nobody_can_be_handed_anything_a_parcel_is_deposited_once():
    """A light peer would else be moved by the same steps again and again, until they come back."""
    town = founded(RELAY, alice=["bob"], bob=["alice"])
    alice = town.nodes["alice"]
    alice.connected = frozenset()
    mass = town.state("alice").mass
    town.learn("alice", 5)
    assert town.state("alice").mass == mass
    assert not in_segment(town, "alice", "parcel").any()
    alice.connected = frozenset({key_of("bob")})
    pushed = town.edge("alice").seq
    town.pass_time(0.01)
    assert town.edge("alice").seq == pushed + 1, "what it learned meanwhile is said at once"
    town.check_exact()


def test_peers_that_were_drained_get_their_mass_back_once_nobody_drains_them():
    town = founded(RELAY, alice=["bob", "carol"], bob=["alice"], carol=[])
    for _ in range(60):
        town.learn("alice")
        town.learn("bob")
    lowest = town.nodes["alice"].learner.mass_bounds[0]
    assert max(town.state(name).mass for name in ("alice", "bob")) <= 2 * lowest
    town.nodes["alice"].follow(config("alice", ["bob"]))
    for _ in range(200):
        town.learn("alice")
        town.learn("bob")
    assert 1.0 < sum(town.state(name).mass for name in ("alice", "bob")) < 2.5
    town.check_books()


def test_nobody_keeps_others_away_by_filling_what_travels_beside_a_model():
    for most in ({"count": 256e3}, {"parcel": [512.0, 0.0], "count": 512.0}):
        town = founded(RELAY, CLIPPED, alice=["bob"], bob=[])
        liar, before = Liar(town, "bob"), town.edge("alice").seq
        for _ in range(300):
            liar.push(pushes=256, **most)
        town.learn("alice", times=3)
        town.pass_time(1.0)
        assert town.edge("alice").seq > before
        assert all(edge.is_at_rest for edge in town.state("alice").out.values())
        town.check_books()
        assert not town.strikes()


def test_a_light_peer_deposits_what_its_mass_can_bear_and_passes_the_rest_on():
    """Deposited there as a whole, a parcel of 1 would move the estimate by a thousand."""
    town = founded(RELAY, CLIPPED, alice=["bob"], bob=["alice"])
    alice, state, light = town.nodes["alice"], town.state("alice"), zeros(5)
    light[-1] = round(0.999 * ONE)
    state = replace(state, holding=state.holding - light, minted=state.minted - light)
    alice.snapshot = replace(alice.snapshot, state=state)
    with_parcel(town, "alice", [1.0, 0.0])
    before, others = alice.estimate, town.nodes["bob"].estimate
    town.pass_time(IDLE_SECONDS)
    assert 0.0 < np.linalg.norm(alice.estimate - before) < 0.31
    town.pass_time(IDLE_SECONDS)
    assert np.linalg.norm(town.nodes["bob"].estimate - others) > 0.1
    for _ in range(200):
        town.pass_time(IDLE_SECONDS)
    assert not any(node.is_restless for node in town.nodes.values())
    town.check_exact()


def test_a_forged_tracker_moves_a_model_no_further_at_once_than_a_model_could():
    town = founded(TRACKING, CLIPPED, bob=[])
    bob, liar = town.nodes["bob"], Liar(town, "bob")
    liar.push(pushes=64, tracker=[500.0, 0.0])
    for _ in range(100):
        liar.push(pushes=64, tracker=[5000.0, 0.0])
        before = bob.estimate
        town.learn("bob")
        moved = np.linalg.norm(bob.estimate - before)
        assert moved <= 0.5 * (1 + np.linalg.norm(before)) * (1 + 1e-9)
        assert town.state("bob").is_sound(bob.rules.radius)
    assert np.linalg.norm(bob.estimate) > 0.0
    town.check_books()
