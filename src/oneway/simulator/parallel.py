"""Parallel jobs: joblib's workers, whose ordinary end is no news."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import joblib


def in_parallel(
    jobs: Iterable[Any], num_workers: int | None = None, *, threads: bool = False
) -> Iterator[Any]:
    """Results of `joblib.delayed` calls as they come, in any order.

    Args:
        jobs: Read as workers become free.
        num_workers: One for each core if None.
        threads: A process takes seconds to start; only what is not compiled needs one.
    """
    workers = joblib.Parallel(
        n_jobs=num_workers or os.cpu_count(),
        prefer="threads" if threads else "processes",
        return_as="generator_unordered",
    )
    with warnings.catch_warnings():
        # A worker that has grown, or was idle, is replaced, and the thread that replaces it warns
        # first. Where warnings are errors that thread would end, and its jobs never would.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        yield from workers(jobs)
