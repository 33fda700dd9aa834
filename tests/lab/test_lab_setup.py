"""The folders of a lab say what its graph and its table say."""

from __future__ import annotations

import csv
import re
import socket
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ConfigError, DataError, GraphError
from oneway.lab.ports import Ports
from oneway.lab.problem import Problem, read_table
from oneway.lab.setup import make_members


@pytest.fixture
def members(tmp_path, problem):
    ports = count(30_000)
    return make_members(tmp_path / "lab", problem, lambda: f"127.0.0.1:{next(ports)}")


def test_what_peers_are_told_to_keep_and_hand_out_are_the_rows_of_the_mixing(members, problem):
    mixing = problem.graph.mixing().toarray()
    number = {member.key: node for node, member in enumerate(members)}
    for sender, member in enumerate(members):
        config = member.home.config()
        row = np.zeros(len(members))
        row[sender] = config.keep
        total = sum(receiver.weight for receiver in config.receivers)
        for receiver in config.receivers:
            row[number[receiver.key]] = (1 - config.keep) * receiver.weight / total
        np.testing.assert_allclose(row, mixing[sender], atol=1e-15)


def test_everybody_admits_exactly_those_who_send_to_it(members, problem):
    for node, member in enumerate(members):
        admitted = {sender.key for sender in member.home.config().senders}
        assert admitted == {members[other].key for other in problem.graph.senders_of(node)}


def test_peers_get_their_samples_in_order_and_see_what_the_simulator_sees(members, problem):
    for node, member in enumerate(members):
        task = member.home.task()
        with member.samples_path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        dealt = problem.stream.rows[:, node]
        assert len(rows) == len(dealt)
        seen = np.array([task.vector(row) for row in rows])
        np.testing.assert_allclose(seen, problem.stream.features[dealt], atol=2e-6)
        labels = [task.label_value(row[task.label]) for row in rows]
        assert labels == problem.stream.labels[dealt].tolist()


def test_scaling_is_part_of_the_task_and_undone_in_the_files(tmp_path):
    rng = np.random.default_rng(1)
    raw = rng.normal([20.0, -4000.0], [0.5, 300.0], size=(60, 2))
    table = ow.Table.from_arrays(
        raw, raw[:, 0] > 20, feature_names=["warm", "deep"], name="sensors"
    )
    problem = Problem.deal(table, ow.TrustGraph.ring(3), samples=20)
    ports = count(30_000)
    (member, *_) = make_members(tmp_path / "lab", problem, lambda: f"127.0.0.1:{next(ports)}")
    with member.samples_path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = [[float(row["warm"]), float(row["deep"])] for row in rows]
    np.testing.assert_allclose(found, raw[problem.rows_of(0)], rtol=1e-5)
    assert {row["label"] for row in rows} <= {"true", "false"}
    assert member.home.task().classes == ("false", "true")


def test_peers_have_one_task_and_different_keys(members):
    assert len({member.home.task().fingerprint for member in members}) == 1
    assert len({member.key for member in members}) == len(members)


def owners(*counts: int) -> ow.Table:
    """A table with as many rows per owner, its only feature the row's number."""
    names = [f"owner-{index}" for index, number in enumerate(counts) for _ in range(number)]
    order = np.random.default_rng(3).permutation(len(names))
    features = np.arange(len(names), dtype=np.float32)[:, None]
    return ow.Table.from_arrays(
        features,
        np.arange(len(names)) % 2,
        columns={"who": [names[place] for place in order]},
        standardise=False,
    )


def test_the_owners_with_the_most_samples_are_peers_and_get_their_first_ones_in_order():
    table = owners(9, 3, 30, 12)
    problem = Problem.deal(table, ow.TrustGraph.ring(3), samples=10, owner="who")
    assert problem.names == ("owner-0", "owner-2", "owner-3")
    names = table.columns["who"].values
    for node, name in enumerate(problem.names):
        assert problem.rows_of(node).tolist() == np.flatnonzero(names == name)[:10].tolist()
    assert problem.stream.rows[-1].tolist()[0] == -1


def test_more_peers_than_owners_get_a_sentence():
    with pytest.raises(DataError, match=r"names 2 owners, and there are to be 3 peers; choose at"):
        Problem.deal(owners(5, 5), ow.TrustGraph.ring(3), samples=5, owner="who")


def test_names_that_no_peer_can_have_are_replaced_by_numbers():
    graph = ow.TrustGraph.from_edges([("my house", "b"), ("b", "c"), ("c", "my house")])
    table = ow.streams.synthetic(num_samples=30, num_features=2, seed=1).table
    assert Problem.deal(table, graph, samples=5).names == ("peer0", "peer1", "peer2")
    named = ow.TrustGraph.from_edges([("ann", "bob"), ("bob", "cem"), ("cem", "ann")])
    assert Problem.deal(table, named, samples=5).names == ("ann", "bob", "cem")


def test_a_graph_on_which_not_everybody_hears_of_everybody_is_refused():
    table = ow.streams.synthetic(num_samples=30, num_features=2, seed=1).table
    chain = ow.TrustGraph.from_edges([(0, 1), (1, 2), (2, 1)])
    with pytest.raises(GraphError, match="strong"):
        Problem.deal(table, chain, samples=5)


def test_a_folder_that_holds_something_is_left_alone(tmp_path, problem):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty, and a lab starts from nothing"):
        make_members(tmp_path, problem, lambda: "127.0.0.1:30000")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_node_that_keeps_nothing_cannot_be_a_peer(tmp_path, problem):
    graph = replace(problem.graph, kept_shares=np.zeros(5))
    ports = count(30_000)
    with pytest.raises(ConfigError, match="keep is 0"):
        make_members(
            tmp_path / "lab",
            replace(problem, graph=graph),
            lambda: f"127.0.0.1:{next(ports)}",
        )


def test_made_up_samples_suit_the_model():
    made = {"label": None, "num_samples": 50, "seed": 1}
    assert set(read_table("synthetic", model="logistic", **made).labels.tolist()) == {-1.0, 1.0}
    assert len(set(read_table("synthetic", model="ridge", **made).labels.tolist())) == 50
    with pytest.raises(DataError, match="needs a file whose label is a class"):
        read_table("synthetic", model="softmax", **made)
    with pytest.raises(DataError, match=re.escape("label 'y' is for files")):
        read_table("synthetic", model="ridge", **made | {"label": "y"})


def listen(address: str) -> socket.socket:
    """As ZeroMQ does, with SO_REUSEADDR."""
    host, port = address.split(":")
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, int(port)))
    listener.listen()
    return listener


def test_a_port_stays_the_labs_own_while_its_peer_is_down():
    with Ports() as mine, Ports() as theirs:
        address = mine.reserve()
        assert theirs.reserve() != address
        for _ in range(3):
            with listen(address):
                pass
        with Ports() as third:
            assert address not in {third.reserve() for _ in range(3)}
