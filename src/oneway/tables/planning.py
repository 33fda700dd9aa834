"""Planning: which columns of a table are label and features, from its first rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import polars as pl

from oneway.errors import DataError
from oneway.models import LabelKind
from oneway.sentences import listed, nearest, shown
from oneway.tables.cells import is_gap
from oneway.tables.encoder import Encoder
from oneway.tables.features import TEXTS, Feature
from oneway.tables.inference import ColumnNote, described, infer
from oneway.tables.label_profile import LabelProfile
from oneway.tables.owners import Coder
from oneway.tables.profile import ColumnProfile
from oneway.tables.source import Chosen, Kind, Plan, Wish


class Planner:
    """Decides what the columns of a table are for, as a wish says and as they look.

    Args:
        name: What errors call the table.
        top: Its first rows: Float64 where a column holds numbers, otherwise String.
        wish: What is asked for.
        unnamed: Columns that have no name of their own.
        is_whole: Whether there are no further rows: what more could show is then not assumed.

    Raises:
        DataError: If a column that is asked for is not there, or cannot be what it is to be.
    """

    def __init__(
        self,
        name: str,
        top: pl.DataFrame,
        wish: Wish,
        unnamed: Collection[str] = (),
        *,
        is_whole: bool,
    ) -> None:
        if top.is_empty():
            raise DataError(f"{name} has no rows; a table needs at least one")
        self._name, self._wish, self._is_whole = name, wish, is_whole
        self._left_out = dict.fromkeys(unnamed, "it has no name")
        self._kinds: dict[str, Kind] = {
            column: "number" if dtype == pl.Float64 else "text"
            for column, dtype in top.schema.items()
        }
        self._label = self._check_label()
        if wish.encoder is None:
            wish.choices.check(list(self._kinds), self._label, name)
            self._labels, self._profiles = _profiles(name, self._label, top)

    def see(self, columns: Mapping[str, pl.Series]) -> None:
        """Take in further rows of the columns that are categories by what they hold."""
        for name in self.found_categories:
            self._profiles[name].see(columns[name].unique().to_list())

    @property
    def found_categories(self) -> list[str]:
        """The categories whose values are those of the rows."""
        if self._wish.encoder is not None:
            return []
        given = self._wish.choices.category
        return [
            feature.name
            for feature in self.plan().features
            if feature.kind == "category" and not given.get(feature.name)
        ]

    def plan(self) -> Plan:
        """What is decided, by all that was seen.

        Raises:
            DataError: If there is nothing to learn from, or the label is nothing to learn.
        """
        wish = self._wish
        if wish.encoder is not None:
            return self._as_told(wish.encoder)
        kind = wish.kind or self._label_kind()
        inferred = infer(
            self._profiles,
            self._labels,
            wish.choices,
            classifies=kind != "number",
            left_out=self._left_out,
            numbers_as_they_are=not self._is_whole,
        )
        if not inferred.features:
            reasons = [f"{note.name}: {note.remark}" for note in inferred.notes if note.remark]
            raise DataError(
                f"{self._name} has no column besides the label {self._label!r} to be a feature; "
                f"left out are {listed(reasons, 5) or 'none'}"
            )
        return Plan(self._chosen(inferred.features), inferred.features, kind, inferred.notes)

    def _label_kind(self) -> LabelKind:
        if len(self._labels.distinct) < 2 and not self._is_whole:
            return "binary"  # the other one is further down
        return self._labels.kind

    def _check_label(self) -> str:
        wish, known = self._wish, list(self._kinds)
        label = wish.label if wish.encoder is None else wish.encoder.label
        if label is None:
            raise DataError(
                f"{self._name} needs a label, the column to predict (it has: {listed(known)})",
                remedy="give it as label='...'",
                flag_remedy="give it as --label COLUMN",
            )
        names = () if wish.encoder is None else wish.encoder.names
        missing = [column for column in (label, *names) if column not in known]
        if missing:
            near = nearest(missing[0], known) if len(missing) == 1 else ""
            several = "s" if len(missing) > 1 else ""
            raise DataError(
                f"{self._name} has no column{several} {listed(map(repr, missing))}{near or ';'} "
                f"it has: {listed(known)}"
            )
        return label

    def _as_told(self, encoder: Encoder) -> Plan:
        notes = [ColumnNote(self._label, "label", 0)]
        told = {feature.name: described(feature) for feature in encoder.features}
        for name in self._kinds:
            if name != self._label:
                remark = "" if name in told else "not in the task"
                notes.append(ColumnNote(name, told.get(name, ""), 0, remark))
        features = encoder.features
        return Plan(self._chosen(features), features, encoder.kind, tuple(notes))

    def _chosen(self, features: Sequence[Feature]) -> Chosen:
        names = tuple(feature.name for feature in features)
        texts = tuple(
            feature.name
            for feature in features
            if feature.kind in TEXTS
            or (feature.kind == "boolean" and self._kinds[feature.name] == "text")
        )
        rest = (name for name in self._kinds if name != self._label and name not in names)
        return Chosen(self._label, names, texts, tuple(rest))


def _profiles(
    name: str, label: str, top: pl.DataFrame
) -> tuple[LabelProfile, dict[str, ColumnProfile]]:
    """What the rows with a label hold."""
    labels, answers = LabelProfile(name, label), top[label].to_list()
    filled = [row for row, answer in enumerate(answers) if not is_gap(answer)]
    rows = top if len(filled) == len(top) else top[filled]
    block = labels.add([answers[row] for row in filled])
    profiles = {}
    for column in top.columns:
        if column == label:
            continue
        profiles[column] = ColumnProfile()
        cells = rows[column]
        if cells.dtype == pl.Float64:
            profiles[column].add_numbers(cells.fill_null(np.nan).to_numpy(), block)
        elif len(cells):
            coder = Coder()
            coder.add(cells)
            profiles[column].add_coded(coder.distinct, coder.codes.astype(np.int64), block)
    return labels, profiles


def no_numbers(name: str, column: str, dtype: object) -> DataError:
    """The error that a number of a task is something else in a file with types."""
    return DataError(
        f"feature {shown(column)} is a number to the task, and a column of {dtype} in {name}; "
        "convert it"
    )
