"""Everything one can do to a running lab, and the books balance in the end."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ConfigError
from oneway.lab.lab import Lab
from oneway.lab.problem import Problem
from oneway.protocol.fixed_point import ONE

PATIENCE = 300.0


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"it never came to this: {what}"
        time.sleep(0.05)


def phases(lab: Lab, sender: int) -> dict[str, str]:
    status = lab.observe()[sender].status
    return {} if status is None else {edge.name: edge.phase for edge in status.receivers}


def mass(lab: Lab, peer: int) -> float:
    status = lab.observe()[peer].status
    return 0.0 if status is None else status.mass


def test_cuts_distrust_newcomers_and_kills_cost_no_mass(tmp_path):
    table = ow.streams.synthetic(num_samples=2000, num_features=3, seed=1).table
    graph = ow.TrustGraph.from_edges([(0, 1), (1, 2), (2, 0), (0, 2)])
    problem = Problem.deal(table, graph, samples=600, seed=2)
    with Lab(tmp_path / "lab", problem, rate=30.0) as lab:
        until(lambda: all(phases(lab, peer).values() for peer in range(3)), "all have edges")
        lab.set_loss(0.3)
        lab.cut("peer1", "peer2")
        assert not lab.is_rewired
        lab.distrust("peer0", "peer2")
        assert lab.is_rewired
        until(lambda: "peer2" not in phases(lab, 0), "the edge 0 -> 2 is settled")
        lab.add_peer("dora", np.arange(1900, 2000), receivers=["peer0"], senders=["peer1"])
        until(lambda: mass(lab, 3) > 0, "the newcomer takes part")
        lab.kill("peer0")
        assert lab.pid("peer0") is None
        assert lab.observe()[0].state == "down"
        assert lab.down == {lab.peers[0].key}
        lab.heal("peer1", "peer2")
        lab.restart("peer0")
        until(lambda: lab.observe()[0].state == "up", "the victim is back")
        assert lab.down == set()
        assert lab.drain()
        assert all(look.state == "paused" for look in lab.observe())
        lab.stop()
        audit = lab.audit()
        assert audit.is_exact, audit.sentences
        assert audit.minted_units == 4 * ONE
        assert not audit.stranded.any()
    said = "\n".join(lab.events)
    for sentence in (
        "3 peers were started",
        "30% of the messages are lost",
        "the line between peer1 and peer2 was cut",
        "peer0 no longer sends to peer2",
        "dora joined with 100 samples, sends to peer0, hears from peer1",
        "peer0 was killed",
        "peer0 was started again",
        "nothing is in flight any more",
    ):
        assert sentence in said


def test_a_lab_that_never_ran_has_nothing_to_audit(tmp_path, problem):
    lab = Lab(tmp_path / "lab", problem)
    try:
        with pytest.raises(ow.OnewayError, match="nothing to audit"):
            lab.audit()
        with pytest.raises(ConfigError, match=r"loss is 1\.5"):
            lab.set_loss(1.5)
        with pytest.raises(ConfigError, match="peer0 does not send to peer0"):
            lab.distrust("peer0", "peer0")
    finally:
        lab.close()


def test_a_rate_below_zero_is_refused_before_anything_is_made(tmp_path, problem):
    with pytest.raises(ConfigError, match="rate is -1"):
        Lab(tmp_path / "lab", problem, rate=-1.0)
    assert not (tmp_path / "lab").exists()
