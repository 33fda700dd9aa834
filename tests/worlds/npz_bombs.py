"""NumPy archives that claim more than they are."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

ABSURD = [(10**14,), (2**32, 2**20), (2**63,), (2**70, 2), (-1, 2)]
"""Shapes that no file has; NumPy raises a different error for each."""


def bomb(path: Path) -> Path:
    """A file of 2 MB, each of whose two arrays unpacks to 1 GiB of zeros."""
    packer = zlib.compressobj(wbits=-15)
    start = packer.compress(header((2**27 // 8, 8))) + packer.flush(zlib.Z_FULL_FLUSH)
    zeros = packer.compress(bytes(2**24)) + packer.flush(zlib.Z_FULL_FLUSH)
    with ZipFile(path, "w") as archive:
        for name in ("features.npy", "labels.npy"):
            archive.writestr(name, start + 64 * zeros + packer.copy().flush())
            # The blocks are packed once and written as they are: zeros take long to pack.
            member = archive.getinfo(name)
            member.compress_type, member.file_size = ZIP_DEFLATED, 128 + 2**30
    return path


def claiming(path: Path, shape: tuple[int, ...]) -> Path:
    """A small file with the arrays `features` and `labels`, of which the first claims a shape."""
    labels = io.BytesIO()
    np.save(labels, np.arange(6))
    with ZipFile(path, "w") as archive:
        archive.writestr("features.npy", header(shape) + bytes(96))
        archive.writestr("labels.npy", labels.getvalue())
    return path


def header(shape: tuple[int, ...]) -> bytes:
    """The header of a `.npy` file of doubles: 128 bytes."""
    text = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\1\0" + (118).to_bytes(2, "little") + text.ljust(117) + b"\n"
