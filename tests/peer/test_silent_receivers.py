"""Receivers that are away, asleep or silent: what they cost their senders, and for how long."""

from __future__ import annotations

import pytest
from builders import replace
from town import LIMITS, SAMPLE, Town, config, key_of, quiet

from oneway.protocol.fixed_point import ONE, mass_of
from oneway.protocol.pace import OVERDUE_SECONDS
from oneway.protocol.state import OutPhase
from oneway.transport.base import Arrival

FIVE = [f"peer{number}" for number in range(5)]
GRAPHS = {
    "ring": {name: [FIVE[(i + 1) % 5]] for i, name in enumerate(FIVE)},
    "chords": {name: [FIVE[(i + 1) % 5], FIVE[(i + 3) % 5]] for i, name in enumerate(FIVE)},
}
LONG = 1.5 * LIMITS.presume_dead_after


def held(town: Town, names) -> float:
    return sum(town.state(name).mass for name in names)


def sent(town: Town, names) -> int:
    """How many pushes of some peers there were."""
    return sum(edge.seq for name in names for edge in town.state(name).out.values())


def rounds(town: Town, seconds: float, step: float = 0.5):
    """Everybody learns and speaks, again and again."""
    until = town.time + seconds
    while town.time < until:
        for name in town.nodes:
            town.nodes[name].learn(SAMPLE, "yes")
        town.pass_time(step)
        yield


def in_flight(town: Town, name: str) -> int:
    return sum(edge.mass_in_flight for edge in town.state(name).out.values())


# One of five laptops is closed.


@pytest.mark.parametrize("sees_links", [True, False], ids=["link down", "link silent"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_with_one_of_five_closed_the_others_go_on_and_all_is_exact_when_it_is_back(
    graph, sees_links
):
    town = quiet(sees_links=sees_links, **GRAPHS[graph])
    for _ in rounds(town, 20.0):
        pass
    closed, *others = FIVE
    before = held(town, others)
    disk = town.power_off(closed)
    bounds = town.nodes[others[0]].learner.mass_bounds
    lowest, pushes = before, sent(town, others)
    for _ in rounds(town, LONG):
        lowest = min(lowest, held(town, others))
        # A peer whose only sender is closed hands out more than it gets, and mints.
        assert min(town.state(name).mass for name in others) >= bounds[0] / 2
        town.check_books()
    if graph == "chords":  # the others still reach each other: nothing is minted or burned
        assert lowest >= 0.8 * before
        # Presumed dead, it has given back what it never acknowledged.
        assert held(town, others) == pytest.approx(before, abs=1e-9)
    assert sent(town, others) >= pushes + len(others) * LONG  # two steps a second
    for name in others:
        town.learn(name, 3)
        assert (
            town.nodes[name].learner.fitted(town.nodes[name].estimate).predict_one(SAMPLE) == "yes"
        )

    # It comes back, and all is as before.
    town.power_on(closed, disk, config(closed, GRAPHS[graph][closed]))
    for _ in rounds(town, 60.0):
        pass
    for _ in range(5):
        town.pass_time(10.0)
    assert town.strikes() == 0
    town.check_exact()
    assert town.state(closed).mass > 0.01


# When nothing is handed over.


def test_nothing_is_handed_over_while_the_link_is_down():
    town = quiet(alice=["bob"], bob=["alice"])
    alice, bob = town.nodes["alice"], town.nodes["bob"]
    for _ in rounds(town, 5.0):
        pass
    bob.follow(config("bob", ["alice"], paused=True))
    before = mass_of(town.state("alice").holding)
    alice.connected = frozenset()
    for _ in rounds(town, 10.0):
        pass
    assert mass_of(town.state("alice").holding) == before
    assert alice.held_back(key_of("bob"))
    alice.connected = frozenset({key_of("bob")})
    town.learn("alice")
    assert not alice.held_back(key_of("bob"))
    assert mass_of(town.state("alice").holding) == before - before // 2
    town.check_exact()


def silenced() -> Town:
    """Bob is gone, just when something was on its way to him; Carol goes on sending to Alice."""
    town = quiet(alice=["bob"], bob=[], carol=["alice"], dave=["carol"])
    town.ends["bob"].crash()
    del town.nodes["bob"]
    town.learn("alice")
    assert in_flight(town, "alice") == ONE // 2
    return town


def test_nothing_more_is_handed_over_while_an_answer_is_overdue():
    """Not even what came in since, which would make room for more under way."""
    town = silenced()
    town.time += OVERDUE_SECONDS + 0.1
    assert town.nodes["alice"].held_back(key_of("bob"))
    for _ in rounds(town, 20.0):
        assert in_flight(town, "alice") == ONE // 2
    assert town.state("alice").mass > 1.0  # much of what the others had


# When a receiver is presumed dead.


@pytest.mark.parametrize("answers", [False, True], ids=["silent", "answers and takes nothing"])
def test_death_is_presumed_minutes_after_the_last_acknowledgement_whatever_else_is_said(answers):
    """Who answers and acknowledges nothing keeps mass just as well."""
    town = quiet(alice=["bob"], bob=[])
    assert LIMITS.presume_dead_after == 120.0
    alice, bob = town.nodes["alice"], town.nodes["bob"]
    town.learn("alice")
    before = mass_of(town.state("alice").holding)
    town.time += 1.0
    since = town.time
    alice.learn(SAMPLE, "yes")
    alice.committed(alice.begin())  # lost
    assert mass_of(town.state("alice").holding) < before
    replies = 0
    while town.time < since + 119.0:
        town.time += 1.0
        alice.tick()
        alice.overdue()  # lost
        for frame in bob.overdue() if answers else ():  # it acknowledges what it had before
            alice.take(Arrival(key_of("bob"), frame.content, frame.via))
            replies += 1
        assert [edge.phase for edge in town.state("alice").out.values()] == [OutPhase.OPEN]
    assert replies >= 3 or not answers
    town.time += 2.0
    alice.tick()
    assert town.state("alice").out[key_of("bob"), 1].phase is OutPhase.DEAD
    assert mass_of(town.state("alice").holding) == before
    town.check_books()


def test_death_is_counted_from_the_last_progress():
    town = quiet(alice=["bob"], bob=[], carol=["alice"])
    alice, bob = town.nodes["alice"], town.nodes["bob"]
    alice.follow(config("alice", ["bob"], limits=replace(LIMITS, presume_dead_after=10.0)))
    alice.learn(SAMPLE, "yes")
    [late] = alice.committed(alice.begin())
    town.nodes["carol"].learn(SAMPLE, "yes")
    [more] = town.nodes["carol"].committed(town.nodes["carol"].begin())
    alice.take(Arrival(key_of("carol"), more.content, more.via))
    town.time += 0.1
    alice.learn(SAMPLE, "yes")
    alice.committed(alice.begin())  # lost
    edge = (key_of("bob"), 1)
    assert town.state("alice").out[edge].in_flight == 2
    town.time += 8.0
    bob.take(Arrival(key_of("alice"), late.content, late.via))
    [ack] = bob.committed(bob.begin())
    alice.take(Arrival(key_of("bob"), ack.content, ack.via))
    alice.committed(alice.begin())
    for seconds, phase in ((4.0, OutPhase.OPEN), (5.9, OutPhase.OPEN), (0.2, OutPhase.DEAD)):
        town.time += seconds
        alice.tick()
        assert town.state("alice").out[edge].phase is phase
    town.check_books()
