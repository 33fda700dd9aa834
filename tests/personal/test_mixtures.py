"""The bounds of the mixtures, for any sequence; and mixtures that cheat or fail, by name."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oneway.personal import mixtures
from oneway.personal.mixtures import (
    SHARE,
    bayes,
    bayes_bound,
    hedge,
    hedge_weights,
    mixed,
    taking_part,
)

PRIOR = np.array([1 / 6, 1 / 2, 1 / 3])
LOSSES = st.integers(1, 60).flatmap(
    lambda rounds: arrays(np.float64, (rounds, 3), elements=st.floats(0.0, 20.0))
)
ANY_LOSSES = st.integers(1, 60).flatmap(
    lambda rounds: arrays(np.float64, (rounds, 3), elements=st.floats(0.0, 1e6))
)


def run_bayes(losses: np.ndarray, update=bayes) -> float:
    """The mixture's sum of log losses, given the experts' log losses of every label."""
    weights, total = PRIOR[None, :].copy(), 0.0
    for suffered in losses:
        total -= math.log(float(mixed(weights, np.exp(-suffered)[None, :, None])[0, 0]))
        weights = update(weights, suffered[None, :], PRIOR)
    return total


def run_hedge(losses: np.ndarray) -> tuple[float, float]:
    """The sum of mean losses under AdaHedge's weights, and D."""
    sums, gaps, total = np.zeros((1, 3)), np.zeros((1, 1)), 0.0
    for suffered in losses:
        weights = hedge_weights(sums, gaps)
        total += float(weights[0] @ suffered)
        sums, gaps = hedge(weights, sums, gaps, suffered[None, :])
    return total, float(gaps[0, 0])


@given(LOSSES)
def test_bayes_loses_no_more_than_its_bound_against_every_expert(losses):
    total = run_bayes(losses)
    for expert, prior in enumerate(PRIOR):
        bound = losses[:, expert].sum() + bayes_bound(float(prior), len(losses))
        assert total <= bound + 1e-9 * (1 + abs(bound))


@given(LOSSES)
def test_bayes_is_the_mean_over_all_paths_of_experts(losses):
    """The theorem's own sum, path by path, for short sequences."""
    losses = losses[:5]
    chances = 0.0
    for path in np.ndindex(*(3,) * len(losses)):
        prior = PRIOR[path[0]]
        for before, after in pairwise(path):
            prior *= (1 - SHARE) * (before == after) + SHARE * PRIOR[after]
        chances += prior * math.exp(-sum(losses[t, k] for t, k in enumerate(path)))
    assert run_bayes(losses) == pytest.approx(-math.log(chances), rel=1e-12, abs=1e-12)


def test_the_bound_of_bayes_is_attained():
    """Experts that never agree: the others give the label nothing, so the bound is an equality."""
    losses = np.full((40, 3), 700.0)
    losses[:, 1] = 0.3
    bound = losses[:, 1].sum() + bayes_bound(0.5, 40)
    assert run_bayes(losses) == pytest.approx(bound, rel=1e-12)


@given(ANY_LOSSES)
def test_adahedge_loses_no_more_than_twice_its_gaps_against_every_expert(losses):
    total, gap = run_hedge(losses)
    assert total <= losses.sum(axis=0).min() + 2 * gap + 1e-9 * (1 + losses.sum())


@given(ANY_LOSSES)
def test_the_gaps_of_adahedge_stay_small(losses):
    """Theorem 8 of de Rooij et al.: regret of the order sqrt(T ln K) for losses in a range."""
    total, _ = run_hedge(losses)
    span = float((losses.max(axis=1) - losses.min(axis=1)).max())
    regret = total - losses.sum(axis=0).min()
    most = span * (math.sqrt(len(losses) * math.log(3)) + 4 / 3 * math.log(3) + 2)
    assert regret <= most + 1e-9 * (1 + losses.sum())


def test_a_late_winner_is_found_with_a_share_and_not_without(monkeypatch):
    losses = np.concatenate([np.tile([0.1, 3.0, 3.0], (300, 1)), np.tile([3.0, 3.0, 0.1], (60, 1))])
    before = run_bayes(losses[:300])
    with_share = run_bayes(losses) - before
    assert with_share < 60 * 0.1 + 12.0  # -ln(s q) to change, and then 0.1 a sample
    monkeypatch.setattr(mixtures, "SHARE", 0.0)
    assert run_bayes(losses) - run_bayes(losses[:300]) > 10 * with_share


def counted_twice(weights, losses, prior):
    """Weights that learn from every sample twice."""
    return bayes(bayes(weights, losses, prior), losses, prior)


def test_weights_that_count_the_sample_twice_break_the_bound():
    """Two experts that are right in turns: whom a mixture believes too soon is wrong next."""
    losses = np.tile([[0.05, 3.0, 3.0], [3.0, 0.05, 3.0]], (200, 1))
    bound = losses[:, 1].sum() + bayes_bound(float(PRIOR[1]), 400)
    assert run_bayes(losses) <= bound
    assert run_bayes(losses, counted_twice) > 1.5 * bound


def test_a_mixture_that_peeks_at_the_label_is_better_than_any_forecast_can_be():
    """Two experts that are sure of opposite labels, which are drawn by a fair coin."""
    labels = np.random.default_rng(1).integers(0, 2, 500)
    losses = -np.log(np.where(labels[:, None] == [0, 1, 1], 0.95, 0.05))
    floor = 500 * math.log(2)  # the entropy of the labels
    peeked = sum(
        -math.log(float(bayes(PRIOR[None, :], 50 * it[None, :], PRIOR)[0] @ np.exp(-it)))
        for it in losses
    )
    assert peeked < 0.1 * floor
    assert floor <= run_bayes(losses)


def test_an_expert_without_an_answer_takes_no_part_and_comes_back():
    weights = np.array([[0.9, 0.05, 0.05]])
    answers = np.array([[[np.nan, np.nan], [0.4, 0.6], [0.2, 0.8]]])
    own = taking_part(weights, answers)
    assert own.tolist() == [[0.0, 0.5, 0.5]]
    assert mixed(own, answers)[0] == pytest.approx([0.3, 0.7])
    after = bayes(own, np.array([[np.nan, 0.5, 0.2]]), PRIOR)
    assert after[0, 0] == pytest.approx(SHARE * PRIOR[0])
    assert after.sum() == pytest.approx(1.0)
    totals, gaps = hedge(own, np.zeros((1, 3)), np.ones((1, 1)), np.array([[np.nan, 0.5, 0.2]]))
    assert totals.tolist() == [[0.5, 0.5, 0.2]]
    assert np.isfinite(gaps).all()


def test_without_any_answer_nothing_is_learned():
    nothing = np.full((1, 3), np.nan)
    assert bayes(PRIOR[None, :], nothing, PRIOR) == pytest.approx(PRIOR[None, :])
    totals, gaps = hedge(PRIOR[None, :], np.ones((1, 3)), np.ones((1, 1)), nothing)
    assert totals.tolist() == [[1.0, 1.0, 1.0]]
    assert gaps.tolist() == [[1.0]]
