"""Tally of the predictions of all nodes of a simulation, taken as its rounds go by."""

from __future__ import annotations

import numpy as np

from oneway.metrics.tally import Tally, counted, merged
from oneway.models import LinearModel, Model, Predictions
from oneway.records import Floats, Ints, Matrix
from oneway.streams import Stream

_MOST_WAITING = 16384
"""Rows that are counted at a time: a call for each round would take longer than the round, and with
a fixed number sums have the same bits however rounds are grouped."""


_OPTIONAL = ("scores", "probabilities")
"""What models may answer besides a prediction."""


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
        self._waiting: list[tuple[Predictions, Floats]] = []
        self._num_waiting = 0

    @property
    def tally(self) -> Tally:
        """Of all predictions until now, all nodes together."""
        answers, labels = self._joined()
        return merged(self._tally, self._counted(answers, labels)) if len(labels) else self._tally

    def take(self, answers: Predictions, labels: Floats) -> None:
        """Note what was said of some rows, and what is true."""
        if not len(labels):
            return
        self._waiting.append((answers, labels))
        self._num_waiting += len(labels)
        if self._num_waiting >= _MOST_WAITING:
            self._count()

    def take_scores(self, rows: Ints, scores: Matrix) -> None:
        """Note the scores of linear models, `[round, node]` like the rows of the table."""
        assert isinstance(self._model, LinearModel)
        there = rows >= 0
        self.take(self._model.predictions_from(scores[there]), self._stream.labels[rows[there]])

    def _joined(self) -> tuple[Predictions, Floats]:
        """What was not counted yet, as one."""
        if not self._waiting:
            return Predictions(np.zeros(0), None, None), np.zeros(0)
        if len(self._waiting) > 1:
            labels = np.concatenate([true for _, true in self._waiting])
            self._waiting = [(_joined([said for said, _ in self._waiting]), labels)]
        return self._waiting[0]

    def _count(self) -> None:
        answers, labels = self._joined()
        ends = range(_MOST_WAITING, len(labels) + 1, _MOST_WAITING)
        for end in ends:
            rows = slice(end - _MOST_WAITING, end)
            self._tally = merged(self._tally, self._counted(_some(answers, rows), labels[rows]))
        rest = slice(ends[-1], None)
        self._waiting = [(_some(answers, rest), labels[rest])]
        self._num_waiting = len(labels) - ends[-1]

    def _counted(self, answers: Predictions, labels: Floats) -> Tally:
        true, nothing = labels.astype(np.float64), np.zeros(len(labels))
        return counted(self._model, self._num_classes, answers, true, nothing, nothing)


def _some(answers: Predictions, rows: slice) -> Predictions:
    optional = (getattr(answers, name) for name in _OPTIONAL)
    return Predictions(
        answers.predicted[rows], *(it if it is None else it[rows] for it in optional)
    )


def _joined(parts: list[Predictions]) -> Predictions:
    if len(parts) == 1:
        return parts[0]

    def join(name: str) -> Matrix | None:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    predicted = np.concatenate([part.predicted for part in parts])
    return Predictions(predicted, join("scores"), join("probabilities"))
