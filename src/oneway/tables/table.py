"""A table of samples, and the ways to deal it to nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneway.errors import DataError, TaskError, needs_extra
from oneway.files.validation import checked, whole_number
from oneway.models import LabelKind
from oneway.records import Ints, Origin, Vector
from oneway.streams.deal import Overflow, deal_classes, deal_in_order, deal_rows
from oneway.streams.stream import Stream, index_type
from oneway.tables.cells import label_text
from oneway.tables.encoder import Encoder, Feature
from oneway.tables.features import format_shape
from oneway.tables.from_arrays import fields_of_arrays
from oneway.tables.inference import ColumnNote, make_choices
from oneway.tables.labels import LabelValue
from oneway.tables.owners import Column
from oneway.tables.raw_cells import class_places, owners_of, recoded, told_owner, write_csv


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Samples with their labels, one row each.

    Attributes:
        features: `features[row, feature]`, float32, C-contiguous. An array is in a row, see
            `shape`.
        labels: `labels[row]`, float32: -1/+1, class codes 0 to K-1, or numbers.
        feature_names: One per feature.
        name: What to call the table.
        columns: What is known about the rows and is not a feature, for `deal_by`; and features of
            whole numbers so far apart that float32 cannot hold them, such as large ids.
        means: Per feature, what was subtracted (0 if not standardised).
        scales: Per feature, what it was divided by (1 if not standardised or constant).
        label_values: What -1 and +1, or the class codes, stand for; empty for numbers.
        origin: How the table was made, in terms JSON can hold.
        recoverable: The features of whole numbers that `deal_by` can have back from float32.
        encoding: What the columns of the data are, and how each becomes one or several features;
            empty if every feature is a column of numbers.
        gaps: By column of numbers, the rows in which it is empty.
        notes: What became of the columns of a file, or of a frame.
    """

    features: NDArray[np.float32]
    labels: NDArray[np.float32]
    feature_names: Sequence[str]
    name: str
    columns: Mapping[str, Column]
    means: Vector
    scales: Vector
    label_values: tuple[LabelValue, ...]
    origin: Origin = field(default_factory=dict)
    recoverable: tuple[str, ...] = ()
    encoding: tuple[Feature, ...] = ()
    gaps: Mapping[str, Ints] = field(default_factory=dict)
    notes: tuple[ColumnNote, ...] = ()

    def __repr__(self) -> str:
        what = format_shape(self.shape) if self.is_arrays else f"{self.num_features} features"
        return f"<Table: {self.name}, {len(self):,} rows of {what}>"

    def _repr_html_(self) -> str:
        from oneway.tables.views import table_html

        return table_html(self)

    @classmethod
    def from_arrays(
        cls,
        features: ArrayLike,
        labels: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
        name: str = "arrays",
        columns: Mapping[str, Column | ArrayLike] | None = None,
        task: LabelKind = "binary",
        label_name: str = "label",
        standardise: bool = True,
        origin: Origin | None = None,
    ) -> Table:
        """Make a table from arrays in memory.

        Args:
            features: `features[row, feature]`, finite; or `[row, ...]` with more axes, such as
                images, whose samples are one feature of the kind "array". Contiguous float32 that
                is not to be standardised is not copied: do not change it afterwards.
            labels: `labels[row]`; numbers, or strings for "binary" and "classes".
            feature_names: One per feature; "feature 1" and so on if not given. Of arrays there is
                one, "features" if not given.
            name: What to call the table.
            columns: Further columns, for `deal_by`; None and nan are empty cells.
            task: "binary" for two values (the smaller becomes -1), "classes" for several,
                "number" for regression.
            label_name: The name of the label column; no feature may have it.
            standardise: Whether each feature is brought to zero mean and unit variance; an array
                all its cells alike.
            origin: How the arrays were made.

        Raises:
            DataError: If the shapes do not fit together, a number is not finite or a label is
                missing (names the row, counted from 0, and the column), the labels do not suit
                the task, or an array has masked entries.

        >>> table = Table.from_arrays([[1.0], [3.0]], [0, 1])
        >>> table.features.tolist(), table.labels.tolist(), table.label_values
        ([[-1.0], [1.0]], [-1.0, 1.0], (0, 1))
        """
        fields = fields_of_arrays(
            features, labels, feature_names, name, columns or {}, task, label_name, standardise
        )
        fields["origin"] = {**(origin or {"kind": "arrays"}), **fields["origin"]}
        return cls(**fields)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str,
        owner: str | None = None,
        name: str = "frame",
        task: LabelKind | None = None,
        **said: Any,
    ) -> Table:
        """Make a table from a DataFrame of pandas or polars.

        Columns are told by what they hold, as those of a file: see `load`. `table.notes` says what
        became of each. Missing values are gaps.

        Args:
            frame: A row for each sample; its index is not looked at.
            label: The column to predict.
            owner: The owner column, for `deal_by`: no feature.
            name: What to call the table.
            task: What the label is; as it looks if not given.
            said: `features`, `exclude`, `category` and `numeric`, as in `load`.

        Raises:
            DataError: If it is no frame, a column is not there, or a cell breaks a rule; says which
                row, counted from 0, and which column.
            MissingExtraError: If polars is not installed.
        """
        with needs_extra("a table from a frame", "lab"):
            from oneway.tables.assemble import assemble
            from oneway.tables.frame_source import open_frame
        from oneway.tables.source import Wish

        if task is not None:
            checked("task", task, LabelKind, DataError)
        wish = Wish(label, task, make_choices(owner=owner, **said))
        origin: Origin = {"kind": "frame", "owner": owner}
        return assemble(open_frame(frame, wish, name), wish, name, origin)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def num_features(self) -> int:
        """How many features a sample has."""
        return int(self.features.shape[1])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample: of its array if it is one, else the number of features."""
        return self.encoder.shape

    @property
    def is_arrays(self) -> bool:
        """Whether a sample is one array, and nothing else."""
        return len(self.encoding) == 1 and self.encoding[0].kind == "array"

    @property
    def label_kind(self) -> LabelKind:
        """What the labels are."""
        return cast(LabelKind, self.origin.get("task", "number"))

    @cached_property
    def encoder(self) -> Encoder:
        """What turns a raw row into the numbers that it has in this table; and back.

        `features` are exactly what the encoder gives for the rows, in float32.
        """
        return Encoder(
            features=self.encoding
            or tuple(map(Feature, self.feature_names, self.means, self.scales)),
            label=str(self.origin.get("label", "label")),
            kind=self.label_kind,
            classes=tuple(map(label_text, self.label_values)),
        )

    @property
    def _encoder_if_any(self) -> Encoder | None:
        """The encoder; None if a label is no name of a class, say for its length."""
        try:
            return self.encoder
        except TaskError:
            return None

    def write_csv(
        self,
        path: Path, rows: Ints, encoder: Encoder | None = None, others: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Write rows, in the order given, as they were before they were encoded.

        Encoding what is written gives the very same float32 features, as short as that allows.

        Args:
            path: The file, with a header; a file that is there is replaced.
            rows: Which rows.
            encoder: That of a task with the same features; the table's own if not given.
            others: Columns to write that are neither features nor the label.
        """
        write_csv(self, path, rows, encoder or self.encoder, others)

    def recoded(self, encoder: Encoder) -> Table:
        """The same samples, encoded and labelled as a task says.

        Raises:
            DataError: If the columns of the task are not those of the table, or a cell or a label
                is nothing that the task knows.
        """
        return recoded(self, encoder)

    def deal(
        self,
        num_nodes: int,
        adversarial: float = 0.0,
        seed: int = 0,
        resample: int | None = None,
        shuffle: bool = True,
        overflow: Overflow = "pool",
        classes_per_node: int | None = None,
    ) -> Stream:
        """Deal the rows to nodes as in the paper's experiments, at random and by cluster.

        Exactly this is done, with one random generator made from `seed`:

        1.  The rows are shuffled; with `resample`, so many rows are drawn with replacement
            instead. Every node gets `num_rounds = samples // num_nodes` of them, and the
            remainder, random rows, is left out.
        2.  The stochastic part, a share `1 - adversarial` of what is left, is dealt at random.
            The adversarial part, the rest, is clustered by k-means on the features (as the table
            holds them: standardised unless it was asked not to be) into `num_nodes` clusters,
            cluster i for node i. Repetitions of a row, from `resample`, are in one cluster.
            For more than 50,000 distinct rows it is mini-batch k-means, fitted to at most
            250,000 rows drawn at random; then every row goes to the nearest centre.
        3.  Each node has a quota for its cluster: an equal part of the adversarial part (which
            nodes get the odd row more is random). What exceeds the quota, random rows of the
            cluster, goes back to the random pool.
        4.  The pool, shuffled, fills every node up to `num_rounds` rows: the nodes with too small
            a cluster get more of it.
        5.  The rows of each node are shuffled; without `shuffle`, every node sees the rows of its
            cluster first (in random order), then the others.

        So without `resample` no row is dealt twice, and the share that really is adversarial, in
        `stream.adversarial_share`, is `adversarial` or less: less the more the clusters differ in
        size. The result is a function of the arguments, bit for bit.

        Args:
            num_nodes: How many nodes.
            adversarial: The share to deal by cluster, 0 to 1.
            seed: What the shuffles and k-means start from.
            resample: How many rows to draw with replacement, so that a long run is possible on a
                small table.
            shuffle: Whether the cluster's rows are spread over the node's stream.
            overflow: Where rows beyond a node's quota go: "pool", as above, or "next", to the next
                node: the clusters, one after the other, are cut into equal parts, so that all of
                the adversarial part stays so, but a large cluster goes to several nodes.
            classes_per_node: If given, every node sees rows of exactly so many classes instead: a
                class is cut into parts by its size, no node gets two parts of one class, and all
                nodes see as many rows as the one with the fewest. With `resample`, they are drawn
                from a node's own rows, as many of each of its classes.

        Raises:
            DataError: If an argument is out of range, there are more nodes than samples, or more
                nodes than distinct samples to cluster, or too few classes.
            MissingExtraError: If `adversarial` is not 0 and scikit-learn is not installed.
        """
        num_nodes = whole_number("num_nodes", num_nodes, 1, DataError)
        seed = whole_number("seed", seed, 0, DataError)
        if resample is not None:
            resample = whole_number("resample", resample, 1, DataError)
        if classes_per_node is None:
            rows, share = deal_rows(
                self.features, num_nodes, adversarial, seed, resample, shuffle, overflow
            )
        else:
            count = whole_number("classes_per_node", classes_per_node, 1, DataError)
            rows = deal_classes(class_places(self, adversarial), num_nodes, count, seed, resample)
            share = 0.0
        return Stream(
            features=self.features,
            labels=self.labels,
            rows=rows,
            origin={
                "table": dict(self.origin),
                "deal": "stochastic and adversarial",
                "nodes": num_nodes,
                "rounds": len(rows),
                "adversarial": float(adversarial),
                "adversarial_share": share,
                "seed": seed,
                "resample": resample,
                "shuffle": shuffle,
                "overflow": overflow,
                **({"classes_per_node": classes_per_node} if classes_per_node else {}),
            },
            adversarial_share=share,
            encoder=self._encoder_if_any,
            _known_finite=True,
        )

    def deal_by(self, column: str | None = None, min_samples: int = 1) -> Stream:
        """Deal every row to its natural owner, in the order of the table.

        The rows are walked in table order: a row goes into the current round, unless its owner
        already has a sample there, in which case the next round begins. So the order of time is
        kept exactly, and the stream is ragged: a node without a sample in a round only mixes.

        Args:
            column: The column that names the owner, one of `columns`, or a feature of whole
                numbers; the `owner` that the table was made with if not given. Rows with an empty
                cell belong to nobody and are left out.
            min_samples: Owners with fewer rows are left out, with their rows.

        Returns:
            A stream whose nodes are the owners, in the order of their names.

        Raises:
            DataError: If there is no such column, it is a feature whose values float32 does not
                keep apart, or no owner has so many samples.
        """
        if column is None:
            column = told_owner(self)
        owners = self.owners(column)
        min_samples = whole_number("min_samples", min_samples, 1, DataError)
        counts = np.bincount(owners.codes[owners.codes >= 0], minlength=len(owners.names))
        kept = np.flatnonzero(counts >= min_samples)
        if not kept.size:
            most = counts.max() if counts.size else 0
            raise DataError(
                f"no value of column {column!r} has {min_samples} samples or more; the most is "
                f"{most}; choose a smaller min_samples"
            )
        # The last entry, which code -1 picks, is for the rows without an owner.
        node_of_code = np.full(len(owners.names) + 1, -1, dtype=np.int32)
        node_of_code[kept] = np.arange(len(kept), dtype=np.int32)
        nodes = node_of_code[owners.codes]
        rows: Ints = np.flatnonzero(nodes >= 0).astype(index_type(len(self)))
        return Stream(
            features=self.features,
            labels=self.labels,
            rows=deal_in_order(nodes[rows], rows, len(kept)),
            node_names=tuple(owners.names[code] for code in kept),
            origin={
                "table": dict(self.origin),
                "deal": "by owner",
                "column": column,
                "min_samples": min_samples,
                "nodes": len(kept),
                "rows_left_out": len(self) - len(rows),
            },
            encoder=self._encoder_if_any,
            _known_finite=True,
        )

    def owners(self, column: str) -> Column:
        """Whose every row is, by a column that is no feature, or one of whole numbers.

        Raises:
            DataError: If there is no such column, or its values were rounded.
        """
        return owners_of(self, column)
