"""What each peer says about mass, peer by peer, is enough for an exact audit from outside."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oneway.protocol.audit import Books, books_of, expected_holding, wrapped
from oneway.protocol.fixed_point import Fixed, mass_of
from oneway.protocol.state import InEdge, OutEdge, OutPhase, PeerState, Settled

SCHEDULES = 30
STEPS = 1_000

units = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**41), 2**41))
keys = st.sampled_from([b"a" * 32, b"b" * 32, b"c" * 32])
edge_ids = st.tuples(keys, st.integers(1, 3))


def amount(mass: int) -> Fixed:
    return np.array([7, mass])


def out_edge(key: bytes, epoch: int, phase: OutPhase, sent: int, confirmed: int) -> OutEdge:
    return OutEdge(key, epoch, 1, phase, {0: amount(confirmed), 1: amount(sent)}, seq=1)


out_edges = st.dictionaries(edge_ids, st.tuples(st.sampled_from(OutPhase), units, units))
totals = st.dictionaries(edge_ids, units)


@given(st.tuples(units, units, units, units), out_edges, totals, totals)
def test_the_books_of_any_ledger_say_what_must_be_held(own, out, heard, settled):
    minted, steps, clipped, owed = map(amount, own)
    state = PeerState(
        ledger=1,
        boot=1,
        holding=amount(0),
        minted=minted,
        gradient_steps=steps,
        clipped=clipped,
        owed=owed,
        out={name: out_edge(*name, *facts) for name, facts in out.items()},
        in_={name: InEdge(*name, amount(mass)) for name, mass in heard.items()},
        settled={name: Settled(*name, 1, 1, amount(mass)) for name, mass in settled.items()},
    )
    books = books_of(state)
    assert books.owed == mass_of(expected_holding(state))
    assert books.balances == (books.owed == 0)
    assert books.sent.keys() == {key for key, _ in [*out, *settled]}
    assert books.heard.keys() == {key for key, _ in heard}
    for number in [books.brought, *books.sent.values(), *books.heard.values()]:
        assert -(2**63) <= number < 2**63


def in_flight(books: dict[bytes, Books]) -> dict[tuple[bytes, bytes], int]:
    """What each peer handed over and the other has not taken in."""
    return {
        (one, other): wrapped(books[one].sent.get(other, 0) - books[other].heard.get(one, 0))
        for one in books
        for other in books
        if one != other
    }


def all_books(world) -> dict[bytes, Books]:
    return {node.key: books_of(node.current) for node in world.nodes}


def test_in_any_storm_all_books_balance_and_when_it_is_over_nothing_is_in_flight(fuzz_world):
    for seed in range(SCHEDULES):
        world = fuzz_world(seed)
        for _ in range(10):
            world.storm(STEPS // 10)
            assert all(books.balances for books in all_books(world).values()), seed
        world.calm()
        books = all_books(world)
        assert all(book.balances for book in books.values()), seed
        assert not any(in_flight(books).values()), seed
        assert sum(book.held for book in books.values()) == sum(
            book.brought for book in books.values()
        )


def test_after_every_single_event_of_a_storm_what_is_held_is_what_the_books_say(fuzz_world):
    """A large model's store does not hold it: it is computed from the books."""
    for seed in range(4):
        world = fuzz_world(seed)
        for _ in range(400):
            world.storm(1)
            assert world.books_balance, seed


def test_without_verdicts_and_backups_nobody_ever_holds_more_than_it_was_sent(fuzz_world):
    seen = 0
    for seed in range(SCHEDULES):
        world = fuzz_world(seed, backups=False)
        world.weather[world.verdict_of_death] = 0.0
        for _ in range(20):
            world.storm(STEPS // 20)
            books = all_books(world)
            under_way = in_flight(books)
            assert min(under_way.values()) >= 0, seed
            held = sum(book.held for book in books.values())
            assert held + sum(under_way.values()) == sum(b.brought for b in books.values()), seed
            seen += any(under_way.values())
    assert seen > SCHEDULES


def test_a_peer_whose_numbers_were_tampered_with_does_not_balance():
    assert Books(held=5, brought=3, sent={b"b": 1}, heard={b"a": 3}).balances
    assert not Books(held=6, brought=3, sent={b"b": 1}, heard={b"a": 3}).balances
