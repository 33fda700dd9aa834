"""CPU time of a push of a large model, by what it goes to, at both ends.

A sender and a receiver with real stores in one process, without sockets and without waiting: one
sample is learned and pushed, made durable and encoded, taken in and made durable at the other end,
and the answer is taken in. Prints the median CPU time of each, in milliseconds, and what both peers
hold in memory together. To compare with another commit, run its own source with this script.

    python benchmarks/large_pushes.py [PARAMETERS ...] [--pushes 24]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack, closing
from itertools import product
from pathlib import Path
from typing import TypeVar

from oneway.peer.peer import Peer
from private_pushes import _carried, _committed
from pushes import FEATURES, make_peers, processes, resident_megabytes

WARM_UP = 3
PARTS = ("learn and push", "commit and say", "take in", "hear the answer")

Result = TypeVar("Result")


class Clock:
    """CPU time of every part of every push."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def timed(self, part: str, work: Callable[[], Result]) -> Result:
        """What comes of some work, all threads of which are counted for a part."""
        began = time.process_time()
        result = work()
        self.seconds[part].append(time.process_time() - began)
        return result


def push(sender: Peer, receiver: Peer, x: dict[str, float], clock: Clock) -> None:
    """One sample, one push, one answer."""
    learn, commit, take, hear = PARTS
    clock.timed(learn, lambda: sender.node.learn(x, "1"))
    said = clock.timed(commit, lambda: _committed(sender))
    while said:
        words = said
        answers = clock.timed(take, lambda words=words: _carried(sender, receiver, words))
        said = clock.timed(hear, lambda words=answers: _carried(receiver, sender, words))


def measure(dim: int, method: str, pushes: int) -> None:
    """Print the parts of a push of one size and method."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        homes = make_peers(folder, dim, method=method)
        sender, receiver = (stack.enter_context(closing(Peer(home.folder))) for home in homes)
        x = {f"x{index}": 0.01 * index for index in range(FEATURES[dim])}
        for _ in range(WARM_UP):
            push(sender, receiver, x, Clock())
        clock = Clock()
        for _ in range(pushes):
            push(sender, receiver, x, clock)
        parts = [1e3 * statistics.median(clock.seconds[part]) for part in PARTS]
        print(
            f"{dim:>10,}  {method:<6}"
            + "".join(f"  {milliseconds:>15.1f}" for milliseconds in (*parts, sum(parts)))
            + f"  {resident_megabytes():>5.0f} MB",
            flush=True,
        )


def main() -> None:
    """Measure all sizes, with one vector and with two in a push."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--pushes", type=int, default=24)
    chosen = parser.parse_args()
    print("parameters  method" + "".join(f"  {part:>15}" for part in (*PARTS, "both ends")))
    for dim, method in product(chosen.sizes, ("ops", "relay")):
        # In a process of its own: what the one before has held is not counted again.
        process = processes.Process(target=measure, args=(dim, method, chosen.pushes))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
