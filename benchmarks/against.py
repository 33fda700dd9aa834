"""Every number of a benchmark, beside that of an earlier commit, both measured in one run.

The two trees take turns, each with its own script and source; of each number the smallest of all
turns counts. A ratio above 1 means more than before: slower where the number is a time, faster
where it is a count per second.

    python benchmarks/against.py COMMIT [engines peer scale] [--turns 3]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


def numbers(tree: Path, name: str) -> dict[tuple[str, int], float]:
    """Run a benchmark of a tree; its numbers by the line they stand in, and their place there."""
    done = subprocess.run(
        [sys.executable, f"benchmarks/{name}.py"],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[tuple[str, int], float] = {}
    seen: dict[str, int] = defaultdict(int)
    for line in done.stdout.splitlines():
        shape = re.sub(r"\s+", " ", NUMBER.sub("#", line)).strip(" │┃")
        seen[shape] += 1
        for place, text in enumerate(NUMBER.findall(line)):
            found[f"{shape} ({seen[shape]})", place] = float(text.replace(",", ""))
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("commit")
    parser.add_argument("names", nargs="*", default=["engines", "peer", "scale"])
    parser.add_argument("--turns", type=int, default=3)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(before), chosen.commit],
            cwd=HERE,
            check=True,
        )
        try:
            for name in chosen.names:
                turns = [(numbers(before, name), numbers(HERE, name)) for _ in range(chosen.turns)]
                print(f"\n{name}: before, now, ratio")
                old, new = (
                    {
                        key: min(turn[side].get(key, float("inf")) for turn in turns)
                        for key in turns[0][1]
                    }
                    for side in (0, 1)
                )
                for shape, place in new:
                    then, now = old[shape, place], new[shape, place]
                    ratio = now / then if then else float("nan")
                    print(f"  {then:>14,.6g} {now:>14,.6g}  {ratio:6.3f}   no. {place} of: {shape}")
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(before)], cwd=HERE, check=True
            )


if __name__ == "__main__":
    main()
