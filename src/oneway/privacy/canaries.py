"""Membership test: a lower bound on epsilon from canaries, each of them in or out by a fair coin.

A canary is a sample whose gradient is as long as the clip allows, in a direction that only it has
within its batch; left out, it is a sample without contents. An attacker who knows all but the coins
removes the noise's correlation (R^-1, see `banded_noise`), correlates what is left with what the
canary would have added, and so has for every canary a score that is normal around 0 or around mu:
no other test separates a Gaussian mechanism's two cases better (Neyman and Pearson).

Two bounds follow from the scores.

- One run (Steinke, Nasr and Jagielski 2023, theorem 5.2). The attacker guesses the coins of the
  highest and lowest scores from what was released alone. Under (epsilon, 0) every guess is right
  with probability p = 1 / (1 + e^-epsilon) at most, whatever was guessed before, so that of r
  guesses no more are right than under a Binomial(r, p). With delta, and m canaries in all,

      P[at least v right] <= P[B >= v] + 2 m delta max over i of P[v > B >= v - i] / i.

  The bound is the largest epsilon under which what was seen has a probability below 1 - confidence.
  Nothing is assumed about the mechanism.

- One canary at a time (Nasr et al. 2023, "Tight auditing"). The attacker knows the other coins too,
  and decides "in" if the score is above half of what a canary adds. From the two error rates, with
  Clopper and Pearson's limits, mu >= Phi^-1(1 - false alarms) - Phi^-1(misses), and epsilon is that
  of `accounting`. It takes the mechanism to be Gaussian, which makes it much sharper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy import stats

from oneway.privacy.accounting import epsilon_of
from oneway.privacy.banded_noise import coefficients
from oneway.records import Bools, Ints, Matrix, Vector

GUESSED = 0.1
"""Of all canaries, so many of the highest and so many of the lowest scores are guessed."""
_MOST_EPSILON = 50.0
_HALVINGS = 60
_NORMAL = NormalDist()


@dataclass(frozen=True, eq=False)
class Canaries:
    """Which canaries are in, and where.

    Attributes:
        batches: `[canary]`, in which batch of the sender each is, counted from 0.
        directions: `[canary, dim]`, unit vectors; orthogonal to each other within a batch.
        present: `[canary]`, the coins.
    """

    batches: Ints
    directions: Matrix
    present: Bools

    @classmethod
    def drawn(
        cls, num_batches: int, per_batch: int, dim: int, rng: np.random.Generator
    ) -> Canaries:
        """Canaries for a number of batches; `per_batch` is at most `dim`.

        Every batch has a random orthonormal basis of its own: what one canary leaves in the scores
        of another, in a neighbouring batch, is then small and of either sign.
        """
        bases = np.linalg.qr(rng.standard_normal((num_batches, dim, dim)))[0]
        signs = rng.choice([-1.0, 1.0], (num_batches, 1, dim))
        rows = np.swapaxes(bases * signs, 1, 2)[:, :per_batch]
        count = num_batches * per_batch
        return cls(
            np.repeat(np.arange(num_batches), per_batch),
            rows.reshape(count, dim),
            rng.random(count) < 0.5,
        )

    def sums(self, weights: Vector, num_batches: int) -> Matrix:
        """`[batch, dim]`: the canaries' directions added up, each with a weight."""
        result = np.zeros((num_batches, self.directions.shape[1]))
        np.add.at(result, self.batches, weights[:, None] * self.directions)
        return result


@dataclass(frozen=True)
class Evidence:
    """What a membership test found.

    Attributes:
        canaries: How many there were.
        guesses: Of how many the coin was guessed in one run; the attacker abstains from the others.
        correct: How many guesses were right.
        one_run_bound: The lower bound on epsilon from these.
        false_alarms: Which share of the canaries that were out was called in, knowing the others.
        misses: Which share of those that were in was called out.
        gaussian_bound: The lower bound on epsilon from these.
        confidence: With which probability both are below the truth.
    """

    canaries: int
    guesses: int
    correct: int
    one_run_bound: float
    false_alarms: float
    misses: float
    gaussian_bound: float
    confidence: float

    @property
    def epsilon_lower_bound(self) -> float:
        """The larger of the two bounds."""
        return max(self.one_run_bound, self.gaussian_bound)


