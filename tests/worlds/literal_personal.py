"""Personal predictions of one node in plain Python, beside docs/personal.md: no arrays of nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

SHARE = 1e-3
LEAST = 1e-9
SAME = 1e-6
FIRST_GAP = 1.0
FIRST_REACH = 8.0
PRIOR = (0.1, 0.5, 0.4)


Answers = Sequence[Sequence[float] | None]
"""Probabilities of both classes; None of an expert that takes no part."""


def logistic(score: float) -> float:
    return 1 / (1 + math.exp(-score)) if score >= 0 else math.exp(score) / (1 + math.exp(score))


@dataclass
class Bayes:
    """A mixture of probability vectors."""

    prior: Sequence[float]
    weights: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.weights = list(self.prior)

    def predict(self, answers: Answers) -> list[float]:
        there = [(w, it) for w, it in zip(self.weights, answers, strict=True) if it is not None]
        total = sum(w for w, _ in there)
        return [sum(w * it[c] for w, it in there) / total for c in (0, 1)]

    def learn(self, answers: Answers, label: int) -> None:
        mixture = self.predict(answers)[label]
        chances = [mixture if it is None else it[label] for it in answers]
        self.weights = [
            (1 - SHARE) * w * p / mixture + SHARE * q
            for w, p, q in zip(self.weights, chances, self.prior, strict=True)
        ]


@dataclass
class AdaHedge:
    """A mixture of scores for a convex loss."""

    prior: Sequence[float]
    losses: list[float] = field(init=False)
    gap: float = FIRST_GAP

    def __post_init__(self) -> None:
        self.losses = [0.0] * len(self.prior)

    @property
    def rate(self) -> float:
        return math.log(len(self.prior)) / self.gap

    @property
    def weights(self) -> list[float]:
        raw = [q * math.exp(-self.rate * it) for q, it in zip(self.prior, self.losses, strict=True)]
        return [it / sum(raw) for it in raw]

    def mean(self, values: Sequence[float | None]) -> float:
        there = [(w, it) for w, it in zip(self.weights, values, strict=True) if it is not None]
        return sum(w * it for w, it in there) / sum(w for w, _ in there)

    def learn(self, suffered: Sequence[float | None], mixture: float) -> None:
        own = [mixture if it is None else it for it in suffered]
        chances = [w * math.exp(-self.rate * it) for w, it in zip(self.weights, own, strict=True)]
        mix = -math.log(sum(chances)) / self.rate
        self.gap += max(0.0, mixture - mix)
        self.losses = [old + new for old, new in zip(self.losses, own, strict=True)]


@dataclass
class Linear:
    """One linear expert with one score; `by_norm` or by coordinate."""

    params: list[float]
    by_norm: bool
    curvature: float
    squares: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.squares = [0.0] * (1 if self.by_norm else len(self.params))

    def score(self, inputs: Sequence[float]) -> float:
        return sum(p * it for p, it in zip(self.params, inputs, strict=True))

    def rate(self, num_inputs: int) -> float:
        ceiling = 0.5 / (self.curvature * (num_inputs + 1))
        reach = ceiling * (num_inputs + 1)
        return min(ceiling, reach / math.sqrt(self.squares[0])) if self.squares[0] else ceiling

    def learn(self, inputs: Sequence[float], slope: float, num_inputs: int) -> None:
        gradient = [slope * it for it in inputs]
        if not self.by_norm:
            for place, it in enumerate(gradient):
                if it:
                    self.squares[place] += it * it
                    self.params[place] -= 0.1 * it / math.sqrt(self.squares[place])
            return
        length = sum(it * it for it in inputs)
        limit = min(1.0, 1.0 / (2 * self.curvature * length * self.rate(num_inputs)))
        gradient = [limit * it for it in gradient]
        self.squares[0] += sum(it * it for it in gradient)
        rate = self.rate(num_inputs)
        self.params = [p - rate * it for p, it in zip(self.params, gradient, strict=True)]


class LiteralPersonal:
    """Logistic regression, or least squares: shared, alone and adapted, message by message.

    Args:
        num_features: Of a sample.
        start: The constant that *alone* starts from.
        squared: Whether the loss is half the squared error; otherwise the logistic loss.
    """

    def __init__(self, num_features: int, start: float, squared: bool = False) -> None:
        bend = 1.0 if squared else 0.25
        self.squared, self.num_features, self.start = squared, num_features, start
        self.heard, self.reach = False, FIRST_REACH
        alone = [0.0] * num_features + [0.0, start]
        adapted = [0.0] * num_features + [1.0, 0.0]
        self.pairs = [
            [Linear(list(begin), by_norm, bend) for by_norm in (True, False)]
            for begin in (alone, adapted)
        ]
        make: Callable[[Sequence[float]], Bayes | AdaHedge] = AdaHedge if squared else Bayes
        self.inner = [make((0.5, 0.5)) for _ in self.pairs]
        self.top = make(PRIOR)

    def step(self, features: Sequence[float], shared: float, label: float) -> list[float]:
        """Predict, then learn; the losses of the mixture, shared, alone and adapted."""
        near = min(8.0, max(-8.0, shared))
        inputs = [[*features, 0.0, 1.0], [*features, near, 1.0]]
        scores = [
            [expert.score(own) for expert in pair]
            for pair, own in zip(self.pairs, inputs, strict=True)
        ]
        losses = (
            self._squared(scores, shared, label)
            if self.squared
            else self._log(scores, shared, label)
        )
        self.heard = self.heard or abs(shared - self.start) > SAME
        sizes = (self.num_features, self.num_features + 1)
        for pair, own, said, size in zip(self.pairs, inputs, scores, sizes, strict=True):
            for expert, score in zip(pair, said, strict=True):
                slope = score - label if self.squared else -label * logistic(-label * score)
                expert.learn(own, slope, size)
        return losses

    def _log(self, scores: list[list[float]], shared: float, label: float) -> list[float]:
        def answer(score: float) -> list[float]:
            chance = logistic(score)
            return [(1 - 2 * LEAST) * it + LEAST for it in (1 - chance, chance)]

        code = int(label > 0)
        said = [[answer(score) for score in pair] for pair in scores]
        experts = [answer(shared), *(m.predict(s) for m, s in zip(self.inner, said, strict=True))]
        taking_part = [experts[0] if self.heard else None, *experts[1:]]
        mixture = self.top.predict(taking_part)
        for mix, pair in zip(self.inner, said, strict=True):
            mix.learn(pair, code)
        self.top.learn(taking_part, code)
        return [-math.log(it[code]) for it in (mixture, *experts)]

    def _squared(self, scores: list[list[float]], shared: float, label: float) -> list[float]:
        def loss(score: float) -> float:
            return 0.5 * (score - label) ** 2

        def within(score: float) -> float:
            return min(self.reach, max(-self.reach, score))

        said = [[within(it) for it in pair] for pair in scores]
        experts = [within(shared), *(m.mean(s) for m, s in zip(self.inner, said, strict=True))]
        taking_part = [experts[0] if self.heard else None, *experts[1:]]
        losses = [loss(it) for it in (self.top.mean(taking_part), *experts)]
        for mix, pair, mixture in zip(self.inner, said, losses[2:], strict=True):
            mix.learn([loss(it) for it in pair], mixture)
        self.top.learn([losses[1] if self.heard else None, *losses[2:]], losses[0])
        self.reach = max(self.reach, abs(label))
        return losses
