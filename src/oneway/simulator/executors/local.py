"""Local executor: joblib's workers on this machine, replaced if they are killed."""

from __future__ import annotations

import os
import threading
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import Any

import joblib

from oneway.errors import ClusterError, ConfigError
from oneway.sentences import shown
from oneway.simulator.executors.base import ATTEMPTS, EXECUTORS, Executor, Job


class Local:
    """Processes, or threads where those do, one for each core."""

    def results(
        self, jobs: Iterable[Job], *, num_workers: int | None = None, threads: bool = False
    ) -> Iterator[Any]:
        """See `Executor`; a process takes seconds to start, so only what is not compiled has one.

        When a process is killed, joblib gives up all that it has begun: that is begun again.
        """
        work = _Ledger(jobs)
        while True:
            workers = joblib.Parallel(
                n_jobs=num_workers or os.cpu_count(),
                prefer="threads" if threads else "processes",
                return_as="generator_unordered",
            )
            with warnings.catch_warnings():
                # A worker that has grown, or was idle, is replaced, and the thread that replaces it
                # warns first. Where warnings are errors that thread would end, and its jobs never
                # would.
                warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
                try:
                    for number, result in workers(joblib.delayed(_run)(*it) for it in work):
                        work.done(number)
                        yield result
                except BrokenExecutor as error:
                    work.count_losses(error)
            if not work.begin_again():
                return


class _Ledger:
    """Jobs that are begun and not finished, and those that are not begun: joblib reads it."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs = enumerate(jobs)
        self._begun: dict[int, Job] = {}
        self._again: list[tuple[int, Job]] = []
        self._losses: Counter[int] = Counter()
        self._lock = threading.Lock()  # joblib reads in threads of its own

    def __iter__(self) -> Iterator[tuple[int, Job]]:
        return self

    def __next__(self) -> tuple[int, Job]:
        with self._lock:
            number, job = self._again.pop() if self._again else next(self._jobs)
            self._begun[number] = job
            return number, job

    def done(self, number: int) -> None:
        with self._lock:
            del self._begun[number]

    def count_losses(self, error: BrokenExecutor) -> None:
        with self._lock:
            self._losses.update(self._begun.keys())
            if not self._begun or max(self._losses.values()) >= ATTEMPTS:
                raise ClusterError(
                    f"worker processes of this machine ended {ATTEMPTS} times within the same run, "
                    "for want of memory perhaps",
                    remedy="run fewer at a time with jobs=1",
                    flag_remedy="run fewer at a time (tune has --jobs), or on a larger machine",
                ) from error

    def begin_again(self) -> bool:
        """Put back what was begun; whether there is any, also if a pool took it while it broke."""
        with self._lock:
            self._again += reversed(self._begun.items())
            self._begun = {}
            return bool(self._again)


def _run(number: int, job: Job) -> tuple[int, Any]:
    return number, job()


@contextmanager
def opened(address: str | None) -> Iterator[Executor]:
    """Nothing is started before there are jobs."""
    if address is not None:
        raise ConfigError(f"local has the address {shown(address)}; it has none: leave it out")
    yield Local()


EXECUTORS.register(opened, name="local")
