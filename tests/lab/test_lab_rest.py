"""A network is at rest only if everybody says so after the last one has paused."""

from __future__ import annotations

from dataclasses import replace

from oneway.lab.rest import Rest

ANN, BOB, CEM = (name * 32 for name in (b"a", b"b", b"c"))


def test_peers_are_at_rest_when_they_say_so_twice(make_look):
    rest = Rest()
    first = [make_look(key, time=1.0, edges={CEM: {}}) for key in (ANN, BOB)]
    assert not rest.seen_in(first)
    assert not rest.seen_in([replace(first[0], status=None), first[1]])
    assert not rest.seen_in(first)
    later = [make_look(key, time=2.0, edges={CEM: {}}) for key in (ANN, BOB)]
    assert rest.seen_in(later)


def test_what_a_peer_said_before_the_last_one_paused_does_not_count(make_look):
    rest = Rest()
    old = make_look(ANN, time=1.0)
    assert not rest.seen_in([old, make_look(BOB, state="up", time=1.0)])
    assert not rest.seen_in([old, make_look(BOB, time=2.0)])
    assert not rest.seen_in([old, make_look(BOB, time=3.0)])
    assert rest.seen_in([make_look(ANN, time=2.5), make_look(BOB, time=3.0)])


def test_what_is_not_acknowledged_and_what_is_being_agreed_on_is_not_at_rest(make_look):
    for edge in ({"acked": 6}, {"phase": "resync"}, {"phase": "closing"}, {"phase": "dead"}):
        rest = Rest()
        rest.seen_in([make_look(ANN, time=1.0, edges={BOB: edge})])
        assert not rest.seen_in([make_look(ANN, time=2.0, edges={BOB: edge})])


def test_edges_to_a_dead_peer_are_not_waited_for(make_look):
    rest = Rest(down={BOB})
    dead = make_look(BOB, state="down", time=1.0)
    rest.seen_in([make_look(ANN, time=1.0, edges={BOB: {"acked": 2}}), dead])
    assert rest.seen_in([make_look(ANN, time=2.0, edges={BOB: {"acked": 2}}), dead])


def test_a_peer_that_is_starting_is_waited_for(make_look):
    rest = Rest()
    rest.seen_in([make_look(ANN, time=1.0, state="starting")])
    assert not rest.seen_in([make_look(ANN, time=2.0, state="starting")])
