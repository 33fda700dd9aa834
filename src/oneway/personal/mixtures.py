"""Mixtures of experts: weights that follow who was right so far.

A mixture answers with the weighted mean of its experts' answers. After the label it is told by how
much each expert lost more than the mixture itself did: the *excess*, 0 for an expert that took no
part in the prediction (for want of a finite answer, or because it has said nothing yet). Such an
expert counts as if it had lost what the mixture did (Freund, Schapire, Singer and Warmuth 1997), so
the bounds below hold for every expert, over the samples that it took part in. Losses are sums.

**`Bayes`** (log loss). The answer is p = sum_k w_k p_k; w begins with the prior q, and then

    w_k' = (1 - s) w_k p_k(y) / p(y) + s q_k

with a small share s, so that an expert that becomes the best one late is found (fixed share,
Herbster and Warmuth 1998). A path of experts j_1, ..., j_T has the prior probability q_(j_1)
prod_t ((1 - s) [j_t = j_(t+1)] + s q_(j_(t+1))), and the product of all p(y) is the mean, over
paths, of the products of p_(j_t)(y). The path that stays at expert k gives, for any sequence,

    loss(mixture) <= loss(k) - ln q_k - (T - 1) ln(1 - s + s q_k)

and a path with changes pays -ln(s q_j) for each change, to expert j.

**`AdaHedge`** (other convex losses: squared error, hinge). w_k ~ q_k exp(-eta L_k), L_k being the
losses so far, and eta = ln K / D. D begins with D_0 and grows by the mixability gaps: by how much
the mixture's own loss exceeds the mix loss -1/eta ln sum_k w_k exp(-eta l_k), where it does. For
any sequence and every expert k

    loss(mixture) <= loss(k) + D_T - D_0 - D_T ln q_k / ln K

De Rooij, van Erven, Grunwald and Koolen (2014) have D_0 = 0, a uniform q, and the weighted mean of
the losses in place of the loss of the weighted mean, which by convexity is no greater. The
difference matters for the squared error: once eta |a - y|^2 <= 1 for all answers a, the exponential
of -eta times the loss is concave in a, so no gap is above 0, D stays, and so does the regret.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from oneway.records import Bools, Matrix, Vector

SHARE = 1e-3
"""What each expert gets back of the others' weight after every sample."""
LEAST = 1e-9
"""No expert gives a class a smaller probability than about this."""
FIRST_GAP = 1.0
"""D_0, in units in which knowing nothing costs about 1/2 (squared error) or 1 (hinge). Without it
the first few samples would decide alone whom the mixture believes."""
FAINTEST = 700.0
"""AdaHedge's weights are at least exp(-700) of the best one's: tiny, but not 0."""


@dataclass(frozen=True, eq=False)
class Mixture(ABC):
    """How much each of several experts is believed; the last axis of all arrays is the expert.

    Attributes:
        prior: q, `[expert]`, of sum 1.
    """

    prior: Vector
    names: ClassVar[tuple[str, ...]]
    """Of the arrays of its memory."""

    @abstractmethod
    def begin(self, *rows: int) -> dict[str, Matrix]:
        """Return the memory before the first sample, `[*rows, ...]`."""

    @abstractmethod
    def weights(self, memory: Mapping[str, Matrix]) -> Matrix:
        """Return the weights `[..., expert]`, of sum 1."""

    @abstractmethod
    def learn(self, memory: Mapping[str, Matrix], excess: Matrix) -> dict[str, Matrix]:
        """Return the memory after a label.

        Args:
            memory: Before it.
            excess: By how much each expert lost more than the mixture, `[..., expert]`; 0 for those
                that took no part.
        """


class Bayes(Mixture):
    """A mixture of probabilities, by Bayes' rule with a fixed share."""

    names = ("weights",)

    def begin(self, *rows: int) -> dict[str, Matrix]:
        """Return the prior."""
        return {"weights": np.tile(self.prior, (*rows, 1))}

    def weights(self, memory: Mapping[str, Matrix]) -> Matrix:
        """Return what is remembered."""
        return memory["weights"]

    def learn(self, memory: Mapping[str, Matrix], excess: Matrix) -> dict[str, Matrix]:
        """Return the posterior, shared."""
        kept = (1.0 - SHARE) * memory["weights"] * np.exp(-excess)
        return {"weights": kept + SHARE * self.prior}


