"""Frozen values that cross package borders.

A run, simulated or real, ends as a `RunRecord`; metrics, reports and pages read records and
cannot tell where one came from. Values that hold arrays are equal only to themselves: compare their
arrays.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oneway.records.measures import Measures

Vector: TypeAlias = NDArray[np.float64]
"""One number per node, parameter or round."""

Matrix: TypeAlias = NDArray[np.float64]
"""Two axes, named where it is used: `numerators[node, dim]`, `mixing[sender, receiver]`."""

Floats: TypeAlias = NDArray[np.floating[Any]]
"""Samples as stored: float32 or float64."""

Ints: TypeAlias = NDArray[np.integer[Any]]
Bools: TypeAlias = NDArray[np.bool_]

FRACTION_BITS = 40
MASS_UNITS = 1 << FRACTION_BITS
"""How many units make a mass of 1: real peers hold whole numbers of units, so sums are exact."""


def checksum(*arrays: NDArray[Any] | None) -> str:
    """A CRC-32 over arrays, to tell whether two values hold the same numbers.

    >>> checksum(np.arange(3)) == checksum(np.arange(3)), checksum(np.arange(3)) == checksum(None)
    (True, False)
    """
    total = 0
    for array in arrays:
        if array is not None:
            total = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data, total)
    return f"{total:08x}"


Origin: TypeAlias = Mapping[str, Any]
"""How a value was made (generator, file, seed), in terms JSON can hold: provenance for a run."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Several observations: `features[row, feature]` and `labels[row]`.

    Given a stack of parameter vectors, row i belongs to node i.
    """

    features: Floats
    labels: Floats

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Segment:
    """One named part of what a method sends, and what happens to it on the way.

    Attributes:
        name: In the method's state; "mass" is the scalar that corrects a directed graph's bias.
        kind: "split": a share is kept, shares go to the receivers, sums are conserved.
            "forwarded": nothing is kept, sums are conserved. "copied": every receiver gets the
            value, and averages what arrived with its own.
        is_vector: Whether it is as long as a model, or one number.
        tracks: The memory, by name, whose changes a node adds to this segment: the segment's sum
            over all nodes is that memory's sum. Empty if there is none.
    """

    name: str
    kind: Literal["split", "forwarded", "copied"]
    is_vector: bool = True
    tracks: str = ""


@dataclass(frozen=True, eq=False)
class NetworkState:
    """What all nodes hold: z as `numerators[node, dim]` and omega as `masses[node]`."""

    numerators: Matrix
    masses: Vector

    @property
    def estimates(self) -> Matrix:
        """The models to predict with: x = z / omega, one row per node."""
        return self.numerators / self.masses[:, None].astype(self.numerators.dtype)


YOURS, SHARED, ALONE, ADAPTED = range(4)
"""The columns of `PersonalRecord.sums`."""


@dataclass(frozen=True, eq=False)
class PersonalRecord:
    """Losses without any l2 term, each suffered before the sample was learned from.

    Attributes:
        sums: Per round and column (yours, shared, alone, adapted), the sum over the nodes that had
            a sample; nan if an expert had no finite answer.
        counts: Per round, how many nodes had a sample.
        node_sums: The same sums per node, `[node, column]`.
        node_counts: Per node, how many samples it had.
        weights: How much the mixture of each node believes shared, alone and adapted in the end.
    """

    sums: Matrix
    counts: Ints
    node_sums: Matrix
    node_counts: Ints
    weights: Matrix

    @property
    def average_loss(self) -> float:
        """The mean loss of the personal predictions: yours."""
        return self._mean(YOURS)

    @property
    def shared_loss(self) -> float:
        """That of the shared model at each node."""
        return self._mean(SHARED)

    @property
    def alone_loss(self) -> float:
        """That of each node without the network, at rates of its own."""
        return self._mean(ALONE)

    @property
    def adapted_loss(self) -> float:
        """That of the shared model as adapted to each node."""
        return self._mean(ADAPTED)

    @property
    def losses(self) -> Matrix:
        """Per round, the mean losses in the columns of `sums`; nan in a round without a sample."""
        return _ratios(self.sums, self.counts)

    @property
    def loss_curves(self) -> Matrix:
        """Per round, the running means of all samples so far, in the columns of `sums`."""
        return _ratios(np.cumsum(self.sums, axis=0), np.cumsum(self.counts))

    @property
    def node_losses(self) -> Matrix:
        """The mean losses of each node, in the columns of `sums`."""
        return _ratios(self.node_sums, self.node_counts)

    @property
    def mean_weights(self) -> Vector:
        """The weights of shared, alone and adapted, on average over the nodes with a sample."""
        seen = self.weights[self.node_counts > 0]
        mean: Vector = (seen if len(seen) else self.weights).mean(axis=0)
        return mean

    def _mean(self, column: int) -> float:
        samples = int(self.counts.sum())
        return float(self.sums[:, column].sum()) / samples if samples else float("nan")


def _ratios(sums: Matrix, counts: Ints) -> Matrix:
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios: Matrix = sums / np.where(counts > 0, counts, np.nan)[:, None]
    return ratios


@dataclass(frozen=True, eq=False)
class RunRecord:
    """What a run leaves behind, whoever produced it.

    Attributes:
        method: Short name of the method, as on the command line.
        loss_sums: Per round, the sum of the losses of the nodes that had a sample.
        sample_counts: Per round, how many nodes had a sample, and a finite loss on it.
        correct_counts: Per round, how many predictions were right; None if "right" has no meaning.
        disagreement: Per round, after mixing, the mean squared distance of the nodes' estimates
            from the network's mean (total numerator over total mass, the paper's z-bar).
        numerators: z at the end, `[node, dim]`.
        masses: omega at the end, `[node]`.
        complete: False if the run was interrupted; the arrays then hold the rounds that were done.
        seconds: Wall-clock time of the rounds, for information.
        config: What determines the numbers: method, model, stream and graph, the latter two with
            how they were made, seeds included, and a checksum.
        versions: Of this package and of what it computes with.
        comparator_sums: Per round, the summed loss of the best fixed model, once it was asked for.
        base_sums: Per round, the summed loss of every node's running base rate, once asked for.
        alone_sums: Per round, the summed loss of the same nodes each alone, once asked for.
        measures: How good the predictions of all nodes were, once asked for.
        model: What the estimates predict raw rows with, in terms JSON can hold: model, features,
            label, classes, and every node's name and samples. None if nobody has said so.
        skipped_counts: Per round, how many samples had no finite gradient, so that nothing was
            learned from them; None if there was none.
        personal: What personal predictions lost, beside their experts; None without them.
    """

    method: str
    loss_sums: Vector
    sample_counts: Ints
    correct_counts: Ints | None
    disagreement: Vector
    numerators: Matrix
    masses: Vector
    complete: bool
    seconds: float
    config: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    comparator_sums: Vector | None = None
    base_sums: Vector | None = None
    alone_sums: Vector | None = None
    measures: Measures | None = None
    model: Mapping[str, Any] | None = None
    skipped_counts: Ints | None = None
    personal: PersonalRecord | None = None

    @property
    def num_rounds(self) -> int:
        """How many rounds were run."""
        return len(self.loss_sums)
