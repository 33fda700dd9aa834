"""The main loop of a lab ends when there is nothing left to learn, however slowly peers start."""

from __future__ import annotations

import threading

import pytest

from oneway.lab.lab import Lab
from oneway.lab.peer_process import Observation
from oneway.lab.run import Conditions, _MainLoop
from oneway.testing.records import make_frame


@pytest.fixture
def lab(tmp_path, problem):
    """Five peers, none of which was started."""
    lab = Lab(tmp_path / "lab", problem)
    yield lab
    lab.close()


def test_kills_end_when_all_have_learned_although_one_is_always_starting(
    lab, make_observation, monkeypatch
):
    stop = threading.Event()
    loop = _MainLoop(lab, Conditions(kill_every=1000.0), lambda *_: None, stop, None)
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
    monkeypatch.setattr(loop.observer, "frame", lambda _: make_frame())
    assert loop.learn(stay=False)
    assert not stop.is_set()
    loop.close()
