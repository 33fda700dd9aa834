"""Inference: which columns of a table are features, and of which kind, by what they hold.

A user's choices come before what is found. What became of every column is a note, so that nothing
is left out in silence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from oneway.errors import DataError
from oneway.sentences import listed, nearest, shown
from oneway.tables.features import Feature, format_shape
from oneway.tables.label_profile import LabelProfile
from oneway.tables.labels import in_order
from oneway.tables.profile import MOST_VALUES, ColumnProfile

MAX_VALUES = 50
"""Text with more distinct values is a category only if that is asked for."""


@dataclass(frozen=True)
class Choices:
    """What a user says about columns, before anything is told from what they hold.

    Attributes:
        features: Only these are features; None for all that can be.
        exclude: These are none.
        category: These are categories, with these values if they are given.
        numeric: These are numbers.
        owner: The owner column: no feature.
    """

    features: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    category: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    numeric: tuple[str, ...] = ()
    owner: str | None = None

    def check(self, known: Sequence[str], label: str, where: str) -> None:
        """Check that they speak of columns that there are, and do not contradict each other.

        Raises:
            DataError: Names the first that is wrong.
        """
        owner = () if self.owner is None else (self.owner,)
        kinds = (*self.category, *self.numeric)
        named = (*(self.features or ()), *self.exclude, *kinds, *owner)
        for column in named:
            if column not in known:
                raise DataError(
                    f"{where} has no column {column!r}{nearest(column, known) or ';'} "
                    f"it has: {listed(known)}"
                )
        wanted = (*(self.features or ()), *kinds)
        for column in (*(self.features or ()), label):
            if (self.features or ()).count(column) > 1 or (column == label and column in wanted):
                raise DataError(
                    f"column {column!r} of {where} is asked for twice, among the features or as "
                    "label and feature; name it once"
                )
        for column in wanted:
            if column in self.exclude or kinds.count(column) > 1:
                raise DataError(
                    f"column {column!r} of {where} is to be two things at once; name it once among "
                    "features, category, numeric and exclude"
                )


CHOICES = tuple(each.name for each in fields(Choices))
"""The names of what can be said about columns."""


def make_choices(**said: Any) -> Choices:
    """Choices as callers give them: any sequences, and categories with or without values.

    >>> make_choices(exclude=["id"], category=["sex"]).category
    {'sex': ()}
    """
    for name, value in said.items():
        if isinstance(value, Mapping) and name == "category":
            said[name] = {column: tuple(values) for column, values in value.items()}
        elif name == "category":
            said[name] = dict.fromkeys(value, ())
        elif not isinstance(value, str | Mapping | None):
            said[name] = tuple(value)
    return Choices(**said)


ALL = Choices()
"""Nothing is said about columns."""


@dataclass(frozen=True)
class ColumnNote:
    """What became of a column.

    Attributes:
        name: The column.
        used: As what it is used; nothing if it is left out.
        gaps: How many of its cells hold nothing.
        remark: Why it is left out, or what should be known about it.
        warns: Whether the remark is a warning.
    """

    name: str
    used: str
    gaps: int
    remark: str = ""
    warns: bool = False


@dataclass(frozen=True)
class Inferred:
    """The features of a table, numbers not scaled yet, and what became of all columns."""

    features: tuple[Feature, ...]
    notes: tuple[ColumnNote, ...]


def infer(
    profiles: Mapping[str, ColumnProfile],
    labels: LabelProfile,
    choices: Choices,
    *,
    classifies: bool,
    left_out: Mapping[str, str] | None = None,
    bounded: Collection[str] = (),
    numbers_as_they_are: bool = False,
    public: bool = False,
) -> Inferred:
    """Tell features from what columns hold.

    Args:
        profiles: Of all columns but the label, in their order.
        labels: What is predicted.
        choices: What the user says.
        classifies: Whether the label is a class, or a number.
        left_out: Columns that are no features, and why, unless they are asked for.
        bounded: Columns of which a range is known: numbers, if they are.
        numbers_as_they_are: Whether 0 and 1 are numbers, and not a boolean.
        public: Whether a feature must not depend on values that somebody's rows have: categories
            are those whose values are given, and no gap has a flag.

    Raises:
        DataError: If a choice cannot be kept.
    """
    deciding = _Deciding(
        labels, choices, classifies, left_out or {}, bounded, numbers_as_they_are, public
    )
    made = [deciding.decide(name, profile) for name, profile in profiles.items()]
    features = [feature for feature, _ in made if feature is not None]
    if not features:  # better a doubtful one than none
        deciding = replace(deciding, takes_counters=True)
        made = [deciding.decide(name, profile) for name, profile in profiles.items()]
        features = [feature for feature, _ in made if feature is not None]
    if choices.features is not None:
        order = {name: place for place, name in enumerate(choices.features)}
        features.sort(key=lambda feature: order[feature.name])
    label = ColumnNote(labels.column, "label", 0)
    return Inferred(tuple(features), (label, *(note for _, note in made)))


@dataclass(frozen=True)
class _Deciding:
    labels: LabelProfile
    choices: Choices
    classifies: bool
    left_out: Mapping[str, str]
    bounded: Collection[str]
    numbers_as_they_are: bool
    public: bool
    takes_counters: bool = False

    def decide(self, name: str, profile: ColumnProfile) -> tuple[Feature | None, ColumnNote]:
        reason = self._reason_to_leave_out(name)
        found: Feature | str = reason or self._kind(name, profile)
        if isinstance(found, str):
            doubtful = profile.is_unique or profile.is_running_number or profile.is_nearly_number
            warns = not reason and doubtful
            return None, ColumnNote(name, "", profile.gaps, found, warns)
        if profile.gaps and not self.public and profile.gaps_tell(self.labels, self.classifies):
            found = replace(found, gaps=True)
        remark = self._warning(found, profile)
        return found, ColumnNote(name, described(found), profile.gaps, remark, bool(remark))

    def _reason_to_leave_out(self, name: str) -> str:
        choices = self.choices
        asked = name in (*(choices.features or ()), *choices.category, *choices.numeric)
        if name in choices.exclude:
            return "excluded"
        if choices.features is not None and name not in choices.features:
            return "not asked for"
        if asked:
            return ""
        if name == choices.owner:
            return "owner column"
        return self.left_out.get(name, "")

    def _kind(self, name: str, profile: ColumnProfile) -> Feature | str:
        """The feature, or why there is none."""
        if name in self.choices.category:
            return self._category(name, profile, self.choices.category[name])
        if name in self.choices.numeric:
            return Feature(name)
        if not profile.filled:
            return "it is empty"
        asked = self.choices.features is not None or name in self.bounded
        stays = self.numbers_as_they_are or self.public or name in self.bounded
        if profile.is_truth and len(profile.values) == 2 and not (profile.is_number and stays):
            return Feature(name, kind="boolean")
        if profile.is_number:
            if profile.moments.too_wide.size:
                return "its numbers are too large"
            if profile.is_running_number and not (asked or self.takes_counters):
                return "it numbers the rows: an identifier"
            return Feature(name)
        if profile.is_time:
            return Feature(name, kind="time", parts=tuple(profile.time_parts) or ("hour",))
        return self._text(name, profile, asked)

    def _text(self, name: str, profile: ColumnProfile, asked: bool) -> Feature | str:
        example = f"it holds {shown(profile.wrong)}, which is not a number"
        if self.public:
            return f"{example}; as a category it needs values that are public: category={name}=A,B"
        many = f"more than {MOST_VALUES:,} distinct values"
        if asked and (profile.is_many or profile.is_unique):
            fact = "is unique per row" if profile.is_unique else f"has {many}"
            raise DataError(
                f"column {shown(name)} cannot be a feature: {example}, and {fact}; leave it out or "
                "encode it first"
            )
        count = len(profile.values)
        is_category = not profile.is_many and count <= MAX_VALUES and 2 * count <= profile.filled
        if asked or (is_category and not profile.is_unique):
            return self._category(name, profile, ())
        if profile.is_nearly_number:
            cells = f"{profile.num_wrong:,} cell{'s' if profile.num_wrong > 1 else ''}"
            return f"numbers but for {cells}, as {shown(profile.wrong)}; repair, or say numeric"
        if profile.is_unique or count == profile.filled:
            return "text, unique per row: an identifier, or free text"
        if profile.is_many:
            return f"text, {many}"
        return f"text with {count:,} distinct values in {profile.filled:,} rows; ask for it"

    def _category(
        self, name: str, profile: ColumnProfile, values: tuple[str, ...]
    ) -> Feature | str:
        if values:
            return Feature(name, values=values)
        if self.public:
            raise DataError(
                f"category {shown(name)} needs its values: those of your rows are not public; "
                f"write them as {name}=A,B,C"
            )
        if profile.is_many or not profile.values:
            count = f"more than {MOST_VALUES:,}" if profile.is_many else "no"
            raise DataError(
                f"category {shown(name)} has {count} values; give those that matter as "
                f"{name}=A,B,C, or leave it out"
            )
        return Feature(name, values=tuple(map(str, in_order(profile.values.values()).values())))

    def _warning(self, feature: Feature, profile: ColumnProfile) -> str:
        if profile.is_constant:
            return "always the same here"
        if profile.gives_label_away(self.labels, self.classifies):
            return (
                f"tells {self.labels.column} without an error: is it known before what is "
                "predicted?"
            )
        if feature.kind == "number" and profile.is_whole and profile.is_unique:
            return "whole numbers, unique per row: an identifier?"
        if feature.kind == "number" and profile.num_wrong:
            return (
                f"{profile.num_wrong:,} cells are no numbers, as {shown(profile.wrong)}: such "
                "samples are refused"
            )
        return ""


def described(feature: Feature) -> str:
    """As what a feature is used, in a few words.

    >>> described(Feature("size", values=("small", "large"), gaps=True))
    'category of 2, gaps flagged'
    """
    values = f" of {len(feature.values):,}" if feature.values else ""
    if feature.shape:
        values = f" of {format_shape(feature.shape)}"
    parts = f": {', '.join(feature.parts)}" if feature.parts else ""
    return f"{feature.kind}{values}{parts}{', gaps flagged' if feature.gaps else ''}"


def parse_categories(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Categories as flags give them: `COLUMN`, or `COLUMN=A,B,C` with all values.

    >>> parse_categories(["sex", "pain=1,2,3"])
    {'sex': (), 'pain': ('1', '2', '3')}
    """
    found = {}
    for text in texts:
        column, _, values = text.partition("=")
        found[column.strip()] = tuple(filter(None, map(str.strip, values.split(","))))
    return found
