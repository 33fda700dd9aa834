"""Runs on disk, with config, seed and versions beside the numbers."""

from oneway.store.catalogue import find_runs
from oneway.store.folder import check, load, load_losses, save

__all__ = ["check", "find_runs", "load", "load_losses", "save"]
