"""Peers in lockstep compute what the simulator computes: one core under both drivers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from builders import replace
from lockstep import NUM_FEATURES, NUM_NODES, Lockstep, check_same, samples, task_with
from plain import PLAIN

import oneway as ow
from oneway.errors import TaskError
from oneway.methods import METHODS, STEP_RULES, AutoRate, Gradients, Method, State
from oneway.methods.base import PAST_NOISE
from oneway.models import MODELS
from oneway.peer.learner import Learner
from oneway.peer.store.store import Owner, PeerStore
from oneway.peer.telemetry import Activity, status_of
from oneway.records import Segment
from oneway.task.privacy import Privacy


@dataclass(frozen=True)
class Parcels(Method):
    """Gradients travel in a parcel; half of it is laid down at every stop, the rest goes on."""

    name = "parcels"
    payload = (
        Segment("numerator", "split"),
        Segment("mass", "split", is_vector=False),
        Segment("parcel", "forwarded"),
        Segment("count", "forwarded", is_vector=False),
    )

    def local_step(self, state: State, gradients: Gradients, rng: np.random.Generator) -> State:
        segments = dict(state.segments)
        parcel = segments["parcel"] + gradients.values
        rate = self.rate(gradients.index)
        segments["numerator"] = segments["numerator"] - rate * 0.5 * parcel
        segments["parcel"] = 0.5 * parcel
        segments["count"] = 0.5 * (segments["count"] + 1.0)
        return replace(state, segments=segments)


@dataclass(frozen=True)
class Averages(Method):
    """Receivers average the models that arrive with their own."""

    name = "averages"
    payload = (Segment("model", "copied"),)


class Uphill(ow.models.LogisticRegression):
    """Starts somewhere else than at zeros."""

    name = "uphill"

    def init(self, num_features: int, rng: np.random.Generator) -> np.ndarray:
        return np.linspace(-2.0, 3.0, self.dim(num_features))


@pytest.fixture(autouse=True)
def extensions(monkeypatch) -> None:
    """A method with a forwarded and one with a copied segment, and a model with a start."""
    monkeypatch.setitem(METHODS._entries, "parcels", Parcels)
    monkeypatch.setitem(METHODS._entries, "averages", Averages)
    monkeypatch.setitem(MODELS._entries, "uphill", Uphill)


@pytest.mark.parametrize("name", [*METHODS, "parcels", "averages"])
def test_peers_in_lockstep_reproduce_the_simulator_whatever_the_method(name):
    task = task_with(method=name, step="paper")
    if METHODS[name].exchange == "average":
        with pytest.raises(TaskError, match=f"method {name}"):
            Learner(task)
        return
    check_same(task, seed=1)


@pytest.mark.parametrize("step", STEP_RULES)
def test_peers_in_lockstep_reproduce_the_simulator_whatever_the_step_rule(step):
    check_same(task_with(step=step), seed=3)


@pytest.mark.parametrize("model", ["logistic", "hinge", "ridge", "uphill"])
def test_peers_in_lockstep_reproduce_the_simulator_whatever_the_model(model):
    check_same(task_with(model=model, step="curvature"), seed=4)


ONE_WAY = {
    "chain": [(node, node + 1) for node in range(4)],
    "one that only receives": [(node, 0) for node in range(1, 5)],
    "one that only sends": [(0, node) for node in range(1, 5)],
    "two rings and one in between": [(0, 1), (1, 0), (2, 3), (3, 2), (0, 4), (4, 2)],
}


@pytest.mark.parametrize("name", ["ops", "relay"])
@pytest.mark.parametrize("edges", ONE_WAY.values(), ids=ONE_WAY)
def test_peers_in_lockstep_mint_burn_and_let_go_as_the_simulator_does(edges, name):
    """At a mass of 1e-4 a unit of 2^-40 is a part in 10^8, and more once it has been scaled."""
    graph = ow.TrustGraph.from_edges(edges, NUM_NODES)
    check_same(task_with(method=name), seed=3, graph=graph, off=1e-7 if name == "ops" else 1e-4)


def test_peers_in_lockstep_keep_the_memory_of_transforms():
    learning = {"transforms": ("clip", "momentum"), "options": {"momentum": {"beta": 0.7}}}
    check_same(task_with(schedule="inverse-sqrt", **learning), seed=5)


@pytest.fixture
def passing_on(monkeypatch) -> None:
    """Peers hand over in every round, as nodes of the simulator do, not only when they have news.

    A peer waits for a full batch or for something that moves it, for bandwidth's sake.
    """
    monkeypatch.setattr("oneway.protocol.pace.MOVED", -1.0)
    monkeypatch.setattr("oneway.protocol.pace.IDLE_SECONDS", 0.0)


WITHOUT_SERVER = [name for name in METHODS if METHODS[name].exchange != "average"]
PRIVATE = {
    "the defaults": {"privacy": Privacy(), "samples_per_push": 16},
    "batches only": {"samples_per_push": 7},
    "noise only": {"privacy": Privacy()},
    "independent noise": {"privacy": Privacy(band=1, epsilon=20.0), "samples_per_push": 3},
    "a short band": {"privacy": Privacy(band=3, clip=0.7), "samples_per_push": 5},
}


@pytest.mark.usefixtures("passing_on")
@pytest.mark.parametrize(
    ("name", "private"),
    [
        *((name, "the defaults") for name in [*WITHOUT_SERVER, "parcels", "averages"]),
        *(("relay", private) for private in PRIVATE if private != "the defaults"),
    ],
)
def test_peers_in_lockstep_reproduce_the_simulator_with_batches_and_noise(name, private):
    check_same(task_with(method=name, **PRIVATE[private]), seed=6)


@pytest.mark.usefixtures("passing_on")
@pytest.mark.parametrize("step", STEP_RULES)
def test_peers_in_lockstep_reproduce_noised_batches_whatever_the_step_rule(step):
    private = {"privacy": Privacy(epsilon=4.0), "samples_per_push": 4}
    check_same(task_with(step=step, schedule="inverse-sqrt", **private), seed=7)


@pytest.mark.usefixtures("passing_on")
def test_peers_in_lockstep_keep_the_memory_of_transforms_and_of_batches():
    learning = {"transforms": ("clip", "momentum"), "options": {"momentum": {"beta": 0.7}}}
    check_same(task_with(samples_per_push=6, privacy=Privacy(), **learning), seed=8)


@pytest.mark.usefixtures("passing_on")
@pytest.mark.parametrize("private", [{}, PRIVATE["the defaults"]], ids=["plain", "the defaults"])
@pytest.mark.parametrize("name", ["ops", "relay", "tracking", "pull", "dol-symm", "local"])
def test_peers_in_lockstep_choose_the_rates_that_the_simulator_chooses(name, private):
    check_same(task_with(method=name, learning_rate="auto", **private), seed=9)


@pytest.mark.parametrize("model", ["hinge", "ridge"])
def test_peers_in_lockstep_choose_their_rates_whatever_the_model(model):
    check_same(task_with(model=model, learning_rate="auto", step="curvature"), seed=9)


@pytest.mark.usefixtures("passing_on")
def test_peers_in_lockstep_forget_and_restart_when_the_simulator_does():
    learning = {"transforms": ("forget", "restart"), "options": {"restart": {"sure": 0.5}}}
    check_same(task_with(method="relay", learning_rate="auto", **learning), seed=9)


def test_a_peer_says_where_its_learning_rate_restarted():
    """Every sample asks for the same, so that updates keep pointing one way."""
    task = task_with(
        learning_rate="auto", samples_per_push=2, transforms=("restart",), intercept=False
    )
    lockstep = Lockstep(ow.TrustGraph.complete(2), task)
    lockstep.exchange()
    for _ in range(40):
        lockstep.round(np.full((2, NUM_FEATURES), 0.01), np.ones(2))
    told = status_of(lockstep.nodes[0], lockstep.ends[0], Activity()).restarts
    assert told
    assert all(mark % 2 == 0 for mark in told)
    assert told[-1] <= 40


@pytest.mark.usefixtures("passing_on")
def test_the_comparison_fails_for_another_rate():
    chosen = task_with(learning_rate="auto")
    another = ow.OnlinePushSum(AutoRate(2.0, 0.39), "curvature")
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_same(chosen, seed=9, simulated=another)


@pytest.mark.usefixtures("passing_on")
def test_the_comparison_fails_for_another_noise():
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_same(task_with(privacy=Privacy()), seed=6, noise_seed=7)


@pytest.mark.usefixtures("passing_on")
@pytest.mark.parametrize("change", [{"samples_per_push": 15}, {"privacy": Privacy(epsilon=8.1)}])
def test_the_comparison_fails_for_other_batches(change):
    private = PRIVATE["the defaults"]
    another = task_with(**private | change).build_method()
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_same(task_with(**private), seed=6, simulated=another)


@pytest.mark.parametrize(
    ("name", "another"),
    [
        ("ops", ow.NaiveGossip(0.1)),
        ("parcels", ow.OnlinePushSum(0.1)),
        ("averages", ow.NaiveGossip(0.1)),
        ("averages", ow.Isolated(0.1)),
    ],
)
def test_the_comparison_fails_for_another_method(name, another):
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_same(task_with(method=name, step="paper"), seed=1, simulated=another)


@pytest.mark.parametrize("private", [PLAIN, {"privacy": Privacy(), "samples_per_push": 3}])
@pytest.mark.parametrize("name", ["ops", "relay", "tracking", "parcels", "averages", "local"])
def test_what_a_peer_holds_survives_a_restart_whatever_the_method(name, private, tmp_path):
    """Segments that are in no books, and what a method keeps to itself, are read back.

    But not the noise of the past: every start begins a new sequence.
    """
    rate = 0.1 if name in ("ops", "parcels") else "auto"
    task = task_with(
        **private | {"method": name, "transforms": ("momentum",), "learning_rate": rate}
    )
    graph = ow.TrustGraph.random(num_nodes=4, max_receivers=2, seed=1)
    features, labels = samples(1)
    lockstep = Lockstep(graph, task)
    lockstep.exchange()
    for row in zip(features[:20, :4], labels[:20, :4], strict=True):
        lockstep.round(*row)
    for index, node in enumerate(lockstep.nodes):
        owner = Owner(lockstep.keys[index], task.fingerprint, node.snapshot.state.dim)
        path = tmp_path / f"{index}.db"
        PeerStore.create(path, owner, node.snapshot).close()
        store = PeerStore.open(path, owner)
        saved = store.load()
        store.close()
        assert saved.state.layout.rows == node.snapshot.state.layout.rows
        np.testing.assert_array_equal(saved.state.holding, node.snapshot.state.holding)
        assert saved.memory.keys() == node.snapshot.memory.keys() - {PAST_NOISE}
        for key, array in saved.memory.items():
            np.testing.assert_array_equal(array, node.snapshot.memory[key])
        again = lockstep.node(index, saved)
        np.testing.assert_array_equal(again.estimate, node.estimate)
