"""How far one sender may move a peer, and how often it may ask."""

from __future__ import annotations

import math

import numpy as np
import pytest
from builders import replace
from hypothesis import given
from hypothesis import strategies as st
from town import LIMITS, TASK, Town, config, key_of, kinds, life, quiet, words

from oneway.peer.home.limits import Limits
from oneway.peer.inflow import (
    FIRST_STEP,
    HELLOS,
    HELLOS_PER_SECOND,
    PART,
    SECONDS_PER_STEP,
    STEPS,
    AskLimit,
    Inflow,
)
from oneway.protocol.fixed_point import LARGEST, ONE, extent, length_of, mass_of, zeros
from oneway.protocol.incoming import Move
from oneway.protocol.messages import NO_PROGRESS, Ack, Closed, Data, Hello, State
from oneway.protocol.tags import NO_TAG
from oneway.transport.base import Arrival
from oneway.transport.wire import encode

MALLORY = b"mallory"
DIM = 20


def stepped(length: float, steps: int = 10 * STEPS, now: float = 0.0) -> Inflow:
    """The accounts of a peer whose steps are all of one length."""
    inflow = Inflow(longest_step=3.0, steps=0, now=now)
    for _ in range(steps):
        inflow.stepped(length, now)
    return inflow


def bring(inflow: Inflow, sender: bytes, move: np.ndarray, now: float = 0.0) -> float:
    """Let a sender move the peer as far as it may; which part of that was let through."""
    part = inflow.allowance(sender, now).part_of(Move(move))
    inflow.moved(sender, Move(part * move), now)
    return part


def along(length: float) -> np.ndarray:
    return np.eye(1, DIM)[0] * length


# The account.


@given(
    st.lists(
        st.tuples(st.floats(0.0, 2.0), st.floats(0.0, 60.0), st.floats(0.0, 5.0)), max_size=60
    ),
    st.integers(0, 10**6),
)
def test_the_account_is_the_decayed_sum_of_moves_and_is_never_longer_than_the_limit(events, former):
    """Transcribed: own steps, time and moves, in whatever order."""
    inflow, now, rng = Inflow(3.0, former, 0.0), 0.0, np.random.default_rng(7)
    squares = weight = since = 0.0
    total = np.zeros(DIM)
    for step, seconds, length in events:
        now += seconds
        since += seconds
        total *= (1 - 1 / STEPS) ** (seconds / SECONDS_PER_STEP)
        if step:
            inflow.stepped(step, now)
            squares = squares * (1 - 1 / STEPS) + step**2
            weight = weight * (1 - 1 / STEPS) + 1.0
            total *= 1 - 1 / STEPS
        own = math.sqrt(squares / weight) if weight else 3.0 / math.sqrt(max(former, 1))
        allowance = inflow.allowance(MALLORY, now)
        assert allowance.most == pytest.approx(PART * STEPS * own, rel=1e-9)
        move = rng.normal(size=DIM) * length
        part = bring(inflow, MALLORY, move, now)
        before, total = total, total + part * move
        longest = max(allowance.most, np.linalg.norm(before))
        assert np.linalg.norm(total) <= longest * (1 + 1e-4) + 1e-6
        if part < 1.0 and np.linalg.norm(before) < allowance.most:
            assert np.linalg.norm(total) == pytest.approx(allowance.most, rel=1e-3, abs=1e-5)
        if (known := inflow.allowance(MALLORY, now).moved) is not None:
            np.testing.assert_allclose(known.now, total, rtol=1e-4, atol=1e-5)


def test_a_coherent_pull_is_stopped_at_the_limit_and_every_own_step_lets_in_a_part_of_one():
    inflow = stepped(0.5)
    brought = sum(bring(inflow, MALLORY, along(1.0)) for _ in range(100))
    assert brought == pytest.approx(PART * STEPS * 0.5, rel=1e-5)
    assert bring(inflow, MALLORY, along(1.0)) == 0.0
    per_step = []
    for _ in range(4 * STEPS):
        inflow.stepped(0.5, 0.0)
        per_step.append(bring(inflow, MALLORY, along(1.0)))
    # It carries the peer a tenth as far as the peer's own steps carry it back.
    np.testing.assert_allclose(per_step, PART * 0.5, rtol=1e-3)


