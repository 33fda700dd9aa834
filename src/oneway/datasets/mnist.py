"""MNIST: which digit is it? 70,000 images of 28 x 28 pixels in the original IDX format.

LeCun, Cortes and Burges, CC BY-SA 3.0.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path

from oneway.datasets.data_set import DATASETS, DataFile, DataSet
from oneway.errors import DataError
from oneway.tables.array_source import open_arrays
from oneway.tables.source import Wish
from oneway.tables.table import Table


def load_mnist(folder: Path | None = None) -> Table:
    """Load the 60,000 images to learn from, or else the 10,000 to test with; its name says which.

    Raises:
        MissingDataError: If no file is there; says where to put it and how to download it.
        DataError: If a file is cut off or damaged.
    """
    images = MNIST.find(folder)[0]
    is_test = images.name.startswith("t10k")
    from oneway.tables.assemble import read_table

    wish = Wish(label="digit", kind="classes")
    name = "mnist (10,000 test images)" if is_test else "mnist"
    return read_table(open_arrays(images), wish, name, {"kind": "mnist"})


def unpacked_sha256(path: Path) -> str:
    """The SHA-256 of the content of a gzip file, which is packed in several ways.

    Raises:
        DataError: If it is no gzip file, or damaged.
    """
    try:
        with gzip.open(path) as file:
            return hashlib.sha256(file.read()).hexdigest()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is not a gzip file ({error}); download it again") from None


MNIST = DATASETS.register(
    DataSet(
        name="mnist",
        about="MNIST: grey images of handwriting, which digit is it?",
        rows=60_000,
        licence="CC BY-SA 3.0",
        load=load_mnist,
        label_kind="classes",
        url="https://archive.ics.uci.edu/static/public/683/mnist+database+of+handwritten+digits.zip",
        files=(
            DataFile(
                "mnist/train-images-idx3-ubyte.gz",
                "train-images-idx3-ubyte.gz",
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                unpacked_sha256,
            ),
            DataFile(
                "mnist/train-labels-idx1-ubyte.gz",
                "train-labels-idx1-ubyte.gz",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                unpacked_sha256,
            ),
        ),
        alternatives=(
            "mnist/train-images-idx3-ubyte",
            "mnist/t10k-images-idx3-ubyte.gz",
            "mnist/t10k-images-idx3-ubyte",
        ),
    )
)
