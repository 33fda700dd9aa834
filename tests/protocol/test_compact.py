"""Compact pushes: books exact whatever codes can say, and forged ones change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from builders import replace
from hypothesis import given
from hypothesis import strategies as st
from storm import packed_agrees

from oneway.protocol import transitions
from oneway.protocol.audit import discrepancy, expected_holding
from oneway.protocol.compact import BLOCK, flaw, packed_total, unpack
from oneway.protocol.fixed_point import ONE, Fixed, mass_of
from oneway.protocol.incoming import mint, objection
from oneway.protocol.layout import Layout
from oneway.protocol.messages import Compact, Stale
from oneway.protocol.outgoing import answer, say
from oneway.protocol.replies import receive_reply
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.protocol.tags import digest_of
from oneway.protocol.transitions import (
    descend,
    push,
    receive_push,
    trust,
)
from oneway.records import Segment
from oneway.transport.wire import decode, encode

RADIUS = 1000.0
TASK = b"the task of tests"
ALICE, BOB = b"a" * 32, b"b" * 32
EPOCH = 5
PAYLOADS = {
    "ops": [Segment("numerator", "split")],
    "relay": [
        Segment("numerator", "split"),
        Segment("parcel", "forwarded"),
        Segment("count", "forwarded", is_vector=False),
    ],
    "tracking": [
        Segment("model", "copied"),
        Segment("tracker", "split", tracks="momentum"),
        Segment("weight", "split", is_vector=False),
    ],
}
payloads = st.sampled_from(sorted(PAYLOADS))


def amount(layout: Layout, seed: int, mass: float) -> Fixed:
    """An amount whose model is within the radius, and so is what stands beside it."""
    rng = np.random.default_rng(seed)
    reach = rng.choice([1e-12, 1e-3, 1.0, RADIUS])
    numbers = rng.uniform(-reach, reach, layout.width)
    numbers[rng.random(layout.width) < rng.choice([0.0, 0.5])] = 0.0
    units = np.zeros(layout.width + 1, dtype=np.int64)
    units[:-1] = numbers * ONE
    units[-1] = int(mass * ONE)
    if not layout.copies_model:
        units[layout.model] = numbers[layout.model] * units[-1]
    if layout.parcel is not None:  # nobody hands over less than no steps
        count = layout.parcel[1]
        units[count] = abs(units[count])
    return units


def example(payload: str, seed: int, dim: int) -> tuple[Layout, Fixed, Fixed]:
    layout = Layout.of(PAYLOADS[payload], dim)
    rng = np.random.default_rng(seed)
    base = amount(layout, seed, rng.choice([0.0, 0.5, 1e3]))
    return layout, base, amount(layout, seed + 1, rng.choice([0.0, 1e-9, 0.3, 15.0]))


@given(payloads, st.integers(0, 2**32), st.integers(1, 200))
def test_a_total_is_found_again_within_half_a_step_and_within_the_radius(payload, seed, dim):
    layout, base, part = example(payload, seed, dim)
    packed = packed_total(layout, part, 7, base, RADIUS)[0]
    assert not flaw(layout, base, packed)
    total = unpack(layout, base, packed)
    found = layout.with_copies(total - base, total)
    rules = Rules(b"", radius=RADIUS)
    assert objection(part, 1, rules, layout) is None
    assert objection(found, 1, rules, layout) is None
    exponents = np.frombuffer(packed.exponents, np.int8).astype(object)
    first = 0
    for place in layout.places.values():
        if place.stop - place.start == 1:
            assert found[place] == part[place]  # a number that stands alone
            continue
        blocks = -(-(place.stop - place.start) // BLOCK)
        steps = np.repeat(2 ** exponents[first : first + blocks], BLOCK)[: place.stop - place.start]
        steps = steps if len(steps) else np.ones(place.stop - place.start, dtype=object)
        error = np.abs(found[place] - part[place])
        most = layout.model_limit(part, RADIUS) if place == layout.model else RADIUS * ONE
        at_the_edge = np.abs(part[place]) > most - steps
        assert (error <= steps // 2)[~at_the_edge].all()
        assert (error <= steps + steps // 2)[at_the_edge].all()
        first += blocks
    assert mass_of(found) == mass_of(part)


def literal_total(layout, base, packed):
    """The total by Python's own numbers, one by one."""
    total, exact, codes = base.tolist(), packed.exact.tolist(), packed.codes
    exponents, mass = list(packed.exponents), packed.exact.tolist()[-1]
    for place in [*layout.places.values(), slice(layout.width, layout.width + 1)]:
        if place.stop - place.start == 1:
            total[place.start] += exact.pop(0)
            continue
        for index in range(place.start, place.stop):
            within = index - place.start
            code = 0
            if codes:
                code = codes[within] - 256 * (codes[within] > 127)
            total[index] += code * 2 ** (exponents[within // BLOCK] if exponents else 0)
            if packed.follows and place == layout.model:
                total[index] += round(float(base[index]) * (mass / int(base[-1])))
        size = place.stop - place.start
        codes = codes[size:]
        exponents = exponents[-(-size // BLOCK) :]
    return total


@given(payloads, st.integers(0, 2**32), st.integers(1, 150))
def test_a_total_follows_as_it_does_number_by_number(payload, seed, dim):
    """No sum of floats, nothing that another machine rounds otherwise."""
    layout, base, part = example(payload, seed, dim)
    packed = packed_total(layout, part, 7, base, RADIUS)[0]
    assert unpack(layout, base, packed).tolist() == literal_total(layout, base, packed)


def test_a_million_parameters_fit_into_a_byte_each_with_all_else():
    pair = Pair(dim=1_000_000)
    pair.exchange()
    frame = encode(say(pair.alice, pair.edge, pair.rules), TASK)
    assert isinstance(decode(frame)[1], Compact)
    pair.push()
    frame = encode(say(pair.alice, pair.edge, pair.rules), TASK)
    assert decode(frame)[1].packed.codes
    assert len(frame) <= 1_100_000


# Two peers.


class Pair:
    """Alice pushes to Bob; nothing is lost unless a test does not deliver it."""

    def __init__(self, dim=70, compact=True, payload="ops", share=0.3):
        self.share = share
        self.layout = Layout.of(PAYLOADS[payload], dim)
        self.rules = Rules(b"alice", compact=compact, longest_step=1.0)
        self.bobs = Rules(b"bob", longest_step=1.0)
        width = self.layout.width
        alice = mint(PeerState.new(width, 1, 1 << 20, self.layout), np.zeros(width))
        self.rng = np.random.default_rng(0)
        self.alice = trust(descend(alice, self.step(1.0)), BOB, EPOCH)
        self.bob = PeerState.new(width, 2, 1 << 20, self.layout)
        self.strikes = []
        self.exchange()

    @property
    def edge(self):
        return self.alice.out[BOB, EPOCH]

    @property
    def heard(self):
        return self.bob.in_[ALICE, EPOCH]

    def step(self, length):
        """A step of this length; a parcel counts it."""
        step = self.rng.normal(size=self.layout.width) * length / np.sqrt(self.layout.width)
        if self.layout.parcel is not None:
            step[self.layout.parcel[1]] = -1.0
        return step

    def push(self, learns=True):
        if learns:
            self.alice = descend(self.alice, self.step(0.1))
        self.alice = push(self.alice, {BOB: self.share}, self.rules)
        return say(self.alice, self.edge, self.rules)

    def deliver(self, word):
        """Let Bob hear a word, and Alice his answers."""
        _, word = decode(encode(word, TASK))
        done = receive_push(self.bob, ALICE, word, self.bobs)
        self.strikes += [done.strike] if done.strike else []
        self.bob = done.state
        replies = list(answer(self.bob, ALICE, word, self.bobs))
        for reply in replies:
            _, reply = decode(encode(reply, TASK))
            done = receive_reply(self.alice, BOB, reply, self.rules)
            self.strikes += [done.strike] if done.strike else []
            self.alice = done.state
        return replies

    def exchange(self):
        """Say what there is until all is acknowledged."""
        for _ in range(6):
            self.deliver(say(self.alice, self.edge, self.rules))
        assert self.edge.is_at_rest

    def check(self):
        assert not self.strikes
        assert packed_agrees(self.alice)
        for state in (self.alice, self.bob):
            assert np.array_equal(state.holding, expected_holding(state))
        if self.edge.is_at_rest:
            assert not discrepancy([self.alice, self.bob]).any()
            assert np.array_equal(self.edge.sent, self.heard.heard)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_books_are_exact_and_the_remainder_stays_with_the_sender(payload):
    pair = Pair(payload=payload)
    for _ in range(10):
        word = pair.push()
        assert isinstance(word, Compact)
        assert pair.edge.packed is not None
        pair.check()
        before = pair.heard
        pair.deliver(word)
        assert pair.edge.packed is None
        assert pair.heard.packed.base == before.seq
        assert np.array_equal(
            unpack(pair.layout, before.heard, pair.heard.packed), pair.heard.heard
        )
        pair.check()


def test_what_codes_leave_of_a_parcel_waits_for_a_count(monkeypatch):
    """Its count has gone with the rest: without one, nobody would take so long a step."""

    def strikes():
        pair = Pair(payload="relay")
        for _ in range(3):
            pair.deliver(pair.push())
            pair.deliver(pair.push(learns=False))
        return pair.strikes

    assert not strikes()
    monkeypatch.setattr(transitions, "_keep_orphans", lambda *_: None)
    assert {it.kind for it in strikes()} == {"impossible parcel"}


@pytest.mark.parametrize("at_rest", [True, False])
def test_a_receiver_without_the_base_gets_a_full_total_and_nobody_is_struck(at_rest):
    pair = Pair()
    pair.deliver(pair.push())
    saved = pair.bob
    for _ in range(3):
        pair.deliver(pair.push())
    word = say(pair.alice, pair.edge, pair.rules) if at_rest else pair.push()
    pair.bob = saved  # restored, in a session that both know
    assert [type(it) for it in pair.deliver(word)] == [Stale]
    kinds = []
    while not pair.edge.is_at_rest:
        word = say(pair.alice, pair.edge, pair.rules)
        kinds.append(type(word).__name__)
        pair.deliver(word)
    assert kinds == ["Hello", "Data"]
    pair.check()
    pair.deliver(pair.push())
    pair.check()


def test_a_base_of_the_same_number_and_other_contents_changes_nothing():
    pair = Pair()
    word = pair.push()
    other = replace(pair.heard, heard=pair.heard.heard + 1)
    pair.bob = before = replace(pair.bob, in_={(ALICE, EPOCH): other})
    assert [type(it) for it in pair.deliver(word)] == [Stale]
    assert pair.bob.holding is before.holding
    assert not pair.strikes


def test_one_who_learns_in_codes_keeps_a_model_near_the_one_in_full():
    """What codes cannot say stays in the books, so it does not add up to a drift."""
    models = []
    for compact in (False, True):
        pair = Pair(compact=compact, share=0.01)
        for _ in range(200):
            pair.deliver(pair.push())
        pair.check()
        models.append(pair.bob.estimate)
    exact, by_byte = models
    assert np.linalg.norm(by_byte - exact) < 0.01 * np.linalg.norm(exact)


# Forged ones.


def forged(pair, **changes):
    word = pair.push()
    return replace(word, packed=replace(word.packed, **changes))


FORGED = {
    "too few codes": {"codes": b"\x01"},
    "too many codes": {"codes": bytes(10_000)},
    "no codes": {"codes": b""},
    "too few exponents": {"exponents": b"\x01"},
    "no exponents": {"exponents": b""},
    "a negative exponent": {"exponents": b"\xff\x00"},
    "a large exponent": {"exponents": b"\x38\x00"},
    "the largest exponent": {"exponents": b"\x7f\x7f"},
    "too few numbers": {"exact": np.zeros(0, dtype=np.int64)},
    "too many numbers": {"exact": np.zeros(3, dtype=np.int64)},
}


@pytest.mark.parametrize("changes", FORGED.values(), ids=FORGED)
def test_a_malformed_push_is_a_strike_and_changes_nothing(changes):
    pair = Pair()
    word = forged(pair, **changes)
    before = pair.bob
    done = receive_push(before, ALICE, word, pair.bobs)
    assert done.strike is not None
    assert done.state.holding is before.holding
    assert done.state.in_ is before.in_
    list(answer(done.state, ALICE, word, pair.bobs))


HUGE = [-(2**63), 2**63 - 1, 2**62, -(2**62), 2**53, -1, 0, 1]


@given(
    st.sampled_from(HUGE) | st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.lists(st.integers(-128, 127), min_size=2, max_size=2),
    st.integers(-128, 127),
    st.booleans(),
)
def test_no_number_of_a_push_is_believed(mass, follows, exponents, number, is_signed):
    """With its own digest or another one: nothing is taken in that a full total could not bring."""
    pair = Pair()
    word = forged(
        pair,
        exact=np.array([mass]),
        follows=follows,
        exponents=np.array(exponents, dtype=np.int8).tobytes(),
        codes=np.full(70, number, dtype=np.int8).tobytes(),
    )
    total = None
    if not flaw(pair.layout, pair.heard.heard, word.packed):
        total = unpack(pair.layout, pair.heard.heard, word.packed)
        if is_signed:
            word = replace(word, digest=digest_of(total))
    before = pair.bob
    done = receive_push(before, ALICE, word, pair.bobs)
    list(answer(done.state, ALICE, word, pair.bobs))
    assert np.array_equal(done.state.holding, expected_holding(done.state))
    if done.state.holding is not before.holding:
        delta = total - pair.heard.heard
        assert is_signed
        assert objection(delta, 1, pair.bobs, pair.layout) is None
