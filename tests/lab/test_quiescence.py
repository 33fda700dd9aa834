"""A network is at rest only if everybody says so after the last one has paused."""

from __future__ import annotations

from dataclasses import replace

from oneway.lab.quiescence import Quiescence, overfull

ANN, BOB, CEM = (name * 32 for name in (b"a", b"b", b"c"))


def test_peers_are_at_rest_when_they_say_so_twice(make_observation):
    quiescence = Quiescence()
    first = [make_observation(key, time=1.0, edges={CEM: {}}) for key in (ANN, BOB)]
    assert not quiescence.seen_in(first)
    assert not quiescence.seen_in([replace(first[0], status=None), first[1]])
    assert not quiescence.seen_in(first)
    later = [make_observation(key, time=2.0, edges={CEM: {}}) for key in (ANN, BOB)]
    assert quiescence.seen_in(later)


def test_what_a_peer_said_before_the_last_one_paused_does_not_count(make_observation):
    quiescence = Quiescence()
    old = make_observation(ANN, time=1.0)
    assert not quiescence.seen_in([old, make_observation(BOB, state="up", time=1.0)])
    assert not quiescence.seen_in([old, make_observation(BOB, time=2.0)])
    assert not quiescence.seen_in([old, make_observation(BOB, time=3.0)])
    assert quiescence.seen_in([make_observation(ANN, time=2.5), make_observation(BOB, time=3.0)])


def test_what_is_not_acknowledged_and_what_is_being_agreed_on_is_not_at_rest(make_observation):
    for edge in ({"acked": 6}, {"phase": "resync"}, {"phase": "closing"}, {"phase": "dead"}):
        quiescence = Quiescence()
        quiescence.seen_in([make_observation(ANN, time=1.0, edges={BOB: edge})])
        assert not quiescence.seen_in([make_observation(ANN, time=2.0, edges={BOB: edge})])


def test_edges_to_a_dead_peer_are_not_waited_for(make_observation):
    quiescence = Quiescence()
    dead = make_observation(BOB, state="down", time=1.0)
    first, second = (
        [make_observation(ANN, time=time, edges={BOB: {"acked": 2}}), dead] for time in (1.0, 2.0)
    )
    quiescence.seen_in(first, {BOB})
    assert quiescence.seen_in(second, {BOB})


def test_when_one_more_is_down_the_others_have_to_say_it_again(make_observation):
    quiescence = Quiescence()
    alive = [make_observation(key, time=1.0) for key in (ANN, BOB)]
    assert not quiescence.seen_in(alive)
    later = [make_observation(ANN, time=2.0), make_observation(BOB, state="down", time=1.0)]
    assert not quiescence.seen_in(later, {BOB})
    later[0] = make_observation(ANN, time=3.0)
    assert quiescence.seen_in(later, {BOB})


def test_a_peer_that_is_starting_is_waited_for(make_observation):
    quiescence = Quiescence()
    quiescence.seen_in([make_observation(ANN, time=1.0, state="starting")])
    assert not quiescence.seen_in([make_observation(ANN, time=2.0, state="starting")])


def test_who_lets_mass_wait_has_to_hand_some_out(make_observation):
    waiting = make_observation(ANN, time=1.0, edges={BOB: {"acked": 6, "lag": 6.0}, CEM: {}})
    others = [make_observation(key, time=1.0) for key in (BOB, CEM)]
    assert overfull([waiting, *others]) == {BOB}
    assert overfull([waiting, *others], {BOB}) == set()
    soon = make_observation(ANN, time=1.0, edges={BOB: {"acked": 6, "lag": 4.0}, CEM: {}})
    assert overfull([soon, *others]) == set()
