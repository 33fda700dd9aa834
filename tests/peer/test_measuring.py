"""What a peer measures of its predictions: literally, durably, and for itself alone."""

from __future__ import annotations

import math
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pytest
from town import TASK, Town

import oneway as ow
from oneway.metrics.tally import MOST_CLASSES
from oneway.peer.home.home import Home
from oneway.peer.measuring import Measuring
from oneway.peer.peer import Peer
from oneway.peer.status_text import status_facts, status_line
from oneway.peer.store.store import read_snapshot
from oneway.records.status import Status
from oneway.task.privacy import NO_PRIVACY
from oneway.task.task import Feature, Task
from oneway.testing.records import make_status

MODELS = {
    "logistic": ("no", "yes"),
    "hinge": ("no", "yes"),
    "softmax": ("a", "b", "c"),
    "ridge": (),
}


def samples(model: str, count: int, seed: int = 1) -> list[tuple[dict[str, float], object]]:
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(count):
        u, v = rng.normal(size=2)
        score = u - v + rng.normal()
        label: object = score + 5.0
        if classes := MODELS[model]:
            label = classes[min(int(abs(score)), len(classes) - 1)]
        drawn.append(({"u": float(u), "v": float(v)}, label))
    return drawn


@pytest.fixture
def make_home(tmp_path: Path):
    def make(model: str = "logistic", **learning: object) -> Home:
        features = (Feature("u"), Feature("v"))
        task = Task(model, "y", features, MODELS[model], **{"learning_rate": 0.2} | learning)
        path = tmp_path / "task.toml"
        path.write_text(task.to_toml())
        return Home.create(tmp_path / "alice", "alice", path, "127.0.0.1:7700")

    return make


def status_of(peer: Peer) -> Status:
    """What the peer would say if it ran."""
    journal = peer.node.snapshot.journal
    mean = journal.loss_sum / journal.samples
    return make_status(samples=journal.samples, average_loss=mean, measures=peer.measures)


def teach(peer: Peer, rows: list) -> list[float]:
    return [peer.learn_one(x, y) for x, y in rows]


@pytest.mark.parametrize("rate", [0.2, "auto"])
@pytest.mark.parametrize("model", MODELS)
def test_both_baselines_are_what_they_are_said_to_be(make_home, model, rate):
    rows = samples(model, 80)
    home = make_home(
        model, learning_rate=rate
    )  # with noise for privacy, batches, and the method that is usual
    with closing(Peer(home.folder)) as peer:
        losses = teach(peer, rows)
        found, task = peer.measures, peer.task
        curve = peer.curve()
    features = np.array([[x["u"], x["v"]] for x, _ in rows], np.float64)[:, None, :]
    labels = np.array([[task.encoder.label_value(y)] for _, y in rows])
    stream = ow.Stream.from_arrays(features, labels)
    # Alone is the simulator's local method, with the same model, step and rate, and no noise.
    alone = ow.simulate(task.with_method("local").build_method(), task.build_model(), stream)
    assert found.so_far.samples == 80
    assert found.so_far.loss == pytest.approx(np.mean(losses), rel=1e-12)
    assert found.so_far.alone_loss == pytest.approx(alone.average_loss, rel=1e-9)
    np.testing.assert_allclose(curve.alone_sums, alone.record.loss_sums, rtol=1e-9)
    base, seen = [], []
    for _, y in rows:
        base.append(literal_base_loss(model, task, seen, task.encoder.label_value(y)))
        seen.append(task.encoder.label_value(y))
    assert found.so_far.base_loss == pytest.approx(np.mean(base), rel=1e-12)
    np.testing.assert_allclose(curve.base_sums, base, rtol=1e-12)
    if model == "ridge":
        assert found.rmse == pytest.approx(math.sqrt(2 * np.mean(losses)), rel=1e-3)  # l2 aside
    else:
        assert sum(map(sum, found.confusion)) == 80
        assert [it.name for it in found.classes] == list(MODELS[model])


def literal_base_loss(model: str, task: Task, seen: list[float], label: float) -> float:
    if model == "ridge":
        return 0.5 * ((sum(seen) / len(seen) if seen else 0.0) - label) ** 2
    if model == "hinge":
        return max(0.0, 1.0 - label * np.sign(sum(seen)))
    num_classes = len(task.classes)
    return -math.log((seen.count(label) + 0.5) / (len(seen) + 0.5 * num_classes))


def test_measures_go_on_after_a_restart_as_if_there_had_been_none(make_home, tmp_path):
    rows = samples("logistic", 40)
    home = make_home(privacy=NO_PRIVACY, samples_per_push=1, method="ops")
    with closing(Peer(home.folder)) as peer:
        teach(peer, rows[:25])
    stored = read_snapshot(home.store_path)
    with closing(Peer(home.folder)) as peer:
        teach(peer, rows[25:])
        found = peer.measures
    other = Home.create(tmp_path / "bob", "bob", home.task_path, "127.0.0.1:7701")
    with closing(Peer(other.folder)) as peer:
        teach(peer, rows)
        assert peer.measures == found
    assert stored.measures["tally.losses"][0] == 25
    assert stored.journal.samples == 25


