"""What loading a table costs: seconds, and peak memory as times the size of the file.

    python benchmarks/loading.py [--rows 1000000]

A CSV file of 19 columns (14 numbers, a whole number with missing values, a category, a truth value,
a date and a label) is loaded in a process of its own, three times; the best counts.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TIMES = 3
BLOCK = 50_000


def write_rows(path: Path, rows: int) -> None:
    """Write made-up rows."""
    rng = np.random.default_rng(0)
    days = [f"2025-{1 + day // 28:02}-{1 + day % 28:02}" for day in range(336)]
    with path.open("w") as file:
        file.write(
            ",".join([*(f"x{n}" for n in range(14)), "age", "town", "new", "day", "y"]) + "\n"
        )
        for start in range(0, rows, BLOCK):
            count = min(BLOCK, rows - start)
            numbers = rng.normal(100.0, 10.0, (count, 14))
            ages, towns = rng.integers(0, 90, count), rng.integers(0, 30, count)
            truths, dates = rng.integers(0, 2, (2, count)), rng.integers(0, 336, count)
            for row, age, town, new, day, label in zip(
                numbers, ages, towns, truths[0], dates, truths[1], strict=True
            ):
                cells = [*map(repr, row.tolist()), str(age or ""), f"town {town}"]
                cells += ["yes" if new else "no", days[day], str(label)]
                file.write(",".join(cells) + "\n")


def load_once(path: str) -> None:
    """Load a file and print seconds and peak memory beyond what Python and its packages take."""
    import polars  # noqa: F401

    from oneway.datasets import load

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    table = load(path, label="y")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps([seconds, 1024 * peak, list(table.features.shape)]))


def main() -> None:
    """Write the file, load it, print what that cost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--load", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.load:
        load_once(arguments.load)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        write_rows(path, arguments.rows)
        size = path.stat().st_size
        runs = []
        for _ in range(TIMES):
            command = [sys.executable, __file__, "--load", str(path)]
            ran = subprocess.run(command, check=True, capture_output=True, text=True)
            runs.append(json.loads(ran.stdout))
        seconds, peak = min(run[0] for run in runs), min(run[1] for run in runs)
        print(
            f"{arguments.rows:,} rows of 19 columns, {size / 1e6:.0f} MB: {seconds:.2f} s, "
            f"peak {peak / size:.2f} times the file; features {runs[0][2]}"
        )


if __name__ == "__main__":
    main()
