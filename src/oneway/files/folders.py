"""Where data files live on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def data_folder() -> Path:
    """The folder of the data sets: `ONEWAY_DATA`, or `oneway/data` in the user's cache folder."""
    chosen = os.environ.get("ONEWAY_DATA")
    return Path(chosen).expanduser() if chosen else user_cache_path("oneway") / "data"
