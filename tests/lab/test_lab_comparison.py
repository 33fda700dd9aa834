"""The comparison runs the simulator on the very samples that the peers learned from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import oneway as ow
from oneway.lab.comparison import compare
from oneway.lab.methods import TaskSteps, learned_from
from oneway.peer.store.snapshot import Journal
from oneway.protocol.steps import capped_step


def journals(*samples: int, loss: float = 0.5) -> list[Journal]:
    return [Journal(samples=count, loss_sum=loss * count) for count in samples]


def test_with_the_papers_step_it_is_the_simulators_own_result(problem):
    paper = replace(problem, task=replace(problem.task, step="paper"))
    found = compare(paper, journals(40, 40, 40, 40, 40))
    model = ow.models.LogisticRegression(l2=1e-4)
    stream, graph = problem.stream, problem.graph
    together = ow.simulate(ow.OnlinePushSum(0.2), model, stream, graph, engine="reference")
    alone = ow.simulate(ow.Isolated(0.2), model, stream, engine="reference")
    assert found.simulated == pytest.approx(together.average_loss, rel=1e-9)
    assert found.alone == pytest.approx(alone.average_loss, rel=1e-9)
    assert found.together == pytest.approx(0.5)


def test_steps_are_those_of_the_task_sample_by_sample(problem):
    steps = TaskSteps(problem.task, problem.stream)
    masses = np.array([0.01, 0.3, 1.0, 2.0, 1.7])
    found = steps.applied(np.ones((5, 1)), masses, round_index=3)[:, 0]
    features = problem.stream.features[problem.stream.rows[3]].astype(float)
    curvatures = 0.25 * ((features**2).sum(axis=1) + 1) + problem.task.l2
    expected = [capped_step(0.2, mass, bend) for mass, bend in zip(masses, curvatures, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_only_what_was_learned_from_is_compared(problem):
    stream = learned_from(problem.stream, np.array([3, 0, 5, 1, 2]))
    assert stream.num_rounds == 5
    assert (stream.rows >= 0).sum(axis=0).tolist() == [3, 0, 5, 1, 2]
    np.testing.assert_array_equal(stream.rows[:3, 0], problem.stream.rows[:3, 0])
    found = compare(problem, journals(3, 0, 5, 1, 2, loss=0.25))
    assert found.together == pytest.approx(0.25)


def test_peers_that_joined_later_are_left_out(problem):
    all_of_them = [*journals(4, 4, 4, 4, 4), Journal(samples=100, loss_sum=1e6)]
    assert compare(problem, all_of_them).together == pytest.approx(0.5)


def test_without_samples_there_is_nothing_to_compare(problem):
    assert compare(problem, journals(0, 0, 0, 0, 0)) is None
