"""The kill schedule: its victims come back, and it ends when all have learned, not before."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from itertools import pairwise

import pytest
from builders import make_frame

from oneway.lab.fault_schedule import KillSchedule
from oneway.lab.lab import Lab
from oneway.lab.peer_process import Observation
from oneway.lab.run import Conditions, _MainLoop


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


@pytest.fixture
def lab(tmp_path, problem):
    """Five peers, none of which was started."""
    lab = Lab(tmp_path / "lab", problem)
    yield lab
    lab.close()


def loop_over(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> tuple[_MainLoop, threading.Event]:
    stop = threading.Event()
    loop = _MainLoop(lab, Conditions(kill_every=1000.0), lambda *_: None, stop, None)
    monkeypatch.setattr(loop.observer, "frame", lambda _: make_frame())
    monkeypatch.setattr(loop._queue, "wait", lambda _: None)
    return loop, stop


def test_kills_end_when_all_have_learned_although_one_is_always_starting(
    lab, make_observation, monkeypatch
):
    loop, stop = loop_over(lab, monkeypatch)
    seen: list[str] = []

    def observe() -> list[Observation]:
        """The first peer is killed again and again before it has started."""
        seen.append("starting" if loop._kills is not None else "up")
        if len(seen) > 20:
            stop.set()
        return [
            make_observation(
                peer.key, state=seen[-1] if peer is lab.peers[0] else "up", finished=True
            )
            for peer in lab.peers
        ]

    monkeypatch.setattr(lab, "observe", observe)
    assert loop.learn(stay=False)
    assert not stop.is_set()
    loop.close()


def test_learning_goes_on_after_a_moment_in_which_all_peers_were_down(
    lab, make_observation, monkeypatch
):
    loop, stop = loop_over(lab, monkeypatch)
    moments: list[bool] = []

    def observe() -> list[Observation]:
        """All are down with samples left; the schedule will restart them."""
        moments.append(loop._kills is not None)
        if len(moments) > 20:
            stop.set()
        loop._kills._victims = {f"peer{n}": 0.0 for n in range(5)}
        return [
            replace(make_observation(peer.key, state="down", finished=False), name=peer.name)
            for peer in lab.peers
        ]

    monkeypatch.setattr(lab, "observe", observe)
    monkeypatch.setattr(loop._kills, "step", lambda _: None)
    monkeypatch.setattr(loop._kills, "_restart", lambda _: None)
    assert not loop.learn(stay=False)
    assert all(moments)
    loop.close()
