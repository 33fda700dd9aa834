from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import make_record
from hypothesis import given
from hypothesis import strategies as st

from oneway import metrics
from oneway.errors import ComparatorError
from oneway.metrics.measure_rows import baseline_rows
from oneway.records import NetworkState, RunRecord
from oneway.records.measures import Baselines, Measures


def record(loss_sums: list[float], sample_counts: list[int]) -> RunRecord:
    return make_record(loss_sums=loss_sums, sample_counts=sample_counts)


def test_a_round_without_a_sample_has_no_loss_and_leaves_the_curves_where_they_were() -> None:
    run = replace(record([0.0, 3.0, 0.0, 1.0], [0, 2, 0, 2]), correct_counts=np.array([0, 1, 0, 2]))
    np.testing.assert_array_equal(metrics.losses(run), [np.nan, 1.5, np.nan, 0.5])
    np.testing.assert_array_equal(metrics.loss_curve(run), [np.nan, 1.5, 1.5, 1.0])
    np.testing.assert_array_equal(metrics.accuracy_curve(run), [np.nan, 0.5, 0.5, 0.75])
    assert (metrics.average_loss(run), metrics.accuracy(run)) == (1.0, 0.75)
    assert (
        metrics.accuracy(record([1.0], [1])) is metrics.accuracy_curve(record([1.0], [1])) is None
    )


def test_average_loss_is_the_mean_over_nodes_and_rounds() -> None:
    losses = np.random.default_rng(3).random((50, 4))
    run = record(losses.sum(axis=1).tolist(), [4] * 50)
    assert metrics.average_loss(run) == pytest.approx(losses.mean(), rel=1e-14)
    assert metrics.loss_curve(run)[-1] == pytest.approx(losses.mean(), rel=1e-14)
    np.testing.assert_allclose(metrics.losses(run), losses.mean(axis=1), rtol=1e-14)


def test_a_run_without_samples_has_neither_loss_nor_accuracy() -> None:
    run = replace(record([0.0], [0]), correct_counts=np.array([0]))
    assert np.isnan(metrics.average_loss(run))
    assert metrics.accuracy(run) is None


def test_regret_adds_up_what_the_comparator_would_have_saved() -> None:
    run = replace(record([3.0, 2.0, 1.0], [2, 2, 2]), comparator_sums=np.array([1.0, 1.5, 2.0]))
    assert metrics.regret(run).tolist() == [2.0, 2.5, 1.5]
    with pytest.raises(ComparatorError, match="comparator_sums=None"):
        metrics.regret(record([1.0], [1]))


@given(seed=st.integers(0, 2**32 - 1))
def test_disagreement_is_the_mean_squared_distance_from_the_mean_by_mass(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_nodes, dim = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    state = NetworkState(rng.normal(size=(num_nodes, dim)), rng.uniform(0.1, 3.0, num_nodes))
    mean = sum(state.numerators[i] for i in range(num_nodes)) / sum(state.masses)
    distances = [sum((state.numerators[i] / state.masses[i] - mean) ** 2) for i in range(num_nodes)]
    np.testing.assert_allclose(metrics.network_mean(state), mean, rtol=1e-12, atol=1e-14)
    assert metrics.disagreement(state) == pytest.approx(np.mean(distances), rel=1e-12, abs=1e-24)
    assert metrics.total_mass(state) == pytest.approx(sum(state.masses), rel=1e-14)


def test_nodes_that_agree_do_not_disagree_whatever_their_masses() -> None:
    masses = np.array([0.25, 0.5, 2.25])
    state = NetworkState(masses[:, None] * np.array([2.0, -4.0]), masses)
    assert metrics.disagreement(state) == 0.0


def test_who_holds_nothing_has_no_say_in_the_disagreement() -> None:
    numerators = np.array([[1.0], [3.0], [0.0]])
    state = NetworkState(numerators, np.array([1.0, 1.0, 0.0]))
    assert metrics.disagreement_of_holders(state) == 1.0
    assert metrics.disagreement_of_holders(NetworkState(numerators, np.zeros(3))) is None


@pytest.mark.parametrize(("share", "said"), [(0.6, "frequent"), (None, "the mean")])
def test_the_base_rate_is_told_as_what_it_answers(share, said):
    losses = Baselines(samples=9, loss=0.5, base_loss=0.7)
    _, row = baseline_rows(Measures(so_far=losses, answer_share=share))
    assert said in row.meaning
