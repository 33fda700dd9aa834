"""Progressive validation of a peer: tallies its predictions, and learns the same samples alone.

What is measured never travels: counts of the peer's own predictions, and the model of a second
learner that takes the same steps on the same samples, hears nobody, and needs no noise since
nothing of it leaves the peer. Both are stored with the rest, in the same commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from oneway.methods import Gradients, Isolated, Method, State
from oneway.metrics.baselines import lately
from oneway.metrics.measured import measures_of
from oneway.metrics.tally import Tally, base_expectation, with_sample
from oneway.models import HasCurvature, Model
from oneway.peer.store.history import UNKNOWN
from oneway.records import Batch, Floats, Matrix, Vector
from oneway.records.curve import Curve
from oneway.records.measures import Measures
from oneway.task.task import Task

_TALLY, _SINCE = "tally.", "since"
ALONE = "alone."
"""How the names of the arrays begin that the learner that is alone has."""


class Measured(NamedTuple):
    """What was measured after one sample more, and what the baselines suffered by it.

    Attributes:
        arrays: By name, as they are stored; arrays that change are new objects.
        base_loss: Of the running base rate.
        alone_loss: Of the learner that is alone; None if the peer is.
    """

    arrays: Mapping[str, Matrix]
    base_loss: float
    alone_loss: float | None


UNMEASURED = Measured({}, UNKNOWN, None)
"""Of a learner that measures nothing."""


class Measuring:
    """Measures the predictions of a task's model; holds nothing that changes.

    Args:
        task: What is learned. A peer whose method sends nothing is its own baseline.
        model: The task's.
        num_features: Of a sample, as the model sees it.
        start: The parameters to begin with.
    """

    def __init__(self, task: Task, model: Model, num_features: int, start: Vector) -> None:
        self._model, self._start = model, start
        self._classes = task.classes
        self._method: Method | None = None
        if task.build_method().payload:
            self._method = task.with_method(Isolated.name).build_method()
        self._rng = np.random.default_rng(0)
        self._bounds: Callable[[Floats], Vector | None] | None = None
        needs_bounds = self._method is not None and self._method.rule.needs_curvature
        if needs_bounds and isinstance(model, HasCurvature):
            self._bounds = model.curvature_bounds

    def measured(
        self, arrays: Mapping[str, Matrix], params: Vector, batch: Batch, loss: float, seen: int
    ) -> Measured:
        """Count one sample, given everything as it was before it; then learn it alone.

        Args:
            arrays: What was measured before; begun anew where that is of other samples than the
                peer has `seen`: a release that measures nothing has learned meanwhile.
            params: The model that predicts.
            batch: The sample.
            loss: What the model suffers.
            seen: How many samples the peer has learned from.
        """
        tally = tally_in(arrays)
        since = arrays.get(_SINCE)
        if since is None or since[0] + tally["losses"][0] != seen:
            arrays, tally, since = {}, {}, np.array([float(seen)])
        model, kind = self._model, self._model.labels
        expected = base_expectation(tally, kind, len(self._classes))
        with np.errstate(over="ignore", invalid="ignore"):
            base = model.base_losses(expected, batch.labels)
            alone, own = self._alone(arrays, batch, seen - int(since[0]))
            answers = model.answers(params, batch.features)
            label, suffered = float(batch.labels[0]), float(base[0])
            tally = with_sample(
                tally, model, len(self._classes), answers, label, loss, suffered, alone
            )
        after = {_TALLY + name: array for name, array in tally.items()}
        return Measured({_SINCE: since, **after, **own}, suffered, alone)

    def _alone(
        self, arrays: Mapping[str, Matrix], batch: Batch, index: int
    ) -> tuple[float | None, Mapping[str, Matrix]]:
        """What the learner that is alone suffers, and its memory after the step."""
        method = self._method
        if method is None:
            return None, {}
        own = {
            name.removeprefix(ALONE): array
            for name, array in arrays.items()
            if name.startswith(ALONE)
        }
        state = State({}, own) if own else method.start(self._start[None, :])
        stack = method.estimate(state)
        told = self._model.lesson(stack, batch, self._rng)
        loss = float(told.losses[0])
        curvatures = None if self._bounds is None else self._bounds(batch.features)
        after = method.learn(state, Gradients(told.gradients, index, curvatures), self._rng)
        # One that leaves the finite numbers stays where it was: it has failed, and goes on failing.
        if not np.isfinite(method.estimate(after)).all():
            after = state
        worst = loss if np.isfinite(loss) else float(np.finfo(np.float64).max)
        return worst, {ALONE + name: array for name, array in after.memory.items()}


def tally_in(arrays: Mapping[str, Matrix]) -> Tally:
    """The tally among the arrays of a store."""
    return {
        name.removeprefix(_TALLY): array
        for name, array in arrays.items()
        if name.startswith(_TALLY)
    }


def measures_in(arrays: Mapping[str, Matrix], task: Task, curve: Curve) -> Measures | None:
    """What a peer's arrays and its curve tell; None before the first sample that was measured."""
    return measures_of(tally_in(arrays), task.classes, lately(curve))
