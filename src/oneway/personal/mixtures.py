"""Mixtures of experts: weights that follow who was right so far; rows are nodes.

**Bayes** (for log loss). The mixture predicts p = sum_k w_k p_k, and after the label

    w_k' = (1 - s) w_k p_k(y) / p(y) + s q_k

where q is the prior, with which w begins, and s a small share, so that an expert that becomes the
best one late is found (fixed share, Herbster and Warmuth 1998). A path of experts j_1, ..., j_T has
the prior probability q_(j_1) prod_t ((1 - s) [j_t = j_(t+1)] + s q_(j_(t+1))), and the product of
all p(y) is the mean, over paths, of the products of p_(j_t)(y). The path that stays at expert k
alone gives, for any sequence and whatever the experts do,

    loss(mixture) <= loss(k) - ln q_k - (T - 1) ln(1 - s + s q_k)

and a path with S changes pays -ln(s q_j) for each. Losses are sums over T samples.

**AdaHedge** (for convex losses without probabilities: squared error, hinge). The mixture answers
with the mean score under w_k ~ exp(-eta L_k), L_k being the losses so far, and eta = ln K / D. D is
the sum of mixability gaps: by how much the mean loss under w exceeded the mix loss, which is
-1/eta ln sum_k w_k exp(-eta l_k) (de Rooij, van Erven, Grunwald and Koolen 2014). For any sequence

    loss(mixture) <= loss(k) + 2 D_T                                   for every expert k

An expert without a finite answer takes no part in that prediction: its weight is 0, and AdaHedge
counts for it the largest loss of the others.
"""

from __future__ import annotations

import math

import numpy as np

from oneway.records import Matrix, Vector

SHARE = 1e-3
"""What each expert gets back of the others' weight after every sample."""
LEAST = 1e-9
"""No expert gives a class a smaller probability than about this."""


def smoothed(probabilities: Matrix) -> Matrix:
    """Return probabilities `[..., class]` that are bounded away from 0, with the same sum."""
    classes = probabilities.shape[-1]
    bounded: Matrix = (1.0 - classes * LEAST) * probabilities + LEAST
    return bounded


def taking_part(weights: Matrix, answers: Matrix) -> Matrix:
    """Return the weights of the experts with a finite answer, of sum 1; the others have 0.

    Args:
        weights: `[node, expert]`.
        answers: `[node, expert, class or score]`.
    """
    finite = np.isfinite(answers)
    if finite.all():
        return weights
    there = finite.all(axis=-1)
    own = np.where(there, weights, 0.0)
    total = own.sum(axis=1, keepdims=True)
    # All weight may be with experts that have no answer now; then the others share alike.
    alike = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
    return np.where(total > 0.0, own / np.where(total > 0.0, total, 1.0), alike)


def mixed(weights: Matrix, answers: Matrix) -> Matrix:
    """Return the weighted means `[node, ...]` of answers `[node, expert, ...]`."""
    finite = np.isfinite(answers)
    if not finite.all():
        answers = np.where(finite, answers, 0.0)
    mean: Matrix = np.einsum("ne,ne...->n...", weights, answers)
    return mean


def bayes(weights: Matrix, losses: Matrix, prior: Vector) -> Matrix:
    """Return the weights after a label.

    Args:
        weights: Of the prediction, `[node, expert]`.
        losses: Minus the logarithm of the probability that each expert gave the label; nan if it
            had no answer, and so no weight.
        prior: q, `[expert]`.
    """
    joint = weights * np.exp(-losses)
    total = joint.sum(axis=1, keepdims=True)
    if not total.min() > 0.0:  # somebody had no answer, and the sum is nan
        joint = np.where(np.isfinite(losses), joint, 0.0)
        total = joint.sum(axis=1, keepdims=True)
        nobody = ~(total > 0.0)  # then nothing was learned about them
        joint, total = np.where(nobody, weights, joint), np.where(nobody, 1.0, total)
    after: Matrix = joint * ((1.0 - SHARE) / total) + SHARE * prior
    return after


def bayes_bound(prior: float, num_samples: int) -> float:
    """Return by how much the mixture's sum of losses may exceed that of an expert with this prior.

    >>> round(bayes_bound(0.5, 1), 4)
    0.6931
    """
    return -math.log(prior) - (num_samples - 1) * math.log1p(-SHARE + SHARE * prior)


def hedge_weights(losses: Matrix, gaps: Matrix) -> Matrix:
    """Return AdaHedge's weights, `[node, expert]`.

    Args:
        losses: L_k, `[node, expert]`.
        gaps: D, `[node, 1]`.
    """
    excess = losses - losses.min(axis=1, keepdims=True)
    rates = _rates(gaps, losses.shape[1])
    with np.errstate(invalid="ignore", over="ignore"):
        weights = np.where(np.isinf(rates), excess == 0.0, np.exp(-rates * excess))
    normal: Matrix = weights / weights.sum(axis=1, keepdims=True)
    return normal


def hedge(weights: Matrix, losses: Matrix, gaps: Matrix, suffered: Matrix) -> tuple[Matrix, Matrix]:
    """Return L and D after a label.

    Args:
        weights: Of the prediction, `[node, expert]`.
        losses: L before.
        gaps: D before, `[node, 1]`.
        suffered: The loss of every expert; nan if it had no answer, and so no weight.
    """
    there = np.isfinite(suffered)
    worst = np.where(there, suffered, -np.inf).max(axis=1, keepdims=True)
    own = np.where(there, suffered, np.where(np.isfinite(worst), worst, 0.0))
    above = own - own.min(axis=1, keepdims=True)
    mean = np.einsum("ne,ne->n", weights, above)[:, None]
    rates = _rates(gaps, losses.shape[1])
    # By logarithms of the weights, which may themselves be too small for a number.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        before = np.where(there, losses, np.inf)
        before = before - before.min(axis=1, keepdims=True)
        after = before + above
        least = after.min(axis=1, keepdims=True)
        sums = [np.exp(-rates * it).sum(axis=1, keepdims=True) for it in (before, after - least)]
        finite = least + (np.log(sums[0]) - np.log(sums[1])) / rates
    # With an infinite rate the mix loss is by how much the least total grows.
    mix = np.where(np.isinf(rates), least, finite)
    grown = np.where(there.any(axis=1, keepdims=True), np.maximum(0.0, mean - mix), 0.0)
    return losses + own, gaps + grown


def _rates(gaps: Matrix, num_experts: int) -> Matrix:
    with np.errstate(divide="ignore", over="ignore"):
        rates: Matrix = math.log(num_experts) / gaps
    return rates
