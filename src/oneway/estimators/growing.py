"""A simulated network whose samples may get new features and new classes as it goes.

What is new starts at 0 in every model and everything else that nodes hold, as it would have if it
had been there from the start and been 0 in all samples so far.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from oneway.errors import DataError
from oneway.estimators.network import SimulatedNetwork, graph_of
from oneway.estimators.running_scale import RunningScale
from oneway.methods import State
from oneway.records import Matrix, Vector
from oneway.sentences import shown
from oneway.tables.cells import as_number
from oneway.task.learning import Learning


class GrowingNetwork:
    """Learns from samples as dictionaries, each with the features that it happens to have.

    A feature is standardised by the samples that had it; in one that lacks it, it has its mean.

    Args:
        learning: Model, method and their parameters; the model has a constant.
        graph: A kind of graph, or a `TrustGraph`.
        nodes: How many nodes a kind of graph has.
        seed: Of all that is random.

    Attributes:
        network: With room for what was seen so far; None before the first sample.
    """

    def __init__(self, learning: Learning, graph: object, nodes: int, seed: int) -> None:
        self._learning, self._seed = learning, seed
        self._graph = graph_of(graph, nodes, seed)
        self._columns: dict[Hashable, int] = {}
        self._scale = RunningScale.blank(0)
        self._num_classes = 0
        self.network: SimulatedNetwork | None = None

    def learn(self, x: Mapping[Hashable, object], label: float, num_classes: int = 0) -> None:
        """Learn from a sample, given how many classes there are by now; 0 for numbers.

        Raises:
            DataError: A feature is not a finite number; nothing has changed.
        """
        cells = {name: _number(name, value) for name, value in x.items()}
        for name in cells:
            self._columns.setdefault(name, len(self._columns))
        self._grow(max(1, len(self._columns)), num_classes)
        row = self._row(cells)
        self._scale = self._scale.seen(row)
        assert self.network is not None
        self.network.learn(self._scale.apply(row), np.array([label]))

    def encoded(self, x: Mapping[Hashable, object]) -> Matrix:
        """A sample as the models see it, in one row; features that were never seen have no part.

        Raises:
            DataError: A feature is not a finite number.
        """
        cells = {name: _number(name, value) for name, value in x.items() if name in self._columns}
        return self._scale.apply(self._row(cells))

    @property
    def params(self) -> Vector:
        """The model of the node that the next sample goes to: who predicts it, learns from it."""
        assert self.network is not None
        return self.network.params(self.network.turn)

    def _row(self, cells: Mapping[Hashable, float]) -> Matrix:
        row = np.full((1, len(self._scale.counts)), np.nan)
        for name, value in cells.items():
            row[0, self._columns[name]] = value
        return row

    def _grow(self, width: int, num_classes: int) -> None:
        before, former = self.network, len(self._scale.counts)
        if before is not None and width == former and num_classes == self._num_classes:
            return
        model = self._learning.model_for(num_classes)
        method = self._learning.build_method(model.dim(width))
        self.network = SimulatedNetwork(method, model, self._graph, width, self._seed)
        self._scale = self._scale.with_columns(width)
        if before is not None:
            blocks = max(1, self._num_classes), max(1, num_classes)
            self.network.go_on_from(
                before, lambda held: _grown(held, (blocks[0], former), (blocks[1], width))
            )
        self._num_classes = num_classes


def _grown(state: State, before: tuple[int, int], after: tuple[int, int]) -> State:
    """What nodes hold, with zeros for what is new, given classes and features before and after."""
    length = before[0] * (before[1] + 1)

    def grown(array: Matrix) -> Matrix:
        if array.shape[1] != length:  # not one number for each parameter
            return array
        old = array.reshape(len(array), before[0], before[1] + 1)
        new = np.zeros((len(array), after[0], after[1] + 1))
        new[:, : before[0], : before[1]] = old[:, :, :-1]
        new[:, : before[0], -1] = old[:, :, -1]
        return new.reshape(len(array), -1)

    return State(
        {name: grown(array) for name, array in state.segments.items()},
        {name: grown(array) for name, array in state.memory.items()},
    )


def _number(name: Hashable, value: object) -> float:
    number = as_number(value)
    if number is None or not np.isfinite(number):
        raise DataError(
            f"feature {shown(name)} is {shown(value)}; it must be a finite number: leave it out "
            "where it is missing, and put an encoder such as OneHotEncoder in front for text"
        )
    return number
