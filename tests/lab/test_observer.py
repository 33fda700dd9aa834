"""Frames: everybody has a place of its own, and what is shown is what peers say of themselves."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from oneway.lab.lab import Lab
from oneway.lab.observer import (
    ModelObserver,
    Observer,
    _Traffic,
)
from oneway.peer.store.snapshot import Journal, Snapshot
from oneway.peer.store.store import Owner, PeerStore
from oneway.protocol.fixed_point import ONE
from oneway.protocol.incoming import mint
from oneway.protocol.state import PeerState


@pytest.fixture
def lab(tmp_path, problem):
    """Five peers, none of which was started."""
    lab = Lab(tmp_path / "lab", problem)
    yield lab
    lab.close()


def test_cuts_and_the_end_of_trust_are_seen_at_once_and_nobody_moves(lab):
    observer = Observer(lab)
    before = observer.frame("learning")
    edge = before.edges[0]
    lab.cut(edge.sender, edge.receiver)
    lab.set_loss(0.25)
    after = observer.frame("learning")
    ends = {edge.sender, edge.receiver}
    assert all(found.cut == ({found.sender, found.receiver} == ends) for found in after.edges)
    assert after.edges[0].cut
    assert after.loss_rate == 0.25
    lab.heal(edge.sender, edge.receiver)
    lab.distrust(edge.sender, edge.receiver)
    last = observer.frame("learning")
    assert (edge.sender, edge.receiver) not in {
        (found.sender, found.receiver) for found in last.edges
    }
    assert not any(found.cut for found in last.edges)
    assert [(p.x, p.y) for p in last.peers] == [(p.x, p.y) for p in before.peers]
    assert any("no longer sends" in event for event in last.events)


def told(lab: Lab, make_observation, peer: int, **facts) -> None:
    """Let a peer say something about itself, as if it ran."""
    member = lab.peers[peer]
    status = make_observation(member.key, **facts).status
    member.home.write_status(msgspec.structs.replace(status, name=member.name))


def store(lab: Lab, peer: int, at: np.ndarray, samples: int = 10) -> None:
    member = lab.peers[peer]
    snapshot = Snapshot(mint(PeerState.new(len(at), peer + 1, 1), at), Journal(samples=samples))
    PeerStore.create(
        member.home.store_path,
        Owner(member.key, member.home.task().fingerprint, len(at)),
        snapshot,
    ).close()


def test_the_mass_of_those_who_are_down_is_read_from_their_stores(lab):
    store(lab, 0, np.zeros(4))
    store(lab, 3, np.zeros(4))
    frame = Observer(lab).frame("learning")
    assert (frame.mass.held, frame.mass.brought, frame.mass.is_exact) == (2 * ONE, 2 * ONE, True)
    assert [peer.mass for peer in frame.peers] == [1.0, 0.0, 0.0, 1.0, 0.0]


def test_a_store_that_is_damaged_is_a_problem_and_not_the_end(lab):
    store(lab, 0, np.zeros(4))
    lab.peers[0].home.store_path.write_bytes(b"nonsense" * 500)
    mass = Observer(lab).frame("learning").mass
    assert not mass.is_exact
    assert mass.problems[0].startswith("the books of peer0 cannot be read")


def test_pushes_are_counted_where_they_arrive(lab, make_observation):
    observer = Observer(lab)
    edge = observer.frame("learning").edges[0]
    one, other = (int(name.removeprefix("peer")) for name in (edge.sender, edge.receiver))
    told(lab, make_observation, one, edges={lab.peers[other].key: {"seq": 9, "acked": 4}}, time=1.0)
    found = observer.frame("learning").edges[0]
    assert (found.arrived, found.waiting) == (4, 5)
    told(lab, make_observation, other, edges={lab.peers[one].key: {}}, time=2.0)
    assert observer.frame("learning").edges[0].arrived == 3


def test_disagreement_is_measured_one_store_at_a_time(lab, monkeypatch):
    for peer, value in enumerate((1.0, 3.0, 1.0, 3.0, 2.0)):
        store(lab, peer, np.full(4, value), samples=peer)
    monkeypatch.setattr("oneway.lab.observer.LOOK_SECONDS", 0.0)
    models = ModelObserver(lab)
    for _ in range(4):
        models.look()
    assert models.disagreement is None
    models.look()
    assert models.disagreement == pytest.approx(4 * (1 + 1 + 1 + 1 + 0) / 5)
    assert models.points == [(2.0, pytest.approx(3.2))]


ANN, BOB = b"1" * 32, b"2" * 32


def test_messages_and_bytes_per_second_are_counted_per_life(make_observation):
    traffic = _Traffic()

    def read(pid: int, time: float, frames: int, state: str = "up") -> tuple[float, float]:
        facts = {"pid": pid, "time": time, "frames_out": frames, "bytes_out": 60 * frames}
        return traffic.per_second([make_observation(ANN, state=state, **facts)])

    assert read(1, 1.0, 100) == (0.0, 0.0)
    assert read(1, 3.0, 300) == (100.0, 6000.0)
    assert read(1, 3.0, 300) == (100.0, 6000.0)
    assert read(1, 3.0, 300, state="down") == (0.0, 0.0)
    assert read(2, 5.0, 10) == (0.0, 0.0)
    assert read(2, 6.0, 60)[0] == pytest.approx(50.0)
