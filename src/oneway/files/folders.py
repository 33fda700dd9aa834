"""Where data files and cached tables live on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder() -> Path:
    """The folder of the data sets: `ONEWAY_DATA`, or `oneway/data` in the user's cache folder."""
    chosen = os.environ.get("ONEWAY_DATA")
    return Path(chosen).expanduser() if chosen else _user_cache() / "oneway" / "data"


def cache_folder() -> Path:
    """The folder of the cached tables: `ONEWAY_CACHE`, or `oneway/tables` in the user's cache."""
    chosen = os.environ.get("ONEWAY_CACHE")
    return Path(chosen).expanduser() if chosen else _user_cache() / "oneway" / "tables"


def _user_cache() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache"
