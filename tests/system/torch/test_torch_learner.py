"""Peers with a torch task compute what the simulator computes, and predict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lockstep import NAMES, NUM_NODES, Dealt, Lockstep, check_same, samples
from plain import PLAIN

import oneway as ow
from oneway.errors import ConfigError, DataError
from oneway.models import Torch
from oneway.peer.learner import Learner
from oneway.peer.store.snapshot import Snapshot
from oneway.protocol.rules import Rules
from oneway.protocol.state import PeerState
from oneway.tables import Number
from oneway.task.privacy import Privacy
from oneway.task.task import Task

pytest.importorskip("torch", reason="the extra torch is not installed")


def torch_task(module: str = "nets:network", **learning: object) -> Task:
    options = {"module": module, **learning.pop("torch", {})}
    return Task(
        model="torch",
        label="y",
        classes=learning.pop("classes", ("-1", "1")),
        features=tuple(map(Number, NAMES)),
        **{"learning_rate": 0.1, "options": {"torch": options}} | PLAIN | learning,
    ).sealed()


@pytest.mark.parametrize("method", ["ops", "relay", "tracking"])
def test_peers_in_lockstep_reproduce_the_simulator_with_a_linear_module(method):
    check_same(torch_task("nets:linear", method=method, step="paper"), seed=1)


def test_peers_in_lockstep_reproduce_the_simulator_with_noised_batches(monkeypatch):
    monkeypatch.setattr("oneway.protocol.pace.MOVED", -1.0)
    monkeypatch.setattr("oneway.protocol.pace.IDLE_SECONDS", 0.0)
    check_same(torch_task("nets:linear", samples_per_push=4, privacy=Privacy()), seed=2)


def test_peers_learn_a_network_together_as_the_simulator_does():
    """In float64 and whole units, where the simulator has float32."""
    task = torch_task()
    graph = ow.TrustGraph.random(NUM_NODES, max_receivers=4, seed=3)
    features, labels = samples(3)
    features, labels = features[:40], labels[:40]
    peers = Lockstep(graph, task)
    peers.exchange()
    losses = [peers.round(*row) for row in zip(features, labels, strict=True)]
    run = ow.simulate(
        task.build_method(),
        task.build_model(),
        ow.Stream.from_arrays(features, labels),
        graph,
        seed=list(task.fingerprint),
    )
    estimates = np.array([node.estimate for node in peers.nodes])
    np.testing.assert_allclose(estimates, run.estimates, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(losses, run.losses, rtol=1e-4)
    fitted = peers.nodes[0].learner.fitted(peers.nodes[0].estimate)
    row = dict(zip(NAMES, features[0, 0].tolist(), strict=True))
    chances = fitted.predict_proba_one(row)
    assert sum(chances.values()) == pytest.approx(1.0)
    assert fitted.predict_one(row) == max(chances, key=chances.get)


def learner_and_snapshot(task: Task) -> tuple[Learner, Snapshot]:
    learner = Learner(task, np.random.default_rng(0), normals=Dealt(0, 0))
    return learner, Snapshot(PeerState.new(learner.layout.width, ledger=1, boot=1))


@pytest.mark.parametrize("private", [False, True])
def test_a_sample_without_a_gradient_is_a_bad_sample_unless_that_would_tell(private):
    promise = {"privacy": Privacy(), "samples_per_push": 2} if private else {}
    learner, snapshot = learner_and_snapshot(torch_task("nets:root", **promise))
    sample = dict(zip(NAMES, (0.0, 1.0, 1.0, 1.0), strict=True))
    arguments = (snapshot.state, snapshot, learner.start, sample, "1", Rules(secret=b""))
    if private:
        assert np.isfinite(learner.learn(*arguments).measured.loss)
        return
    with pytest.raises(DataError, match="gradient"):
        learner.learn(*arguments)


@pytest.mark.parametrize("private", [False, True])
def test_many_samples_are_learned_as_one_by_one_with_gradients_of_one_call(
    tmp_path, monkeypatch, private
):
    sizes = []
    alike = torch_task(samples_per_push=4, **({"privacy": Privacy()} if private else {}))
    lesson = type(alike.build_model()).learning_pass
    monkeypatch.setattr(
        type(alike.build_model()),
        "learning_pass",
        lambda model, stack, *rest: sizes.append(len(stack)) or lesson(model, stack, *rest),
    )
    features, labels = samples(5)
    rows = [
        (dict(zip(NAMES, x.tolist(), strict=True)), f"{y:g}")
        for x, y in zip(features[:10, 0], labels[:10, 0], strict=True)
    ]
    many = ow.Peer.create(tmp_path / "many", alike)
    one = ow.Peer.create(tmp_path / "one", alike)
    for peer in (many, one):
        peer.node.learner._normals = Dealt(0, 0)
    expected = [one.learn_one(*rows[0]), *(one.learn_one(*row) for row in rows[1:])]
    sizes.clear()
    losses = [many.learn_one(*rows[0]), *many.learn_many(rows[1:])]
    assert [size for size in sizes if size > 1] == [3, 4, 2], "what is left of each batch"
    assert len(sizes) == 2 + 3 + 9, "and one for each sample of the learner that is alone"
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(many.node.estimate, one.node.estimate, rtol=1e-4, atol=1e-6)
    one.close()
    many.close()


# The task.


def test_a_task_has_the_hash_of_its_module_and_reads_back():
    task = torch_task()
    assert task.options["torch"]["hash"] == Torch("nets:network").fingerprint
    again = Task.parse(task.to_toml(), allow=task.code_names)
    assert again == task
    assert again.fingerprint == task.fingerprint


@pytest.mark.parametrize(
    ("told", "culprit"),
    [
        ({"module": "nets:gone"}, "nets:gone"),
        ({"arguments": {"hidden": 7}}, "other shapes"),
        ({"hash": "31-00000000-0000000000000000"}, "other shapes"),
    ],
)
def test_a_site_whose_module_is_another_is_told_so(told, culprit):
    task = torch_task()
    options = {"torch": {**task.options["torch"], **told}}
    with pytest.raises(ConfigError, match=culprit):
        Learner(replace(task, options=options))


def test_a_task_of_a_table_tells_the_loss_from_its_labels():
    rng = np.random.default_rng(0)
    for labels, classes, kind, outputs in (
        (rng.choice(["a", "b"], 30), ("a", "b"), "binary", 1),
        (rng.choice(["a", "b", "c"], 30), ("a", "b", "c"), "classes", 3),
        (rng.normal(50, 3, 30), (), "number", 1),
    ):
        table = ow.Table.from_arrays(rng.normal(size=(30, 4)), labels, task=kind)
        options = {"torch": {"module": "nets:network", "arguments": {"outputs": outputs}}}
        task = Task.of(table, model="torch", options=options)
        assert (task.classes, task.label_kind) == (classes, kind)
        assert task.build_model().labels == kind
        assert ("scale" in task.options["torch"]) == (kind == "number")
        assert "hash" in task.options["torch"]
