"""Which features are one choice: columns of 0 and 1 of which one is 1, as `origin EWR, origin JFK`.

A task does not say so, but its scales do: a column of 0 and 1 with mean p has the variance
p * (1 - p), and the means of such columns add up to 1 if exactly one of them is 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from oneway.tables.encoder import Feature

_VARIANCE_TOLERANCE = 0.01
_SUM_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Choice:
    """Features of which one is 1 and the others are 0.

    Attributes:
        name: What their names have in common, in words.
        options: The rest of each name, and the feature.
    """

    name: str
    options: dict[str, Feature]

    @property
    def most_frequent(self) -> str:
        """The option that is chosen most often."""
        return max(self.options, key=lambda option: self.options[option].center)


def with_choices(features: Sequence[Feature]) -> Iterator[Feature | Choice]:
    """The features in their order, those together that are one choice."""
    start = 0
    while start < len(features):
        choice = _choice_at(features, start)
        yield choice or features[start]
        start += len(choice.options) if choice else 1


def _choice_at(features: Sequence[Feature], start: int) -> Choice | None:
    """The choice that begins with a feature, if one does."""
    total = 0.0
    for end in range(start, len(features)):
        feature = features[end]
        if not _is_indicator(feature):
            return None
        total += feature.center
        if total > 1.0 - _SUM_TOLERANCE:
            group = features[start : end + 1]
            return _named(group) if total < 1.0 + _SUM_TOLERANCE and len(group) > 1 else None
    return None


def _is_indicator(feature: Feature) -> bool:
    variance = feature.center * (1.0 - feature.center)
    if feature.kind != "number" or feature.gaps:
        return False
    return variance > 0.0 and abs(feature.scale**2 / variance - 1.0) < _VARIANCE_TOLERANCE


def _named(group: Sequence[Feature]) -> Choice | None:
    """A choice by what the names have in common; None if they have nothing in common."""
    words = [feature.name.split(" ") for feature in group]
    common = sum(1 for _ in takewhile(lambda same: len(set(same)) == 1, zip(*words, strict=False)))
    options = {" ".join(name[common:]): feature for name, feature in zip(words, group, strict=True)}
    if common == 0 or "" in options or len(options) < len(group):
        return None
    return Choice(" ".join(words[0][:common]), options)