def membership(
    canaries: Canaries, sums: Matrix, band: int, delta: float, confidence: float = 0.95
) -> Evidence:
    """Play the membership test.

    Args:
        canaries: With the truth about them.
        sums: `[batch, dim]`: what the sender released, in units of the clip, without all that does
            not come from canaries or noise.
        band: Of the noise.
        delta: At which epsilon is bounded.
        confidence: Of both bounds together.
    """
    each = 1.0 - (1.0 - confidence) / 2  # each bound has half of the probability to fail
    size, blind = _scores(canaries, sums, np.full(len(canaries.present), 0.5), band)
    _, informed = _scores(canaries, sums, canaries.present.astype(float), band)
    # Blind: around -size/2 or size/2, own mean included; informed: own part is put back.
    informed = informed + np.where(canaries.present, size, 0.0)
    guesses, correct = _guess(blind, canaries.present)
    alarms = int((informed[~canaries.present] > size[~canaries.present] / 2).sum())
    misses = int((informed[canaries.present] <= size[canaries.present] / 2).sum())
    outside, inside = int((~canaries.present).sum()), int(canaries.present.sum())
    return Evidence(
        canaries=len(canaries.present),
        guesses=guesses,
        correct=correct,
        one_run_bound=one_run_bound(len(canaries.present), guesses, correct, delta, each),
        false_alarms=alarms / max(outside, 1),
        misses=misses / max(inside, 1),
        gaussian_bound=gaussian_bound(alarms, outside, misses, inside, delta, each),
        confidence=confidence,
    )


def column(band: int, length: int) -> Vector:
    """The first coefficients of 1 / (r_0 + r_1 x + ...): what R^-1 makes of a unit at time 0."""
    unit = np.zeros((length, 1))
    unit[0] = 1.0
    return whitened(unit, band)[:, 0]


def whitened(sums: Matrix, band: int) -> Matrix:
    """R^-1 applied along the batches: the noise in it is independent again."""
    weights, result = coefficients(band), np.zeros_like(sums)
    for place in range(len(sums)):
        width = min(place, band - 1)
        result[place] = sums[place] - weights[1 : width + 1] @ result[place - width : place][::-1]
    return result


def _scores(canaries: Canaries, sums: Matrix, taken: Vector, band: int) -> tuple[Vector, Vector]:
    """The length of what each canary adds, and the matched filter's answer over that length."""
    num_batches = len(sums)
    added = column(band, num_batches)
    rest = whitened(sums - canaries.sums(taken, num_batches), band)
    lengths = np.sqrt(np.cumsum(added**2))[::-1]  # a late canary has little time to show
    answers = np.zeros_like(rest)
    for lag, weight in enumerate(added):
        answers[: num_batches - lag] += weight * rest[lag:]
    size = lengths[canaries.batches]
    return size, np.einsum("cd,cd->c", answers[canaries.batches], canaries.directions) / size


def _guess(scores: Vector, present: Bools) -> tuple[int, int]:
    """Guess the extremes; how many, and how many of these rightly."""
    order, some = np.argsort(scores), max(1, round(GUESSED * len(scores)))
    some = min(some, len(scores) // 2)
    lowest, highest = order[:some], order[len(order) - some :]
    return 2 * some, int((~present[lowest]).sum() + present[highest].sum())


def one_run_bound(
    canaries: int, guesses: int, correct: int, delta: float, confidence: float
) -> float:
    """The largest epsilon that so many right guesses rule out; 0 if they rule out none.

    >>> f"{one_run_bound(1000, 1000, 1000, 0.0, 0.95):.2f}"
    '5.81'
    """

    def is_ruled_out(epsilon: float) -> bool:
        return p_value(canaries, guesses, correct, epsilon, delta) < 1.0 - confidence

    if not (guesses and is_ruled_out(0.0)):
        return 0.0
    low, high = 0.0, _MOST_EPSILON
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_ruled_out(middle) else (low, middle)
    return low


def p_value(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """How probable so many right guesses are at most, were (epsilon, delta) true."""
    right = 1.0 / (1.0 + math.exp(-epsilon))
    chances = np.asarray(stats.binom.pmf(np.arange(guesses + 1), guesses, right))
    tail = float(chances[correct:].sum())
    below = np.cumsum(chances[:correct][::-1])
    worst = float((below / np.arange(1, correct + 1)).max(initial=0.0))
    return min(1.0, tail + 2 * canaries * delta * worst)


def gaussian_bound(
    alarms: int, outside: int, misses: int, inside: int, delta: float, confidence: float
) -> float:
    """The epsilon of the least mu that the two error rates allow; 0 if they allow all.

    >>> f"{gaussian_bound(0, 500, 0, 500, 1e-5, 0.95):.1f}"
    '32.0'
    """
    if not (outside and inside):
        return 0.0
    one_sided = 1.0 - (1.0 - confidence) / 2  # two limits share the probability to fail
    mu = -_quantile(upper_limit(alarms, outside, one_sided)) - _quantile(
        upper_limit(misses, inside, one_sided)
    )
    return epsilon_of(mu, delta) if mu > 0.0 else 0.0


def upper_limit(events: int, trials: int, confidence: float) -> float:
    """Clopper and Pearson's upper limit on a probability, from how often something happened.

    >>> f"{upper_limit(0, 100, 0.95):.4f}"
    '0.0295'
    """
    if events >= trials:
        return 1.0
    return float(stats.beta.ppf(confidence, events + 1, trials - events))


def _quantile(probability: float) -> float:
    return math.inf if probability >= 1.0 else _NORMAL.inv_cdf(probability)