class AdaHedge(Mixture):
    """A mixture of scores, by exponential weights at a rate that it finds itself."""

    names = ("losses", "gaps")

    def begin(self, *rows: int) -> dict[str, Matrix]:
        """Return L_k less that of the best expert, and D."""
        return {
            "losses": np.zeros((*rows, len(self.prior))),
            "gaps": np.full((*rows, 1), FIRST_GAP),
        }

    def weights(self, memory: Mapping[str, Matrix]) -> Matrix:
        """Return q_k exp(-eta L_k), of sum 1."""
        weights = self._unscaled(memory["losses"], self._rates(memory))
        normal: Matrix = weights / weights.sum(axis=-1, keepdims=True)
        return normal

    def learn(self, memory: Mapping[str, Matrix], excess: Matrix) -> dict[str, Matrix]:
        """Return L and D after the label."""
        losses, rates = memory["losses"], self._rates(memory)
        after = losses + excess
        least = after.min(axis=-1, keepdims=True)
        after = after - least
        before, behind = (
            self._unscaled(it, rates).sum(axis=-1, keepdims=True) for it in (losses, after)
        )
        # The mix loss, less what the mixture lost.
        gained = least + np.log(before / behind) / rates
        return {"losses": after, "gaps": memory["gaps"] + np.maximum(0.0, -gained)}

    def _rates(self, memory: Mapping[str, Matrix]) -> Matrix:
        rates: Matrix = math.log(len(self.prior)) / memory["gaps"]
        return rates

    def _unscaled(self, losses: Matrix, rates: Matrix) -> Matrix:
        weights: Matrix = self.prior * np.exp(-np.minimum(rates * losses, FAINTEST))
        return weights


def smoothed(probabilities: Matrix) -> Matrix:
    """Return probabilities `[..., class]` that are bounded away from 0, with the same sum."""
    classes = probabilities.shape[-1]
    bounded: Matrix = (1.0 - classes * LEAST) * probabilities + LEAST
    return bounded


def taking_part(weights: Matrix, there: Bools | None) -> Matrix:
    """Return the weights of the experts that take part, of sum 1; the others have 0.

    Args:
        weights: `[..., expert]`, none of them 0.
        there: Which experts take part, `[..., expert]`; None if all. Where none does, all have 0.
    """
    if there is None:
        return weights
    own = np.where(there, weights, 0.0)
    total = own.sum(axis=-1, keepdims=True)
    normal: Matrix = own / np.where(total > 0.0, total, 1.0)
    return normal


def mixed(weights: Matrix, answers: Matrix, there: Bools | None = None) -> Matrix:
    """Return the weighted means `[..., class or score]` of answers `[..., expert, class or score]`.

    Args:
        weights: `[..., expert]`.
        answers: Anything where an expert takes no part.
        there: Which experts take part; None if all. Without any the mean is nan.
    """
    if there is not None:
        absent = np.where(there.any(axis=-1, keepdims=True), 0.0, np.nan)[..., None]
        answers = np.where(there[..., None], answers, absent)
    mean: Matrix = (weights[..., None, :] @ answers)[..., 0, :]
    return mean


def bayes_bound(prior: float, num_samples: int) -> float:
    """Return by how much the mixture's sum of losses may exceed that of an expert with this prior.

    >>> round(bayes_bound(0.5, 1), 4)
    0.6931
    """
    return -math.log(prior) - (num_samples - 1) * math.log1p(-SHARE + SHARE * prior)


def hedge_bound(prior: float, num_experts: int, gap: float) -> float:
    """Return by how much AdaHedge's sum of losses may exceed that of an expert with this prior.

    >>> round(hedge_bound(0.5, 2, 3.0), 9)
    5.0
    """
    return gap - FIRST_GAP - gap * math.log(prior) / math.log(num_experts)
