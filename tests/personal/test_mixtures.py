"""The bounds of the mixtures, for any sequence; and mixtures that cheat or fail, by name."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oneway.personal import mixtures
from oneway.personal.mixtures import (
    FIRST_GAP,
    SHARE,
    AdaHedge,
    Bayes,
    bayes_bound,
    hedge_bound,
    mixed,
    smoothed,
    taking_part,
)

PRIOR = np.array([0.1, 0.5, 0.4])
EVERYBODY = np.ones((1, 3), bool)


def sequences(least: float, most: float):
    """Rows of three numbers, one for each expert."""
    return st.integers(1, 60).flatmap(
        lambda rounds: arrays(np.float64, (rounds, 3), elements=st.floats(least, most))
    )


LOSSES = sequences(0.0, 20.0)


def lost(losses, mixture=None, there=None, look=None) -> np.ndarray:
    """The mixture's log losses, given those of the experts.

    Args:
        losses: `[round, expert]`.
        mixture: That of `Bayes`, or one that is wrong.
        there: Who takes part, `[round, expert]`.
        look: What a mixture that peeks makes of its memory and this round's losses beforehand.
    """
    mixture = mixture or Bayes(PRIOR)
    memory, found = mixture.begin(1), []
    for turn, row in enumerate(losses):
        present = EVERYBODY if there is None else there[turn][None, :]
        known = memory if look is None else look(memory, row)
        weights = taking_part(mixture.weights(known), present)
        found.append(-math.log(float(mixed(weights, np.exp(-row)[None, :, None], present)[0, 0])))
        memory = mixture.learn(memory, np.where(present, row - found[-1], 0.0))
    return np.array(found)


def squared(answer, label):
    return 0.5 * (answer - label) ** 2


def hinge(answer, label):
    return np.maximum(0.0, 1.0 - np.sign(label) * answer)


def hedged(loss, answers, labels, there=None, mixture=None) -> tuple[np.ndarray, float]:
    """The losses of AdaHedge's answers, and D."""
    mixture = mixture or AdaHedge(PRIOR)
    memory, found = mixture.begin(1), []
    for turn, (row, label) in enumerate(zip(answers, labels, strict=True)):
        present = EVERYBODY if there is None else there[turn][None, :]
        weights = taking_part(mixture.weights(memory), present)
        found.append(float(loss(mixed(weights, row[None, :, None], present)[0, 0], label)))
        memory = mixture.learn(memory, np.where(present, loss(row, label) - found[-1], 0.0))
    return np.array(found), float(memory["gaps"][0, 0])


def any_presence(seed: int, rounds: int) -> np.ndarray:
    """Who takes part in which round: somebody in each."""
    there = np.random.default_rng(seed).random((rounds, 3)) < 0.6
    there[~there.any(axis=1), 1] = True
    return there


@given(LOSSES, st.integers(0, 10**6))
def test_bayes_loses_no_more_than_its_bound_against_every_expert(losses, seed):
    """Over the samples that it took part in, which may be all."""
    for there in (np.ones(losses.shape, bool), any_presence(seed, len(losses))):
        own = lost(losses, there=there)
        for expert, prior in enumerate(PRIOR):
            seen = there[:, expert]
            bound = losses[seen, expert].sum() + bayes_bound(float(prior), len(losses))
            assert own[seen].sum() <= bound + 1e-13 * (1.0 + losses.sum())


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
    assert lost(losses).sum() == pytest.approx(-math.log(chances), rel=1e-12, abs=1e-12)


def test_the_bound_of_bayes_is_attained():
    """Experts that never agree: the others give the label nothing, so the bound is an equality."""
    losses = np.full((40, 3), 700.0)
    losses[:, 1] = 0.3
    bound = losses[:, 1].sum() + bayes_bound(0.5, 40)
    assert lost(losses).sum() == pytest.approx(bound, rel=1e-12)


ANSWERS = sequences(-1e3, 1e3).flatmap(
    lambda answers: st.tuples(
        st.just(answers), arrays(np.float64, len(answers), elements=st.floats(-1e3, 1e3))
    )
)


@pytest.mark.parametrize("loss", [squared, hinge])
@given(given_=ANSWERS, seed=st.integers(0, 10**6))
def test_adahedge_loses_no_more_than_its_bound_against_every_expert(loss, given_, seed):
    """Over the samples that it took part in; and its gaps stay small."""
    answers, labels = given_
    own = loss(answers, labels[:, None])
    for there in (np.ones(answers.shape, bool), any_presence(seed, len(answers))):
        found, gap = hedged(loss, answers, labels, there)
        for expert, prior in enumerate(PRIOR):
            seen = there[:, expert]
            bound = own[seen, expert].sum() + hedge_bound(float(prior), 3, gap)
            assert found[seen].sum() <= bound + 1e-12 * (1.0 + own.sum())
    # A gap is at most the span s of the losses, and s^2 ln K / (8 D): so D^2 grows by as much.
    span = float((own.max(axis=1) - own.min(axis=1)).max())
    most = span + math.sqrt(FIRST_GAP**2 + len(answers) * span**2 * math.log(3) / 4)
    assert gap <= most * (1 + 1e-12)
    if loss is squared:  # no gap is above 0 once D is above b^2 ln K, however long it goes on
        far = float(np.abs(answers - labels[:, None]).max())
        assert gap <= max(FIRST_GAP, far**2 * (math.log(3) + 0.5)) * (1 + 1e-12)


class PaysTheMeanLoss(AdaHedge):
    """Grows by the mean of the experts' losses, and not by the loss of their mean."""

    def learn(self, memory, excess):
        mean = (self.weights(memory) * excess).sum(axis=-1, keepdims=True)
        return super().learn(memory, excess - mean)


