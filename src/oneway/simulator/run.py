"""The result of a simulation, with the numbers people ask for by name."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from oneway import metrics, store
from oneway.errors import ComparatorError, StoreError
from oneway.models import Model
from oneway.records import Matrix, RunRecord, Vector
from oneway.streams import Stream


@dataclass(frozen=True, repr=False, eq=False)
class Run:
    """A finished (or interrupted) simulation.

    Attributes:
        record: Everything that was written down; see `RunRecord`.
        model: What was learned; None if the run was loaded without it.
        stream: What it was learned from; None if the run was loaded without it.
    """

    record: RunRecord
    model: Model | None = None
    stream: Stream | None = None

    def __repr__(self) -> str:
        record = self.record
        state = "" if record.complete else ", interrupted"
        return (
            f"<Run: {record.algorithm}, {len(record.masses):,} nodes, {record.num_rounds:,} "
            f"rounds, average loss {self.average_loss:.4f}{state}>"
        )

    @property
    def complete(self) -> bool:
        """False if the run was interrupted; it then holds the rounds that were done."""
        return self.record.complete

    @property
    def average_loss(self) -> float:
        """The paper's measure: the mean loss over nodes and rounds."""
        return metrics.average_loss(self.record)

    @property
    def losses(self) -> Vector:
        """[T] per round, the mean loss over the nodes that had a sample."""
        return metrics.losses(self.record)

    @property
    def loss_curve(self) -> Vector:
        """[T] the running mean of the loss over all samples so far."""
        return metrics.loss_curve(self.record)

    @property
    def accuracy(self) -> float | None:
        """Share of predictions that were right, each made before its label was seen."""
        return metrics.accuracy(self.record)

    @property
    def numerators(self) -> Matrix:
        """[n, d] z of every node at the end."""
        return self.record.numerators

    @property
    def masses(self) -> Vector:
        """[n] omega of every node at the end."""
        return self.record.masses

    @property
    def estimates(self) -> Matrix:
        """[n, d] x = z / omega of every node at the end."""
        return self.numerators / self.masses[:, None]

    @property
    def disagreement(self) -> Vector:
        """[T] mean squared distance of the estimates from the network's mean, after each round."""
        return self.record.disagreement

    @cached_property
    def comparator(self) -> Vector:
        """x*, the best fixed model in hindsight for the samples of this run.

        Raises:
            ComparatorError: If the run was loaded without its model and stream, or no best model
                exists.
        """
        model, stream = self._source()
        return metrics.best_fixed_model(
            model, stream.features, stream.labels, stream.rows[: self.record.num_rounds]
        )

    @cached_property
    def _with_comparator(self) -> RunRecord:
        if self.record.comparator_sums is not None:
            return self.record
        model, stream = self._source()
        sums = metrics.comparator_sums(
            model,
            self.comparator,
            stream.features,
            stream.labels,
            stream.rows[: self.record.num_rounds],
        )
        return replace(self.record, comparator_sums=sums)

    def regret(self) -> Vector:
        """[T] summed loss so far, minus that of the best fixed model in hindsight.

        The comparator is the best for all samples of the run, solved to a gradient norm of 1e-6.

        Raises:
            ComparatorError: If the run was loaded without its model and stream and its regret had
                not been asked for before it was saved, or no best model exists.
        """
        return metrics.regret(self._with_comparator)

    def save(self, path: Path | str) -> Path:
        """Write the run into a folder: the numbers, with config, seeds and versions beside them."""
        computed = "_with_comparator" in self.__dict__
        return store.save(self._with_comparator if computed else self.record, path)

    @classmethod
    def load(
        cls, path: Path | str, *, model: Model | None = None, stream: Stream | None = None
    ) -> Run:
        """Read a run back; give model and stream if you want to ask for its regret afterwards.

        Raises:
            StoreError: If there is no run, or it was made with another model or stream.
        """
        record = store.load(path)
        given = {
            "model": model and model.describe(),
            "num_nodes": stream and stream.num_nodes,
            "stream": stream and stream.description,
        }
        for name, value in given.items():
            if value is not None and json.loads(json.dumps(value)) != record.config.get(name):
                raise StoreError(
                    f"the run in {path} was made with {name} = {record.config.get(name)} and not "
                    f"with {value}; give the one it was made with"
                )
        return cls(record, model, stream)

    def _source(self) -> tuple[Model, Stream]:
        if self.model is None or self.stream is None:
            raise ComparatorError(
                "this run was loaded without its data, so the best fixed model cannot be computed; "
                "call Run.load(path, model=..., stream=...), or regret() before save()"
            )
        return self.model, self.stream
