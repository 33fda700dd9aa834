"""The same sweep by joblib and by Ray on one machine, taking turns: what Ray costs there.

Runs are compiled, so joblib has threads. "Nothing" is a job that does nothing: the cost of sending
one. CPU is that of this process and all that descend from it, Ray's included if it was started
here; on a busy machine it says more than seconds do. Ray's start is measured apart, since a cluster
that runs already needs none.

    python benchmarks/ray_sweeps.py
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from oneway.simulator.executors import Executor, Job, Local, opened
from oneway.simulator.sweep import Trial, sweep
from oneway.task.assembly import read_table
from oneway.task.privacy import NO_PRIVACY
from oneway.task.settings import Settings

TURNS = 3
RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
SEEDS = (0, 1)
EMPTY_JOBS = 200
SIZES = {"small": (20, 100), "middle": (128, 1_000), "large": (1_000, 1_000)}
"""Nodes and rounds."""


def cpu_seconds() -> float:
    """What this process and its descendants have used, those that have ended included."""
    tick = os.sysconf("SC_CLK_TCK")
    parents, used = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        parents[int(path.parent.name)] = int(fields[1])
        used[int(path.parent.name)] = sum(map(int, fields[11:15])) / tick
    total = 0.0
    for process, spent in used.items():
        ancestor = process
        while ancestor not in (os.getpid(), 0):
            ancestor = parents.get(ancestor, 0)
        total += spent if ancestor else 0.0
    return total


def cost(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and seconds of CPU."""
    began, used = time.perf_counter(), cpu_seconds()
    work()
    return time.perf_counter() - began, cpu_seconds() - used


def compare(what: str, count: int, work: Callable[[Executor], object], ray: Executor) -> None:
    """Take turns, and print the medians and their ratio."""
    here = Local()
    work(here), work(ray)  # workers are started, kernels compiled
    pairs = [(cost(lambda: work(here)), cost(lambda: work(ray))) for _ in range(TURNS)]
    shown = ""
    for kind in (0, 1):
        values = [(joblib[kind], other[kind]) for joblib, other in pairs]
        joblib, other = (1e3 * statistics.median(it) / count for it in zip(*values, strict=True))
        shown += f" {joblib:9.1f} {other:9.1f} {other / max(joblib, 1e-9):6.2f}"
    print(f"{what:24} {count:5}{shown}", flush=True)


def nothing(executor: Executor) -> None:
    """Jobs that do nothing."""
    list(executor.results(Job(int, ()) for _ in range(EMPTY_JOBS)))


def main() -> None:
    """Measure and print."""
    began, used = time.perf_counter(), cpu_seconds()
    with opened("ray") as ray:
        spent = cpu_seconds() - used
        print(f"Ray was started in {time.perf_counter() - began:.1f} s ({spent:.1f} s of CPU)")
        titles = f" {'joblib':>9} {'Ray':>9} {'ratio':>6}"
        print(f"{'':24} {'jobs':>5}{2 * titles}   (ms a job, ms of CPU a job)")
        compare("nothing, in processes", EMPTY_JOBS, nothing, ray)
        for size, (nodes, rounds) in SIZES.items():
            settings = Settings(
                data="synthetic", nodes=nodes, resample=nodes * rounds, privacy=NO_PRIVACY
            )
            table = read_table(settings)
            found: list[list[Trial]] = []

            def work(executor: Executor, settings=settings, table=table, found=found) -> None:
                trials = sweep(settings, rates=RATES, seeds=SEEDS, table=table, executor=executor)
                found.append([replace(trial, seconds=0.0) for trial in trials])

            compare(f"{size}: {nodes:,} x {rounds:,}", len(RATES) * len(SEEDS), work, ray)
            assert all(trials == found[0] for trials in found), "bits differ"
    print("All trials had the same bits.")


if __name__ == "__main__":
    main()
