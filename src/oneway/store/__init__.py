"""Runs on disk, with config, seed and versions beside the numbers."""

from oneway.store.catalogue import find_runs
from oneway.store.entry import REPORT, RESULT, RUNS, Entry
from oneway.store.run_folder import check, is_run, load, load_losses, save

__all__ = [
    "REPORT",
    "RESULT",
    "RUNS",
    "Entry",
    "check",
    "find_runs",
    "is_run",
    "load",
    "load_losses",
    "save",
]
