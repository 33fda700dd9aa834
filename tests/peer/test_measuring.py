"""What a peer measures of its predictions: literally, durably, and for itself alone."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from builders import replace
from literal_personal import LiteralPersonal
from town import SAMPLE, TASK, Town, config

import oneway as ow
from oneway.errors import ConfigError
from oneway.models import RidgeRegression
from oneway.peer.home.home import Home
from oneway.peer.measuring import Measuring, measures_in
from oneway.peer.peer import Peer
from oneway.peer.store.store import Owner, PeerStore
from oneway.peer.telemetry import Activity, status_of
from oneway.records.curve import Curve
from oneway.tables import Number
from oneway.task.task import Task

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
        features = (Number("u"), Number("v"))
        task = Task(model, "y", features, MODELS[model], **{"learning_rate": 0.2} | learning)
        path = tmp_path / "task.toml"
        path.write_text(task.to_toml())
        return Home.create(tmp_path / "alice", "alice", path, "127.0.0.1:7700")

    return make


@pytest.mark.parametrize("rate", [0.2, "auto"])
@pytest.mark.parametrize("model", MODELS)
def test_all_four_losses_are_what_they_are_said_to_be(make_home, model, rate):
    rows = samples(model, 80)
    # With noise for privacy, batches, and the method that is usual.
    home = make_home(model, learning_rate=rate)
    suffered, base, seen = [], [], []
    with closing(Peer(home.folder)) as peer:
        task, built = peer.task, peer.task.build_model()
        literal = LiteralPersonal(2, 0.0, squared=model == "ridge")
        for x, y in rows:
            params, label = peer.node.estimate, task.encoder.label_value(y)
            features = task.encoder.vector(x)
            if model in ("logistic", "ridge"):
                score = float(built.scores(params, features[None])[0])
                suffered.append(literal.step(features.tolist(), score, label)[:3])
            base.append(literal_base_loss(model, task, seen, label))
            seen.append(label)
            loss = peer.learn_one(x, y)
            assert loss == pytest.approx(peer.curve().loss_sums[-1], rel=1e-12)
        found, curve = peer.measures, peer.curve()
    losses = np.array([curve.loss_sums, curve.shared_sums, curve.alone_sums])
    if suffered:
        np.testing.assert_allclose(losses, np.transpose(suffered), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(curve.base_sums, base, rtol=1e-12)
    assert found.so_far.samples == 80
    means = [found.so_far.loss, found.so_far.shared_loss, found.so_far.alone_loss]
    np.testing.assert_allclose(means, losses.mean(axis=1), rtol=1e-12)
    assert found.so_far.base_loss == pytest.approx(np.mean(base), rel=1e-12)
    assert sum(found.weights.values()) == pytest.approx(1.0)
    assert found.believes
    assert found.verdict.startswith("not decided yet")
    if model == "ridge":
        assert found.rmse == pytest.approx(math.sqrt(2 * losses[0].mean()), rel=1e-9)
    else:
        assert sum(map(sum, found.confusion)) == 80
        assert [it.name for it in found.classes] == list(MODELS[model])
    if found.log_loss is not None:  # what is counted is what answers
        assert found.log_loss == pytest.approx(losses[0].mean(), rel=1e-9)


def literal_base_loss(model: str, task: Task, seen: list[float], label: float) -> float:
    if model == "ridge":
        return 0.5 * ((sum(seen) / len(seen) if seen else 0.0) - label) ** 2
    if model == "hinge":
        return max(0.0, 1.0 - label * np.sign(sum(seen)))
    num_classes = len(task.classes)
    return -math.log((seen.count(label) + 0.5) / (len(seen) + 0.5 * num_classes))


def test_a_kill_after_any_commit_costs_nothing_of_the_experts(tmp_path):
    """Every sample's own commit has them: what is read back goes on as if nothing had been."""
    rows = samples("logistic", 12)
    names = {"alice": ["bob"], "bob": []}
    steady, shaken = Town(names), Town(names)
    node = shaken.nodes["alice"]
    owner = Owner(node.key, TASK.fingerprint, node.snapshot.state.dim)
    store = PeerStore.create(tmp_path / "store.db", owner, node.snapshot)
    for x, y in rows:
        steady.nodes["alice"].learn(x, y)
        shaken.nodes["alice"].learn(x, y)
        store.commit(shaken.nodes["alice"].begin().snapshot)
        store.close()  # nothing is written by this
        shaken.power_off("alice")
        store = PeerStore.open(tmp_path / "store.db", owner)
        shaken.power_on("alice", store.load(), config("alice", ["bob"]))
    store.close()
    expected, found = (town.nodes["alice"].snapshot.measures for town in (steady, shaken))
    assert {name for name in found if name.startswith("personal.")}
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    assert not shaken.nodes["alice"].personal_note


