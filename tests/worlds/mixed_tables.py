"""A CSV file with columns of all kinds, missing values, an owner, and a label of some kind."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

MODELS = {"two": "logistic", "three": "softmax", "number": "ridge"}

ROWS = 240


def write_table(path: Path, label: str, **changes: object) -> Path:
    """A file with columns of all kinds, an owner, and a label of some kind."""
    rng = np.random.default_rng(3)
    age, dose = rng.integers(20, 90, ROWS), rng.choice(["low", "mid", "high"], ROWS)
    score = 0.1 * (age - 55) + 2.0 * (dose == "high") + 0.3 * rng.normal(size=ROWS)
    labels = {
        "two": np.where(score > 0, "ill", "well"),
        "three": np.select([score < -1, score < 2], ["none", "mild"], "severe"),
        "number": np.round(100 + 10 * score, 3),
    }[label]
    columns = {
        "id": np.arange(1, ROWS + 1),
        "age": [str(a) if n % 11 else "" for n, a in enumerate(age)],
        "dose": dose,
        "smoker": rng.choice(["yes", "no"], ROWS),
        "visit": [f"2026-03-{1 + n % 28:02} {n % 24:02}:30" for n in range(ROWS)],
        "site": rng.choice(["north", "south", "west"], ROWS),
        "y": labels,
    } | changes
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def says_what_became_of_columns(err: str) -> bool:
    return (
        "1 number, 1 category, 1 boolean, 1 time" in err
        and "missing values in 1 column, most in 'age' (9%)" in err
        and "- 'id': left out, it numbers the rows: an identifier" in err
    )
