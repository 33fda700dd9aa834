"""A run's config and numbers, for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from oneway import metrics
from oneway.dashboard.components.amounts import short
from oneway.records import RunRecord
from oneway.report.labels import LABELS

Facts: TypeAlias = list[tuple[str, str]]
"""Names and values."""

_SECTIONS = {
    "model": "Model",
    "stream": "Samples",
    "table": "Data",
    "graph": "Graph",
    "task": "Task",
    "of": "Made from",
}
_WORDS = {
    "algorithm": "method",
    "l2": "l2, weight of the squared norm in the loss",
    "num_nodes": "nodes",
    "num_rounds": "rounds",
    "adversarial": "adversarial share asked for",
    "head": "rounds used",
    "bytes": "size in bytes",
    "kill_every": "seconds between two kills",
    "rate": "samples per second of each peer",
    "loss": "share of messages lost, at the start",
}
_FEW = 6
_LONGEST = 300
_DEEPEST = 6


def config_sections(config: Mapping[str, Any]) -> list[tuple[str, Facts]]:
    """What determined a run's numbers, in parts with a heading.

    >>> for title, facts in config_sections({"algorithm": "ops", "graph": {"num_nodes": 3}}):
    ...     print(title, facts)
    Method [('method', 'ops, Online Push-Sum')]
    Graph [('nodes', '3')]
    """
    return _sections("Method", config, 0)


def _sections(title: str, table: Mapping[str, Any], depth: int) -> list[tuple[str, Facts]]:
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    own = [(_named(key), _said(key, value)) for key, value in table.items() if key not in inner]
    found = [(title, own)] if own else []
    if depth < _DEEPEST:
        for key, value in inner.items():
            found += _sections(_SECTIONS.get(key, _named(key).capitalize()), value, depth + 1)
    return found


def numbers(record: RunRecord) -> dict[str, str]:
    """The final numbers of a run, by name; "-" for what has no meaning for it."""
    accuracy = metrics.accuracy(record)
    regret = None if record.comparator_sums is None else metrics.regret(record)
    return {
        "Average loss per sample": number(metrics.average_loss(record), 4),
        "Accuracy (%)": "-" if accuracy is None else f"{100 * accuracy:.2f}",
        "Disagreement at the end (squared distance)": short(last(record.disagreement)),
        "Regret (sum of losses)": "-" if regret is None else short(last(regret)),
        "Rounds": f"{record.num_rounds:,}",
        "Nodes": f"{len(record.masses):,}",
        "Samples": f"{int(record.sample_counts.sum()):,}",
        "Time (s)": number(record.seconds, 2),
    }


def last(curve: Any) -> float:
    """The last value of a curve; NaN if there is none."""
    return float(curve[-1]) if len(curve) else math.nan


def number(value: float, digits: int) -> str:
    """A number with so many digits after the point; "-" if it is none."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"


def _named(key: object) -> str:
    return _WORDS.get(str(key), str(key).replace("_", " "))[:80]


def _said(key: object, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        if len(value) > _FEW or any(isinstance(item, list | Mapping) for item in value):
            return f"{len(value):,} values; see the stored file below"
        return ", ".join(_said("", item) for item in value) or "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int) and key != "seed":
        return f"{value:,}"
    text = str(value)
    if key == "algorithm" and text in LABELS:
        text = f"{text}, {LABELS[text].title}"
    if key == "graph":
        text = text.replace("_", " ")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
