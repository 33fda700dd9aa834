"""Digits: which digit is it? 1,797 images of 8 x 8 pixels that come with scikit-learn.

Alpaydin and Kaynak, UCI Optical Recognition of Handwritten Digits, CC BY 4.0; its test part.
"""

from __future__ import annotations

from pathlib import Path

from oneway.datasets.data_set import DATASETS, DataSet
from oneway.errors import needs_extra
from oneway.tables.array_source import ArraySource
from oneway.tables.source import Wish
from oneway.tables.table import Table


def load_digits() -> Table:
    """Load the images as arrays `[1, y, x]`, in the order of scikit-learn.

    Raises:
        MissingExtraError: If scikit-learn is not installed.
    """
    with needs_extra("the data set digits", "lab"):
        from sklearn.datasets import load_digits as load
    found, files = load(), _files()
    images = found.images[:, None]
    source = ArraySource(files[0], "image", images.shape[1:], images, found.target, files)
    from oneway.tables.assemble import read_table

    wish = Wish(label="digit", kind="classes")
    return read_table(source, wish, "digits", {"kind": "digits"})


def _files() -> tuple[Path, ...]:
    """The file of the package; nothing without it."""
    try:
        import sklearn.datasets
    except ModuleNotFoundError:
        return ()
    return (Path(str(sklearn.datasets.__file__)).parent / "data" / "digits.csv.gz",)


DIGITS = DATASETS.register(
    DataSet(
        name="digits",
        about="digits: small grey images, which digit is it?",
        rows=1_797,
        licence="CC BY 4.0",
        load=load_digits,
        label_kind="classes",
        locate=_files,
        comes_with="it comes with scikit-learn",
    )
)