@pytest.mark.parametrize("change", ["shape", "names", "nan"])
def test_a_stored_mixture_of_another_shape_begins_anew_with_a_sentence(change):
    town = Town({"alice": ["bob"], "bob": []})
    town.learn("alice", 3)
    stored = town.nodes["alice"].snapshot
    name = "personal.params"
    wrong = {
        "shape": {**stored.measures, name: np.zeros((1, 40))},
        "names": {key: it for key, it in stored.measures.items() if key != name},
        "nan": {**stored.measures, name: np.full_like(stored.measures[name], np.nan)},
    }[change]
    town.power_off("alice")
    town.power_on("alice", replace(stored, measures=wrong), config("alice", ["bob"]))
    alice = town.nodes["alice"]
    assert "begin anew" in alice.personal_note
    assert alice.personal_note in status_of(alice, town.ends["alice"], Activity()).personal
    before = alice.learner.fitted(alice.settled).predict_one(SAMPLE)
    assert alice.personal_model().predict_one(SAMPLE) == before == "yes"
    town.learn("alice")
    assert np.isfinite(alice.snapshot.measures[name]).all()
    assert alice.snapshot.measures["tally.losses"][0] == 4  # counts go on


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

    def other(self, arrays, *given):
        found = measured(self, arrays, *given)
        wrong = {name: array + 17.0 for name, array in found.arrays.items()}
        return found._replace(
            arrays=wrong, loss=2.0, shared_loss=5.0, alone_loss=4.0, base_loss=3.0
        )

    monkeypatch.setattr(Measuring, "measured", other)
    assert words(Town({"alice": ["bob"], "bob": ["alice"]})) == honest
    assert honest


def test_a_sample_of_any_size_leaves_experts_finite_and_names_who_had_no_answer():
    model = RidgeRegression()
    task = Task("ridge", "y", (Number("u"), Number("v")))
    measuring = Measuring(task, model, 2, np.zeros(3))
    huge = ow.records.Batch(np.array([[1e200, -1e200]]), np.array([1.0]))
    arrays: dict = {}
    for params in (np.zeros(3), np.zeros(3), np.full(3, np.nan)):
        found = measuring.measured(arrays, params, huge, 0.7, None, 0)
        arrays = found.arrays
        assert math.isfinite(found.loss)
        assert math.isfinite(found.alone_loss)
        assert all(np.isfinite(array).all() for array in arrays.values())
    assert measures_in(arrays, task, Curve()).left_out == {"shared": 1}


def test_a_model_that_experts_cannot_mix_says_so_and_its_shared_model_answers(monkeypatch):
    def refuse(model):
        raise ConfigError(f"{type(model).__name__} has no personal predictions")

    monkeypatch.setattr("oneway.personal.personal.link_of", refuse)
    town = Town({"alice": ["bob"], "bob": []})
    town.learn("alice", 3)
    alice = town.nodes["alice"]
    assert "LogisticRegression has no personal predictions" in alice.personal_note
    assert alice.personal_model() is None
    assert alice.learner.fitted(alice.settled).predict_one(SAMPLE) == "yes"
    told = status_of(alice, town.ends["alice"], Activity())
    assert told.measures.so_far.shared_loss is None
    assert told.average_loss == told.measures.so_far.loss
