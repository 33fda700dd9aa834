"""What can be done to a lab, where mass gathers, and when a network is at rest."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import ConfigError
from oneway.lab.lab import (
    Lab,
    Quiescence,
    dead_ends,
)
from oneway.lab.peer_process import PeerProcess
from oneway.lab.problem import Problem
from oneway.lab.result import fresh_rows
from oneway.records.network import AddPeer, Heal, Kill, SetLoss, Trust

ANN, BOB, CEM = (name * 32 for name in (b"a", b"b", b"c"))


@pytest.fixture
def lab(tmp_path, problem):
    """Five peers, none of which was started."""
    lab = Lab(tmp_path / "lab", problem)
    yield lab
    lab.close()


@pytest.mark.parametrize(
    ("command", "culprit"),
    [
        (Kill("peer0"), "peer0 is down"),
        (Kill("pear0"), "'pear0'.*'peer0'"),
        (Heal("peer0", "peer1"), "peer0 and peer1 is not cut"),
        (SetLoss(1.5), "loss is 1"),
        (Trust("peer1", "peer1"), "peer1 cannot send to itself"),
        (AddPeer("PEER1", [], []), "PEER1"),
        (AddPeer("task.toml", [], []), "task.toml"),
        (AddPeer("oneway.json", [], []), "oneway.json"),
        (AddPeer("dora", ["peer33"], []), "'peer33'"),
    ],
)
def test_an_impossible_command_is_refused_and_changes_nothing(lab, command, culprit):
    with pytest.raises(ConfigError, match=culprit):
        lab.carry_out(command)
    assert (len(lab.peers), lab.events, lab.loss) == (5, [], 0.0)
    assert not (lab.peers[0].home.folder.parent / "dora").exists()


# Newcomers.


@pytest.fixture
def without_processes(monkeypatch):
    """Peers that start nothing, and do as they are told at once."""

    def observe(peer):
        state = "paused" if peer.config.paused else "up"
        return replace(seen(peer), state=state)

    seen = PeerProcess.observe
    monkeypatch.setattr(PeerProcess, "start", lambda _: None)
    monkeypatch.setattr(PeerProcess, "observe", observe)


def states(lab: Lab) -> set[str]:
    return {peer.state for peer in lab.observe()}


@pytest.mark.usefixtures("without_processes")
def test_peers_learn_although_one_joined_while_the_lab_was_starting(lab):
    lab.start()
    lab.add_peer()
    lab.observe()
    assert states(lab) == {"up"}
    lab.add_peer()
    assert states(lab) == {"up"}


@pytest.mark.usefixtures("without_processes")
def test_rows_that_a_newcomer_learned_from_are_not_fresh(tmp_path):
    table = ow.streams.synthetic(num_samples=100, num_features=3, seed=1).table
    problem = Problem.deal(table, ow.TrustGraph.ring(3), samples=20, seed=2)
    lab = Lab(tmp_path / "lab", problem)
    try:
        assert len(fresh_rows(problem, lab.dealt)) == 40
        assert lab.add_peer().startswith("peer3 joined with 20 samples, sends to peer")
        fresh = fresh_rows(problem, lab.dealt)
        assert len(fresh) == 20
        learned = lab.peers[-1].samples_path.read_text().splitlines()[1:]
        for row in fresh:
            only = tmp_path / f"{row}.csv"
            table.write_csv(only, np.array([row]))
            assert only.read_text().splitlines()[1] not in learned
    finally:
        lab.close()


# Where mass gathers.

PEERS = "abcdef"
EDGES = st.sets(st.tuples(st.sampled_from(PEERS), st.sampled_from(PEERS)))


@given(EDGES, st.sets(st.sampled_from(PEERS), min_size=1))
def test_from_every_peer_a_dead_end_can_be_reached_and_none_can_be_left(edges, running):
    ends = dead_ends(running, edges)
    graph = nx.DiGraph([edge for edge in edges if set(edge) <= running])
    graph.add_nodes_from(running)
    if not ends:
        assert nx.is_strongly_connected(graph)
        return
    inside = {name for end in ends for name in end}
    for peer in running:
        assert (nx.descendants(graph, peer) | {peer}) & inside
    for end in ends:
        assert all(nx.descendants(graph, peer) | {peer} == set(end) for peer in end)


# When a network is at rest.


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
