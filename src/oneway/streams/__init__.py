"""Who sees which row when: streams, and the ways to deal a table's rows to nodes.

Loading has its home in `oneway.datasets` and tables in `oneway.tables`; `load`, `synthetic` and the
other names that users know under `oneway.streams` are found here too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from oneway.streams.stream import Stream

if TYPE_CHECKING:
    load: Any
    synthetic: Any
    fetch: Any
    info: Any
    catalogue: Any
    cache_folder: Any
    data_folder: Any
    Table: Any
    Column: Any
    DataSet: Any
    DataFile: Any
    Status: Any
    Synthetic: Any

_HOME = {
    "load": "datasets",
    "synthetic": "datasets",
    "Synthetic": "datasets",
    "fetch": "datasets",
    "info": "datasets",
    "catalogue": "datasets",
    "DataSet": "datasets",
    "DataFile": "datasets",
    "Status": "datasets",
    "cache_folder": "datasets",
    "data_folder": "datasets",
    "Table": "tables",
    "Column": "tables",
}

__all__ = ["Stream", *_HOME]


def __getattr__(name: str) -> Any:
    """Look up a public name whose home is another package."""
    if name not in _HOME:
        raise AttributeError(f"module 'oneway.streams' has no attribute {name!r}")
    return getattr(import_module(f"oneway.{_HOME[name]}"), name)
