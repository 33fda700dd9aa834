"""A table of samples: the raw frame, how it is encoded, and the ways to deal it to nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneway.errors import DataError, needs_extra
from oneway.files.validation import checked, whole_number
from oneway.models import LabelKind
from oneway.records import Ints, Origin
from oneway.sentences import listed, nearest
from oneway.streams.arguments import as_floats, check_finite, with_missing
from oneway.streams.deal import Overflow, deal_classes, deal_in_order, deal_rows
from oneway.streams.stream import Stream, index_type
from oneway.tables.cells import EXACT_BELOW, coded, empty_cells, group_name
from oneway.tables.encoder import Encoder
from oneway.tables.features import Array, Feature, Number, format_shape
from oneway.tables.inference import (
    ColumnNote,
    described,
    infer,
    label_meaning,
    make_choices,
    scaling_of,
)

if TYPE_CHECKING:
    import polars as pl

ARRAY = "features"
"""The name of an array if the caller gives none."""
_COUNTED = 5_000_000
"""Up to so many labels are counted for a notebook."""


class Owners(NamedTuple):
    """The owner of every row.

    Attributes:
        names: The distinct owners, in order of value if all are numbers, else of the alphabet.
        codes: Per row, the index into `names`; -1 where the cell is a missing value.
    """

    names: tuple[str, ...]
    codes: Ints


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Samples with their labels, one row each.

    Attributes:
        frame: All columns as they are in the data: numbers, text or arrays.
        encoder: Which of them are label and features, and how they become numbers.
        name: What to call the table.
        origin: How the table was made, in terms JSON can hold.
        notes: What became of the columns of a file, or of a frame.
        owner: The owner column, if one is known.
    """

    frame: pl.DataFrame
    encoder: Encoder
    name: str = "table"
    origin: Origin = field(default_factory=dict)
    notes: tuple[ColumnNote, ...] = ()
    owner: str | None = None

    def __repr__(self) -> str:
        what = format_shape(self.shape) if self.is_arrays else f"{self.num_features} features"
        return f"<Table: {self.name}, {len(self):,} rows of {what}>"

    @classmethod
    def of(
        cls, frame: pl.DataFrame, encoder: Encoder, name: str, origin: Origin | None = None
    ) -> Table:
        """Make a table from a frame of raw cells, every row with a label, and check every cell.

        Raises:
            DataError: If a cell or a label is nothing that the encoder knows; names its row.
        """
        return cls(frame, encoder, name, origin or {})._finished({})

    @classmethod
    def from_arrays(
        cls,
        features: ArrayLike,
        labels: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
        name: str = "arrays",
        columns: Mapping[str, Any] | None = None,
        task: LabelKind = "binary",
        label_name: str = "label",
        standardise: bool = True,
        origin: Origin | None = None,
    ) -> Table:
        """Make a table from arrays in memory.

        Args:
            features: `features[row, feature]`, finite; or `[row, ...]` with more axes, such as
                images, whose samples are one feature, an array.
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
        >>> table.features.tolist(), table.labels.tolist(), table.encoder.classes
        ([[-1.0], [1.0]], [-1.0, 1.0], ('0', '1'))
        """
        checked("task", task, LabelKind, DataError)
        with needs_extra("a table", "tables"):
            import polars as pl

            from oneway.tables.reading import array_column, cells_of
        arrays = features if isinstance(features, np.ndarray) else as_floats(features, "features")
        is_array = arrays.ndim > 2
        if not is_array:
            arrays = as_floats(arrays, "features")
        answers, missing = with_missing(labels, "labels")
        if arrays.ndim < 2 or arrays.size == 0 or answers.shape != arrays.shape[:1]:
            raise DataError(
                f"features have the shape {arrays.shape} and labels {answers.shape}; a table needs "
                "features[row, feature] and labels[row], none of them empty"
            )
        if missing.any():
            row = int(np.argmax(missing))
            raise DataError(
                f"row {row}, label column {label_name!r} is {answers[row]}; every row needs a "
                "label; drop the row or fill it"
            )
        names = _names(arrays, feature_names, [label_name, *(columns or {})])
        series = []
        if is_array:
            series.append(array_column(names[0], arrays))
        else:
            check_finite(arrays, "feature", names)
            series += [pl.Series(it, arrays[:, place]) for place, it in enumerate(names)]
        series.append(cells_of(label_name, answers.tolist()))
        for column, values in (columns or {}).items():
            cells = values
            if not isinstance(values, pl.Series):
                cells = cells_of(column, with_missing(values, "columns")[0].tolist())
            if len(cells) != len(arrays):
                raise DataError(
                    f"column {column!r} has {len(cells)} entries for {len(arrays)} rows; give one "
                    "per row"
                )
            series.append(cells.alias(column))
        frame = pl.DataFrame(series)
        kind, classes = label_meaning(frame[label_name], task, name)
        scalings = [scaling_of(arrays)] if is_array else map(scaling_of, np.atleast_2d(arrays.T))
        made: list[Feature] = []
        for column, (center, scale) in zip(names, scalings, strict=True):
            if not standardise:
                center, scale = 0.0, 1.0
            elif not np.isfinite([center, scale]).all():
                raise DataError(
                    f"column {column!r} is too large to be standardised; rescale it first"
                )
            if is_array:
                made.append(Array(column, arrays.shape[1:], center, scale))
            else:
                made.append(Number(column, center, scale))
        table = cls(frame, Encoder(tuple(made), label_name, kind, classes), name, origin or {})
        return table._finished({"kind": "arrays", "standardised": standardise})

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str | None = None,
        owner: str | None = None,
        name: str = "frame",
        task: LabelKind | None = None,
        encoder: Encoder | None = None,
        origin: Origin | None = None,
        place: Callable[[int], str] = "row {}".format,
        **choices: Any,
    ) -> Table:
        """Make a table from a DataFrame of pandas or polars.

        Columns are told by what they hold, as those of a file: see `load`. `table.notes` says what
        became of each.

        Args:
            frame: A row for each sample; its index is not looked at.
            label: The column to predict.
            owner: The owner column, for `deal_by`: no feature.
            name: What to call the table.
            task: What the label is; as it looks if not given.
            encoder: That of a task, which says label, features, scaling and classes instead.
            origin: Where the frame is from.
            place: What errors call a row.
            choices: `features`, `exclude`, `category` and `numeric`, as in `load`.

        Raises:
            DataError: If it is no frame, a column is not there, or a cell breaks a rule; says which
                row, counted from 0, and which column.
            MissingExtraError: If polars is not installed.
        """
        with needs_extra("a table", "tables"):
            from oneway.tables.reading import of_frame
        if task is not None:
            checked("task", task, LabelKind, DataError)
        cells = of_frame(frame)
        if cells.is_empty():
            raise DataError(f"{name} has no rows; a table needs at least one")
        known = cells.columns
        wanted = (label,) if encoder is None else (encoder.label, *encoder.names)
        if wanted == (None,):
            raise DataError(
                f"{name} needs a label, the column to predict (it has: {listed(known)})",
                remedy="give it as label='...'",
                flag_remedy="give it as --label COLUMN",
            )
        _check_there(wanted, known, name)
        target = str(wanted[0])
        rows = np.flatnonzero(~empty_cells(cells[target]).to_numpy())
        skipped = len(cells) - len(rows)
        if not len(rows):
            raise DataError(
                f"{name} has no row with a label in column {target!r}; a table needs at least one"
            )
        cells = cells[rows] if skipped else cells
        if encoder is None:
            encoder, notes = infer(cells, target, make_choices(owner=owner, **choices), task, name)
        else:
            notes = _task_notes(encoder, known)
        label_note, *others = notes
        notes = (_with_skipped(label_note, skipped), *others)
        table = cls(cells, encoder, name, origin or {}, notes, owner)
        facts = {"kind": "frame", "rows_without_label": skipped, "owner": owner}
        return table._finished(facts, lambda row: f"{name}: {place(int(rows[row]))}")

    def _finished(self, facts: Origin, place: Callable[[int], str] = "row {}".format) -> Table:
        """The table with its numbers computed, which checks every cell, and its origin complete."""
        self.__dict__["features"] = self.encoder.matrix(self.frame, place)
        self.__dict__["labels"] = self.encoder.labels(self.frame, place)
        about = {
            "rows": len(self),
            "features": self.features.shape[1],
            "label": self.encoder.label,
            "task": self.label_kind,
        }
        self.__dict__["origin"] = {**facts, **self.origin, **about}
        return self

    def __len__(self) -> int:
        return len(self.frame)

    @cached_property
    def features(self) -> NDArray[np.float32]:
        """`features[row, feature]` as the model sees them, C-contiguous."""
        return self.encoder.matrix(self.frame)

    @cached_property
    def labels(self) -> NDArray[np.float32]:
        """`labels[row]`: -1/+1, class codes 0 to K-1, or numbers."""
        return self.encoder.labels(self.frame)

    @property
    def num_features(self) -> int:
        """How many features a sample has."""
        return self.encoder.width

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample: of its array if it is one, else the number of features."""
        return self.encoder.shape

    @property
    def is_arrays(self) -> bool:
        """Whether a sample is one array, and nothing else."""
        return len(self.encoder.features) == 1 and isinstance(self.encoder.features[0], Array)

    @property
    def label_kind(self) -> LabelKind:
        """What the labels are."""
        return self.encoder.kind

    def recoded(self, encoder: Encoder) -> Table:
        """The same samples, encoded and labelled as a task says.

        Raises:
            DataError: If a column of the task is not in the table, or a cell or a label is nothing
                that the task knows.
        """
        frame = self.frame
        if self.is_arrays and len(encoder.names) == 1 and not {*encoder.names} <= {*frame.columns}:
            # Arrays in files have no names: any name will do.
            names = (*self.encoder.names, self.encoder.label)
            new = (*encoder.names, encoder.label)
            frame = frame.rename(dict(zip(names, new, strict=True)))
        _check_there((encoder.label, *encoder.names), frame.columns, self.name)
        return replace(self, frame=frame, encoder=encoder)._finished({})

    def as_numbers(self) -> Table:
        """The same samples with -1 and +1 as numbers to predict."""
        import polars as pl

        label = pl.Series(self.encoder.label, self.labels.astype(np.float64))
        encoder = replace(self.encoder, kind="number", classes=())
        return replace(self, frame=self.frame.with_columns(label), encoder=encoder)._finished({})

    def write_csv(self, path: Path, rows: Ints, others: Sequence[str] = ()) -> None:
        """Write rows, in the order given, as they are in the data.

        Args:
            path: The file, with a header; a file that is there is replaced.
            rows: Which rows.
            others: Columns to write that are neither features nor the label.
        """
        import polars as pl

        names = list(dict.fromkeys((*self.encoder.names, self.encoder.label, *others)))
        pl.DataFrame([_as_written(cells) for cells in self.frame.select(names)[rows]]).write_csv(
            path
        )

    def arrays(self, rows: Ints | slice | None = None) -> NDArray[Any]:
        """The raw arrays of some rows, or of all, `[row, ...]`: the only feature of the table."""
        cells = self.frame[self.encoder.names[0]]
        whole: NDArray[Any] = cells.to_numpy()
        return whole if rows is None else whole[rows]

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
            rows = deal_classes(self._class_places(adversarial), num_nodes, count, seed, resample)
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
            encoder=self.encoder,
            _known_finite=True,
        )

    def deal_by(self, column: str | None = None, min_samples: int = 1) -> Stream:
        """Deal every row to its natural owner, in the order of the table.

        The rows are walked in table order: a row goes into the current round, unless its owner
        already has a sample there, in which case the next round begins. So the order of time is
        kept exactly, and the stream is ragged: a node without a sample in a round only mixes.

        Args:
            column: The owner column; the `owner` that the table was made with if not given. Rows
                with a missing value there are left out.
            min_samples: Owners with fewer rows are left out, with their rows.

        Returns:
            A stream whose nodes are the owners, in the order of their names.

        Raises:
            DataError: If there is no such column, or no owner has so many samples.
        """
        if column is None:
            column = self._own_owner()
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
            encoder=self.encoder,
            _known_finite=True,
        )

    def owners(self, column: str) -> Owners:
        """The owner of every row, by any column; all spellings of a number are one owner.

        Raises:
            DataError: If there is no such column.
        """
        _check_there((column,), self.frame.columns, self.name)
        return owners_of(self.frame[column])

    def _own_owner(self) -> str:
        if self.owner is None:
            raise DataError(f"{self.name} was made without an owner; name the owner column")
        return self.owner

    def _class_places(self, adversarial: float) -> Ints:
        """The class of every row, counted from 0, for dealing by class."""
        if self.label_kind == "number" or adversarial:
            fact = "its labels are numbers" if not adversarial else "adversarial is not 0"
            raise DataError(
                f"{self.name} cannot be dealt by class: {fact}; leave classes_per_node out"
            )
        codes = (self.labels + 1) / 2 if self.label_kind == "binary" else self.labels
        return codes.astype(np.int32)

    def _repr_html_(self) -> str:
        from oneway.display.html import MOST_ROWS, card, facts, grid

        encoder, features = self.encoder, self.encoder.features
        about = {
            "rows": f"{len(self):,}",
            "label": f"{encoder.label}: {self._label_summary()}",
            "features": f"{len(features):,} columns, {encoder.width:,} model inputs",
        }
        others = [it for it in self.frame.columns if it not in (encoder.label, *encoder.names)]
        if others:
            about["other columns"] = f"{listed(others, MOST_ROWS)} (for deal_by)"
        rows = []
        for feature in features[:MOST_ROWS]:
            center, scale = feature.scaling
            scaled = isinstance(feature, Number | Array)
            how = f"center {center:.4g}, scale {scale:.4g}"
            how = how if scaled else listed(feature.outputs, 5)
            missing = int(empty_cells(self.frame[feature.name]).sum())
            rows.append((feature.name, described(feature), how, f"{missing:,}"))
        shown = grid(("column", "used as", "how", "missing"), rows, total=len(features))
        return card("Table", facts(about), shown, quiet=self.name)

    def _label_summary(self) -> str:
        classes = self.encoder.classes
        if not classes:
            return f"a number from {self.labels.min():.4g} to {self.labels.max():.4g}"
        if len(self) > _COUNTED:
            return listed(classes, 50)
        shares = np.bincount(self._class_places(0.0), minlength=len(classes)) / len(self)
        both = (f"{value} ({share:.1%})" for value, share in zip(classes, shares, strict=True))
        return listed(both, 50)


def _as_written(cells: pl.Series) -> pl.Series:
    """A column as people write it: arrays as JSON, whole numbers without a fraction."""
    import polars as pl

    if cells.dtype.is_nested():
        return cells.map_elements(lambda cell: json.dumps(cell.to_list()), pl.String)
    whole = cells.cast(pl.Int64, strict=False) if cells.dtype.is_float() else cells
    is_same = whole.null_count() == cells.null_count() and (whole == cells).all()
    if is_same and whole.dtype == pl.Int64 and (whole.abs() < EXACT_BELOW).all():
        return whole
    return cells


def owners_of(cells: pl.Series) -> Owners:
    """Return whom the rows belong to, as `Table.owners` says; a peer groups by the same rule."""
    distinct, codes = coded(cells)
    groups = [group_name(cell) for cell in distinct]
    names = sorted({*groups} - {""})
    with suppress(ValueError):
        names.sort(key=lambda name: (float(name), name))
    place = {name: code for code, name in enumerate(names)} | {"": -1}
    return Owners(tuple(names), np.array([*(place[it] for it in groups), -1])[codes])


def _names(
    arrays: NDArray[Any], given: Sequence[str] | None, others: Sequence[str]
) -> tuple[str, ...]:
    """The names of features, checked."""
    if arrays.ndim > 2:
        names = tuple(given or (ARRAY,))
        count = 1
    else:
        names = tuple(given or (f"feature {place + 1}" for place in range(arrays.shape[1])))
        count = arrays.shape[1]
    if len(names) != count:
        raise DataError(f"{len(names)} feature names for {count} features; give one per feature")
    for name in names:
        if name in others or names.count(name) > 1:
            raise DataError(
                f"two columns are named {name!r}, among features, label and further columns; "
                "rename one of them, the label with label_name='...'"
            )
    return names


def _check_there(wanted: Sequence[str | None], known: Sequence[str], where: str) -> None:
    missing = [column for column in wanted if column not in known]
    if missing:
        near = nearest(str(missing[0]), known) if len(missing) == 1 else ""
        several = "s" if len(missing) > 1 else ""
        raise DataError(
            f"{where} has no column{several} {listed(map(repr, missing))}{near or ';'} "
            f"it has: {listed(known)}"
        )


def _with_skipped(note: ColumnNote, skipped: int) -> ColumnNote:
    if not skipped:
        return note
    rows = "1 row without a label is" if skipped == 1 else f"{skipped:,} rows without a label are"
    return replace(note, remark=f"{rows} skipped", warns=True)


def _task_notes(encoder: Encoder, known: Sequence[str]) -> tuple[ColumnNote, ...]:
    used = {feature.name: described(feature) for feature in encoder.features}
    return (
        ColumnNote(encoder.label, "label"),
        *(
            ColumnNote(name, used.get(name, ""), 0, "" if name in used else "not in the task")
            for name in known
            if name != encoder.label
        ),
    )
