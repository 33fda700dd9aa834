"""Where data files and cached tables live on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def data_folder() -> Path:
    """The folder of the data sets: `ONEWAY_DATA`, or `oneway/data` in the user's cache folder."""
    return _folder("ONEWAY_DATA", "data")


def cache_folder() -> Path:
    """The folder of the cached tables: `ONEWAY_CACHE`, or `oneway/tables` in the user's cache."""
    return _folder("ONEWAY_CACHE", "tables")


def _folder(variable: str, default: str) -> Path:
    chosen = os.environ.get(variable)
    return Path(chosen).expanduser() if chosen else user_cache_path("oneway") / default
