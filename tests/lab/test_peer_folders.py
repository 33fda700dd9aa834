"""The folders of a lab say what its graph and its table say."""

from __future__ import annotations

import csv
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ConfigError, DataError, GraphError
from oneway.lab.peer_folders import CachedFile, make_peers, write_owner_files
from oneway.lab.ports import Ports
from oneway.lab.problem import Problem, problem_of
from oneway.peer.home.torch_site import TorchSite
from oneway.tables.array_source import open_arrays
from oneway.task.settings import Settings, read_settings
from oneway.task.task import Feature, Task


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


def test_what_a_lab_says_for_its_own_machine_stands_in_the_file_of_every_peer(tmp_path):
    pytest.importorskip("torch", reason="the extra torch is not installed")
    options = {"module": "oneway.models.examples:digits_network", "threads": 2, "backend": "loop"}
    problem = Problem.deal(
        ow.streams.load("digits"),
        ow.TrustGraph.ring(2),
        samples=2,
        model="torch",
        options={"torch": options},
    )
    with Ports() as ports:
        peers = make_peers(tmp_path / "lab", problem, ports.reserve)
    for peer in peers:
        assert peer.home.config().torch == TorchSite(threads=2, backend="loop")
        assert peer.home.task().build_model().threads == 2
        assert "threads" not in peer.home.task_path.read_text()


def test_peers_of_images_get_them_as_arrays_and_see_what_the_simulator_sees(tmp_path):
    digits = ow.streams.load("digits")
    problem = Problem.deal(digits, ow.TrustGraph.ring(3), samples=9, classes_per_node=4)
    with Ports() as ports:
        peers = make_peers(tmp_path / "lab", problem, ports.reserve)
    for node, peer in enumerate(peers):
        source, task = open_arrays(peer.samples_path), peer.home.task()
        source.check_encoder(task.encoder)
        assert source.rows[:1].dtype == np.uint8
        dealt = problem.stream.rows[:, node]
        seen = np.array([task.encoder.vector({"image": it}) for it in source.rows[:]])
        np.testing.assert_array_equal(seen.astype(np.float32), problem.stream.features[dealt])
        labels = [task.encoder.label_value(source.raw_label(row)) for row in range(len(source))]
        assert labels == problem.stream.labels[dealt].tolist()


def test_scaling_is_part_of_the_task_and_undone_in_the_files(tmp_path):
    rng = np.random.default_rng(1)
    warm, deep = rng.normal(20.0, 0.5, 60).round(2), rng.normal(-4000.0, 300.0, 60).round()
    raw = np.stack([warm, deep], axis=1)
    table = ow.Table.from_arrays(
        raw, raw[:, 0] > 20, feature_names=["warm", "deep"], name="sensors"
    )
    problem = Problem.deal(table, ow.TrustGraph.ring(3), samples=20)
    with Ports() as ports:
        (peer, *_) = make_peers(tmp_path / "lab", problem, ports.reserve)
    with peer.samples_path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = [[float(row["warm"]), float(row["deep"])] for row in rows]
    # In the user's own units, and as short as they were.
    np.testing.assert_array_equal(found, raw[problem.rows_of(0)])
    assert {row["label"] for row in rows} <= {"true", "false"}
    assert peer.home.task().classes == ("false", "true")


def test_peers_have_one_task_and_different_keys(peers):
    assert len({peer.home.task().fingerprint for peer in peers}) == 1
    assert len({peer.key for peer in peers}) == len(peers)


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
    with pytest.raises(DataError, match=r"'who'.* 2 owners.* 3 peers"):
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
    with pytest.raises(ConfigError, match="is not empty"):
        make_peers(tmp_path, problem, lambda: pytest.fail("no address is needed"))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_node_that_keeps_nothing_cannot_be_a_peer(tmp_path, problem):
    graph = replace(problem.graph, kept_shares=np.zeros(5))
    with Ports() as ports, pytest.raises(ConfigError, match="keep is 0"):
        make_peers(tmp_path / "lab", replace(problem, graph=graph), ports.reserve)


def test_made_up_samples_suit_the_model():
    made = {"data": "synthetic", "nodes": 5, "rounds": 10, "seed": 1}
    table = problem_of(Settings(**made), watched=False).table
    assert set(table.labels.tolist()) == {-1.0, 1.0}
    numbers = problem_of(Settings(**made, model="ridge"), watched=False).table
    assert len(set(numbers.labels.tolist())) == 50
    with pytest.raises(DataError, match="class"):
        problem_of(Settings(**made, model="softmax"), watched=False)
    with pytest.raises(ConfigError, match="'y'"):
        problem_of(Settings(**made, model="ridge", label="y"), watched=False)


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


def test_every_owner_of_a_table_gets_a_file_in_order_of_time(tmp_path):
    table = owners(9, 3)
    written = write_owner_files(table, "who", tmp_path / "made", samples=5)
    assert {path.name: count for path, count in written.items()} == {
        "owner-0.csv": 5,
        "owner-1.csv": 3,
    }
    task = Task.read(tmp_path / "made" / "task.toml")
    names = table.columns["who"].values
    for path in written:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        own = np.flatnonzero(names == path.stem)[:5]
        found = np.array([task.encoder.vector(row) for row in rows], dtype=np.float32)
        np.testing.assert_array_equal(found, table.features[own])
        assert [task.encoder.label_value(row[task.label]) for row in rows] == table.labels[
            own
        ].tolist()


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
        "hinge", "late", (Feature("b", 3.0, 7.0), Feature("a", 1.0, 2.0)), ("yes", "no"),
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
    owners = problem.table.owners("patient").values
    with Ports() as ports:
        for node, peer in enumerate(make_peers(tmp_path / "lab", problem, ports.reserve)):
            with peer.samples_path.open(newline="") as file:
                patients = [row["patient"] for row in csv.DictReader(file)]
            assert patients == owners[problem.rows_of(node)].tolist()
            assert max(map(patients.count, patients)) == 2
    # Those who have fewer have theirs first, since a simulation of the lab counts them so.
    gaps = problem.stream.rows < 0
    assert (gaps[1:] >= gaps[:-1]).all()


def test_without_groups_no_further_column_is_written(tmp_path):
    problem = grouped_problem(tmp_path)
    with Ports() as ports:
        [peer, *_] = make_peers(tmp_path / "lab", problem, ports.reserve)
    assert peer.samples_path.read_text().splitlines()[0] == "u,v,late"


def test_a_group_column_that_the_table_lacks_is_named(tmp_path):
    with pytest.raises(DataError, match="'person'"):
        grouped_problem(tmp_path, **GROUPED | {"group": "person"})


def test_a_delta_that_is_too_large_for_the_samples_of_a_lab_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"delta is 0\.1"):
        grouped_problem(tmp_path, delta=0.1)
