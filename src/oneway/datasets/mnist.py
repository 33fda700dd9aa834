"""MNIST: which digit is it? 70,000 images of 28 x 28 pixels in the original IDX format.

LeCun, Cortes and Burges, CC BY-SA 3.0.
"""

from __future__ import annotations

from pathlib import Path

from oneway.datasets.data_set import DATASETS, DataFile, DataSet
from oneway.datasets.loader import read_arrays
from oneway.tables.array_source import open_arrays
from oneway.tables.source import Wish
from oneway.tables.table import Table


def load_mnist(folder: Path | None = None, *, standardise: bool = True) -> Table:
    """Load the 60,000 images to learn from, or else the 10,000 to test with; its name says which.

    Raises:
        MissingDataError: If no file is there; says where to put it and how to download it.
        DataError: If a file is cut off or damaged.
    """
    images = MNIST.find(folder)[0]
    is_test = images.name.startswith("t10k")
    wish = Wish(label="digit", kind="classes", standardise=standardise)
    name = "mnist (10,000 test images)" if is_test else "mnist"
    return read_arrays(open_arrays(images), wish, name=name, options={"kind": "mnist"})


MNIST = DATASETS.register(
    DataSet(
        name="mnist",
        about="MNIST: grey images of handwriting, which digit is it?",
        rows=60_000,
        licence="CC BY-SA 3.0",
        load=load_mnist,
        label_kind="classes",
        url="https://archive.ics.uci.edu/static/public/683/mnist+database+of+handwritten+digits.zip",
        # Their digests are not known to us: those of the first download are kept beside them.
        files=tuple(
            DataFile(f"mnist/{name}", name)
            for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
        ),
        alternatives=(
            "mnist/train-images-idx3-ubyte",
            "mnist/t10k-images-idx3-ubyte.gz",
            "mnist/t10k-images-idx3-ubyte",
        ),
    )
)
