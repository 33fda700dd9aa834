"""Frames: everybody has a place of its own, and what is shown is what peers say of themselves."""

from __future__ import annotations

import itertools
import time

import msgspec
import numpy as np
import pytest

import oneway as ow
from oneway.lab.frames import Frames, _Arrivals, title_of
from oneway.lab.gauge import Gauge
from oneway.lab.lab import Lab
from oneway.lab.layout import HIGH, LOW, least_distance, place_for_newcomer, places
from oneway.lab.problem import Problem
from oneway.lab.wiring import Wiring
from oneway.peer.status import write_status
from oneway.peer.store.snapshot import Journal, Snapshot
from oneway.peer.store.store import PeerStore
from oneway.protocol.absorbing import mint
from oneway.protocol.fixed_point import ONE
from oneway.protocol.state import PeerState
from oneway.records.network import NetworkFrame


@pytest.fixture
def lab(tmp_path, problem):
    """Five peers, none of which was started."""
    lab = Lab(tmp_path / "lab", problem)
    yield lab
    lab.close()


def closest(found: dict[str, tuple[float, float]]) -> float:
    return min(
        float(np.hypot(a[0] - b[0], a[1] - b[1]))
        for a, b in itertools.combinations(found.values(), 2)
    )


GRAPHS = {
    "two": ow.TrustGraph.ring(2),
    "ring of 32": ow.TrustGraph.ring(32),
    "all to all": ow.TrustGraph.complete(32),
    "random": ow.TrustGraph.random(32, max_receivers=3, seed=1),
    "random of 128": ow.TrustGraph.random(128, max_receivers=3, seed=1),
    "star": ow.TrustGraph.from_edges(
        [(0, i) for i in range(1, 32)] + [(i, 0) for i in range(1, 32)]
    ),
}


@pytest.mark.parametrize("case", GRAPHS)
def test_peers_are_drawn_apart_within_the_picture_and_always_there(case):
    graph = GRAPHS[case]
    names = [f"peer{node}" for node in range(graph.num_nodes)]
    found = places(graph, names)
    assert found == places(graph, names)
    assert all(LOW <= part <= HIGH for place in found.values() for part in place)
    assert closest(found) >= 0.9 * least_distance(graph.num_nodes)


def test_newcomers_are_drawn_near_their_friends_and_on_nobody():
    graph = ow.TrustGraph.random(16, max_receivers=3, seed=1)
    found = places(graph, [f"peer{node}" for node in range(16)])
    before = dict(found)
    for number in range(6):
        found[f"new{number}"] = place_for_newcomer(found, ["peer3"])
    assert {name: found[name] for name in before} == before
    assert closest(found) >= 0.5 * least_distance(16)
    near = np.hypot(*(np.array(found["new0"]) - found["peer3"]))
    assert near < 0.35


def test_a_lab_that_has_not_started_has_a_frame_already(lab, problem):
    frame = Frames(lab, Gauge()).frame("starting")
    assert frame.number == 1
    assert [peer.name for peer in frame.peers] == list(problem.names)
    assert {peer.state for peer in frame.peers} == {"down"}
    senders, receivers = problem.graph.edges()
    expected = {(f"peer{a}", f"peer{b}") for a, b in zip(senders, receivers, strict=True)}
    assert {(edge.sender, edge.receiver) for edge in frame.edges} == expected
    assert (frame.mass.total, frame.mass.is_exact) == (0, True)
    assert frame.disagreement is None
    assert msgspec.json.decode(msgspec.json.encode(frame), type=NetworkFrame) == frame


def test_cuts_and_the_end_of_trust_are_seen_at_once_and_nobody_moves(lab):
    frames = Frames(lab, Gauge())
    before = frames.frame("learning")
    edge = before.edges[0]
    one, other = (int(name.removeprefix("peer")) for name in (edge.sender, edge.receiver))
    lab.cut(one, other)
    lab.set_loss(0.25)
    after = frames.frame("learning")
    ends = {edge.sender, edge.receiver}
    assert all(found.cut == ({found.sender, found.receiver} == ends) for found in after.edges)
    assert after.edges[0].cut
    assert after.loss_rate == 0.25
    lab.heal(one, other)
    lab.distrust(one, other)
    last = frames.frame("learning")
    assert (edge.sender, edge.receiver) not in {
        (found.sender, found.receiver) for found in last.edges
    }
    assert not any(found.cut for found in last.edges)
    assert [(p.x, p.y) for p in last.peers] == [(p.x, p.y) for p in before.peers]
    assert any("no longer sends" in event for event in last.events)


def test_a_cut_can_be_healed_after_trust_has_ended(lab):
    wiring = Wiring()
    wiring.follow(lab.members)
    sender, receiver = next((a, b) for a, b in wiring.edges if (b, a) not in wiring.edges)
    one, other = (int(name.removeprefix("peer")) for name in (sender, receiver))
    lab.cut(one, other)
    # Only who still knows the other can undo it while running: the one that admits it.
    assert lab.members[other].home.config().faults.cut == (sender,)
    assert lab.members[one].home.config().faults.cut == ()
    lab.distrust(one, other)
    lab.heal(one, other)
    assert [member.home.config().faults.cut for member in lab.members] == [()] * 5
    wiring.follow(lab.members)
    assert (sender, receiver) not in wiring.edges
    assert not wiring.is_cut(sender, receiver)


