"""The text of a task.toml: from it to plain values, and back with a comment for every line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oneway.errors import TaskError
from oneway.files.toml import parse_toml, refuse_unknown, toml_key, toml_value
from oneway.sentences import shown

_COMMENTS = {
    "label": "what is predicted: a column of every peer's data",
    "classes": "the labels as they stand in the data; of two, the first means -1, the second +1",
    "model": "logistic, hinge (two classes), softmax (several) or ridge (a number)",
    "learning_rate": "how far one sample moves the model",
    "schedule": "constant, or inverse-sqrt: falling with the square root of the samples seen",
    "step": "capped (safe whatever the mass), mass, or paper (as published)",
    "l2": "how strongly parameters are pulled towards 0",
    "intercept": "whether the model has a constant",
    "radius": "the largest absolute parameter believed of another peer",
    "mass_cap": "the most mass that one push may carry",
}

_HEADER = """\
# The task: the same file for all peers of a network. Those with another one are refused.
"""

_FEATURES = """\

# What is predicted from, each learned as (value - center) / scale; the order matters.
[features]"""


def task_table(text: str, where: str, known: Iterable[str]) -> dict[str, Any]:
    """Return what a task.toml says, with the features as pairs of a name and its scaling.

    Raises:
        TaskError: If it is not TOML, or a key is missing or unknown, or features are no table.
    """
    table = refuse_unknown(parse_toml(text, where, TaskError), known, where, TaskError)
    for name in ("model", "label", "features"):
        if name not in table:
            what = _COMMENTS.get(name, "what is predicted from, a table of columns")
            raise TaskError(f"{where} has no {name}; add it: {what}")
    table["features"] = _features(table["features"], where, known)
    classes = table.get("classes", [])
    if not isinstance(classes, list):
        raise TaskError(f'{where}: classes is {shown(classes)}; it must be a list, as ["0", "1"]')
    table["classes"] = tuple(_label_text(name) for name in classes)
    return table


def task_toml(fields: Mapping[str, Any]) -> str:
    """Return the text of a task.toml with these fields (`Task.fields`)."""
    lines = [
        f"{f'{name} = {toml_value(fields[name])}':<32}  # {comment}"
        for name, comment in _COMMENTS.items()
        if name != "classes" or fields["classes"]
    ]
    features = [
        f"{toml_key(feature['name'])} = {toml_value(_scaling(feature))}"
        for feature in fields["features"]
    ]
    return "\n".join([_HEADER, *lines, _FEATURES, *features, ""])


def _features(value: object, where: str, known: Iterable[str]) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return [(name, {}) for name in value]
    if not isinstance(value, dict):
        raise TaskError(
            f"{where}: features is {shown(value)}; it must be a table such as [features], with one "
            "line per column: Light = { center = 119.5, scale = 194.8 }, or a list of columns"
        )
    for name, scaling in value.items():
        if not isinstance(scaling, dict):
            above = f"; the setting {name} belongs above [features]" if name in known else ""
            raise TaskError(
                f"{where}: feature {shown(name)} is {shown(scaling)}; it must be a table such as "
                f"{{ center = 119.5, scale = 194.8 }} or {{}}{above}"
            )
        place = f"{where}: feature {shown(name)}"
        refuse_unknown(scaling, ("center", "scale"), place, TaskError)
    return list(value.items())


def _scaling(feature: Mapping[str, Any]) -> dict[str, float]:
    """Return what is not as if there were no scaling."""
    plain = {"center": 0.0, "scale": 1.0}
    return {key: feature[key] for key in plain if feature[key] != plain[key]}


def _label_text(name: object) -> object:
    """Return a label as text, as data files spell it: classes = [0, 1] means ["0", "1"]."""
    if isinstance(name, bool):
        return "true" if name else "false"
    return repr(name) if isinstance(name, int | float) else name
