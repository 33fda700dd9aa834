"""CIFAR-10: what does the picture show? 50,000 coloured images of 32 x 32 pixels, binary version.

Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009; research use.
"""

from __future__ import annotations

from pathlib import Path

from oneway.datasets.data_set import DATASETS, DataFile, DataSet
from oneway.datasets.loader import read_arrays
from oneway.tables.cifar_arrays import open_batches
from oneway.tables.source import Wish
from oneway.tables.table import Table


def load_cifar10(folder: Path | None = None, *, standardise: bool = True) -> Table:
    """Load the five files of images to learn from, `[3, 32, 32]` each.

    Raises:
        MissingDataError: If a file is not there; says where to put it and how to download it.
        DataError: If a file is cut off or in another format.
    """
    files = CIFAR10.find(folder)
    source = open_batches(files[0].parent, files)
    wish = Wish(label="object", kind="classes", standardise=standardise)
    return read_arrays(source, wish, name="cifar10", options={"kind": "cifar10"})


CIFAR10 = DATASETS.register(
    DataSet(
        name="cifar10",
        about="CIFAR-10: small coloured photographs, what do they show?",
        rows=50_000,
        licence="research use",
        load=load_cifar10,
        label_kind="classes",
        url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        # Their digests are not known to us: those of the first download are kept beside them.
        files=tuple(
            DataFile(f"cifar10/data_batch_{part}.bin", f"data_batch_{part}.bin")
            for part in range(1, 6)
        ),
    )
)
