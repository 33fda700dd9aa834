"""Who is killed comes back, and nobody is killed twice at once."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest

from oneway.errors import ConfigError
from oneway.lab.fault_schedule import KillSchedule, parse_seconds


class Fake:
    """A network that remembers what was done to it."""

    def __init__(self, size: int) -> None:
        self.up = set(range(size))
        self.now = 0.0
        self.kills: list[tuple[float, int]] = []
        self.restarts: list[tuple[float, int]] = []

    def running(self) -> list[int]:
        return sorted(self.up)

    def kill(self, peer: int) -> None:
        assert peer in self.up
        self.up.remove(peer)
        self.kills.append((self.now, peer))

    def restart(self, peer: int) -> None:
        assert peer not in self.up
        self.up.add(peer)
        self.restarts.append((self.now, peer))


def life(
    seed: int, size: int = 4, every: float = 5.0, seconds: int = 600
) -> tuple[Fake, KillSchedule]:
    network = Fake(size)
    schedule = KillSchedule(network, every, random.Random(seed))
    for tick in range(10 * seconds):
        network.now = tick / 10
        schedule.step(network.now)
    return network, schedule


def test_it_kills_about_as_often_as_it_is_told_at_uneven_times():
    network, _ = life(seed=1)
    times = [moment for moment, _ in network.kills]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert 100 <= len(times) <= 140
    assert min(pauses) >= 2.5 - 0.2
    assert max(pauses) <= 7.5 + 0.2
    assert len({round(pause, 1) for pause in pauses}) > 20
    assert {peer for _, peer in network.kills} == {0, 1, 2, 3}


def test_victims_come_back_after_a_moment():
    network, _ = life(seed=2)
    for killed, victim in network.kills[:-1]:
        back = min(
            moment for moment, peer in network.restarts if peer == victim and moment > killed
        )
        assert back - killed == pytest.approx(1.0, abs=0.11)


def test_the_same_seed_kills_the_same_peers():
    assert life(seed=3)[0].kills == life(seed=3)[0].kills
    assert life(seed=3)[0].kills != life(seed=4)[0].kills


def test_in_the_end_everybody_is_back():
    network, schedule = life(seed=5, every=0.2)
    assert len(network.up) < 4
    schedule.finish()
    schedule.finish()
    assert network.up == {0, 1, 2, 3}


def test_a_network_without_survivors_is_left_alone():
    network, _ = life(seed=6, size=1, every=0.2, seconds=20)
    assert network.kills


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5.0), ("0.5", 0.5), ("250ms", 0.25), ("2 m", 120.0), (" 1. ", 1.0)]
)
def test_times_are_read_as_people_write_them(text, seconds):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0s", "-5s", "soon", "5h", "1e3", "nan", "inf"])
def test_what_is_no_time_gets_a_sentence(text):
    with pytest.raises(ConfigError, match=re.escape(repr(text))):
        parse_seconds(text)


def test_a_schedule_needs_a_time_above_zero():
    with pytest.raises(ConfigError, match="above 0"):
        KillSchedule(Fake(1), 0.0, random.Random(1))


def test_whom_somebody_else_killed_or_started_is_left_to_them():
    network = Fake(3)
    schedule = KillSchedule(network, 0.1, random.Random(1))
    while not network.kills:
        schedule.step(network.now)
        network.now += 0.05
    [(_, victim)] = network.kills
    network.restart(victim)
    schedule.forget(victim)
    network.kill(victim)
    for other in network.up.copy():
        network.up.remove(other)
    schedule.step(network.now + 5.0)
    schedule.finish()
    assert victim not in network.up


def test_a_victim_that_somebody_started_already_is_not_started_twice():
    network = Fake(3)
    schedule = KillSchedule(network, 0.1, random.Random(1))
    while not network.kills:
        schedule.step(network.now)
        network.now += 0.05
    network.restart(network.kills[0][1])
    schedule.finish()
    assert network.up == {0, 1, 2}
