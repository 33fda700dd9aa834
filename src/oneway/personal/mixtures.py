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
with the mean score under w_k ~ q_k exp(-eta L_k), L_k being the losses so far, and eta = ln K / D.
D begins with D_0 and grows by the mixability gaps: by how much the mean loss under w exceeds the
mix loss, which is -1/eta ln sum_k w_k exp(-eta l_k) (de Rooij, van Erven, Grunwald and Koolen 2014,
who have D_0 = 0 and a uniform q). For any sequence and every expert k

    loss(mixture) <= loss(k) + D_T - D_0 - D_T ln q_k / ln K

An expert that takes no part in a prediction, for want of a finite answer or because it has said
nothing yet, counts as if it had said what the mixture of the others says (Freund, Schapire, Singer
and Warmuth 1997). So both bounds hold for every expert, over the samples that it took part in.
"""

from __future__ import annotations

import math

import numpy as np

from oneway.records import Bools, Matrix, Vector

SHARE = 1e-3
"""What each expert gets back of the others' weight after every sample."""
LEAST = 1e-9
"""No expert gives a class a smaller probability than about this."""
FIRST_GAP = 1.0
"""D_0, in units in which knowing nothing costs about 1/2 (squared error) or 1 (hinge). Without it
the first few samples would decide alone whom the mixture believes."""


def smoothed(probabilities: Matrix) -> Matrix:
    """Return probabilities `[..., class]` that are bounded away from 0, with the same sum."""
    classes = probabilities.shape[-1]
    bounded: Matrix = (1.0 - classes * LEAST) * probabilities + LEAST
    return bounded


def taking_part(weights: Matrix, there: Bools | None) -> Matrix:
    """Return the weights of the experts that take part, of sum 1; the others have 0.

    Args:
        weights: `[node, expert]`.
        there: Which experts take part, `[node, expert]`; None if all.
    """
    if there is None:
        return weights
    own = np.where(there, weights, 0.0)
    total = own.sum(axis=1, keepdims=True)
    # All weight may be with experts that have no answer now; then the others share alike.
    alike = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
    return np.where(total > 0.0, own / np.where(total > 0.0, total, 1.0), alike)


def mixed(weights: Matrix, answers: Matrix, there: Bools | None = None) -> Matrix:
    """Return the weighted means `[node, ...]` of answers `[node, expert, ...]`.

    Args:
        weights: `[node, expert]`.
        answers: Anything where an expert takes no part.
        there: Which experts take part; None if all. Without any the mean is nan.
    """
    if there is None:
        mean: Matrix = np.einsum("ne,ne...->n...", weights, answers)
        return mean
    spread = (-1,) + (1,) * (answers.ndim - 2)
    present = there.reshape(*there.shape, *spread[1:])
    mean = np.einsum("ne,ne...->n...", weights, np.where(present, answers, 0.0))
    return np.where(there.any(axis=1).reshape(spread), mean, np.nan)


def completed(losses: Matrix, there: Bools, means: Vector) -> Matrix:
    """Return losses `[node, expert]` in which an expert that takes no part loses the mean.

    Args:
        losses: `[node, expert]`; anything where an expert takes no part.
        there: Which experts take part.
        means: What the mixture of those loses, `[node]`; anything if there are none.
    """
    everyone = np.where(there.any(axis=1), means, 0.0)
    return np.where(there, losses, everyone[:, None])


def bayes(weights: Matrix, losses: Matrix, prior: Vector) -> Matrix:
    """Return the weights after a label.

    Args:
        weights: Before it, `[node, expert]`.
        losses: Minus the logarithm of the probability that each expert gave the label, `completed`.
        prior: q, `[expert]`.
    """
    joint = weights * np.exp(-losses)
    after: Matrix = joint * ((1.0 - SHARE) / joint.sum(axis=1, keepdims=True)) + SHARE * prior
    return after


def bayes_bound(prior: float, num_samples: int) -> float:
    """Return by how much the mixture's sum of losses may exceed that of an expert with this prior.

    >>> round(bayes_bound(0.5, 1), 4)
    0.6931
    """
    return -math.log(prior) - (num_samples - 1) * math.log1p(-SHARE + SHARE * prior)


def hedge_weights(losses: Matrix, gaps: Matrix, prior: Vector) -> Matrix:
    """Return AdaHedge's weights, `[node, expert]`.

    Args:
        losses: L_k, `[node, expert]`.
        gaps: D, `[node, 1]`.
        prior: q, `[expert]`.
    """
    excess = losses - losses.min(axis=1, keepdims=True)
    weights = prior * np.exp(-math.log(len(prior)) / gaps * excess)
    normal: Matrix = weights / weights.sum(axis=1, keepdims=True)
    return normal


def hedge(losses: Matrix, gaps: Matrix, suffered: Matrix, prior: Vector) -> tuple[Matrix, Matrix]:
    """Return L and D after a label.

    Args:
        losses: L before.
        gaps: D before, `[node, 1]`.
        suffered: The loss of every expert, `completed`.
        prior: q, `[expert]`.
    """
    rates = math.log(len(prior)) / gaps
    above = suffered - suffered.min(axis=1, keepdims=True)
    weights = hedge_weights(losses, gaps, prior)
    mean = np.einsum("ne,ne->n", weights, above)[:, None]
    before = losses - losses.min(axis=1, keepdims=True)
    after = before + above
    least = after.min(axis=1, keepdims=True)
    # Each sum has a term of at least the least q, however small the weights are.
    sums = [
        (prior * np.exp(-rates * it)).sum(axis=1, keepdims=True) for it in (before, after - least)
    ]
    mix = least + (np.log(sums[0]) - np.log(sums[1])) / rates
    return losses + suffered, gaps + np.maximum(0.0, mean - mix)


def hedge_bound(prior: float, num_experts: int, gap: float) -> float:
    """Return by how much AdaHedge's sum of losses may exceed that of an expert with this prior.

    >>> round(hedge_bound(0.5, 2, 3.0), 9)
    5.0
    """
    return gap - FIRST_GAP - gap * math.log(prior) / math.log(num_experts)
