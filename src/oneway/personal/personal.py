"""Personal predictions: each node's own mixture of the shared model and experts of its own.

Three experts: *shared*, *alone* and *adapted* (`experts`); the last two are themselves mixtures of
two geometries. Whatever the network does, lies or adds as noise, the mixture loses little more than
the node would alone, and little more than the shared model would: nobody loses by joining.
`mixtures` has the bounds. Nothing of it is sent, and nothing feeds back into the shared model.

Pure functions over rows, one row for each node: memory in, new memory out, NumPy only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from oneway.models import Model, Torch
from oneway.personal.experts import LinearExperts
from oneway.personal.links import Link, label_codes, link_of
from oneway.personal.mixtures import AdaHedge, Bayes, Mixture, mixed, smoothed, taking_part
from oneway.records import Bools, Floats, Matrix, Vector

EXPERTS = ("shared", "alone", "adapted")
"""In the order of all arrays."""
PRIOR = np.array([0.1, 0.5, 0.4])
"""What the mixture believes before the first sample: half of it that a node is better off alone, so
that joining costs log loss of at most ln 2 in a lifetime, besides the share. *Shared* has little,
as *adapted* starts from the same answers."""
WITHOUT_ALONE = PRIOR * [1.0, 0.0, 1.0] / (PRIOR[0] + PRIOR[2])
"""The same beside a network so large that none is learned alone."""
SAME = 1e-6
"""Scores this near the constants that all start from say nothing yet."""
MOST_FEATURES = 100
"""Of more features than this *adapted* sees none beside the outputs of a PyTorch module."""
MOST_ALONE = 100_000
"""Networks with more parameters have no expert that is alone."""
PAIR_PRIOR = np.array([1 / 2, 1 / 2])
"""What each pair of geometries believes before the first sample."""
PAIRS, TOP = "pairs.", "top."
"""How the names of the memories of the mixtures begin: of each pair, and of the three experts."""
_LETS_NUMBERS_GROW = np.errstate(over="ignore", invalid="ignore", divide="ignore")
"""What is not finite in the end takes no part, or is not taken over."""
HEARD = "heard"
"""Name of the memory of whether the shared model has said anything yet but what all start from;
until then it takes no part, so that a network that never sends costs nothing."""
REACH = "reach"
"""Name of the memory of how far from 0 a score may be where there are no probabilities."""
FIRST_REACH = 8.0
"""It begins with so much, and grows to the largest label: no expert that is far off, or lies, costs
more than a prediction at the edge of what there has been."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """What was predicted, before the label. An answer is probabilities, or a score without them.

    Attributes:
        answer: Of the mixture, `[node, class or score]`.
        experts: Of every expert, `[node, expert, class or score]`.
        there: Which experts take part, `[node, expert]`; None if all, and both geometries, do.
        weights: How much the mixture believes each expert, `[node, expert]`, of sum 1.
        pairs: Of both geometries, `[node, kind, geometry, class or score]`.
        pair_weights: `[node, kind, geometry]`.
        shared: Scores of the shared model, `[node, score]`.
        scores, inputs: Of the linear experts, to learn from.
    """

    answer: Matrix
    experts: Matrix
    there: Bools | None
    weights: Matrix
    pairs: Matrix
    pair_weights: Matrix
    shared: Matrix
    scores: Matrix
    inputs: Matrix


@dataclass(frozen=True, eq=False)
class Suffered:
    """Losses of one sample of each node, without any l2 term.

    Attributes:
        personal: Of the mixture, `[node]`.
        experts: `[node, expert]`; nan where an expert had no finite answer.
    """

    personal: Vector
    experts: Matrix


@dataclass(frozen=True, eq=False)
class Personal:
    """The experts of a model, and how they are mixed.

    Attributes:
        link: From scores to losses.
        linear: The linear experts.
        network_alone: Whether *alone* is a network whose scores are given, as the shared ones are,
            and not a linear expert.
        has_alone: Whether there is an expert that is alone at all.
    """

    link: Link
    linear: LinearExperts
    network_alone: bool = False
    has_alone: bool = True

    @classmethod
    def of(
        cls, model: Model, num_features: int, start: Vector, *, has_alone: bool = True
    ) -> Personal:
        """Return the experts for a model.

        Those of a PyTorch module are a linear head on its outputs, and on the features where these
        are few, and another module that is learned alone, whose scores are given as those of the
        shared one are.

        Args:
            model: What is learned together.
            num_features: Of a sample.
            start: The parameters that the shared model starts from.
            has_alone: Whether a PyTorch module is learned alone as well.

        Raises:
            ConfigError: The model has no personal predictions.
        """
        link = link_of(model)
        if isinstance(model, Torch):
            seen = num_features if num_features <= MOST_FEATURES else 0
            head = LinearExperts(link, seen, ("adapted",), np.zeros(link.width))
            return cls(link, head, network_alone=True, has_alone=has_alone)
        constants = scores_of(model, start[None, :], np.zeros((1, num_features)))[0]
        return cls(link, LinearExperts(link, num_features, ("alone", "adapted"), constants))

    @cached_property
    def has_probabilities(self) -> bool:
        """Whether answers are probabilities, mixed by Bayes' rule; else scores, by AdaHedge."""
        return self.link.probabilities(np.zeros((1, self.link.width))) is not None

    @cached_property
    def mixtures(self) -> dict[str, Mixture]:
        """Those of the geometries of each pair, and that of the three experts, by name."""
        kind = Bayes if self.has_probabilities else AdaHedge
        return {PAIRS: kind(PAIR_PRIOR), TOP: kind(PRIOR if self.has_alone else WITHOUT_ALONE)}

    def begin(self, num_nodes: int) -> dict[str, Matrix]:
        """Return the memory before the first sample, one row for each node."""
        memory = {**self.linear.begin(num_nodes), HEARD: np.zeros((num_nodes, 1))}
        if not self.has_probabilities:
            memory[REACH] = np.full((num_nodes, 1), FIRST_REACH)
        pairs = self.mixtures[PAIRS].begin(num_nodes, len(self.linear.kinds))
        return memory | _flat(PAIRS, pairs) | _flat(TOP, self.mixtures[TOP].begin(num_nodes))

    @_LETS_NUMBERS_GROW
    def predict(self, memory: Mapping[str, Matrix], given: Matrix, features: Floats) -> Forecast:
        """Return the mixture's predictions.

        Args:
            memory: Of these nodes.
            given: Scores `[node, expert, score]` of the shared model, and of the network that is
                alone if there is one.
            features: `[node, feature]`.
        """
        inputs = self.linear.inputs(features, given[:, 0])
        scores = self.linear.scores(memory, inputs)
        nodes, kinds, *_, width = scores.shape
        own_scores = scores.reshape(nodes, 2 * kinds, width)
        answers = self._answers(memory, np.concatenate([own_scores, given], axis=1))
        pairs = answers[:, : 2 * kinds].reshape(nodes, kinds, 2, -1)
        others = answers[:, 2 * kinds :]
        there, pair_there = self._taking_part(memory, answers)
        pair_weights = taking_part(self._weights(memory, PAIRS, kinds), pair_there)
        own = mixed(pair_weights, pairs, pair_there)
        experts = np.concatenate([others, own], axis=1)
        weights = taking_part(self.weights(memory), there)
        return Forecast(
            answer=mixed(weights, experts, there),
            experts=experts,
            there=there,
            weights=weights,
            pairs=pairs,
            pair_weights=pair_weights,
            shared=given[:, 0],
            scores=scores,
            inputs=inputs,
        )

    @_LETS_NUMBERS_GROW
    def learn(
        self,
        memory: Mapping[str, Matrix],
        forecast: Forecast,
        labels: Floats,
        active: Bools | None = None,
    ) -> tuple[dict[str, Matrix], Suffered]:
        """Return the memory after the labels, and what was suffered.

        Args:
            memory: As it was when `forecast` was made.
            forecast: Of these samples.
            labels: `[node]`.
            active: Which nodes have a sample; None if all. The others stay as they are.
        """
        nodes, kinds = forecast.scores.shape[:2]
        active = None if active is None or active.all() else active
        every = [
            forecast.pairs.reshape(nodes, 2 * kinds, -1),
            forecast.experts,
            forecast.answer[:, None],
        ]
        losses = self._losses(np.concatenate(every, axis=1), labels)
        experts, personal = losses[:, 2 * kinds : -1], losses[:, -1]
        pairs = losses[:, : 2 * kinds].reshape(nodes, kinds, 2)
        after = {
            HEARD: self._heard(memory[HEARD], forecast.shared),
            **self._learned(memory, PAIRS, _excess(pairs, experts[:, -kinds:, None]), kinds),
            **self._learned(memory, TOP, _excess(experts, personal[:, None], forecast.there)),
        }
        if not self.has_probabilities:
            after[REACH] = np.maximum(memory[REACH], np.abs(self.link.targets(labels))[:, None])
        if active is not None:
            after = {
                name: np.where(active[:, None], it, memory[name]) for name, it in after.items()
            }
        after |= self.linear.learn(memory, forecast.inputs, forecast.scores, labels, active)
        return after, Suffered(personal, experts)

    def weights(self, memory: Mapping[str, Matrix]) -> Matrix:
        """Return how much the mixture believes each expert, `[node, expert]`."""
        return self._weights(memory, TOP)

    def _taking_part(
        self, memory: Mapping[str, Matrix], answers: Matrix
    ) -> tuple[Bools | None, Bools | None]:
        """Which experts, and which geometries of a pair, take part; None and None if all do."""
        # A sum is finite only if all its terms are; the rest looks at them one by one.
        if memory[HEARD].all() and math.isfinite(answers.sum()):
            return None, None
        nodes, kinds = len(answers), len(self.linear.kinds)
        sound = np.logical_and.reduce(np.isfinite(answers), axis=2)
        pairs = sound[:, : 2 * kinds].reshape(nodes, kinds, 2)
        there = np.concatenate([sound[:, 2 * kinds :], pairs.any(axis=2)], axis=1)
        there[:, :1] &= memory[HEARD] > 0.0
        return there, pairs

    def _heard(self, heard: Matrix, shared: Matrix) -> Matrix:
        """Whether the shared model has said anything but what all start from, `[node, 1]`."""
        if heard.all():
            return heard
        away = np.abs(shared - self.linear.start).max(axis=1, keepdims=True)
        return np.where(np.isfinite(away) & (away > SAME), 1.0, heard)

    def _answers(self, memory: Mapping[str, Matrix], scores: Matrix) -> Matrix:
        """Probabilities away from 0, or scores within reach; nan for scores that are not finite."""
        chances = self.link.probabilities(scores)
        if chances is not None:
            return smoothed(chances)
        reach = memory[REACH][:, :, None]
        return np.where(np.isfinite(scores), np.clip(scores, -reach, reach), np.nan)

    def _losses(self, answers: Matrix, labels: Floats) -> Matrix:
        """The loss of answers `[node, expert, ...]`, `[node, expert]`; nan of those that are."""
        if self.has_probabilities:
            codes = label_codes(self.link, labels)
            chances: Matrix = answers[np.arange(len(labels)), :, codes]
            return -np.log(chances)
        return self.link.losses(answers, labels[:, None])

    def _weights(self, memory: Mapping[str, Matrix], which: str, *rows: int) -> Matrix:
        return self.mixtures[which].weights(self._mixture(memory, which, *rows))

    def _learned(
        self, memory: Mapping[str, Matrix], which: str, excess: Matrix, *rows: int
    ) -> dict[str, Matrix]:
        """The memory of mixtures after a label."""
        before = self._mixture(memory, which, *rows)
        return _flat(which, self.mixtures[which].learn(before, excess))

    def _mixture(self, memory: Mapping[str, Matrix], which: str, *rows: int) -> dict[str, Matrix]:
        """The memory of mixtures, `[node, *rows, ...]`."""
        names = self.mixtures[which].names
        nodes = len(memory[HEARD])
        return {name: memory[which + name].reshape(nodes, *rows, -1) for name in names}


def _excess(losses: Matrix, mixture: Matrix, there: Bools | None = None) -> Matrix:
    """By how much experts lost more than their mixture; 0 for those that took no part.

    Nor is anything learned from a loss that is not finite.
    """
    excess = losses - mixture
    if there is None and math.isfinite(excess.sum()):
        return excess
    counts = np.isfinite(excess) if there is None else np.isfinite(excess) & there
    return np.where(counts, excess, 0.0)


def _flat(which: str, memory: Mapping[str, Matrix]) -> dict[str, Matrix]:
    """The memory of mixtures as it is kept: by name, one row for each node."""
    return {which + name: it.reshape(len(it), -1) for name, it in memory.items()}


def scores_of(model: Model, stack: Matrix, features: Floats) -> Matrix:
    """Return the scores `[row, score]` of a model, each row under its own parameters."""
    scores = getattr(model, "scores", None) or model.outputs  # type: ignore[attr-defined]
    found: Matrix = scores(stack, features)
    return found if found.ndim == 2 else found[:, None]
