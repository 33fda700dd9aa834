"""Who sees which row when: streams, and the ways to deal a table's rows to nodes.

Loading has its home in `oneway.datasets` and tables in `oneway.tables`; `load`, `synthetic` and the
other names that users know under `oneway.streams` are found here too.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from oneway.streams.stream import Stream

_IN_TABLES = ("Table",)
_IN_DATASETS = (
    *("load", "synthetic", "Synthetic", "fetch"),
    *("DataSet", "DataFile", "data_folder"),
)

__all__ = ["Stream", *_IN_TABLES, *_IN_DATASETS]


def __getattr__(name: str) -> Any:
    """Look up a public name whose home is another package."""
    if name not in __all__:
        raise AttributeError(f"module 'oneway.streams' has no attribute {name!r}")
    home = "tables" if name in _IN_TABLES else "datasets"
    return getattr(import_module(f"oneway.{home}"), name)