def test_noise_that_is_many_times_as_long_in_all_passes_uncut():
    """Of a sender that takes steps like one's own and hands on what others took: to and fro."""
    rng, inflow = np.random.default_rng(3), stepped(1.0)
    parts, lengths = [], []
    for _ in range(50 * STEPS):
        inflow.stepped(1.0, 0.0)
        move = rng.normal(size=DIM) / math.sqrt(DIM) * 0.3
        parts.append(bring(inflow, b"honest", move))
        lengths.append(np.linalg.norm(move))
    assert sum(lengths) > 100 * PART * STEPS
    assert np.mean(np.array(parts) == 1.0) > 0.99


def test_a_way_back_is_free():
    inflow = stepped(1.0)
    assert bring(inflow, MALLORY, along(100.0)) < 1.0
    assert bring(inflow, MALLORY, along(-1.0)) == 1.0


def test_senders_have_accounts_of_their_own():
    inflow = stepped(1.0)
    bring(inflow, MALLORY, along(100.0))
    assert bring(inflow, b"honest", along(1.0)) == 1.0


def test_a_peer_without_samples_follows_slowly():
    """One step's worth in so many seconds, and never more than the limit at once."""
    inflow = stepped(1.0)
    bring(inflow, MALLORY, along(100.0))
    day = sum(
        bring(inflow, MALLORY, along(100.0), now) * 100.0
        for now in np.arange(0.0, 24 * 3600.0, 60.0)
    )
    assert day == pytest.approx(PART * 24 * 3600.0 / SECONDS_PER_STEP, rel=0.1)


def test_time_that_passed_before_a_step_is_not_counted_again_after_it():
    inflow = stepped(1.0)
    inflow.stepped(1.0, 1000.0)
    bring(inflow, MALLORY, along(100.0), 1000.0)
    left = inflow.allowance(MALLORY, 1000.0 + SECONDS_PER_STEP)
    assert np.linalg.norm(left.moved.now) == pytest.approx(left.most * (1 - 1 / STEPS), rel=1e-5)


@pytest.mark.parametrize(("former", "longest"), [(0, 3.0), (1, 3.0), (10_000, 0.03)])
def test_a_restart_opens_no_account_wider_than_former_steps_allow(former, longest):
    """A peer that is killed again and again would else be moved as far as a new one every time."""
    inflow = Inflow(3.0, former, 0.0)
    assert inflow.allowance(MALLORY, 0.0).most == pytest.approx(PART * STEPS * longest)


def test_before_its_first_step_a_peer_is_not_moved_without_a_limit_either():
    """With a fixed rate and noise nothing limits how long a step is."""
    inflow = Inflow(math.inf, 100, 0.0)
    assert inflow.allowance(MALLORY, 0.0).most == pytest.approx(PART * STEPS * FIRST_STEP / 10.0)


def test_a_count_keeps_nobody_from_depositing():
    """A parcel of nothing that is said to be of a thousand steps."""
    town = Town({"bob": []}, task=replace(TASK, method="relay"), limits=Limits())
    town.learn("bob", 10)
    flood, count = Flood(town), town.task.layout.parcel[1]
    for _ in range(10):
        edge = town.state("bob").in_[flood.key, flood.epoch]
        total = edge.heard + zeros(town.task.layout.width)
        total[count] += 900 * ONE
        about = (flood.ledger, 1, flood.granted, edge.seq + 1)
        flood.say(Data(flood.epoch, life(), *about, total, NO_TAG, NO_PROGRESS))
        flood.answers()
    held, step = town.state("bob").holding, town.nodes["bob"].inflow.own_step
    enough = (length_of(held[town.task.layout.parcel[0]]) / step) ** 2
    assert held[count][0] / ONE <= max(1.0, 1.001 * enough) < 900
    town.check_books()


