"""Column profile: what a column holds, from which its kind is told, and what deserves a warning.

A profile is fed blocks of cells with their labels, from any source: text of a CSV file, values of
JSON lines, numbers of a table. It keeps sums and a bounded number of distinct values.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from oneway.records import Bools, Ints, Vector
from oneway.tables.cells import as_number, as_truth, is_gap, label_key, label_text
from oneway.tables.label_profile import MAX_CLASSES, LabelBlock, LabelProfile
from oneway.tables.scaling import Moments
from oneway.tables.times import TimePart, parse_time, told_parts

MOST_VALUES = 1_000
"""More distinct values than this are only known to be many."""
FEWEST_ROWS = 30
"""Below so many rows, what looks like a rule may well be chance."""
TELLING = 4.0
"""Gaps tell something if labels with them and without differ by so many standard errors."""
FEWEST_GAPS = 10
MISTAKEN = 0.05
"""If no more cells than this share are no numbers, the others being some, they are mistakes."""
NEARLY_ONE = 0.9999
"""A correlation with the label above this gives it away."""
_MIXED = -1


class ColumnProfile:
    """What the cells of a column are, so far.

    Attributes:
        count: How many cells were seen.
        gaps: How many of them hold nothing.
        is_number: Whether all others are finite numbers.
        is_truth: Whether all others are true or false, in words or as 1 and 0.
        is_time: Whether all others are dates or times.
        time_parts: What these tell something about: hour, weekday, season.
        is_whole: Whether all numbers are whole.
        wrong: The first cell that is no number.
        num_wrong: How many there are.
        values: The distinct cells as they are written, by what makes them the same.
        is_many: Whether there are more of these than `MOST_VALUES`, which are not kept.
        moments: Of its numbers.
    """

    def __init__(self) -> None:
        self.count = self.gaps = self.num_wrong = 0
        self.is_number = self.is_truth = self.is_time = self.is_whole = True
        self.time_parts: set[TimePart] = set()
        self.wrong: object = None
        self.values: dict[str | float, str] = {}
        self.is_many = False
        self.moments = Moments(1)
        self._repeats = False
        self._label_of: dict[str | float, int] = {}
        self._lows = np.full(MAX_CLASSES + 1, np.inf)
        self._highs = np.full(MAX_CLASSES + 1, -np.inf)
        self._gap_labels = np.zeros(MAX_CLASSES + 1, dtype=np.int64)
        self._with_gap, self._without_gap = Moments(1), Moments(1)
        self._with_label = _Covariance()

    def add(self, cells: Sequence[object], labels: LabelBlock) -> None:
        """Take in cells as they stand in a source."""
        code_of: dict[object, int] = {}
        distinct: list[object] = []
        codes = np.empty(len(cells), dtype=np.int64)
        for row, cell in enumerate(cells):
            # 1 and True are two cells; what is none, such as a list in JSON, is as good as another.
            known = (type(cell), cell if isinstance(cell, Hashable) else None)
            codes[row] = code_of.setdefault(known, len(distinct))
            if len(code_of) > len(distinct):
                distinct.append(cell)
        self.add_coded(distinct, codes, labels)

    def add_coded(self, distinct: Sequence[object], codes: Ints, labels: LabelBlock) -> None:
        """Take in cells that are given by their distinct values; -1 for none."""
        numbers = np.full(len(distinct) + 1, np.nan)  # the last is for -1
        gaps = np.zeros(len(distinct) + 1, np.bool_)
        gaps[-1] = True
        times_seen = np.bincount(codes[codes >= 0], minlength=len(distinct))
        lows, highs = _label_range(codes, labels.codes, len(distinct) + 1)
        for code, cell in enumerate(distinct):
            if is_gap(cell):
                gaps[code] = True
                continue
            number = as_number(cell)
            if number is None:
                self.num_wrong += int(times_seen[code])
                self.wrong = cell if self.is_number else self.wrong
                self.is_number = False
            elif math.isfinite(number):
                numbers[code] = number
            self.is_truth = self.is_truth and as_truth(cell) is not None
            self._tell_time(cell)
            label = int(lows[code]) if lows[code] == highs[code] else _MIXED
            self._tell_value(label_key(cell), cell, label, int(times_seen[code]))
        self._tell_numbers(numbers[codes], gaps[codes], labels)

    def add_numbers(self, numbers: Vector, labels: LabelBlock) -> None:
        """Take in a block of numbers, with nan for gaps."""
        gaps, known = np.isnan(numbers), np.isfinite(numbers)
        filled = numbers[known]
        if filled.size:
            self.is_time = False
            self.is_truth = self.is_truth and bool(((filled == 0) | (filled == 1)).all())
        if not self.is_many:
            distinct, codes = np.unique(filled, return_inverse=True)
            times_seen = np.bincount(codes, minlength=len(distinct))
            if len(distinct) > MOST_VALUES:
                self._repeats = self._repeats or bool((times_seen > 1).any())
                self.is_many = True
            else:
                lows, highs = _label_range(codes, labels.codes[known], len(distinct))
                for code, number in enumerate(distinct.tolist()):
                    label = int(lows[code]) if lows[code] == highs[code] else _MIXED
                    self._tell_value(number, number, label, int(times_seen[code]))
        self._tell_numbers(numbers, gaps, labels)

    def see(self, cells: Sequence[object]) -> None:
        """Take in distinct values of rows that are not looked at otherwise."""
        for cell in cells:
            if not is_gap(cell):
                self._tell_value(label_key(cell), cell, _MIXED, 2)
                self.is_truth = self.is_truth and as_truth(cell) is not None
                self._tell_time(cell)

    def miss(self, count: int) -> None:
        """Take in rows before the first that had the column."""
        self.count += count
        self.gaps += count

    def _tell_time(self, cell: object) -> None:
        moment = parse_time(cell) if self.is_time else None
        self.is_time = moment is not None
        if moment is not None:
            self.time_parts |= told_parts(moment)

    def _tell_value(self, key: str | float, cell: object, label: int, times_seen: int) -> None:
        if self.is_many:
            return
        self._repeats = self._repeats or times_seen > 1 or key in self.values
        if key not in self.values:
            if len(self.values) == MOST_VALUES:
                self.is_many = True
                return
            self.values[key] = _text(cell)
            self._label_of[key] = label
        elif self._label_of[key] != label:
            self._label_of[key] = _MIXED

    def _tell_numbers(self, numbers: Vector, gaps: Bools, labels: LabelBlock) -> None:
        self.count += len(numbers)
        self.gaps += int(gaps.sum())
        known = np.isfinite(numbers)
        filled, codes = numbers[known], labels.codes[known]
        self.is_whole = self.is_whole and bool((filled == np.rint(filled)).all())
        np.minimum.at(self._lows, codes, filled)
        np.maximum.at(self._highs, codes, filled)
        if filled.size:
            self.moments.add(filled[:, None])
        self._gap_labels += np.bincount(labels.codes[gaps], minlength=MAX_CLASSES + 1)
        for moments, rows in ((self._with_gap, gaps), (self._without_gap, ~gaps)):
            answers = labels.numbers[rows]
            if answers.size and not np.isnan(answers).any():
                moments.add(answers[:, None])
        self._with_label.add(filled, labels.numbers[known])

    # What is told from it.

    @property
    def filled(self) -> int:
        """How many cells hold something."""
        return self.count - self.gaps

    @property
    def is_constant(self) -> bool:
        """Whether all cells are the same; a gap is another one."""
        return len(self.values) == 1 and not self.is_many and not self.gaps and self.count > 1

    @property
    def is_nearly_number(self) -> bool:
        """Whether few cells keep it from being a column of numbers: mistakes, probably."""
        return 0 < self.num_wrong <= MISTAKEN * self.filled and not self.is_number

    @property
    def is_unique(self) -> bool:
        """Whether no value was seen twice, among enough to say so."""
        return not self._repeats and self.filled >= FEWEST_ROWS

    @property
    def is_running_number(self) -> bool:
        """Whether the column counts its rows, in any order."""
        if not (self.is_number and self.is_whole and self.is_unique) or self.gaps:
            return False
        low, high = self.moments.range
        spread = float(self.moments.scaling(["it"]).scales[0])
        counted = (self.count**2 - 1) / 12
        return high - low == self.count - 1 and math.isclose(spread**2, counted, rel_tol=1e-6)

    def gaps_tell(self, labels: LabelProfile, classifies: bool) -> bool:
        """Whether labels are others where the column is empty: by four standard errors."""
        if min(self.gaps, self.filled) < FEWEST_GAPS:
            return False
        if classifies:
            return _shares_differ(self._gap_labels, labels.counts - self._gap_labels)
        return _means_differ(self._with_gap, self._without_gap)

    def gives_label_away(self, labels: LabelProfile, classifies: bool) -> bool:
        """Whether the label can be read from this column alone."""
        if self.filled < FEWEST_ROWS:
            return False
        if not classifies:
            return self.is_number and self._with_label.correlation > NEARLY_ONE
        known = labels.counts[:MAX_CLASSES] >= 5
        if known.sum() < 2 or labels.counts[MAX_CLASSES]:
            return False
        if not self.is_many and 5 * len(self.values) <= self.filled:
            found = set(self._label_of.values())
            if _MIXED not in found and len(found) > 1:
                return True
        if not self.is_number:
            return False
        order = np.argsort(self._lows[:MAX_CLASSES])
        order = order[np.isfinite(self._lows[order])]
        return len(order) > 1 and bool((self._highs[order[:-1]] < self._lows[order[1:]]).all())


class _Covariance:
    """How two numbers of rows that arrive in blocks vary together."""

    def __init__(self) -> None:
        self._count = 0
        self._means, self._products = np.zeros(2), np.zeros((2, 2))

    def add(self, ours: Vector, theirs: Vector) -> None:
        if not ours.size or np.isnan(theirs).any():
            return
        block = np.stack([ours, theirs])
        count = self._count + len(ours)
        with np.errstate(over="ignore", invalid="ignore"):
            means = block.mean(axis=1)
            away, spread = means - self._means, block - means[:, None]
            self._products += spread @ spread.T
            self._products += np.outer(away, away) * (self._count * len(ours) / count)
            self._means += away * (len(ours) / count)
        self._count = count

    @property
    def correlation(self) -> float:
        """Its absolute value; 0 if one of the two is constant."""
        size = float(self._products[0, 0] * self._products[1, 1])
        known = math.isfinite(size) and size > 0
        return abs(float(self._products[0, 1])) / math.sqrt(size) if known else 0.0


def _label_range(codes: Ints, labels: Ints, size: int) -> tuple[Ints, Ints]:
    """The smallest and the largest label of every code."""
    lows, highs = np.full(size, MAX_CLASSES + 1), np.full(size, -1)
    np.minimum.at(lows, codes, labels)
    np.maximum.at(highs, codes, labels)
    return lows, highs


def _shares_differ(ours: Ints, others: Ints) -> bool:
    """Whether the share of any class differs by `TELLING` standard errors."""
    here, there = ours.sum(), others.sum()
    pooled = (ours + others) / (here + there)
    errors = np.sqrt(pooled * (1.0 - pooled) * (1.0 / here + 1.0 / there))
    away = np.abs(ours / here - others / there)
    return bool((away > TELLING * np.maximum(errors, 1e-12)).any())


def _means_differ(ours: Moments, others: Moments) -> bool:
    """Whether two means differ by `TELLING` standard errors, each with its own variance."""
    if ours.count < FEWEST_GAPS or others.count < FEWEST_GAPS:
        return False
    here, there = ours.scaling(["here"]), others.scaling(["there"])
    error = math.sqrt(
        float(here.scales[0]) ** 2 / ours.count + float(there.scales[0]) ** 2 / others.count
    )
    return abs(float(here.means[0] - there.means[0])) > TELLING * error


def _text(cell: object) -> str:
    """A value as data files spell it; whole numbers without a fraction."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return label_text(cell)
