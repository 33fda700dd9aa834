"""Catalogue: the runs, labs and demos that are stored below a folder."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any, Literal, TypeAlias

from oneway.errors import StoreError
from oneway.store.run_folder import SUMMARY, read_summary

RESULT = "result.json"
REPORT = "report.html"
_PICTURE = "loss.png"
RUNS = "runs"
"""Folder below a lab or a demo with the runs that belong to it."""

Kind: TypeAlias = Literal["simulation", "lab", "demo"]


@dataclass(frozen=True)
class Entry:
    """A stored run, or a lab or demo with runs of its own. Unknown values are empty or None.

    Attributes:
        name: The path below the folder that was searched, with slashes.
        kind: What made it; of the runs that a lab has stored, "lab" are its real peers.
        modified: Seconds since 1970.
        belongs_to: The name of the lab or demo that a run is part of.
        is_run: Whether it has curves to compare.
        method: Short name of the method, as on the command line.
        learning_rate, data, model, graph: In a few words.
        complete: False if it was interrupted.
        seconds: How long it took.
        sentences: The findings of a lab.
        report: The HTML report of a demo.
        problem: Why it cannot be read, as a sentence.
    """

    name: str
    path: Path
    kind: Kind
    modified: float
    belongs_to: str = ""
    is_run: bool = False
    method: str = ""
    learning_rate: str = ""
    data: str = ""
    model: str = ""
    graph: str = ""
    num_nodes: int | None = None
    rounds_done: int | None = None
    average_loss: float | None = None
    complete: bool | None = None
    seconds: float | None = None
    sentences: tuple[str, ...] = ()
    report: Path | None = None
    problem: str = ""

    def as_json(self) -> dict[str, Any]:
        """The entry in terms that JSON can hold."""
        paths = {"path": str(self.path), "report": str(self.report) if self.report else None}
        return asdict(self) | paths


def find_runs(folder: Path | str) -> list[Entry]:
    """List what is stored below a folder, sorted by name; a damaged entry has a `problem`.

    Hidden folders and symbolic links are skipped.

    Raises:
        StoreError: If there is no such folder.
    """
    root = Path(folder)
    if not root.is_dir():
        is_there = f"{root} is not a folder" if root.exists() else f"there is no folder {root}"
        raise StoreError(
            f"{is_there}; name a folder with stored runs, or make one: "
            "oneway simulate --data synthetic --out runs/first"
        )
    found: dict[Path, Entry] = {}
    for place, folders, files in os.walk(root):
        path = Path(place)
        folders[:] = [name for name in folders if not name.startswith(".")]
        marker = _marker(files, folders)
        if not marker:
            continue
        try:
            entry = _read(path, marker, (path / marker).stat().st_mtime_ns)
        except OSError:
            continue  # deleted since its folder was listed
        owner = found.get(path.parent.parent)
        kind = "demo" if owner is not None and owner.kind == "demo" else entry.kind
        name = path.relative_to(root).as_posix() if path != root else path.resolve().name
        found[path] = replace(entry, name=name, kind=kind, belongs_to=owner.name if owner else "")
        # The folders of a lab's peers hold no runs.
        folders[:] = [RUNS] if RUNS in folders and not entry.is_run else []
    return sorted(found.values(), key=lambda entry: entry.name)


def read_result(entry: Entry) -> dict[str, Any]:
    """Read all of a lab's `result.json`.

    Raises:
        StoreError: If it cannot be read.
    """
    try:
        result: dict[str, Any] = json.loads((entry.path / RESULT).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(f"{RESULT} is damaged: {error}; run the lab again") from error
    return result


def data_words(stream: Mapping[str, Any]) -> str:
    """Which data was dealt, from `config["stream"]`.

    >>> data_words({"table": {"kind": "flights"}, "deal": "by owner", "column": "dest"})
    'flights by dest'
    """
    source = stream.get("table") or stream
    kind = PurePath(source["path"]).name if "path" in source else str(source.get("kind", ""))
    return f"{kind} by {stream['column']}" if kind and stream.get("column") else kind


def model_words(model: Mapping[str, Any]) -> str:
    """Which model was learned, from `config["model"]`.

    >>> model_words({"model": "LogisticRegression", "l2": 0.1}), model_words({"model": "hinge"})
    ('logistic regression', 'hinge')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(model.get("model", ""))).lower()


def graph_words(origin: Mapping[str, Any]) -> str:
    """How a graph was made, from `config["graph"]`.

    >>> graph_words({"graph": "random", "num_nodes": 9, "max_receivers": 3, "seed": 0})
    'random, 1 to 3 receivers'
    >>> graph_words({"graph": "mutual", "of": {"graph": "file", "file": "data/edges.csv"}})
    'mutual edges of edges.csv'
    """
    kind = str(origin.get("graph", ""))
    if kind == "file":
        return PurePath(str(origin.get("file", ""))).name or "file"
    if kind in _DERIVED:
        return f"{_DERIVED[kind]} {graph_words(origin.get('of') or {})}"
    return _GRAPHS.get(kind, kind.replace("_", "-")).format(**origin)


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


def _marker(files: Collection[str], folders: Collection[str]) -> str:
    """The file by which a folder is recognised and dated; empty if it is nothing of ours."""
    if SUMMARY in files:
        return SUMMARY
    if RESULT in files and "task.toml" in files:
        return RESULT
    return _PICTURE if _PICTURE in files and RUNS in folders else ""


@lru_cache(maxsize=10_000)
def _read(path: Path, marker: str, modified: int) -> Entry:
    """An entry without its name and owner; read again only after its marker has changed."""
    kind, read = _READERS[marker]
    blank = Entry("", path, kind, modified / 1e9, is_run=marker == SUMMARY)
    try:
        return read(blank)
    except StoreError as error:
        return replace(blank, problem=error.reason)


def _read_run(blank: Entry) -> Entry:
    summary = read_summary(blank.path)
    config = summary["config"]
    return replace(
        blank,
        kind="lab" if config.get("kind") == "lab" else "simulation",
        method=summary["method"],
        learning_rate=str(config.get("learning_rate", "")),
        data=data_words(config.get("stream") or {}),
        model=model_words(config.get("model") or {}),
        graph=graph_words(config.get("graph") or {}),
        num_nodes=config.get("num_nodes"),
        rounds_done=summary["rounds_done"],
        average_loss=summary["average_loss"],
        complete=summary["complete"],
        seconds=summary["seconds"],
    )


def _read_lab(blank: Entry) -> Entry:
    result = read_result(blank)
    config = result["config"]
    return replace(
        blank,
        method=config["task"]["method"],
        learning_rate=str(config["task"].get("learning_rate", "")),
        data=data_words(config.get("stream") or {}),
        model=model_words(config["task"]),
        graph=graph_words(config.get("graph") or {}),
        num_nodes=len(result["peers"]),
        average_loss=result["average_loss"]["yours"],
        complete=result["complete"],
        seconds=result["seconds"],
        sentences=tuple(result["sentences"]),
    )


def _read_demo(blank: Entry) -> Entry:
    report = blank.path / REPORT
    return replace(
        blank, complete=True, data="flights by tailnum", report=report if report.is_file() else None
    )


_READERS: dict[str, tuple[Kind, Callable[[Entry], Entry]]] = {
    SUMMARY: ("simulation", _read_run),
    RESULT: ("lab", _read_lab),
    _PICTURE: ("demo", _read_demo),
}
