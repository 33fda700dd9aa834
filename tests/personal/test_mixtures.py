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
    FIRST_GAP,
    SHARE,
    bayes,
    bayes_bound,
    completed,
    hedge,
    hedge_bound,
    hedge_weights,
    mixed,
    taking_part,
)

PRIOR = np.array([0.1, 0.5, 0.4])
LOSSES = st.integers(1, 60).flatmap(
    lambda rounds: arrays(np.float64, (rounds, 3), elements=st.floats(0.0, 20.0))
)
ANY_LOSSES = st.integers(1, 60).flatmap(
    lambda rounds: arrays(np.float64, (rounds, 3), elements=st.floats(0.0, 1e6))
)


def run_bayes(losses: np.ndarray, update=bayes, there=None) -> float:
    """The mixture's sum of log losses, given the experts' log losses of every label.

    Where an expert is not there, it takes no part.
    """
    weights, total = PRIOR[None, :].copy(), 0.0
    for turn, suffered in enumerate(losses):
        present = np.ones((1, 3), bool) if there is None else there[turn][None, :]
        own = taking_part(weights, present)
        mixture = -math.log(float(mixed(own, np.exp(-suffered)[None, :, None])[0, 0]))
        total += mixture
        whole = completed(suffered[None, :], present, np.array([mixture]))
        weights = update(weights, whole, PRIOR)
    return total


def run_hedge(losses: np.ndarray, there=None) -> tuple[float, float]:
    """The sum of mean losses under AdaHedge's weights, and D."""
    sums, gaps, total = np.zeros((1, 3)), np.full((1, 1), FIRST_GAP), 0.0
    for turn, suffered in enumerate(losses):
        present = np.ones((1, 3), bool) if there is None else there[turn][None, :]
        weights = taking_part(hedge_weights(sums, gaps, PRIOR), present)
        total += float(weights[0] @ suffered)
        whole = completed(suffered[None, :], present, weights @ suffered)
        sums, gaps = hedge(sums, gaps, whole, PRIOR)
    return total, float(gaps[0, 0])


def any_presence(seed: int, rounds: int) -> np.ndarray:
    """Who takes part in which round: somebody in each."""
    there = np.random.default_rng(seed).random((rounds, 3)) < 0.6
    there[~there.any(axis=1), 1] = True
    return there


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


@given(LOSSES, st.integers(0, 10**6))
def test_both_bounds_hold_over_the_samples_that_an_expert_took_part_in(losses, seed):
    """Whoever takes no part counts as if it had said what the mixture of the others says."""
    there = any_presence(seed, len(losses))
    for expert, prior in enumerate(PRIOR):
        # What the mixture lost where the expert was away stands on both sides.
        own = np.where(there[:, expert], losses[:, expert], 0.0).sum()
        excess = 0.0
        for turn in range(len(losses)):
            before = run_bayes(losses[:turn], there=there[:turn])
            if there[turn, expert]:
                excess += run_bayes(losses[: turn + 1], there=there[: turn + 1]) - before
        bound = own + bayes_bound(float(prior), len(losses))
        assert excess <= bound + 1e-9 * (1 + abs(bound))


@given(ANY_LOSSES, st.integers(0, 10**6))
def test_adahedge_loses_no_more_than_its_bound_against_every_expert(losses, seed):
    total, gap = run_hedge(losses)
    for expert, prior in enumerate(PRIOR):
        bound = losses[:, expert].sum() + hedge_bound(float(prior), 3, gap)
        assert total <= bound + 1e-9 * (1 + losses.sum())
    # An expert that is always there has its bound, whoever else comes and goes.
    there = any_presence(seed, len(losses))
    there[:, 1] = True
    total, gap = run_hedge(losses, there)
    bound = losses[:, 1].sum() + hedge_bound(float(PRIOR[1]), 3, gap)
    assert total <= bound + 1e-9 * (1 + losses.sum())


@given(ANY_LOSSES)
def test_the_gaps_of_adahedge_stay_small(losses):
    """A gap is at most the span s of the losses, and s^2 ln K / (8 D): so D^2 grows by as much."""
    _, gap = run_hedge(losses)
    span = float((losses.max(axis=1) - losses.min(axis=1)).max())
    most = span + math.sqrt(FIRST_GAP**2 + len(losses) * span**2 * math.log(3) / 4)
    assert gap <= most + 1e-9 * (1 + losses.sum())


def test_a_first_gap_keeps_adahedge_from_believing_one_sample():
    """Two experts that are nearly equal: without D_0 the first sample alone decides."""
    weights = hedge_weights(np.array([[0.0, 0.1, 0.0]]), np.full((1, 1), 1e-9), PRIOR)
    assert weights[0, 1] == 0.0
    weights = hedge_weights(np.array([[0.0, 0.1, 0.0]]), np.full((1, 1), FIRST_GAP), PRIOR)
    assert weights[0, 1] > 0.45


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


def test_an_expert_that_takes_no_part_keeps_what_weight_it_has():
    weights = np.array([[0.9, 0.05, 0.05]])
    there = np.array([[False, True, True]])
    answers = np.array([[[np.nan, np.nan], [0.4, 0.6], [0.2, 0.8]]])
    own = taking_part(weights, there)
    assert own.tolist() == [[0.0, 0.5, 0.5]]
    assert mixed(own, answers, there)[0] == pytest.approx([0.3, 0.7])
    losses = completed(-np.log(answers[..., 1]), there, np.array([-math.log(0.7)]))
    after = bayes(weights, losses, PRIOR)
    assert after[0, 0] == pytest.approx((1 - SHARE) * 0.9 + SHARE * PRIOR[0])
    assert after.sum() == pytest.approx(1.0)
    suffered = completed(np.array([[np.nan, 0.5, 0.2]]), there, np.array([0.3]))
    totals, gaps = hedge(np.zeros((1, 3)), np.ones((1, 1)), suffered, PRIOR)
    assert totals.tolist() == [[0.3, 0.5, 0.2]]
    assert np.isfinite(gaps).all()


def test_without_any_answer_nothing_is_learned():
    there = np.zeros((1, 3), bool)
    nothing = completed(np.full((1, 3), np.nan), there, np.array([np.inf]))
    assert bayes(PRIOR[None, :], nothing, PRIOR) == pytest.approx(PRIOR[None, :])
    totals, gaps = hedge(np.ones((1, 3)), np.ones((1, 1)), nothing, PRIOR)
    assert totals.tolist() == [[1.0, 1.0, 1.0]]
    assert gaps == pytest.approx(1.0)
