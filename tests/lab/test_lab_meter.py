"""How much peers send per second, by counters that begin anew with every life."""

from __future__ import annotations

import pytest

from oneway.lab.meter import Meter, TrafficRate

ANN, BOB = b"1" * 32, b"2" * 32


def test_messages_and_bytes_per_second_are_counted_per_life(make_look):
    meter = Meter()

    def read(pid: int, time: float, frames: int, state: str = "up") -> TrafficRate:
        facts = {"pid": pid, "time": time, "frames_out": frames, "bytes_out": 60 * frames}
        return meter.read([make_look(ANN, state=state, **facts)])

    assert read(1, 1.0, 100) == TrafficRate(0.0, 0.0)
    assert read(1, 3.0, 300) == TrafficRate(100.0, 6000.0)
    assert read(1, 3.0, 300) == TrafficRate(100.0, 6000.0)
    assert read(1, 3.0, 300, state="down") == TrafficRate(0.0, 0.0)
    assert read(2, 5.0, 10) == TrafficRate(0.0, 0.0)
    assert read(2, 6.0, 60).messages == pytest.approx(50.0)


def test_what_all_peers_send_is_added_up(make_look):
    meter = Meter()
    for moment in (1.0, 2.0):
        sent = {"time": moment, "frames_out": int(10 * moment), "bytes_out": int(700 * moment)}
        found = meter.read([make_look(key, state="up", pid=1, **sent) for key in (ANN, BOB)])
    assert found == TrafficRate(20.0, 1400.0)
