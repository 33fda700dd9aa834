"""The result of a simulation, with the numbers people ask for by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from oneway import metrics, store
from oneway.display.frames import as_frame
from oneway.errors import ComparatorError, ConfigError, StoreError
from oneway.export import FittedModel
from oneway.export.json_format import Description, fitted_from
from oneway.metrics.baselines import base_rate_sums, difference_interval
from oneway.metrics.tally import Tally, measures_of
from oneway.models import Model
from oneway.personal.words import verdict
from oneway.records import Matrix, NetworkState, PersonalRecord, RunRecord, Vector
from oneway.records.measures import Measures
from oneway.records.values import ALONE, SHARED, YOURS
from oneway.sentences import listed, nearest, shown
from oneway.simulator.personal_pass import alone_sums
from oneway.simulator.raw_rows import encoder_of, is_registered, num_classes
from oneway.streams import Stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_ON_DEMAND = ("base_sums", "alone_sums", "measures")
"""What is computed when it is asked for, and saved if it was."""


@dataclass(frozen=True, repr=False, eq=False)
class Run:
    """A finished (or interrupted) simulation.

    Attributes:
        record: Everything that was written down; see `RunRecord`.
        model: What was learned; None if the run was loaded without it.
        stream: What it was learned from; None if the run was loaded without it.
        tally: Of the predictions, if they were measured on the way.
        again: Runs the same on a stream, predictions measured; None if the run was loaded.
        is_alone: Whether nodes hear nobody: then there is no other way to be alone.
    """

    record: RunRecord
    model: Model | None = None
    stream: Stream | None = None
    tally: Tally | None = None
    again: Callable[[Stream], Run] | None = None
    is_alone: bool = False

    def __repr__(self) -> str:
        record = self.record
        state = "" if record.complete else ", interrupted"
        if self.skipped:
            state += f", {self.skipped:,} samples skipped"
        return (
            f"<Run: {record.method}, {len(record.masses):,} nodes, {record.num_rounds:,} "
            f"rounds, average loss {self.average_loss:.4f}{state}>"
        )

    def _repr_html_(self) -> str:
        from oneway.simulator.views import run_html

        return run_html(self)

    def plot(self, ax: Axes | None = None) -> Figure:
        """The running average loss against rounds, in a new figure or in the axes given.

        No window is opened; `compare` draws several runs together.

        Raises:
            MissingExtraError: If matplotlib is not installed.
        """
        from oneway.simulator.views import plot_run

        return plot_run(self, ax)

    def to_frame(self, of: Literal["rounds", "nodes"] = "rounds") -> Any:
        """The numbers of the run as a polars data frame.

        Args:
            of: "rounds" for a row per round: how many nodes had a `sample`, their mean `loss`, the
                `running_loss` until then, the share of `correct` predictions where a model
                classifies, and the `disagreement` after it; "nodes" for a row per node in the
                end: its `name`, `samples`, `mass`, and how far its estimate is from the mean one.

        Raises:
            ConfigError: If there is no such frame.
            MissingExtraError: If polars is not installed.
        """
        from oneway.simulator.views import run_columns

        return as_frame(run_columns(self, of))

    @property
    def complete(self) -> bool:
        """False if the run was interrupted; it then holds the rounds that were done."""
        return self.record.complete

    @property
    def average_loss(self) -> float:
        """The paper's measure: the mean loss over nodes and rounds."""
        return metrics.average_loss(self.record)

    @property
    def personal(self) -> PersonalRecord | None:
        """Losses of personal predictions, beside their experts; None if nobody asked for them."""
        return self.record.personal

    @property
    def personal_loss(self) -> float | None:
        """The mean loss of personal predictions, without any l2 term; None if nobody asked."""
        return None if self.personal is None else self.personal.average_loss

    @property
    def verdict(self) -> str:
        """Whether together nodes lose less than alone, as a sentence; empty if it is not known.

        With personal predictions together means these, otherwise the shared model.
        """
        alone = self.alone_sums
        if alone is None:
            return ""
        sums, counts = self.record.loss_sums, self.record.sample_counts
        if self.personal is not None:
            sums, counts = self.personal.sums[:, YOURS], self.personal.counts
        difference, half = difference_interval(sums - alone, counts)
        return verdict(difference, half, metrics.mean_loss(alone, counts))

    @property
    def losses(self) -> Vector:
        """[T] per round, the mean loss over the nodes that had a sample."""
        return metrics.losses(self.record)

    @property
    def loss_curve(self) -> Vector:
        """[T] the running mean of the loss over all samples so far."""
        return metrics.loss_curve(self.record)

    @property
    def skipped(self) -> int:
        """How many samples were not learned from, as they had no finite gradient."""
        counts = self.record.skipped_counts
        return 0 if counts is None else int(counts.sum())

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
        """[n, d] x = z / omega of every node at the end; not finite where a node has no mass."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return NetworkState(self.numerators, self.masses).estimates

    def model_of(self, node: int | str, *, allow: Collection[str] = ()) -> FittedModel:
        """The model of a node at the end, to take home: it predicts rows in the data's units.

        Args:
            node: Its index, or its name if the nodes of the stream have names.
            allow: Names of code, `package.module:function`, that a stored run may name.

        Raises:
            StoreError: The run was stored without its model.
            ConfigError: There is no such node, it has no mass, or the model is not registered here.
        """
        told = self._described()
        index = _index_of(node, told.nodes, len(self.masses))
        if not self.masses[index] > 0:
            raise ConfigError(
                f"node {shown(node)} holds no mass at the end, so it has no model: it left, or has "
                "not joined; ask for a node whose run.masses is above 0"
            )
        origin = {
            "method": self.record.method,
            "node": told.nodes[index] if told.nodes else index,
            "samples": told.samples[index],
            "estimate": "momentary, at the end of a simulation",
        }
        if self.model is None or self.stream is None:
            return fitted_from(told, self.estimates[index], origin, "the run", allow)
        encoder = encoder_of(self.stream, self.model)
        return FittedModel(encoder, self.model, self.estimates[index], origin)

    def _described(self) -> _Described:
        """What the estimates predict raw rows with, from model and stream or as it was stored."""
        model, stream = self.model, self.stream
        if model is not None and stream is not None:
            described = Description.of(encoder_of(stream, model), model)
            dealt = (stream.rows[: self.record.num_rounds] >= 0).sum(axis=0)
            return _Described(
                **msgspec.structs.asdict(described),
                nodes=tuple(stream.node_names or ()),
                samples=dealt.tolist(),
            )
        try:
            return msgspec.convert(self.record.model, _Described)
        except msgspec.ValidationError:
            raise StoreError(
                "this run was stored without its model; give model and stream that it was made "
                "with: Run.load(path, model=..., stream=...)"
            ) from None

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

    @cached_property
    def base_sums(self) -> Vector | None:
        """[T] the summed loss of every node's running base rate; None if it cannot be computed.

        The base rate answers every sample with the shares of the classes, or the mean, that the
        node knew before it, in the model's loss.
        """
        if self.record.base_sums is not None or self.model is None or self.stream is None:
            return self.record.base_sums
        model, stream, done = self.model, self.stream, self.record.num_rounds
        return base_rate_sums(
            model,
            num_classes(model, stream),
            stream.labels,
            stream.rows[:done],
            stream.known_rows[:done],
        )

    @property
    def base_loss(self) -> float | None:
        """The mean loss of the running base rate; None if it cannot be computed."""
        return metrics.base_loss(replace(self.record, base_sums=self.base_sums))

    @cached_property
    def alone_sums(self) -> Vector | None:
        """[T] the summed loss of the same nodes each alone; None if it cannot be computed.

        That of the expert *alone* of `oneway.personal`: at rates of its own, without any l2 term.
        """
        if self.record.alone_sums is not None:
            return self.record.alone_sums
        if self.is_alone:
            return None
        if self.personal is not None:
            sums = self.personal.sums[:, ALONE]
            return None if np.isnan(sums).all() else sums  # for a large network it is off
        if self.model is None or self.stream is None:
            return None
        return alone_sums(self.model, self._done_stream)

    @property
    def alone_loss(self) -> float | None:
        """The mean loss of the same nodes each alone, at rates of their own; None if unknown."""
        return metrics.alone_loss(replace(self.record, alone_sums=self.alone_sums))

    @cached_property
    def measures(self) -> Measures | None:
        """How good the predictions of all nodes were; None if the run was loaded without them.

        Runs everything once more, unless `simulate` was told to measure.
        """
        if self.record.measures is not None or self.again is None or self.stream is None:
            return self.record.measures
        assert self.model is not None
        tally = self.tally
        if tally is None:
            tally = self.again(self._done_stream).tally
        if not tally or self.base_sums is None:
            return None
        counts, sums = self.record.sample_counts, self.record.loss_sums
        if self.personal is not None:
            counts, sums = self.personal.counts, self.personal.sums[:, YOURS]
        losses = [counts.sum(), sums.sum(), self.base_sums.sum()]
        known = {**tally, "losses": np.array(losses, np.float64)}
        if self.personal is not None:
            known["shared"] = self.personal.sums[:, SHARED].sum(keepdims=True)
        asked = self.personal is not None or self.was_asked_for("alone_sums")
        alone = self.alone_sums if asked else None
        if alone is not None and np.isfinite(alone).all():
            known["alone"] = alone.sum(keepdims=True)
        return measures_of(known, encoder_of(self.stream, self.model).classes)

    def was_asked_for(self, name: Literal["base_sums", "alone_sums", "measures"]) -> bool:
        """Whether something that takes time is known already."""
        return name in self.__dict__ or getattr(self.record, name) is not None

    @property
    def _done_stream(self) -> Stream:
        """The rounds that were done."""
        assert self.stream is not None
        done = self.record.num_rounds
        return self.stream if done == self.stream.num_rounds else self.stream.head(done)

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
        record = self._with_comparator if computed else self.record
        asked = [name for name in _ON_DEMAND if name in self.__dict__]
        if self.stream is not None and self.model is not None and is_registered(self.model):
            with suppress(TypeError):  # options that JSON cannot hold, such as code
                record = replace(record, model=msgspec.to_builtins(self._described()))
        return store.save(replace(record, **{name: getattr(self, name) for name in asked}), path)

    @classmethod
    def load(
        cls, path: Path | str, *, model: Model | None = None, stream: Stream | None = None
    ) -> Run:
        """Read a run back; give model and stream if you want to ask for its regret afterwards.

        `model_of` needs neither, where the model is registered.

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


class _Described(Description):
    """What the estimates of all nodes predict with, their names and how many samples they had."""

    nodes: tuple[str, ...]
    samples: list[int]


def _index_of(node: int | str, names: Sequence[str], num_nodes: int) -> int:
    if isinstance(node, str) and node in names:
        return names.index(node)
    if isinstance(node, int) and not isinstance(node, bool) and 0 <= node < num_nodes:
        return node
    called = f", or one of {listed(names, 10)}{nearest(str(node), names)}" if names else ""
    raise ConfigError(
        f"node is {shown(node)}; it must be a whole number from 0 to {num_nodes - 1}{called}"
    )
