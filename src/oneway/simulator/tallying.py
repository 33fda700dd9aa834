"""Tally of the predictions of all nodes of a simulation, taken as its rounds go by."""

from __future__ import annotations

import numpy as np

from oneway.metrics.tally import Tally, counted, merged
from oneway.models import Answers, LinearModel, Model
from oneway.records import Floats, Ints, Matrix
from oneway.streams import Stream

_MOST_WAITING = 4096
"""So many rows are counted at once: a call for each round would take longer than the round."""


class Tallying:
    """Counts what engines predict; losses are theirs to count.

    Args:
        model: What is learned.
        stream: What is predicted.
        num_classes: How many classes there are; any number where labels are numbers.
    """

    def __init__(self, model: Model, stream: Stream, num_classes: int) -> None:
        self._model, self._stream, self._num_classes = model, stream, num_classes
        self._tally: Tally = {}
        self._waiting: list[tuple[Answers, Floats]] = []
        self._num_waiting = 0

    @property
    def tally(self) -> Tally:
        """Of all predictions until now, all nodes together."""
        self._count()
        return self._tally

    def take(self, answers: Answers, labels: Floats) -> None:
        """Note what was said of some rows, and what is true."""
        self._waiting.append((answers, labels))
        self._num_waiting += len(labels)
        if self._num_waiting >= _MOST_WAITING:
            self._count()

    def take_scores(self, rows: Ints, scores: Matrix) -> None:
        """Note the scores of linear models, `[round, node]` like the rows of the table."""
        assert isinstance(self._model, LinearModel)
        there = rows >= 0
        self.take(self._model.answers_to(scores[there]), self._stream.labels[rows[there]])

    def _count(self) -> None:
        waiting, self._waiting, self._num_waiting = self._waiting, [], 0
        if not waiting:
            return
        answers, labels = _joined([said for said, _ in waiting]), [true for _, true in waiting]
        together = np.concatenate(labels).astype(np.float64)
        nothing = np.zeros(len(together))
        if len(together):
            one = counted(self._model, self._num_classes, answers, together, nothing, nothing)
            self._tally = merged(self._tally, one)


def _joined(parts: list[Answers]) -> Answers:
    if len(parts) == 1:
        return parts[0]

    def join(name: str) -> Matrix | None:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    predicted = np.concatenate([part.predicted for part in parts])
    return Answers(predicted, join("scores"), join("probabilities"))
