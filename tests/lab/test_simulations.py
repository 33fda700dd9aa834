"""Every method on a lab's samples: curves that end where the simulator's do."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from plain import PLAIN

import oneway as ow
from oneway.errors import DivergenceError
from oneway.lab import simulations
from oneway.lab.problem import Problem
from oneway.lab.simulations import (
    MOST_POINTS,
    compute_references,
    reference_curve,
    run_method,
    samples_of,
    simulate_all,
)
from oneway.methods import METHODS
from oneway.peer.store.snapshot import Journal
from oneway.records.network import ReferenceCurve
from oneway.testing.records import replace

PATIENCE = 300.0


def test_all_methods_run_with_the_steps_of_the_task_but_ops_as_published(problem):
    runs = simulate_all(problem, problem.stream)
    assert list(runs) == list(METHODS)
    for name, run in runs.items():
        assert run.record.algorithm == name
        of_the_task = {"name": problem.task.step, "stable": 0.5}
        assert run.record.config["step"] == ("paper" if name == "ops" else of_the_task)
        assert run.record.config["learning_rate"] == 0.2
        if name not in ("ops", "relay"):
            np.testing.assert_array_equal(run.masses, np.ones(5))
    assert runs["ops"].masses.sum() == pytest.approx(5.0)


@pytest.mark.parametrize("private", [PLAIN, {}, {"samples_per_push": 5}])
@pytest.mark.parametrize("name", sorted(METHODS))
def test_with_the_papers_step_each_is_the_simulators_own(problem, name, private):
    """With the noise and the batches of the task; but who sends nothing needs neither."""
    task = replace(problem.task, step="paper", **private)
    found = run_method(name, replace(problem, task=task), problem.stream)
    model = ow.models.LogisticRegression(l2=1e-4)
    batches = task.privacy.batches(task.samples_per_push, task.dim) if name != "local" else None
    expected = ow.simulate(
        METHODS[name](0.2, batches=batches),
        model,
        problem.stream,
        problem.graph,
        engine="reference",
        seed=list(task.fingerprint),
    )
    np.testing.assert_allclose(found.record.loss_sums, expected.record.loss_sums, rtol=1e-9)


def test_a_curve_has_few_evenly_spaced_points_and_both_ends():
    table = ow.streams.synthetic(num_samples=3000, num_features=2, seed=1).table
    problem = Problem.deal(table, ow.TrustGraph.ring(3), samples=1000, learning_rate=0.2)
    run = run_method("ops", problem, problem.stream)
    curve = reference_curve(run.record, problem.graph)
    assert (curve.arrows, curve.one_way) == (3, 3)
    assert len(curve.samples) == len(curve.average_loss) == MOST_POINTS
    assert (curve.samples[0], curve.samples[-1]) == (1, 1000)
    assert set(np.diff(curve.samples)) <= {5, 6}
    assert curve.average_loss[-1] == pytest.approx(run.average_loss, rel=1e-12)
    assert curve.average_loss[0] == pytest.approx(np.log(2), rel=1e-6)


def test_a_short_run_has_a_point_for_every_sample(problem):
    run = run_method("local", problem, problem.stream)
    curve = reference_curve(run.record, problem.graph)
    edges = set(zip(*(ends.tolist() for ends in problem.graph.edges()), strict=True))
    assert curve.arrows == len(edges)
    assert curve.one_way == sum((there, here) not in edges for here, there in edges)
    assert curve.samples == list(range(1, 41))


def test_a_method_that_fails_is_left_out_and_said_so(problem, monkeypatch):
    real = simulations.run_method

    def run(name, *rest):
        if name == "dol-asymm":
            raise DivergenceError("the loss is inf", round_index=3, node=1, smallest_mass=0.1)
        return real(name, *rest)

    monkeypatch.setattr(simulations, "run_method", run)
    notes: list[str] = []
    runs = simulate_all(problem, problem.stream, notes.append)
    assert list(runs) == [name for name in METHODS if name != "dol-asymm"]
    assert notes == ["the simulation of dol-asymm is left out: the loss is inf"]


def test_they_are_computed_beside_the_lab(problem):
    delivered: list[list[ReferenceCurve]] = []
    done = threading.Event()

    def deliver(curves: list[ReferenceCurve]) -> None:
        delivered.append(curves)
        done.set()

    notes: list[str] = []
    compute_references(problem, deliver, notes.append, threading.Event())
    assert done.wait(PATIENCE)
    assert [curve.algorithm for curve in delivered[0]] == list(METHODS)
    assert notes == []


def journals(*samples: int) -> list[Journal]:
    return [Journal(samples=count, loss_sum=0.5 * count) for count in samples]


def test_only_what_was_learned_from_is_simulated(problem):
    stream = samples_of(problem, journals(3, 0, 5, 1, 2))
    assert stream.num_rounds == 5
    assert (stream.rows >= 0).sum(axis=0).tolist() == [3, 0, 5, 1, 2]
    np.testing.assert_array_equal(stream.rows[:3, 0], problem.stream.rows[:3, 0])


def test_peers_that_joined_later_are_left_out(problem):
    stream = samples_of(problem, journals(4, 4, 4, 4, 4, 100))
    np.testing.assert_array_equal(stream.rows, problem.stream.rows[:4])


def test_without_samples_there_is_nothing_to_simulate(problem):
    assert samples_of(problem, journals(0, 0, 0, 0, 0)) is None
