"""The known data sets, one file each, and where they are found or downloaded."""

# Each of these registers its data set; the order is that of `oneway data list`.
from oneway.datasets import flights, uci, images  # noqa: F401, I001
from oneway.datasets import synthetic as _synthetic, trust_graphs  # noqa: F401
from oneway.datasets.data_set import DATASETS, DataFile, DataSet, names_of
from oneway.datasets.download import fetch
from oneway.datasets.loader import load, load_for
from oneway.datasets.synthetic import Synthetic, synthetic
from oneway.files.folders import data_folder

__all__ = [
    "DATASETS",
    "DataFile",
    "DataSet",
    "Synthetic",
    "data_folder",
    "fetch",
    "load",
    "load_for",
    "names_of",
    "synthetic",
]