def test_a_node_counts_the_steps_of_its_former_lives_and_not_its_samples():
    task = replace(TASK, samples_per_push=4)
    town = Town({"alice": []}, task=task)
    town.learn("alice", 42)
    town.power_on("alice", town.power_off("alice"), config("alice"))
    inflow = town.nodes["alice"].inflow
    assert inflow.own_step == pytest.approx(task.longest_step / math.sqrt(42 // 4))


def test_a_nodes_own_steps_are_as_long_as_what_they_move_an_estimate_of_mass_one_by():
    for method in ("ops", "relay"):
        town = Town({"alice": []}, task=replace(TASK, method=method, step="paper"))
        alice = town.nodes["alice"]
        alice.ensure_minted()
        alice.learn({"u": 3.0, "v": -4.0}, "yes")
        rate = alice.learner.as_learned.build_method().rate(0)
        assert alice.inflow.own_step == pytest.approx(rate * 0.5 * 5.0, rel=0.01), method


def test_a_sender_costs_one_vector_of_half_the_precision():
    inflow = stepped(1.0)
    for _ in range(100):
        bring(inflow, MALLORY, along(0.1))
    [account] = inflow._senders.values()
    assert account.total.nbytes == 4 * DIM


# In a peer.


class Flood:
    """An admitted sender that knows what was heard of it, and pushes whatever it likes."""

    def __init__(self, town: Town) -> None:
        self.town, self.epoch, self.key = town, 7, key_of("mallory")
        self.say(Hello(self.epoch, life(), 0, 1))
        [state] = [word for word in self.answers() if isinstance(word, State)]
        self.ledger, self.granted = state.ledger, state.granted

    def say(self, message) -> None:
        content = encode(message, self.town.task.fingerprint)
        self.town.nodes["bob"].take(Arrival(self.key, content, "push"))

    def answers(self) -> list:
        bob = self.town.nodes["bob"]
        batch = bob.begin()
        frames = [] if batch is None else bob.committed(batch)
        self.town.send("bob", [frame for frame in frames if frame.peer != self.key])
        return words([frame for frame in frames if frame.peer == self.key])

    def push(self, mass: float, at: float = 0.0) -> None:
        edge = self.town.state("bob").in_[self.key, self.epoch]
        total = edge.heard + zeros(TASK.dim)
        total[-1] += int(mass * ONE)
        total[:-1] += int(at * mass * ONE)
        about = (self.ledger, 1, self.granted, edge.seq + 1)
        self.say(Data(self.epoch, life(), *about, total, NO_TAG, NO_PROGRESS))
        self.answers()


def test_with_all_the_mass_it_likes_a_sender_moves_a_peer_no_further_than_its_account():
    town = quiet(limits=Limits(pushes_per_second=1e3), bob=[])
    bob, flood = town.nodes["bob"], Flood(town)
    town.learn("bob", 200)
    start = bob.estimate
    for _ in range(50):
        flood.push(16.0, at=500.0)
    most = PART * STEPS * bob.inflow.own_step
    assert np.linalg.norm(bob.estimate - start) == pytest.approx(most, rel=1e-3)
    assert bob.guard.about(flood.key).clipped > 0
    assert bob.guard.about(flood.key).strikes == 0
    town.check_books()


def test_without_a_clip_there_is_no_account():
    town = quiet(bob=[])
    flood = Flood(town)
    flood.push(16.0, at=500.0)
    assert np.abs(town.nodes["bob"].estimate).max() > 400.0


def test_a_sender_of_mass_without_end_keeps_nobody_else_away():
    town = quiet(limits=Limits(pushes_per_second=1e3), alice=["bob"], bob=["carol"], carol=["bob"])
    flood = Flood(town)
    for turn in range(100):
        flood.push(16.0)
        town.learn("alice" if turn % 2 else "bob")
        edge = town.state("alice").out[key_of("bob"), 1]
        assert edge.in_flight == 0
        assert town.state("bob").mass <= TASK.mass_limit
    assert edge.seq >= 50
    assert town.strikes() == 0
    town.check_books()


@pytest.mark.parametrize("radius", [1.0, 1000.0, 2.0**15, 2.0**18])
def test_no_mass_is_held_beyond_what_fits_with_any_radius(radius):
    """Even at the edge of the radius, and without a clip, no number comes near 63 bits."""
    task = replace(TASK, radius=radius, mass_cap=1.0)
    town = Town({"bob": []}, task=task)
    town.nodes["bob"].ensure_minted()
    flood = Flood(town)
    for _ in range(400):
        flood.push(1.0, at=radius)
        state = town.state("bob")
        assert mass_of(state.holding) <= task.mass_limit * ONE
        assert extent(state.holding) <= LARGEST
    assert state.mass == min(401.0, task.mass_limit)
    town.check_books()


# A sender that asks without end.


def test_some_hellos_in_a_row_are_answered_and_then_so_many_a_second():
    asks = AskLimit()
    assert [asks.may_ask(b"a", 5.0) for _ in range(100)].count(True) == HELLOS
    assert asks.may_ask(b"b", 5.0)
    many = [asks.may_ask(b"a", 5.0 + i / 100) for i in range(1, 1001)]
    assert many.count(True) == pytest.approx(10 * HELLOS_PER_SECOND, abs=1)
    assert [asks.may_ask(b"a", 1e6) for _ in range(100)].count(True) == HELLOS


def test_a_hundred_hellos_cost_no_more_than_the_answers_to_a_few():
    town = quiet(alice=["bob"], bob=[])
    town.learn("alice")
    bob, sender = town.nodes["bob"], key_of("mallory")

    def ask(epochs) -> list:
        for epoch in epochs:
            content = encode(Hello(epoch, life(), 0, 1), TASK.fingerprint)
            bob.take(Arrival(sender, content, "push"))
        batch = bob.begin()
        return [] if batch is None else bob.committed(batch)

    said = ask(range(10, 110))
    assert kinds(said).count(State) <= HELLOS
    assert sum(len(frame.content) for frame in said) < 8000
    kept = [edge for edge in town.state("bob").in_.values() if edge.sender == sender]
    assert len(kept) <= bob.rules.most_edges
    assert bob.guard.about(sender).rejected["asked too often"] == 100 - HELLOS
    assert bob.guard.about(sender).strikes == 0
    assert ask(range(110, 210)) == []
    town.time += 1.0
    assert kinds(ask(range(210, 310))).count(State) <= HELLOS_PER_SECOND
    # Meanwhile another sender, that has restarted, is answered.
    town.power_on("alice", town.power_off("alice"), config("alice", ["bob"]))
    town.pass_time(0.1)
    assert town.state("alice").out[key_of("bob"), 1].is_at_rest
    town.check_exact()


def test_a_hello_is_answered_with_one_total_however_many_edges_have_some():
    """Of the others a digest: a sender that misses one of them asks for it."""
    town = quiet(alice=["bob"], bob=[])
    flood = Flood(town)
    for _ in range(40):
        flood.epoch += 1
        town.time += 1.0
        flood.say(Hello(flood.epoch, life(), 0, 1))
        flood.answers()
        if (flood.key, flood.epoch) in town.state("bob").in_:
            flood.push(0.01)
    used = [edge for edge in town.state("bob").in_.values() if edge.sender == flood.key]
    assert len(used) == LIMITS.rules(TASK, b"").most_edges
    town.time += 100.0
    flood.say(Hello(used[0].epoch, life(), 0, 2))
    said = flood.answers()
    assert sum(isinstance(word, State | Closed) for word in said) == 1
    assert sum(isinstance(word, Ack) for word in said) == len(used) - 1
