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
from oneway.personal.mixtures import (
    FIRST_GAP,
    bayes,
    completed,
    hedge,
    hedge_weights,
    mixed,
    smoothed,
    taking_part,
)
from oneway.records import Bools, Floats, Matrix, Vector

EXPERTS = ("shared", "alone", "adapted")
"""In the order of all arrays."""
PRIOR = np.array([0.1, 0.5, 0.4])
"""What the mixture believes before the first sample: half of it that a node is better off alone, so
that joining costs log loss of at most ln 2 in a lifetime, besides the share. *Shared* has little,
as *adapted* starts from the same answers."""
SAME = 1e-6
"""Scores this near the constants that all start from say nothing yet."""
MOST_FEATURES = 100
"""Of more features than this *adapted* sees none beside the outputs of a PyTorch module."""
MOST_ALONE = 100_000
"""Networks with more parameters have no expert that is alone."""
_PAIR_PRIOR = np.array([1 / 2, 1 / 2])
_PAIRS, _TOP = "pairs.", "top."
HEARD = "heard"
"""Name of the memory of whether the shared model has said anything yet but what all start from;
until then it takes no part, so that a network that never sends costs nothing."""


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
    """

    link: Link
    linear: LinearExperts
    network_alone: bool = False

    @classmethod
    def of(cls, model: Model, num_features: int, start: Vector) -> Personal:
        """Return the experts for a model.

        Those of a PyTorch module are a linear head on its outputs, and on the features where these
        are few, and another module that is learned alone, whose scores are given as those of the
        shared one are.

        Args:
            model: What is learned together.
            num_features: Of a sample.
            start: The parameters that the shared model starts from.

        Raises:
            ConfigError: The model has no personal predictions.
        """
        link = link_of(model)
        if isinstance(model, Torch):
            seen = num_features if num_features <= MOST_FEATURES else 0
            head = LinearExperts(link, seen, ("adapted",), np.zeros(link.width))
            return cls(link, head, network_alone=True)
        constants = scores_of(model, start[None, :], np.zeros((1, num_features)))[0]
        return cls(link, LinearExperts(link, num_features, ("alone", "adapted"), constants))

    def begin(self, num_nodes: int) -> dict[str, Matrix]:
        """Return the memory before the first sample, one row for each node."""
        kinds = len(self.linear.kinds)
        pairs = self._begin_mixture(num_nodes * kinds, _PAIR_PRIOR)
        return {
            **self.linear.begin(num_nodes),
            HEARD: np.zeros((num_nodes, 1)),
            **{_PAIRS + name: it.reshape(num_nodes, -1) for name, it in pairs.items()},
            **{_TOP + name: it for name, it in self._begin_mixture(num_nodes, PRIOR).items()},
        }

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
        nodes, kinds = scores.shape[:2]
        own_scores = scores.reshape(nodes, 2 * kinds, -1)
        answers = self._answers(np.concatenate([own_scores, given], axis=1))
        pairs, others = answers[:, : 2 * kinds], answers[:, 2 * kinds :]
        flat = pairs.reshape(nodes * kinds, 2, -1)
        there, pair_there = self._taking_part(memory, answers)
        pair_weights = taking_part(self._weights(memory, _PAIRS, _PAIR_PRIOR), pair_there)
        own = mixed(pair_weights, flat, pair_there).reshape(nodes, kinds, -1)
        experts = np.concatenate([others, own], axis=1)
        weights = taking_part(self.weights(memory), there)
        return Forecast(
            answer=mixed(weights, experts, there),
            experts=experts,
            there=there,
            weights=weights,
            pairs=pairs.reshape(nodes, kinds, 2, -1),
            pair_weights=pair_weights.reshape(nodes, kinds, 2),
            shared=given[:, 0],
            scores=scores,
            inputs=inputs,
        )

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
        every = [forecast.pairs.reshape(nodes, 2 * kinds, -1), forecast.experts]
        found = self._losses(np.concatenate([*every, forecast.answer[:, None]], axis=1), labels)
        losses = found[:, 2 * kinds : -1]
        pair_losses = found[:, : 2 * kinds].reshape(nodes * kinds, 2)
        there = pair_there = None
        if forecast.there is not None or not self.has_probabilities:
            there, pair_there = np.isfinite(losses), np.isfinite(pair_losses)
            there = there if forecast.there is None else there & forecast.there
        after = {
            HEARD: self._heard(memory[HEARD], forecast.shared),
            **self._learn_mixture(memory, _PAIRS, pair_there, pair_losses, _PAIR_PRIOR),
            **self._learn_mixture(memory, _TOP, there, losses, PRIOR),
        }
        if active is not None:
            after = {
                name: np.where(active[:, None], it, memory[name]) for name, it in after.items()
            }
        after |= self.linear.learn(memory, forecast.inputs, forecast.scores, labels, active)
        return after, Suffered(found[:, -1], losses)

    def weights(self, memory: Mapping[str, Matrix]) -> Matrix:
        """Return how much the mixture believes each expert, `[node, expert]`."""
        return self._weights(memory, _TOP, PRIOR)

    @cached_property
    def has_probabilities(self) -> bool:
        """Whether answers are probabilities, mixed by Bayes' rule; else scores, by AdaHedge."""
        return self.link.probabilities(np.zeros((1, self.link.width))) is not None

    def _taking_part(
        self, memory: Mapping[str, Matrix], answers: Matrix
    ) -> tuple[Bools | None, Bools | None]:
        """Which experts, and which geometries of a pair, take part; None and None if all do."""
        # A sum is finite only if all its terms are; the rest looks at them one by one.
        if memory[HEARD].all() and math.isfinite(answers.sum()):
            return None, None
        nodes, kinds = len(answers), len(self.linear.kinds)
        sound = np.logical_and.reduce(np.isfinite(answers), axis=2)
        pairs = sound[:, : 2 * kinds].reshape(nodes * kinds, 2)
        own = pairs.any(axis=1).reshape(nodes, kinds)
        there = np.concatenate([sound[:, 2 * kinds :], own], axis=1)
        there[:, :1] &= memory[HEARD] > 0.0
        return there, pairs

    def _heard(self, heard: Matrix, shared: Matrix) -> Matrix:
        """Whether the shared model has said anything but what all start from, `[node, 1]`."""
        if heard.all():
            return heard
        away = np.abs(shared - self.linear.start).max(axis=1, keepdims=True)
        return np.where(np.isfinite(away) & (away > SAME), 1.0, heard)

    # What depends on whether there are probabilities.

    def _answers(self, scores: Matrix) -> Matrix:
        with np.errstate(over="ignore", invalid="ignore"):
            chances = self.link.probabilities(scores)
        return scores if chances is None else smoothed(chances)

    def _losses(self, answers: Matrix, labels: Floats) -> Matrix:
        """The loss of answers `[node, expert, ...]`, `[node, expert]`; nan if one is not finite."""
        if self.has_probabilities:  # of an answer all are finite, or all are nan
            codes = label_codes(self.link, labels)
            chances: Matrix = answers[np.arange(len(labels)), :, codes]
            return -np.log(chances)
        with np.errstate(over="ignore", invalid="ignore"):
            losses = self.link.losses(answers, labels[:, None])
        return np.where(np.isfinite(answers).all(axis=2), losses, np.nan)

    def _begin_mixture(self, rows: int, prior: Vector) -> dict[str, Matrix]:
        if self.has_probabilities:
            return {"weights": np.tile(prior, (rows, 1))}
        return {"losses": np.zeros((rows, len(prior))), "gaps": np.full((rows, 1), FIRST_GAP)}

    def _weights(self, memory: Mapping[str, Matrix], prefix: str, prior: Vector) -> Matrix:
        if self.has_probabilities:
            return memory[prefix + "weights"].reshape(-1, len(prior))
        return hedge_weights(*self._totals(memory, prefix, prior), prior)

    def _totals(
        self, memory: Mapping[str, Matrix], prefix: str, prior: Vector
    ) -> tuple[Matrix, Matrix]:
        losses, gaps = memory[prefix + "losses"], memory[prefix + "gaps"]
        return losses.reshape(-1, len(prior)), gaps.reshape(-1, 1)

    def _completed(self, weights: Matrix, there: Bools | None, losses: Matrix) -> Matrix:
        """Losses in which an expert that takes no part loses what the others' mixture does."""
        if there is None or there.all():
            return losses
        own = taking_part(weights, there)
        if not self.has_probabilities:
            return completed(losses, there, mixed(own, losses, there))
        return completed(losses, there, -np.log(mixed(own, np.exp(-losses), there)))

    def _learn_mixture(
        self,
        memory: Mapping[str, Matrix],
        prefix: str,
        there: Bools | None,
        losses: Matrix,
        prior: Vector,
    ) -> dict[str, Matrix]:
        before = self._weights(memory, prefix, prior)
        losses = self._completed(before, there, losses)
        if self.has_probabilities:
            after = bayes(before, losses, prior)
            return {prefix + "weights": after.reshape(memory[prefix + "weights"].shape)}
        totals, gaps = hedge(*self._totals(memory, prefix, prior), losses, prior)
        return {
            prefix + "losses": totals.reshape(memory[prefix + "losses"].shape),
            prefix + "gaps": gaps.reshape(memory[prefix + "gaps"].shape),
        }


def scores_of(model: Model, stack: Matrix, features: Floats) -> Matrix:
    """Return the scores `[row, score]` of a model, each row under its own parameters."""
    scores = getattr(model, "scores", None) or model.outputs  # type: ignore[attr-defined]
    found: Matrix = scores(stack, features)
    return found if found.ndim == 2 else found[:, None]