def test_a_restored_backup_is_of_one_moment(make_home):
    rows = samples("logistic", 40)
    home = make_home()
    with closing(Peer(home.folder)) as peer:
        teach(peer, rows[:10])
        before = peer.measures
    backup = home.store_path.with_name("backup")
    shutil.copy(home.store_path, backup)
    with closing(Peer(home.folder)) as peer:
        teach(peer, rows[10:])
    shutil.copy(backup, home.store_path)
    home.store_path.with_name(f"{home.store_path.name}-wal").unlink(missing_ok=True)
    with closing(Peer(home.folder)) as peer:
        assert peer.measures == before
        assert peer.node.snapshot.journal.samples == 10


def test_a_store_of_a_release_that_measured_nothing_begins_to_measure(make_home):
    rows = samples("logistic", 30)
    home = make_home()
    with closing(Peer(home.folder)) as peer:
        teach(peer, rows[:10])
    with closing(sqlite3.connect(home.store_path)) as store:
        store.execute("DROP TABLE measure")
        for column in ("base_sum", "alone_sum"):
            store.execute(f"ALTER TABLE curve DROP COLUMN {column}")
        store.commit()
    with closing(Peer(home.folder)) as peer:
        assert peer.measures is None
        losses = teach(peer, rows[10:])
        status, curve = status_of(peer), peer.curve()
    assert status.measures.so_far.samples == 20
    assert status.measures.so_far.loss == pytest.approx(np.mean(losses), rel=1e-12)
    assert curve.base_sums[:10] == curve.alone_sums[:10] == (None,) * 10
    assert None not in curve.base_sums[10:] + curve.alone_sums[10:]
    assert "measured since sample 10" in status_facts(status)["base rate"]


def test_samples_that_another_release_learned_from_begin_the_measures_anew(make_home):
    home = make_home()
    with closing(Peer(home.folder)) as peer:
        teach(peer, samples("logistic", 10))
    with closing(sqlite3.connect(home.store_path)) as store:
        store.execute("DELETE FROM measure WHERE name = 'tally.losses'")
        store.execute(
            "INSERT INTO measure SELECT 'tally.losses', shape, ? FROM measure WHERE name = "
            "'tally.chances'",
            (np.array([7.0, 1.0]).tobytes(),),
        )
        store.commit()
    with closing(Peer(home.folder)) as peer:
        teach(peer, samples("logistic", 4))
        assert peer.measures.so_far.samples == 4


def test_nothing_that_is_measured_is_ever_sent(monkeypatch):
    def words(town: Town) -> list[bytes]:
        said: list[bytes] = []
        send = town.send

        def listen(name, frames):
            frames = list(frames)
            said.extend(frame.content for frame in frames)
            send(name, frames)

        town.send = listen
        for _ in range(3):
            town.learn("alice", 3)
            town.exchange()
        return said

    honest = words(Town({"alice": ["bob"], "bob": ["alice"]}))
    measured = Measuring.measured

    def other(self, arrays, params, batch, loss, seen):
        found = measured(self, arrays, params, batch, loss, seen)
        wrong = {name: array + 17.0 for name, array in found.arrays.items()}
        return found._replace(arrays=wrong, base_loss=3.0, alone_loss=4.0)

    monkeypatch.setattr(Measuring, "measured", other)
    assert words(Town({"alice": ["bob"], "bob": ["alice"]})) == honest
    assert honest


def test_a_peer_that_is_alone_is_its_own_baseline(make_home):
    home = make_home(method="local")
    with closing(Peer(home.folder)) as peer:
        teach(peer, samples("logistic", 5))
        found = peer.measures
        assert not any(name.startswith("alone") for name in peer.node.snapshot.measures)
    assert found.so_far.alone_loss is None


def test_a_learner_that_diverges_alone_neither_stops_the_peer_nor_leaves_the_numbers():
    model = TASK.build_model()
    measuring = Measuring(TASK, model, 2, np.zeros(TASK.dim))
    monster = ow.records.Batch(np.array([[1e200, -1e200]]), np.array([1.0]))
    arrays: dict = {}
    for seen in range(4):
        found = measuring.measured(arrays, np.zeros(TASK.dim), monster, 0.7, seen)
        arrays = found.arrays
        assert math.isfinite(found.alone_loss)
        assert all(np.isfinite(array).all() for array in arrays.values())


def test_a_status_of_an_older_release_has_no_measures_and_is_read_all_the_same():
    old = msgspec.to_builtins(make_status(samples=4, average_loss=0.5))
    del old["measures"]
    status = msgspec.convert(old, Status)
    assert status.measures is None
    assert "base rate" not in status_facts(status)


def test_line_and_facts_say_loss_and_baselines(make_home):
    home = make_home()
    with closing(Peer(home.folder)) as peer:
        teach(peer, samples("logistic", 50))
        status = status_of(peer)
    so_far = status.measures.so_far
    line = status_line(status)
    assert f"base rate {so_far.base_loss:.4f}, alone {so_far.alone_loss:.4f}" in line
    facts = status_facts(status)
    assert {"base rate", "alone", "ROC AUC", "log loss", "Brier score", "class yes"} <= {*facts}
    again = msgspec.json.decode(msgspec.json.encode(status), type=Status)
    assert again.measures == status.measures
    assert len(status.measures.classes) <= MOST_CLASSES
