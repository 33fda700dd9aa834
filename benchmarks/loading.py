"""Loading a CSV of SUSY's size: 5,000,000 rows, 2.3 GB, in a stream, then from its cache.

Writes the file into a temporary folder (it needs 3 GB there) and removes it. Each load runs in a
process of its own, so that its peak memory can be read.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

NUM_ROWS, NUM_FEATURES, BLOCK = 5_000_000, 18, 10_000

LOAD = """
import resource, sys, time
import oneway as ow
began = time.perf_counter()
table = ow.streams.load(sys.argv[1], label="label")
seconds = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(f"{table}: {seconds:.1f} s, peak memory {peak:.2f} GB")
"""


def write_csv(path: Path) -> None:
    """A file with UCI's wide number format; blocks of random rows are repeated to save time."""
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.integers(0, 2, BLOCK), rng.standard_normal((BLOCK, NUM_FEATURES))])
    block = "\n".join(",".join(f"{value:.18e}" for value in row) for row in rows) + "\n"
    with path.open("w") as file:
        file.write(",".join(["label", *(f"x{i}" for i in range(NUM_FEATURES))]) + "\n")
        for _ in range(NUM_ROWS // BLOCK):
            file.write(block)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "susy-sized.csv"
        write_csv(path)
        print(f"{path.stat().st_size / 1e9:.2f} GB of CSV, {NUM_ROWS:,} rows")
        environment = os.environ | {"ONEWAY_CACHE": folder}
        for what in ("first load", "from the cache"):
            print(f"{what}: ", end="", flush=True)
            subprocess.run([sys.executable, "-c", LOAD, str(path)], env=environment, check=True)


if __name__ == "__main__":
    main()
