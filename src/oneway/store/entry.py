"""Catalogue entry: what the files of a stored run, lab, demo or reproduction say about it.

The readers complete an entry, and nothing that is wrong with what they read raises: it becomes the
entry's problem, or is left out.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Literal, TypeAlias

from oneway.errors import StoreError
from oneway.store.run_folder import ARRAYS, in_short, read_json, read_summary, read_text

RESULT = "result.json"
REPORT = "report.html"
RUNS = "runs"
"""Below a lab or a demo: the runs that belong to it."""
PANELS = "panels"
_MOST_PANELS = 100
_MOST_SENTENCES = 100
_MOST = 1 << 53
"""Beyond this, a browser does not count exactly."""
_SHORT = 60
"""Letters of one detail: what a file says may be of any length."""

Kind: TypeAlias = Literal["simulation", "lab", "demo", "reproduction"]

Stamp: TypeAlias = tuple[tuple[int, int], ...]
"""When files were changed, in nanoseconds, and how long they are."""


@dataclass(frozen=True)
class Entry:
    """A stored run, or a lab, demo or reproduction, which have a page and maybe runs.

    What is not known is empty or None.

    Attributes:
        name: The path below the folder that was looked at, with slashes.
        kind: What made it; of the runs that a lab has stored, "lab" are its real peers.
        stamp: Changes when what is stored does.
        modified: Seconds since 1970.
        belongs_to: The name of the lab or the demo that the run is a part of.
        is_run: Whether there are curves to compare.
        algorithm: As on the command line: ops, dol-symm, dol-asymm, col or local.
        learning_rate, data, model, graph: In a few words.
        num_rounds: As many as were planned.
        rounds_done: As many as there are in the arrays; None until these are read.
        average_loss: Of a lab as it has written it down; of a run None until its arrays are read.
        complete: False if it was interrupted.
        seconds: How long it took.
        sentences: What a lab found.
        report: The page of a demo or reproduction.
        panels: The names of a reproduction's panels, each a CSV file in `panels`.
        problem: What is wrong with it, in a sentence; empty if nothing is.
    """

    name: str
    path: Path
    kind: Kind
    stamp: Stamp
    modified: float
    belongs_to: str = ""
    is_run: bool = False
    algorithm: str = ""
    learning_rate: str = ""
    data: str = ""
    model: str = ""
    graph: str = ""
    num_nodes: int | None = None
    num_rounds: int | None = None
    rounds_done: int | None = None
    average_loss: float | None = None
    complete: bool | None = None
    seconds: float | None = None
    sentences: tuple[str, ...] = ()
    report: Path | None = None
    panels: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class PanelCurve:
    """One curve: after how many rounds, and the mean over seeds of the average loss until then."""

    name: str
    rounds: list[int]
    means: list[float]
    num_seeds: int


def read_run(blank: Entry) -> Entry:
    """Complete an entry from its `run.json`."""
    try:
        summary = read_summary(blank.path)
        arrays = blank.path / ARRAYS
        if not arrays.is_file() or arrays.is_symlink():
            raise StoreError(f"{ARRAYS} is missing; run it again")
    except StoreError as error:
        return replace(blank, is_run=True, problem=error.reason)
    config = as_table(summary.get("config"))
    # Beside its real peers, a lab stores what the simulator makes of their samples.
    simulated = blank.kind == "lab" and config.get("kind") != "lab"
    return replace(
        blank,
        kind="simulation" if simulated else blank.kind,
        is_run=True,
        algorithm=_text(summary.get("algorithm")),
        learning_rate=_text(config.get("learning_rate")),
        data=data_words(config.get("stream")),
        model=model_words(config.get("model")),
        graph=graph_words(config.get("graph")),
        num_nodes=_whole(config.get("num_nodes")),
        num_rounds=_whole(config.get("num_rounds")),
        complete=bool(summary.get("complete")),
        seconds=as_number(summary.get("seconds")),
    )


def read_lab(blank: Entry) -> Entry:
    """Complete an entry from a lab's `result.json`."""
    try:
        result = read_result(blank)
    except StoreError as error:
        return replace(blank, problem=str(error))
    config, losses = as_table(result.get("config")), as_table(result.get("average_loss"))
    peers = result.get("peers")
    return replace(
        blank,
        algorithm=_text(as_table(config.get("task")).get("method")) or "ops",
        data=data_words(config.get("stream")),
        model=model_words(config.get("task")),
        learning_rate=_text(as_table(config.get("task")).get("learning_rate")),
        graph=graph_words(config.get("graph")),
        num_nodes=len(peers) if isinstance(peers, list) else None,
        average_loss=as_number(losses.get("together")),
        complete=bool(result.get("complete")),
        seconds=as_number(result.get("seconds")),
        sentences=tuple(map(_text, as_list(result.get("sentences"))[:_MOST_SENTENCES])),
    )


