"""Runs on disk, with config, seed and versions beside the numbers."""

from oneway.store.folder import check, load, save

__all__ = ["check", "load", "save"]
