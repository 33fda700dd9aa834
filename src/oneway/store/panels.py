"""The panels of a reproduction: mean curves over seeds, each panel a CSV file."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass

from oneway.errors import StoreError
from oneway.store.entry import Entry
from oneway.store.layout import MOST_BYTES, PANELS


@dataclass(frozen=True)
class PanelCurve:
    """One curve: after how many rounds, and the mean over seeds of the average loss until then."""

    name: str
    rounds: list[int]
    means: list[float]
    num_seeds: int


def read_panel(entry: Entry, name: str) -> list[PanelCurve]:
    """Read one panel.

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
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                curve = curves.setdefault(
                    row["curve"], PanelCurve(row["curve"], [], [], int(row["seeds"]))
                )
                mean = float(row["mean"])
                curve.rounds.append(int(row["iteration"]))
                curve.means.append(mean if math.isfinite(mean) else math.nan)
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise StoreError(f"{path.name} is damaged ({error}); reproduce it again") from error
    return list(curves.values())
