"""One sample at a time: predict, suffer the loss, take the step that the task prescribes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oneway.errors import ConfigError, DataError
from oneway.models import LogisticRegression, SoftmaxRegression
from oneway.protocol.state import PeerState
from oneway.protocol.steps import STEP_RULES
from oneway.protocol.transitions import descend
from oneway.records import Batch, Vector
from oneway.task.task import Task


@dataclass(frozen=True, eq=False)
class Lesson:
    """What came of a sample: the state after it, its loss before it, and whether it was foreseen.

    `correct` is None where being right has no meaning.
    """

    state: PeerState
    loss: float
    correct: bool | None


class Learner:
    """Predicts and learns by a task; holds no parameters."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._model = task.build_model()
        self._step = STEP_RULES[task.step]

    def learn(
        self,
        state: PeerState,
        params: Vector,
        x: Mapping[str, object],
        y: object,
        samples_seen: int,
    ) -> Lesson:
        """Learn from one sample.

        Args:
            state: Before the sample.
            params: The estimate to predict with.
            x: Features by name.
            y: The raw label.
            samples_seen: How many samples came before, for the schedule.

        Raises:
            DataError: The sample lacks a feature, has one that is no number, a label that the task
                does not know, or is so large that its step cannot be represented.
        """
        features, label = self._task.vector(x), self._task.label_value(y)
        batch = Batch(features[None, :], np.array([label]))
        with np.errstate(over="ignore", invalid="ignore"):  # told below, as an error
            loss = float(self._model.losses(params, batch)[0])
            right = self._model.correct(params, batch)
            curvatures = self._model.curvature_bounds(batch.features)
            curvature = None if curvatures is None else float(curvatures[0])
            rate = self._step(self._task.rate(samples_seen), state.mass, curvature)
            step = rate * self._model.gradient(params, batch)
        if not math.isfinite(loss):
            raise DataError(f"the loss of the sample is {loss}; its features are far too large")
        try:
            state = descend(state, step) if rate else state
        except OverflowError:
            raise DataError(
                "the step for the sample is too large to be represented; its features are far too "
                "large"
            ) from None
        return Lesson(state, loss, None if right is None else bool(right[0]))

    def predict(self, params: Vector, x: Mapping[str, object]) -> str | float:
        """The label expected for a sample: one of the task's classes, or a number.

        Raises:
            DataError: The sample lacks a feature or has one that is no number.
        """
        value = float(self._model.predict(params, self._task.vector(x)[None, :])[0])
        return self._task.label_name(value) if self._task.classifies else value

    def probabilities(self, params: Vector, x: Mapping[str, object]) -> dict[str, float]:
        """How probable each class is.

        Raises:
            DataError: As `predict`.
            ConfigError: The task's model does not say how probable a class is.
        """
        features = self._task.vector(x)[None, :]
        if isinstance(self._model, LogisticRegression):
            score = float(self._model.scores(params, features)[0])
            second = 0.5 * (1.0 + math.tanh(0.5 * score))
            shares = [1.0 - second, second]
        elif isinstance(self._model, SoftmaxRegression):
            scores = self._model.scores(params, features)[0]
            powers = np.exp(scores - scores.max())
            shares = (powers / powers.sum()).tolist()
        else:
            raise ConfigError(
                f"a {self._task.model} model does not say how probable a class is; ask it for the "
                "label, or use a logistic or softmax model"
            )
        return dict(zip(self._task.classes, shares, strict=True))
