"""The known data sets, one file each, and where they are found or downloaded."""

from oneway.datasets.base import DataFile, DataSet, Status, catalogue, info
from oneway.datasets.download import fetch
from oneway.datasets.loader import load
from oneway.datasets.synthetic import Synthetic, synthetic
from oneway.files.folders import cache_folder, data_folder

__all__ = [
    "DataFile",
    "DataSet",
    "Status",
    "Synthetic",
    "cache_folder",
    "catalogue",
    "data_folder",
    "fetch",
    "info",
    "load",
    "synthetic",
]
