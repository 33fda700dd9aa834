"""Personal predictions of all nodes of a simulation: `oneway.personal`, fed by an engine's scores.

Nothing feeds back into the shared models, so engines only hand out what these say about samples.
With late labels a node predicts its sample when it comes, and learns when the label has come: from
what the shared model said at first, and what its own experts say by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from oneway.errors import ConfigError
from oneway.models import Hinge, LogisticRegression, Model, RidgeRegression, Torch
from oneway.personal import Personal
from oneway.personal.links import answers_to
from oneway.personal.personal import scores_of
from oneway.records import Floats, Ints, Matrix, PersonalRecord, Vector
from oneway.records.values import ALONE
from oneway.simulator import personal_kernel
from oneway.simulator.tallying import Tallying
from oneway.streams import Stream

if TYPE_CHECKING:
    from oneway.simulator.reference_engine import ReferenceEngine

Seed: TypeAlias = int | Sequence[int]
"""Seeds all randomness of a run."""

_KINDS: dict[type[Model], int] = {
    LogisticRegression: personal_kernel.LOGISTIC,
    RidgeRegression: personal_kernel.SQUARED,
    Hinge: personal_kernel.HINGE,
}
_BLOCK_ENTRIES = 2**18


class PersonalPass:
    """Walks the experts of every node through the rounds.

    Args:
        model: What is learned together.
        stream: What is predicted and learned from.
        seed: Of the start of the shared model.
        tallying: Counts what is predicted; None to count nothing.
        compiled: Use the compiled walk where there is one; the same numbers to 1e-9.
        network: Learns a network alone, as one expert of a PyTorch module; None without.

    Raises:
        ConfigError: The model has no personal predictions.
    """

    def __init__(
        self,
        model: Model,
        stream: Stream,
        seed: Seed = 0,
        tallying: Tallying | None = None,
        *,
        compiled: bool = True,
        network: ReferenceEngine | None = None,
    ) -> None:
        start = model.init(stream.dim, np.random.default_rng(seed))
        has_alone = network is not None or not isinstance(model, Torch)
        self.personal = Personal.of(model, stream.dim, start, has_alone=has_alone)
        self._model, self._stream, self._tallying = model, stream, tallying
        self._kind = _KINDS.get(type(model)) if compiled and stream.late is None else None
        self._network = network
        num_rounds, num_nodes = stream.rows.shape
        self._memory = self.personal.begin(num_nodes)
        self._sums, self._node_sums = np.zeros((num_rounds, 4)), np.zeros((num_nodes, 4))
        self._predicted_in = None if stream.late is None else _rounds_of_prediction(stream)
        # What was given when a sample was predicted, kept until its label comes.
        self._given: dict[int, Matrix] = {}
        self._last_use = _last_uses(self._predicted_in)
        self._targets: Vector | None = None

    def take(self, first: int, scores: Matrix) -> None:
        """Predict the samples of a stretch of rounds, and learn from them.

        Args:
            first: The first round.
            scores: What the shared models said, `[round, node, score]`; anything where a node has
                no sample.
        """
        if self._kind is not None:
            self._take_compiled(self._kind, first, scores[..., 0])
            return
        for place, shared in enumerate(scores):
            self._take_round(first + place, shared)

    def record(self, done: int) -> PersonalRecord:
        """What was lost in the first rounds, all that were taken."""
        there = self._stream.rows[:done] >= 0
        return PersonalRecord(
            sums=self._sums[:done],
            counts=there.sum(axis=1),
            node_sums=self._node_sums,
            node_counts=there.sum(axis=0),
            weights=self.personal.weights(self._memory).copy(),
        )

    def _take_round(self, round_index: int, shared: Matrix) -> None:
        rows = self._stream.rows[round_index]
        there = rows >= 0
        given = self._with_network(round_index, shared)
        features, labels = self._samples(rows)
        forecast = self.personal.predict(self._memory, given, features)
        after, suffered = self.personal.learn(self._memory, forecast, labels, there)
        losses = np.column_stack([suffered.personal, suffered.experts])[there]
        self._sums[round_index] = losses.sum(axis=0)
        self._node_sums[there] += losses
        if self._tallying is not None:
            said = answers_to(self.personal.link, forecast.answer[there])
            self._tallying.take(said, labels[there])
        if self._predicted_in is None:
            self._memory = after
        else:
            self._given[round_index] = given
            self._learn_late(round_index, self._predicted_in[round_index])

    def _learn_late(self, round_index: int, predicted_in: Ints) -> None:
        """Learn from the samples whose labels have come, predicted in these rounds."""
        known = predicted_in >= 0
        nodes = np.arange(len(known))
        if known.any():
            given = np.stack(
                [
                    self._given[max(it, 0) if there else round_index][node]
                    for node, it, there in zip(nodes, predicted_in.tolist(), known, strict=True)
                ]
            )
            rows = np.where(known, self._stream.rows[predicted_in, nodes], 0)
            features, labels = self._samples(rows)
            forecast = self.personal.predict(self._memory, given, features)
            self._memory, _ = self.personal.learn(self._memory, forecast, labels, known)
        for old in [it for it in self._given if self._last_use[it] <= round_index]:
            del self._given[old]

    def _samples(self, rows: Ints) -> tuple[Floats, Vector]:
        return self._stream.features[rows], self._stream.labels[rows].astype(np.float64)

    def _with_network(self, round_index: int, shared: Matrix) -> Matrix:
        """The scores that experts are given, `[node, expert, score]`."""
        if not self.personal.network_alone:
            return shared[:, None]
        alone: Matrix = np.full_like(shared, np.nan)
        if self._network is not None:
            nodes, batch = self._stream.batch(round_index)
            own = self._network.method.estimate(self._network.held)[nodes]
            if len(nodes):
                alone[nodes] = scores_of(self._model, own, batch.features)
            self._network.learn(round_index)
        return np.stack([shared, alone], axis=1)

    def _take_compiled(self, kind: int, first: int, scores: Matrix) -> None:
        rows = self._stream.rows[first : first + len(scores)]
        if self._targets is None:
            self._targets = np.ascontiguousarray(
                self._model.targets(self._stream.labels),  # type: ignore[attr-defined]
                np.float64,
            )
        answers = personal_kernel.walk(
            self.personal,
            kind,
            rows,
            scores,
            self._stream.features,
            self._targets,
            self._memory,
            self._sums[first : first + len(scores)],
            self._node_sums,
        )
        if self._tallying is not None:
            there = rows >= 0
            said = answers[there][:, None]
            if self.personal.has_probabilities:
                said = np.column_stack([1.0 - said, said])
            labels = self._stream.labels[rows[there]]
            self._tallying.take(answers_to(self.personal.link, said), labels)


def alone_sums(model: Model, stream: Stream, seed: Seed = 0) -> Vector | None:
    """Return per round the summed loss of every node without the network, at rates of its own.

    None if the model has no experts, or an expert of it is a network.
    """
    try:
        own = PersonalPass(model, stream, seed)
    except ConfigError:
        return None
    if own.personal.network_alone:
        return None
    nobody = np.zeros((1, stream.num_nodes, own.personal.link.width))
    height = max(1, _BLOCK_ENTRIES // nobody.size)
    for first in range(0, stream.num_rounds, height):
        count = min(height, stream.num_rounds - first)
        own.take(first, np.broadcast_to(nobody, (count, *nobody.shape[1:])))
    sums: Vector = own.record(stream.num_rounds).sums[:, ALONE]
    return sums


def _rounds_of_prediction(stream: Stream) -> Ints:
    """Return `[round, node]`: when the sample was predicted that a node learns from; -1 if none.

    If a node had the same row several times, it is the last time.
    """
    assert stream.late is not None
    num_rounds, num_nodes = stream.rows.shape
    found = np.full(stream.rows.shape, -1)
    for node in range(num_nodes):
        seen = np.flatnonzero(stream.rows[:, node] >= 0)
        keys = stream.rows[seen, node].astype(np.int64) * num_rounds + seen
        order = np.argsort(keys)
        learned = np.flatnonzero(stream.late[:, node] >= 0)
        wanted = stream.late[learned, node].astype(np.int64) * num_rounds + learned
        places = np.searchsorted(keys[order], wanted, side="right") - 1
        found[learned, node] = seen[order][places]
    return found


def _last_uses(predicted_in: Ints | None) -> Ints:
    """Return for every round after which other round nothing more is learned from it."""
    if predicted_in is None:
        return np.zeros(0, np.int64)
    last = np.full(len(predicted_in), -1)
    rounds, _ = np.nonzero(predicted_in >= 0)
    np.maximum.at(last, predicted_in[predicted_in >= 0], rounds)
    return last
