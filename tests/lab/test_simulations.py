"""The simulator on a lab's samples: the peers' method, alone, and with mutual trust only."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from builders import replace
from plain import PLAIN

import oneway as ow
from oneway.errors import DivergenceError
from oneway.lab import simulations
from oneway.lab.simulations import (
    References,
    run_method,
    samples_of,
    simulate_all,
)
from oneway.methods import METHODS
from oneway.peer.store.snapshot import Journal
from oneway.records.network import ReferenceCurve

PATIENCE = 300.0


@pytest.mark.parametrize(
    ("name", "private"),
    [("relay", PLAIN), ("relay", {}), ("relay", {"samples_per_push": 5}), ("local", {})],
)
def test_with_the_papers_step_each_is_the_simulators_own(problem, name, private):
    """With the noise and the batches of the task; learning alone needs neither."""
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


def test_a_method_that_fails_is_left_out_and_noted(problem, monkeypatch):
    real = simulations.run_method

    def run(name, *rest):
        if name == "dol-symm":
            raise DivergenceError("the loss is inf", round_index=3, node=1, smallest_mass=0.1)
        return real(name, *rest)

    monkeypatch.setattr(simulations, "run_method", run)
    notes: list[str] = []
    assert list(simulate_all(problem, problem.stream, notes.append)) == ["relay"]
    assert "dol-symm" in notes[0]


def test_each_method_is_simulated_once_if_the_peers_learned_from_all_samples(problem, monkeypatch):
    simulated: list[str] = []
    real = simulations.run_method
    monkeypatch.setattr(
        simulations, "run_method", lambda name, *rest: simulated.append(name) or real(name, *rest)
    )
    delivered: list[list[ReferenceCurve]] = []
    done = threading.Event()
    references = References(problem, pytest.fail)
    references.start(lambda curves: (delivered.append(curves), done.set()))
    assert done.wait(PATIENCE)
    assert [curve.method for curve in delivered[0]] == ["relay", "local", "dol-symm"]
    assert list(references.runs_on(problem.stream)) == ["relay", "dol-symm"]
    assert simulated == ["relay", "dol-symm"]
    shorter = references.runs_on(problem.stream.head(10))
    assert shorter["relay"].record.num_rounds == 10


def journals(*samples: int) -> list[Journal]:
    return [Journal(samples=count, loss_sum=0.5 * count) for count in samples]


def test_only_samples_of_founders_that_were_learned_from_are_simulated(problem):
    stream = samples_of(problem, journals(3, 0, 5, 1, 2, 100))
    assert stream.num_rounds == 5
    assert (stream.rows >= 0).sum(axis=0).tolist() == [3, 0, 5, 1, 2]
    np.testing.assert_array_equal(stream.rows[:3, 0], problem.stream.rows[:3, 0])
    assert samples_of(problem, journals(0, 0, 0, 0, 0)) is None
