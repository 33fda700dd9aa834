"""Runs on disk, with config, seed and versions beside the numbers."""

from oneway.store.catalogue import REPORT, RESULT, RUNS, Entry, find_runs
from oneway.store.run_folder import FILES, check, is_run, load, save

__all__ = [
    "FILES",
    "REPORT",
    "RESULT",
    "RUNS",
    "Entry",
    "check",
    "find_runs",
    "is_run",
    "load",
    "save",
]