def told(lab: Lab, make_look, peer: int, **facts) -> None:
    """Let a peer say something about itself, as if it ran."""
    member = lab.members[peer]
    status = make_look(member.key, **facts).status
    write_status(msgspec.structs.replace(status, name=member.name), member.home.status_path)


def test_what_peers_say_is_shown_also_when_they_are_down(lab, make_look):
    told(lab, make_look, 0, samples=7, recent_loss=0.5, average_loss=0.6, accuracy=0.75, time=1.0)
    [shown, *_] = Frames(lab, Gauge()).frame("learning").peers
    assert (shown.samples, shown.recent_loss, shown.average_loss, shown.accuracy) == (
        7,
        0.5,
        0.6,
        0.75,
    )
    assert (shown.state, shown.mass_units) == ("down", 0)


def store(lab: Lab, peer: int, at: np.ndarray, samples: int = 10) -> None:
    member = lab.members[peer]
    snapshot = Snapshot(mint(PeerState.new(len(at), peer + 1, 1), at), Journal(samples=samples))
    PeerStore.create(
        member.home.store_path,
        key=member.key,
        task=member.home.task().fingerprint,
        dim=len(at),
        snapshot=snapshot,
    ).close()


def test_the_mass_of_those_who_are_down_is_read_from_their_stores(lab):
    store(lab, 0, np.zeros(4))
    store(lab, 3, np.zeros(4))
    frame = Frames(lab, Gauge()).frame("learning")
    assert (frame.mass.held, frame.mass.brought, frame.mass.is_exact) == (2 * ONE, 2 * ONE, True)
    assert [peer.mass for peer in frame.peers] == [1.0, 0.0, 0.0, 1.0, 0.0]


def test_a_store_that_is_damaged_is_a_problem_and_not_the_end(lab):
    store(lab, 0, np.zeros(4))
    lab.members[0].home.store_path.write_bytes(b"nonsense" * 500)
    mass = Frames(lab, Gauge()).frame("learning").mass
    assert not mass.is_exact
    assert mass.problems[0].startswith("the books of peer0 cannot be read")


def test_arrivals_never_shrink():
    arrivals = _Arrivals()
    edge = ("ann", "bob")
    assert [arrivals.count(edge, number) for number in (3, 5, 4, 6, 0, 2)] == [3, 5, 5, 7, 7, 9]
    assert arrivals.count(("bob", "ann"), 1) == 1


def test_pushes_are_counted_where_they_arrive(lab, make_look):
    frames = Frames(lab, Gauge())
    edge = frames.frame("learning").edges[0]
    one, other = (int(name.removeprefix("peer")) for name in (edge.sender, edge.receiver))
    told(lab, make_look, one, edges={lab.members[other].key: {"seq": 9, "acked": 4}}, time=1.0)
    found = frames.frame("learning").edges[0]
    assert (found.arrived, found.waiting) == (4, 5)
    told(lab, make_look, other, edges={lab.members[one].key: {}}, time=2.0)
    # The receiver has heard the third, which is less than what was said to be acknowledged.
    assert frames.frame("learning").edges[0].arrived == 4


def test_disagreement_is_measured_a_few_stores_at_a_time(lab):
    for peer, value in enumerate((1.0, 3.0, 1.0, 3.0, 2.0)):
        store(lab, peer, np.full(4, value), samples=peer)
    ticks = itertools.count()
    gauge = Gauge(clock=lambda: 0.1 * next(ticks), effort=lambda: 0.004 * next(ticks))
    looks = 0
    while gauge.value is None:
        gauge.look(lab.members, 4)
        looks += 1
        assert looks < 1000
    assert looks > 5
    assert gauge.value == pytest.approx(4 * (1 + 1 + 1 + 1 + 0) / 5)
    assert gauge.points == [(2.0, pytest.approx(3.2))]


def test_models_that_do_not_fit_into_memory_are_not_measured(lab):
    gauge = Gauge()
    gauge.look(lab.members, 10**7)
    assert gauge.value is None


def test_the_last_frame_has_the_peers_as_they_were_and_the_verdict(lab):
    frames = Frames(lab, Gauge())
    frame = frames.frame("finishing", acts=False)
    lab.note("all is well")
    last = frames.last(frame, ["mass: exact"], is_exact=True)
    assert (last.number, last.phase, last.acts) == (2, "done", False)
    assert (last.result, last.result_is_exact) == (["mass: exact"], True)
    assert last.peers == frame.peers
    assert last.events[-1].endswith("all is well")


def test_the_title_says_what_is_learned_by_whom(problem):
    assert title_of(problem) == "synthetic, logistic, random graph"


def test_a_frame_of_32_peers_is_made_in_a_moment(tmp_path, make_look):
    table = ow.streams.synthetic(num_samples=320, num_features=3, seed=1).table
    graph = ow.TrustGraph.random(32, max_receivers=3, seed=1)
    lab = Lab(tmp_path / "lab", Problem.deal(table, graph, samples=10))
    try:
        frames = Frames(lab, Gauge())
        frames.frame("learning")
        taken = []
        for moment in range(5):
            for peer in range(32):
                told(lab, make_look, peer, time=float(moment), edges={lab.members[0].key: {}})
            began = time.process_time()
            frames.frame("learning")
            taken.append(time.process_time() - began)
        # Ten times what it takes, for slow machines.
        assert min(taken) < 0.1
    finally:
        lab.close()
