"""Where samples come from: tables, and the ways to deal them to nodes round by round."""

from oneway.streams.column import Column
from oneway.streams.data_sets import DataFile, DataSet, Status, catalogue, info
from oneway.streams.download import fetch
from oneway.streams.folders import cache_folder, data_folder
from oneway.streams.loader import load
from oneway.streams.stream import Stream
from oneway.streams.synthetic import Synthetic, synthetic
from oneway.streams.table import Table

__all__ = [
    "Column",
    "DataFile",
    "DataSet",
    "Status",
    "Stream",
    "Synthetic",
    "Table",
    "cache_folder",
    "catalogue",
    "data_folder",
    "fetch",
    "info",
    "load",
    "synthetic",
]
