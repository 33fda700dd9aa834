"""Who sees which sample in which round."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oneway.errors import DataError
from oneway.files.validation import whole_number
from oneway.records import Batch, Floats, Ints, Origin, checksum
from oneway.streams.arguments import as_floats, check_finite, refuse_masked
from oneway.streams.late_labels import as_delays, learned_rows, rounds_until

_SAMPLED = 4096
"""About how many samples a stream's checksum looks at."""


@dataclass(frozen=True, eq=False, repr=False)
class Stream:
    """Samples dealt to nodes, round by round: index arrays into one table, never a copy per node.

    Attributes:
        features: `features[row, feature]`, finite, shared by all nodes; float32 or float64 in C
            order (other numbers are converted, arrays that are that already are not copied).
        labels: `labels[row]`, finite, likewise.
        rows: `rows[round_index, node]`, the row a node sees in a round; -1 if it sees none.
            Read-only.
        node_names: One per node, if the nodes have names.
        origin: How the stream was made.
        adversarial_share: The share of the samples that a node got because they are in its
            cluster: the adversarial component as it turned out, not as it was asked for.
        encoder: What made its numbers of raw rows, the `Encoder` of a table; None if not known.
        late: `late[round_index, node]`, the row whose label a node gets to know, and learns from,
            in a round; None if that is the row it sees, at once. See `delayed`.

    Raises:
        DataError: If the arrays do not fit together, are not numbers, or a number is not finite.
    """

    features: Floats
    labels: Floats
    rows: Ints
    node_names: tuple[str, ...] | None = None
    origin: Origin = field(default_factory=dict)
    adversarial_share: float = 0.0
    encoder: Any = None
    late: Ints | None = None
    # For features and labels that were looked through before, such as those of a table.
    _known_finite: InitVar[bool] = False

    def __post_init__(self, _known_finite: bool) -> None:
        object.__setattr__(self, "features", _in_c_order(self.features, "features"))
        object.__setattr__(self, "labels", _in_c_order(self.labels, "labels"))
        if self.features.ndim != 2 or self.labels.shape != self.features.shape[:1]:
            raise DataError(
                f"features have the shape {self.features.shape} and labels {self.labels.shape}; "
                "a stream needs features[row, feature] and labels[row]"
            )
        for name in ("rows", "late") if self.late is not None else ("rows",):
            object.__setattr__(self, name, _checked_rows(name, getattr(self, name), self.labels))
        if self.late is not None and self.late.shape != self.rows.shape:
            raise DataError(
                f"late has the shape {self.late.shape} and rows {self.rows.shape}; both are "
                "[round, node]"
            )
        if not _known_finite:
            check_finite(self.features, "feature")
            check_finite(self.labels, "label")
        if self.node_names is not None and len(self.node_names) != self.num_nodes:
            raise DataError(
                f"{len(self.node_names)} node names for {self.num_nodes} nodes; give one per node"
            )

    def __repr__(self) -> str:
        return (
            f"<Stream: {self.num_nodes:,} nodes, {self.num_rounds:,} rounds, "
            f"{self.num_samples:,} samples of {self.dim} features>"
        )

    def _repr_html_(self) -> str:
        from oneway.streams.views import stream_html

        return stream_html(self)

    @classmethod
    def from_arrays(cls, features: ArrayLike, labels: ArrayLike) -> Stream:
        """Make a stream in which node i sees `features[t, i]` and `labels[t, i]` in round t.

        Contiguous float32 and float64 arrays are used as they are, without a copy.

        Args:
            features: `features[round_index, node, feature]`, finite.
            labels: `labels[round_index, node]`, finite.

        Raises:
            DataError: If the shapes do not fit together, or a number is not finite.

        >>> stream = Stream.from_arrays(np.zeros((5, 3, 2)), np.ones((5, 3)))
        >>> stream.num_rounds, stream.num_nodes, stream.dim
        (5, 3, 2)
        """
        samples, answers = _in_c_order(features, "features"), _in_c_order(labels, "labels")
        if samples.ndim != 3 or answers.shape != samples.shape[:2] or samples.size == 0:
            raise DataError(
                f"features have the shape {samples.shape} and labels {answers.shape}; a stream "
                "needs features[round, node, feature] and labels[round, node], none of them empty"
            )
        check_finite(samples, "feature")
        check_finite(answers, "label")
        num_rounds, num_nodes, dim = samples.shape
        count = num_rounds * num_nodes
        return cls(
            features=samples.reshape(count, dim),
            labels=answers.reshape(count),
            rows=np.arange(count, dtype=index_type(count)).reshape(num_rounds, num_nodes),
            origin={"kind": "arrays", "rounds": num_rounds, "nodes": num_nodes, "features": dim},
            _known_finite=True,
        )

    @property
    def num_rounds(self) -> int:
        """How many rounds there are."""
        return int(self.rows.shape[0])

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return int(self.rows.shape[1])

    @property
    def dim(self) -> int:
        """How many features a sample has."""
        return int(self.features.shape[1])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample: of its array if it is one, else the number of features."""
        return (self.dim,) if self.encoder is None else tuple(self.encoder.shape)

    @cached_property
    def num_samples(self) -> int:
        """How many samples are dealt: rounds x nodes, less where a node has no sample."""
        return int(np.count_nonzero(self.rows >= 0))

    @cached_property
    def description(self) -> dict[str, Any]:
        """How the stream was made, and a checksum of rows, labels and some thousand samples."""
        some = self.features[:: max(1, len(self.features) // _SAMPLED)]
        dealt = [self.rows] if self.late is None else [self.rows, self.late]
        return {**self.origin, "checksum": checksum(*dealt, self.labels, some)}

    def batch(self, round_index: int) -> tuple[Ints, Batch]:
        """Gather one round: the nodes that have a sample, and their samples in that order.

        Raises:
            DataError: If there is no such round.
        """
        if not 0 <= round_index < self.num_rounds:
            raise DataError(
                f"round {round_index} does not exist; the stream has the rounds 0 to "
                f"{self.num_rounds - 1}"
            )
        return self._gathered(self.rows[round_index])

    def known_batch(self, round_index: int) -> tuple[Ints, Batch]:
        """Gather what becomes known in a round, as `batch`: what nodes learn from.

        Without late labels it is the batch itself.
        """
        if self.late is None:
            return self.batch(round_index)
        return self._gathered(self.late[round_index])

    def _gathered(self, rows: Ints) -> tuple[Ints, Batch]:
        nodes = np.flatnonzero(rows >= 0)
        picked = rows[nodes]
        return nodes, Batch(features=self.features[picked], labels=self.labels[picked])

    @property
    def known_rows(self) -> Ints:
        """`known_rows[round_index, node]`, the row a node learns from; -1 where it does not."""
        return self.rows if self.late is None else self.late

    def head(self, num_rounds: int) -> Stream:
        """Return the first rounds only (all of them if there are fewer).

        Raises:
            DataError: If `num_rounds` is not a positive whole number.
        """
        kept = min(whole_number("num_rounds", num_rounds, 1, DataError), self.num_rounds)
        origin = {**self.origin, "head": kept}
        late = None if self.late is None else self.late[:kept]
        return replace(self, rows=self.rows[:kept], late=late, origin=origin, _known_finite=True)

    def delayed(self, rounds: ArrayLike) -> Stream:
        """Return the stream in which the label of a sample becomes known some rounds later.

        A node predicts in the round in which it sees a sample, and that prediction's loss counts
        there. It learns from it when the label is known, with the gradient at the model it has
        then, as a peer does that is told a label later. It learns from one label a round, that of
        the oldest sample first; what becomes known after the last round is not learned from.

        Args:
            rounds: The delay of all samples, or of each, `[round_index, node]`; see `rounds_until`.

        Raises:
            DataError: If the delays are not whole numbers from 0 on, or there are late labels
                already.
        """
        self._refuse_late("delayed")
        delays = as_delays(rounds, self.rows.shape)
        late = learned_rows(self.rows, delays)
        seen = delays[self.rows >= 0]
        origin = {
            **self.origin,
            "delayed": {
                "mean_rounds": float(seen.sum() / max(1, len(seen))),
                "most_rounds": int(seen.max(initial=0)),
                "never_known": self.num_samples - int(np.count_nonzero(late >= 0)),
            },
        }
        return replace(self, late=late, origin=origin, _known_finite=True)

    def rounds_until(self, made: ArrayLike, known: ArrayLike) -> Ints:
        """Return how many rounds pass until the label of each sample is known, for `delayed`.

        Args:
            made: `made[row]`, when the prediction is made: a number or a datetime64.
            known: `known[row]`, when the label is. It is known in the first round whose last sample
                was made then or later.

        Raises:
            DataError: If there is not one time for each row.
        """
        return rounds_until(self.rows, made, known)

    def _refuse_late(self, step: str) -> None:
        if self.late is not None:
            raise DataError(
                f"the labels of the stream are late already, so that it cannot be {step}; call "
                "delayed last, on the stream as it was dealt"
            )

    def at_most(self, count: int, groups: Ints) -> Stream:
        """Return the stream in which every node sees only so many samples of each group.

        Args:
            count: The first so many of each group, node by node, stay.
            groups: `groups[row]`, whose a row is, counted from 0; -1 rows belong to nobody and go.
        """
        self._refuse_late("cut by groups")
        rounds, nodes = np.nonzero(self.rows >= 0)
        of = np.asarray(groups)[self.rows[rounds, nodes]]
        order = np.lexsort((rounds, of, nodes))
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (np.diff(of[order]) != 0) | (np.diff(nodes[order]) != 0)
        places = np.arange(len(order))
        place = places - np.maximum.accumulate(np.where(begins, places, 0))
        gone = order[(place >= count) | (of[order] < 0)]
        rows = self.rows.copy()
        rows[rounds[gone], nodes[gone]] = -1
        origin = {**self.origin, "at_most": count, "left_out": len(gone)}
        return replace(self, rows=rows, origin=origin, _known_finite=True)


def index_type(num_rows: int) -> type[np.int32] | type[np.int64]:
    """The smallest type that can index so many rows."""
    return np.int32 if num_rows < 2**31 else np.int64


def _in_c_order(values: ArrayLike, what: str) -> Floats:
    return np.ascontiguousarray(as_floats(values, what))


def _checked_rows(name: str, given: ArrayLike, labels: Floats) -> Ints:
    refuse_masked(given, name)
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise DataError(f"{name} are not an array of integers ({error})") from None
    rows = np.asarray(array, dtype=array.dtype.newbyteorder("="))
    if rows.ndim != 2 or 0 in rows.shape or rows.dtype.kind not in "iu":
        raise DataError(
            f"{name} have the shape {rows.shape} and the type {rows.dtype}; a stream "
            f"needs integers {name}[round, node] with at least one round and one node"
        )
    if rows.min() < -1 or rows.max() >= len(labels):
        raise DataError(
            f"{name} reach from {rows.min()} to {rows.max()}; they must be -1 (no "
            f"sample) or one of the {len(labels):,} rows, counted from 0"
        )
    known = rows.dtype in (np.int32, np.int64)
    rows = rows.view() if known else rows.astype(index_type(len(labels)))
    rows.flags.writeable = False
    return rows
