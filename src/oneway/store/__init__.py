"""Runs on disk, with config, seed and versions beside the numbers."""

from oneway.store.folder import load, save

__all__ = ["load", "save"]
