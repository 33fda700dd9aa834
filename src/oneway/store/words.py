"""What a run's config says, in a few words; whatever it holds, there is something to say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

_SHORT = 60
"""Letters of one detail: what a file says may be of any length."""


def data_words(stream: object) -> str:
    """Which data was dealt, from `config["stream"]`.

    >>> data_words({"table": {"kind": "flights"}, "deal": "by owner", "column": "dest"})
    'flights by dest'
    """
    source = table(table(stream).get("table")) or table(stream)
    path = source.get("path")
    kind = PurePath(path).name if isinstance(path, str) else _short(source.get("kind"))
    column = table(stream).get("column")
    return f"{_short(kind)} by {_short(column)}" if kind and column else _short(kind)


def model_words(model: object) -> str:
    """Which model was learned, from `config["model"]`.

    >>> model_words({"model": "LogisticRegression", "l2": 0.1}), model_words({"model": "hinge"})
    ('logistic regression', 'hinge')
    """
    name = _short(table(model).get("model"))
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def graph_words(origin: object, depth: int = 0) -> str:
    """How a graph was made, from `config["graph"]`.

    >>> graph_words({"graph": "random", "num_nodes": 9, "max_receivers": 3, "seed": 0})
    'random, 1 to 3 receivers'
    >>> graph_words({"graph": "mutual", "of": {"graph": "file", "file": "data/edges.csv"}})
    'mutual edges of edges.csv'
    >>> graph_words(None)
    ''
    """
    made = table(origin)
    kind = _short(made.get("graph"))
    if kind == "file":
        return _short(PurePath(str(made.get("file", ""))).name) or "file"
    if kind in _DERIVED and depth < 3:
        return f"{_DERIVED[kind]} {graph_words(made.get('of'), depth + 1)}"
    if kind == "random":
        return f"random, 1 to {_short(made.get('max_receivers'))} receivers"
    if kind == "erdos_renyi":
        return f"Erdos-Renyi, density {_short(made.get('density'))}"
    return {"scale_free": "scale-free", "edges": "list of edges"}.get(kind, kind)


_DERIVED = {
    "largest_strong_component": "largest strong component of",
    "mutual": "mutual edges of",
    "without": "one edge less than",
}


def table(value: object) -> Mapping[str, Any]:
    """A part of a config that should be a table; empty if it is none."""
    return value if isinstance(value, Mapping) else {}


def _short(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}..."
