"""IDX files, MNIST's format: `train-images-idx3-ubyte` and its labels, compressed or not.

Two zero bytes, the type, the number of axes, the big-endian length of each, then the numbers.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError, MissingDataError
from oneway.tables.array_source import ArraySource, bare_name, read_bytes

_NAME = re.compile(r"idx\d-(ubyte|byte|short|int|float|double)$|\.idx\d?$")
_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def reads(path: Path) -> bool:
    """Whether a path is that of an IDX file."""
    return bool(_NAME.search(bare_name(path)))


def open_file(path: Path) -> ArraySource:
    """Read images, `[1, y, x]` each, or other arrays as they are, and the labels beside them."""
    arrays = read_idx(path)
    if arrays.ndim < 2:
        raise DataError(f"{path} holds one number a row, as labels do; name the file of the images")
    beside = labels_path(path)
    if not beside.is_file():
        raise MissingDataError(f"{beside} is not there; it must hold the labels of {path.name}")
    images = arrays.ndim == 3
    rows = arrays[:, None] if images else arrays
    name = "image" if images else "features"
    return ArraySource(path, name, rows.shape[1:], rows, read_idx(beside), (path, beside))


def labels_path(path: Path) -> Path:
    """Where the labels of a file of images are: under its name with other words."""
    return path.with_name(re.sub(r"idx\d", "idx1", path.name).replace("images", "labels"))


def read_idx(path: Path) -> NDArray[Any]:
    """The array in an IDX file; mapped if it is not compressed.

    Raises:
        DataError: If it is no such file, or not as long as it says.
    """
    content = read_bytes(path)
    kind, axes = (int(content[2]), int(content[3])) if len(content) >= 4 else (0, 0)
    start = 4 + 4 * axes
    if len(content) < start or content[:2].any() or kind not in _TYPES or not axes:
        raise DataError(f"{path} is no IDX file: its first bytes say no known type")
    lengths = tuple(np.frombuffer(content[4:start].tobytes(), ">u4").tolist())
    dtype = np.dtype(_TYPES[kind])
    wanted = start + dtype.itemsize * math.prod(lengths)
    if len(content) != wanted:
        raise DataError(
            f"{path} says that it has {wanted:,} bytes and has {len(content):,}; it is cut off or "
            "damaged: get it again"
        )
    return content[start:].view(dtype).reshape(lengths)
