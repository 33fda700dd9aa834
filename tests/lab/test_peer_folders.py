"""The folders of a lab say what its graph and its table say."""

from __future__ import annotations

import csv
import socket
from pathlib import Path

import numpy as np
import pytest

import oneway as ow
from oneway.lab.peer_folders import CachedFile, make_peers
from oneway.lab.ports import Ports
from oneway.lab.problem import Problem, problem_of
from oneway.tables import Number
from oneway.tables.arrays import open_arrays
from oneway.task.settings import read_settings
from oneway.task.task import Task


@pytest.fixture
def peers(tmp_path, problem):
    with Ports() as ports:
        yield make_peers(tmp_path / "lab", problem, ports.reserve)


def test_what_peers_are_told_to_keep_and_hand_out_are_the_rows_of_the_mixing(peers, problem):
    mixing = problem.graph.mixing().toarray()
    number = {peer.key: node for node, peer in enumerate(peers)}
    for sender, peer in enumerate(peers):
        config = peer.home.config()
        row = np.zeros(len(peers))
        row[sender] = config.keep
        total = sum(receiver.weight for receiver in config.receivers)
        for receiver in config.receivers:
            row[number[receiver.key]] = (1 - config.keep) * receiver.weight / total
        np.testing.assert_allclose(row, mixing[sender], atol=1e-15)


def test_everybody_admits_exactly_those_who_send_to_it(peers, problem):
    for node, peer in enumerate(peers):
        admitted = {sender.key for sender in peer.home.config().senders}
        assert admitted == {peers[other].key for other in problem.graph.senders_of(node)}


def test_peers_get_their_samples_in_order_and_see_what_the_simulator_sees(peers, problem):
    for node, peer in enumerate(peers):
        task = peer.home.task()
        with peer.samples_path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        dealt = problem.stream.rows[:, node]
        assert len(rows) == len(dealt)
        seen = np.array([task.encoder.vector(row) for row in rows])
        # Bit for bit, once rounded as the table is.
        np.testing.assert_array_equal(seen.astype(np.float32), problem.stream.features[dealt])
        labels = [task.encoder.label_value(row[task.label]) for row in rows]
        assert labels == problem.stream.labels[dealt].tolist()


def test_peers_of_images_get_them_as_arrays_and_see_what_the_simulator_sees(tmp_path):
    digits = ow.streams.load("digits")
    problem = Problem.deal(digits, ow.TrustGraph.ring(3), samples=9, classes_per_node=4)
    with Ports() as ports:
        peers = make_peers(tmp_path / "lab", problem, ports.reserve)
    for node, peer in enumerate(peers):
        source, task = open_arrays(peer.samples_path), peer.home.task()
        source.check_encoder(task.encoder)
        assert source.features[:1].dtype == np.uint8
        dealt = problem.stream.rows[:, node]
        seen = np.array([task.encoder.vector({"image": it}) for it in source.features[:]])
        np.testing.assert_array_equal(seen.astype(np.float32), problem.stream.features[dealt])
        labels = [task.encoder.label_value(source.labels[row].item()) for row in range(len(source))]
        assert labels == problem.stream.labels[dealt].tolist()


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
    names = table.frame["who"].to_numpy()
    for node, name in enumerate(problem.names):
        assert problem.rows_of(node).tolist() == np.flatnonzero(names == name)[:10].tolist()
    assert problem.stream.rows[-1].tolist()[0] == -1


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


def test_a_file_is_read_again_only_when_it_was_written_anew(tmp_path):
    path, read = tmp_path / "note.txt", []

    def text_of(path: Path) -> str:
        read.append(path)
        return path.read_text()

    cached = CachedFile(path, text_of)
    assert cached.get() is None
    path.write_text("one")
    assert (cached.get(), cached.get(), len(read)) == ("one", "one", 1)
    path.write_text("three")
    assert cached.get() == "three"
    path.unlink()
    assert cached.get() == "three"


def test_a_lab_of_a_task_has_that_task(tmp_path):
    """Features, scaling, classes, model, method and step: what peers were told before."""
    rows = "".join(f"{i};{['yes', 'no'][i % 2]};{i * i}\n" for i in range(30))
    (tmp_path / "mine.csv").write_text("a;late;b\n" + rows)
    task = Task(
        "hinge", "late", (Number("b", 3.0, 7.0), Number("a", 1.0, 2.0)), ("yes", "no"),
        method="dol-asymm", step="mass", learning_rate=0.05, l2=0.5,
    )  # fmt: skip
    (tmp_path / "task.toml").write_text(task.to_toml())
    settings = read_settings(
        tmp_path / "task.toml", {"data": str(tmp_path / "mine.csv"), "nodes": 3, "rounds": 5}
    )
    assert problem_of(settings, watched=False).task == task


GROUPED = {"unit": "group", "group": "patient", "records_per_group": 2}


def grouped_problem(tmp_path: Path, **privacy: object) -> Problem:
    rows = [f"{n % 7 - 3},{n % 5},{'no' if n % 2 else 'yes'},p{n % 11}" for n in range(240)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["u,v,late,patient", *rows]))
    told = {"data": str(path), "label": "late", "nodes": 3, "rounds": 60, "exclude": ("patient",)}
    return problem_of(read_settings(None, told | privacy), watched=False)


def test_peers_get_at_most_so_many_samples_of_a_group_and_are_told_whose_they_are(tmp_path):
    problem = grouped_problem(tmp_path, **GROUPED)
    owners = problem.table.frame["patient"].to_numpy()
    with Ports() as ports:
        for node, peer in enumerate(make_peers(tmp_path / "lab", problem, ports.reserve)):
            with peer.samples_path.open(newline="") as file:
                patients = [row["patient"] for row in csv.DictReader(file)]
            assert patients == owners[problem.rows_of(node)].tolist()
            assert max(map(patients.count, patients)) == 2
    # Those who have fewer have theirs first, since a simulation of the lab counts them so.
    gaps = problem.stream.rows < 0
    assert (gaps[1:] >= gaps[:-1]).all()
