"""Features in a task.toml: from its entries to features, and back."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import fields
from typing import Any

from oneway.errors import TaskError
from oneway.files.toml import refuse_unknown
from oneway.sentences import shown
from oneway.tables.encoder import Feature

_KEYS = tuple(it.name for it in fields(Feature) if it.name != "name")


def parse_features(value: object, where: str, settings: Container[str]) -> tuple[Feature, ...]:
    """Return the features that a task.toml lists.

    Args:
        value: What stands under `features`.
        where: What errors call the file.
        settings: The other keys of a task, which are told from columns.

    Raises:
        TaskError: Names the feature that is malformed.
    """
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(_feature(name, {}, where) for name in value)
    if not isinstance(value, dict):
        raise TaskError(
            f"{where}: features is {shown(value)}; it must be a table such as [features], with one "
            "line per column: Light = { center = 119.5, scale = 194.8 }, or a list of columns"
        )
    features = []
    for name, scaling in value.items():
        if not isinstance(scaling, dict):
            above = f"; the setting {name} belongs above [features]" if name in settings else ""
            raise TaskError(
                f"{where}: feature {shown(name)} is {shown(scaling)}; it must be a table such as "
                f"{{ center = 119.5, scale = 194.8 }} or {{}}{above}"
            )
        place = f"{where}: feature {shown(name)}"
        refuse_unknown(scaling, _KEYS, place, TaskError)
        features.append(_feature(name, scaling, where))
    return tuple(features)


def _feature(name: str, scaling: Mapping[str, Any], where: str) -> Feature:
    try:
        return Feature(name, **scaling)
    except TaskError as error:
        raise TaskError(f"{where}: {error}") from None


def said(feature: Mapping[str, Any]) -> dict[str, Any]:
    """Return a feature in terms JSON can hold; what only kinds have, only if it is said.

    So a task of numbers has the fingerprint that it had before there were kinds.
    """
    entry = {name: feature[name] for name in ("name", "center", "scale")}
    if feature["kind"] != "number":
        entry |= {"kind": feature["kind"]}
    for name in ("values", "parts", "shape"):
        if feature[name]:
            entry |= {name: list(feature[name])}
    entry |= {"gaps": True} if feature["gaps"] else {}
    return entry | {name: feature[name] for name in ("function", "hash") if feature[name]}


def written(feature: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a task.toml has to say about a feature; values say that it is a category."""
    unsaid = {"center": 0.0, "scale": 1.0, "kind": "category"}
    return {key: value for key, value in feature.items() if unsaid.get(key) != value}
