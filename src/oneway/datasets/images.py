"""Images of digits: MNIST in its original IDX format, and the small ones of scikit-learn.

MNIST is by LeCun, Cortes and Burges, CC BY-SA 3.0; digits is the test part of UCI Optical
Recognition of Handwritten Digits by Alpaydin and Kaynak, CC BY 4.0.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneway.datasets.data_set import DATASETS, DataFile, DataSet
from oneway.errors import DataError, MissingDataError, needs_extra
from oneway.tables.table import Table


def load_mnist(folder: Path | None = None) -> Table:
    """Load the 60,000 images to learn from, or else the 10,000 to test with; its name says which.

    Raises:
        MissingDataError: If no file is there; says where to put it and how to download it.
        DataError: If a file is cut off or damaged.
    """
    images = MNIST.find(folder)[0]
    labels = images.with_name(images.name.replace("images-idx3", "labels-idx1"))
    if not labels.is_file():
        raise MissingDataError(f"{labels} is not there; it must hold the labels of {images.name}")
    name = "mnist (10,000 test images)" if images.name.startswith("t10k") else "mnist"
    return _images(_read_idx(images)[:, None], _read_idx(labels), name)


def load_digits() -> Table:
    """Load the images as arrays `[1, y, x]`, in the order of scikit-learn.

    Raises:
        MissingExtraError: If scikit-learn is not installed.
    """
    with needs_extra("the data set digits", "lab"):
        from sklearn.datasets import load_digits as load
    found = load()
    return _images(found.images[:, None].astype(np.uint8), found.target, "digits")


def _images(images: NDArray[Any], digits: NDArray[Any], name: str) -> Table:
    return Table.from_arrays(
        images,
        digits,
        feature_names=["image"],
        name=name,
        task="classes",
        label_name="digit",
        origin={"kind": name.partition(" ")[0]},
    )


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """The bytes of an IDX file: two zeros, the type 8, the axes, their lengths, the content."""
    content = np.frombuffer(_unpacked(path), dtype=np.uint8)
    start = 4 + 4 * int(content[3]) if len(content) >= 4 else 4
    if len(content) < start or content[:3].tolist() != [0, 0, 8]:
        raise DataError(f"{path} is no IDX file of bytes; download it again")
    lengths = tuple(np.frombuffer(content[4:start].tobytes(), ">u4").tolist())
    if len(content) != start + math.prod(lengths):
        raise DataError(f"{path} is cut off or damaged; download it again")
    return content[start:].reshape(lengths)


def _unpacked(path: Path) -> bytes:
    try:
        if path.suffix != ".gz":
            return path.read_bytes()
        with gzip.open(path) as file:
            return file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is not a gzip file ({error}); download it again") from None


def unpacked_sha256(path: Path) -> str:
    """The SHA-256 of the content of a gzip file, which is packed in several ways.

    Raises:
        DataError: If it is no gzip file, or damaged.
    """
    return hashlib.sha256(_unpacked(path)).hexdigest()


def _digits_file() -> tuple[Path, ...]:
    """The file of the package; nothing without it."""
    spec = find_spec("sklearn")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return tuple(Path(folder) / "datasets" / "data" / "digits.csv.gz" for folder in folders[:1])


DIGITS = DATASETS.register(
    DataSet(
        name="digits",
        about="digits: small grey images, which digit is it?",
        rows=1_797,
        licence="CC BY 4.0",
        load=load_digits,
        package_files=_digits_file,
        comes_with="it comes with scikit-learn",
    )
)

MNIST = DATASETS.register(
    DataSet(
        name="mnist",
        about="MNIST: grey images of handwriting, which digit is it?",
        rows=60_000,
        licence="CC BY-SA 3.0",
        load=load_mnist,
        url="https://archive.ics.uci.edu/static/public/683/mnist+database+of+handwritten+digits.zip",
        files=tuple(
            DataFile(f"mnist/{name}.gz", f"{name}.gz", sha256, unpacked_sha256)
            for name, sha256 in (
                (
                    "train-images-idx3-ubyte",
                    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                ),
                (
                    "train-labels-idx1-ubyte",
                    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                ),
            )
        ),
        alternatives=(
            "mnist/train-images-idx3-ubyte",
            "mnist/t10k-images-idx3-ubyte.gz",
            "mnist/t10k-images-idx3-ubyte",
        ),
    )
)
