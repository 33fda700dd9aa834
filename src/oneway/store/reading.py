"""What the files of a run, lab, demo or reproduction say about it; nothing that is wrong raises."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from oneway.errors import StoreError
from oneway.store.entry import Entry
from oneway.store.folder import read_summary
from oneway.store.layout import ARRAYS, PANELS, REPORT, RESULT
from oneway.store.tables import in_short, read_table
from oneway.store.words import data_words, graph_words, model_words, table

_MOST_PANELS = 100
_MOST = 1 << 53
"""Beyond this, a browser does not count exactly."""


def read_run(blank: Entry) -> Entry:
    """Complete an entry from its `run.json`."""
    try:
        summary = read_summary(blank.path)
        arrays = blank.path / ARRAYS
        if not arrays.is_file() or arrays.is_symlink():
            raise StoreError(f"{ARRAYS} is missing; run it again")
    except StoreError as error:
        return replace(blank, is_run=True, problem=error.reason)
    config = table(summary.get("config"))
    stream = config.get("stream")
    # Beside its real peers, a lab stores what the simulator makes of their samples.
    simulated = blank.kind == "lab" and config.get("kind") != "lab"
    return replace(
        blank,
        kind="simulation" if simulated else blank.kind,
        is_run=True,
        algorithm=_text(summary.get("algorithm")),
        learning_rate=_text(config.get("learning_rate")),
        data=data_words(stream),
        model=model_words(config.get("model")),
        graph=graph_words(config.get("graph")),
        num_nodes=_whole(config.get("num_nodes")),
        num_rounds=_whole(config.get("num_rounds")),
        complete=bool(summary.get("complete")),
        seconds=_number(summary.get("seconds")),
    )


def read_lab(blank: Entry) -> Entry:
    """Complete an entry from a lab's `result.json`."""
    try:
        result = read_result(blank)
    except StoreError as error:
        return replace(blank, problem=str(error))
    config, losses = table(result.get("config")), table(result.get("average_loss"))
    peers, said = result.get("peers"), result.get("sentences")
    return replace(
        blank,
        algorithm="ops",
        data=data_words(config.get("stream")),
        model=model_words(config.get("task")),
        learning_rate=_text(table(config.get("task")).get("learning_rate")),
        graph=graph_words(config.get("graph")),
        num_nodes=len(peers) if isinstance(peers, list) else None,
        average_loss=_number(losses.get("together")),
        complete=bool(result.get("complete")),
        seconds=_number(result.get("seconds")),
        sentences=tuple(map(_text, said)) if isinstance(said, list) else (),
    )


def read_result(entry: Entry) -> dict[str, Any]:
    """Read all of a lab's `result.json`.

    Raises:
        StoreError: If it is damaged.
    """
    try:
        return read_table(entry.path / RESULT)
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise StoreError(f"{RESULT} is damaged ({in_short(error)}); run the lab again") from error


def read_demo(blank: Entry) -> Entry:
    """Complete the entry of a demo."""
    return replace(blank, complete=True, data="flights by dest", report=blank.path / REPORT)


def read_reproduction(blank: Entry) -> Entry:
    """Complete the entry of a reproduction; without a report it is not finished."""
    report = blank.path / REPORT
    finished = report.is_file() and not report.is_symlink()
    folder = blank.path / PANELS
    panels = sorted(
        path.stem
        for path in (folder.glob("*.csv") if not folder.is_symlink() else ())
        if path.is_file() and not path.is_symlink()
    )
    return replace(
        blank,
        complete=finished,
        report=report if finished else None,
        panels=tuple(panels[:_MOST_PANELS]),
        sentences=()
        if finished
        else ("It is not finished; call the same oneway reproduce again, and it goes on.",),
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)[:200]


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) <= _MOST else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
