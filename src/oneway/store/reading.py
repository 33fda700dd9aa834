"""What the files of a run, lab, demo or reproduction say about it; nothing that is wrong raises."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oneway.errors import StoreError
from oneway.store.entry import Entry
from oneway.store.folder import ARRAYS, read_summary
from oneway.store.words import data_words, graph_words, model_words

REPORT = "report.html"
RESULT = "result.json"
PANELS = "panels"
_MOST_BYTES = 1 << 26
_MOST_PANELS = 100


def read_run(blank: Entry) -> Entry:
    """Complete an entry from its `run.json`."""
    try:
        summary = read_summary(blank.path)
        arrays = blank.path / ARRAYS
        if not arrays.is_file() or arrays.is_symlink():
            raise StoreError(f"{ARRAYS} is missing; run it again")
    except StoreError as error:
        return replace(blank, is_run=True, problem=reason_of(error, blank))
    config = _table(summary.get("config"))
    stream = config.get("stream")
    return replace(
        blank,
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
    config, losses = _table(result.get("config")), _table(result.get("average_loss"))
    peers = result.get("peers")
    return replace(
        blank,
        algorithm="ops",
        data=data_words(config.get("stream")),
        model=model_words(config.get("task")),
        learning_rate=_text(_table(config.get("task")).get("learning_rate")),
        graph=graph_words(config.get("graph")),
        num_nodes=len(peers) if isinstance(peers, list) else None,
        average_loss=_number(losses.get("together")),
        complete=bool(result.get("complete")),
        seconds=_number(result.get("seconds")),
        sentences=tuple(_lab_sentences(result, losses)),
    )


def read_result(entry: Entry) -> dict[str, Any]:
    """Read all of a lab's `result.json`.

    Raises:
        StoreError: If it is damaged.
    """
    file = entry.path / RESULT
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
        result = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(result, dict):
            raise ValueError("it holds no table")
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"{RESULT} is damaged ({reason}); run the lab again") from error
    return result


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


def _lab_sentences(result: Mapping[str, Any], losses: Mapping[str, Any]) -> list[str]:
    verdict = _table(result.get("audit")).get("verdict")
    said = [_text(sentence) for sentence in verdict] if isinstance(verdict, list) else []
    together, simulated, alone = (
        _number(losses.get(name)) for name in ("together", "simulated", "alone")
    )
    if together is not None and simulated is not None and alone is not None:
        said.append(
            f"average loss {together:.4f}; in the simulator, same graph, samples and order, "
            f"{simulated:.4f}; each alone {alone:.4f}"
        )
    return said


def reason_of(error: StoreError, entry: Entry) -> str:
    """What is wrong with a run, without its folder, which stands beside it."""
    text = str(error).removeprefix(f"there is no stored run in {entry.path}: ")
    damage = f"the run in {entry.path} is damaged ("
    if text.startswith(damage):
        return text.removeprefix(damage).replace("); run it again", "; run it again")
    return text.replace(f"the run in {entry.path} has", "it has", 1)


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return "" if value is None else str(value)[:200]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
