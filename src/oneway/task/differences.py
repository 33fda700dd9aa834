"""In which fields two peers' tasks differ, as sentences.

The other task comes from the network: it may have any shape, so nothing about it is trusted, and
what it contains is shown short and escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from oneway.sentences import cut, shown

MOST = 10
"""No more sentences than this, so that a log entry stays one."""


def differences(mine: Mapping[str, object], theirs: object) -> list[str]:
    """Return what distinguishes two tasks given as `Task.fields()`; empty if nothing does.

    >>> differences({"learning_rate": 0.3, "l2": 0.0}, {"learning_rate": 0.1, "l2": 0.0})
    ['learning_rate is 0.3 here and 0.1 there']
    """
    if not isinstance(theirs, Mapping):
        return [f"their task is {shown(theirs)}, which is not a task"]
    found = list(islice(_all_differences(mine, theirs), MOST + 1))
    return [*found[: MOST - 1], "and more"] if len(found) > MOST else found


def _all_differences(mine: Mapping[str, object], theirs: Mapping[object, object]) -> Iterator[str]:
    for name, here in mine.items():
        there = theirs.get(name)
        if name not in theirs:
            yield f"{name} is {_brief(here)} here and missing there"
        elif name == "features":
            yield from _feature_differences(here, there)
        elif isinstance(here, Mapping) and isinstance(there, Mapping):
            for difference in _all_differences(here, there):
                yield f"{name}: {difference}"
        elif not _same(here, there):
            verb = "are" if name == "classes" else "is"
            yield f"{name} {verb} {_brief(here)} here and {_brief(there)} there"
    for other in theirs:
        if other not in mine:
            yield f"{shown(other)} is not known here and {_brief(theirs[other])} there"


def _feature_differences(mine: object, theirs: object) -> Iterator[str]:
    here, there = _by_name(mine), _by_name(theirs)
    if here is None or there is None:
        yield "features cannot be compared: what they sent is not a list of features"
        return
    for name in here:
        if name not in there:
            yield f"feature {shown(name)} is missing there"
    for name in there:
        if name not in here:
            yield f"feature {shown(name)} is missing here"
    if here.keys() == there.keys() and list(here) != list(there):
        yield "features are in another order"
    for name, feature in here.items():
        other = there.get(name, feature)
        for key in dict.fromkeys([*feature, *islice(other, MOST)]):
            if key not in other or key not in feature or not _same(feature[key], other[key]):
                values = f"{_brief(feature.get(key))} here and {_brief(other.get(key))} there"
                yield f"feature {shown(name)}: {shown(key)} is {values}"


def _by_name(features: object) -> dict[str, Mapping[object, object]] | None:
    """Return the features by name, in order; None if they are not a list of named tables."""
    if not isinstance(features, list | tuple):
        return None
    named: dict[str, Mapping[object, object]] = {}
    for feature in features:
        name = feature.get("name") if isinstance(feature, Mapping) else None
        if not isinstance(name, str) or name in named:
            return None
        named[name] = feature
    return named


def _same(here: object, there: object) -> bool:
    if isinstance(here, list | tuple):
        return (
            isinstance(there, list | tuple)
            and len(here) == len(there)
            and all(_same(one, other) for one, other in zip(here, there, strict=True))
        )
    # True equals 1 in Python, but not in a fingerprint.
    return isinstance(here, bool) == isinstance(there, bool) and here == there


def _brief(value: object) -> str:
    """As `shown`, but a list or a table with its first items."""
    if isinstance(value, Mapping):
        pairs = (f"{_word(name)} = {shown(it)}" for name, it in islice(value.items(), MOST))
        return cut(f"({', '.join(pairs)})")
    if not isinstance(value, list | tuple):
        return shown(value)
    items = ", ".join(shown(item) for item in value[:MOST])
    return cut(f"[{items}{', ...' if len(value) > MOST else ''}]")


def _word(name: object) -> str:
    """A key of a table as it is if it is a plain word; else as `shown`."""
    plain = isinstance(name, str) and name.isascii() and name.isidentifier()
    return cut(str(name)) if plain else shown(name)