def read_result(entry: Entry) -> dict[str, Any]:
    """Read all of a lab's `result.json`.

    Raises:
        StoreError: If it is damaged.
    """
    try:
        return read_json(entry.path / RESULT)
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise StoreError(f"{RESULT} is damaged ({in_short(error)}); run the lab again") from error


def read_demo(blank: Entry) -> Entry:
    """Complete the entry of a demo."""
    return replace(blank, complete=True, data="flights by dest", report=blank.path / REPORT)


def read_reproduction(blank: Entry) -> Entry:
    """Complete the entry of a reproduction; without a report it is not finished."""
    report, folder = blank.path / REPORT, blank.path / PANELS
    finished = report.is_file() and not report.is_symlink()
    panels = sorted(
        path.stem
        for path in (folder.glob("*.csv") if not folder.is_symlink() else ())
        if path.is_file() and not path.is_symlink()
    )
    unfinished = "It is not finished; call the same oneway reproduce again, and it goes on."
    return replace(
        blank,
        complete=finished,
        report=report if finished else None,
        panels=tuple(panels[:_MOST_PANELS]),
        sentences=() if finished else (unfinished,),
    )


def read_panel(entry: Entry, name: str) -> list[PanelCurve]:
    """Read one panel of a reproduction: mean curves over seeds.

    Raises:
        StoreError: If the reproduction has no such panel, or it is damaged.
    """
    if name not in entry.panels:
        there = ", ".join(entry.panels) or "none yet; let oneway reproduce go on"
        raise StoreError(
            f"the reproduction {entry.name} has no panel {name[:200]!r}; there are: {there}"
        )
    path = entry.path / PANELS / f"{name}.csv"
    curves: dict[str, PanelCurve] = {}
    try:
        for row in csv.DictReader(io.StringIO(read_text(path), newline="")):
            curve = curves.setdefault(
                row["curve"], PanelCurve(row["curve"], [], [], int(row["seeds"]))
            )
            mean = float(row["mean"])
            curve.rounds.append(int(row["iteration"]))
            curve.means.append(mean if math.isfinite(mean) else math.nan)
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise StoreError(f"{path.name} is damaged ({error}); reproduce it again") from error
    return list(curves.values())


def data_words(stream: object) -> str:
    """Which data was dealt, from `config["stream"]`.

    >>> data_words({"table": {"kind": "flights"}, "deal": "by owner", "column": "dest"})
    'flights by dest'
    """
    source = as_table(as_table(stream).get("table")) or as_table(stream)
    path = source.get("path")
    kind = PurePath(path).name if isinstance(path, str) else _short(source.get("kind"))
    column = as_table(stream).get("column")
    return f"{_short(kind)} by {_short(column)}" if kind and column else _short(kind)


def model_words(model: object) -> str:
    """Which model was learned, from `config["model"]`.

    >>> model_words({"model": "LogisticRegression", "l2": 0.1}), model_words({"model": "hinge"})
    ('logistic regression', 'hinge')
    """
    name = _short(as_table(model).get("model"))
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
    made = as_table(origin)
    kind = _short(made.get("graph"))
    if kind == "file":
        return _short(PurePath(str(made.get("file", ""))).name) or "file"
    if kind in _DERIVED and depth < 3:
        return f"{_DERIVED[kind]} {graph_words(made.get('of'), depth + 1)}"
    details = {name: _short(made.get(name)) for name in ("max_receivers", "density")}
    return _GRAPHS[kind].format(**details) if kind in _GRAPHS else kind.replace("_", "-")


_DERIVED = {
    "largest_strong_component": "largest strong component of",
    "mutual": "mutual edges of",
    "without": "one edge less than",
}
_GRAPHS = {
    "random": "random, 1 to {max_receivers} receivers",
    "erdos_renyi": "Erdos-Renyi, density {density}",
    "edges": "list of edges",
}


def as_table(value: object) -> Mapping[str, Any]:
    """A part of a file that should be a table; empty if it is none."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: object) -> list[Any]:
    """A part of a file that should be a list; empty if it is none."""
    return value if isinstance(value, list) else []


def as_number(value: object) -> float | None:
    """A part of a file that should be a finite number; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _text(value: object, most: int = 200) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= most else f"{text[:most]}..."


def _short(value: object) -> str:
    return _text(value, _SHORT)


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) <= _MOST else None