def test_adahedge_pays_what_the_mixture_lost_and_not_what_its_experts_did():
    """Experts on either side of the truth: as their mean is nearer to it, D soon stays."""
    labels = np.random.default_rng(2).choice([-1.0, 1.0], 4000)
    answers = np.tile([2.0, -2.0, 2.0], (4000, 1))
    _, gap = hedged(squared, answers, labels)
    _, more = hedged(squared, answers, labels, mixture=PaysTheMeanLoss(PRIOR))
    assert gap <= 9.0 * (math.log(3) + 0.5)
    assert more > 5.0 * gap


def test_a_first_gap_keeps_adahedge_from_believing_one_sample():
    """Two experts that are nearly equal: without D_0 the first sample alone decides."""
    losses, mixture = np.array([[0.0, 0.1, 0.0]]), AdaHedge(PRIOR)
    assert mixture.weights({"losses": losses, "gaps": np.full((1, 1), 1e-9)})[0, 1] < 1e-300
    assert mixture.weights({"losses": losses, "gaps": np.full((1, 1), FIRST_GAP)})[0, 1] > 0.45


# Mixtures that are wrong, each caught -------------------------------------------------------------


def kraft(**options) -> float:
    """The sum, over all sequences of labels, of what a forecaster gave each: 1 if it is honest.

    Two experts are sure of opposite labels, one has no idea.
    """
    said = smoothed(np.array([[0.95, 0.05], [0.05, 0.95], [0.5, 0.5]]))
    return sum(
        math.exp(-lost(-np.log(said[:, list(labels)].T), **options).sum())
        for labels in product((0, 1), repeat=7)
    )


def including_the_current_sample(memory, row):
    """Weights that follow from the losses so far, those of this sample included."""
    return Bayes(PRIOR).learn(memory, row)


def peeking_at_the_label(_memory, row):
    """All weight to whoever is best at this label."""
    return {"weights": np.eye(3)[[row.argmin()]]}


def test_a_forecast_that_knows_the_label_is_better_than_any_can_be():
    assert kraft() == pytest.approx(1.0, rel=1e-12)
    assert kraft(look=including_the_current_sample) > 2.0
    assert kraft(look=peeking_at_the_label) > 50.0


class CountingTwice(Bayes):
    """Learns from every sample twice."""

    def learn(self, memory, excess):
        once = super().learn(memory, excess)["weights"]
        joint = once * np.exp(-excess)
        return super().learn({"weights": joint / joint.sum()}, np.zeros_like(excess))


def test_weights_that_count_the_sample_twice_break_the_bound():
    """Two experts that are right in turns: whom a mixture believes too soon is wrong next."""
    losses = np.tile([[0.05, 3.0, 3.0], [3.0, 0.05, 3.0]], (200, 1))
    bound = losses[:, 1].sum() + bayes_bound(float(PRIOR[1]), 400)
    assert lost(losses).sum() <= bound
    assert lost(losses, CountingTwice(PRIOR)).sum() > 1.4 * bound


def test_a_late_winner_is_found_with_a_share_and_not_without(monkeypatch):
    losses = np.concatenate([np.tile([0.1, 3.0, 3.0], (300, 1)), np.tile([3.0, 3.0, 0.1], (60, 1))])
    with_share = lost(losses)[300:].sum()
    assert with_share < 60 * 0.1 - math.log(SHARE * PRIOR[2]) + 1.0
    monkeypatch.setattr(mixtures, "SHARE", 0.0)
    assert lost(losses)[300:].sum() > 10 * with_share


def test_an_expert_that_says_nan_ends_a_mixture_that_does_not_leave_it_out():
    losses = np.array([[0.1, np.nan, 0.5], [0.1, 0.2, 0.5], [0.1, 0.2, 0.5]])
    assert np.isfinite(lost(losses, there=np.isfinite(losses))).all()
    assert np.isnan(lost(losses)).all()


def test_an_expert_that_takes_no_part_keeps_what_weight_it_has():
    weights = np.array([[0.9, 0.05, 0.05]])
    there = np.array([[False, True, True]])
    answers = np.array([[[np.nan, np.nan], [0.4, 0.6], [0.2, 0.8]]])
    own = taking_part(weights, there)
    assert own[0] == pytest.approx([0.0, 0.5, 0.5])
    answer = mixed(own, answers, there)[0]
    assert answer == pytest.approx([0.3, 0.7])
    excess = np.where(there, math.log(0.7) - np.log(answers[..., 1]), 0.0)
    after = Bayes(PRIOR).learn({"weights": weights}, excess)["weights"]
    assert after[0, 0] == pytest.approx((1 - SHARE) * 0.9 + SHARE * PRIOR[0])
    assert after.sum() == pytest.approx(1.0)
    hedge = AdaHedge(PRIOR)
    after = hedge.learn(hedge.begin(1), np.array([[0.0, 0.2, -0.1]]))
    assert after["losses"][0] == pytest.approx([0.1, 0.3, 0.0])


def test_without_any_answer_nothing_is_learned():
    nobody = np.zeros((1, 3), bool)
    assert taking_part(PRIOR[None, :], nobody).tolist() == [[0.0, 0.0, 0.0]]
    assert np.isnan(mixed(np.zeros((1, 3)), np.zeros((1, 3, 2)), nobody)).all()
    for mixture in (Bayes(PRIOR), AdaHedge(PRIOR)):
        memory = mixture.begin(1)
        for name, array in mixture.learn(memory, np.zeros((1, 3))).items():
            assert array == pytest.approx(memory[name])
