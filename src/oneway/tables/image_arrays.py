"""Folders of images by class: `folder/cat/1.png`, `folder/dog/7.jpg`; all of one size.

An image is `[channel, y, x]` with one channel if all are grey, else with red, green and blue.
Pixels are 0 to 255; grey ones of 16 bits are brought to that range.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError, needs_extra
from oneway.sentences import listed
from oneway.tables.array_source import ArraySource

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
TOP = 255.0
"""A white pixel."""
_GREY = ("1", "L", "LA")
_GREY_16 = ("I;16", "I;16L", "I;16B", "I;16N")
_DEEP = ("I", "F")


def reads(path: Path) -> bool:
    """Whether a path is a folder."""
    return path.is_dir()


def open_file(path: Path) -> ArraySource:
    """Look at the size and the colours of every image; pixels are read when they are asked for."""
    found = _images(path)
    files = tuple(file for file, _ in found)
    looks = [_look(file) for file in files]
    size = looks[0][0]
    for file, (other, _) in zip(files, looks, strict=True):
        if other != size:
            raise DataError(
                f"{file} has {other[0]} x {other[1]} pixels and {files[0].name} has "
                f"{size[0]} x {size[1]}; all images must be of one size: resize it or take it out"
            )
    mode = "L" if all(is_grey for _, is_grey in looks) else "RGB"
    shape = (1 if mode == "L" else 3, size[1], size[0])
    labels = np.array([label for _, label in found])
    return ArraySource(path, "image", shape, _Images(files, mode), labels, files)


def _images(path: Path) -> list[tuple[Path, str]]:
    """Every image with the folder it is in, but for hidden files.

    Shuffled deterministically, by name, so that classes are not learned one after another.
    """
    found = [
        (file, folder.name)
        for folder in path.iterdir()
        if folder.is_dir() and not folder.name.startswith(".")
        for file in folder.iterdir()
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")
    ]
    if not found:
        raise DataError(
            f"{path} is a folder without images by class; name a file, or put images (they end in "
            f"{listed(SUFFIXES)}) into a folder for each class, as {path.name}/cat/1.png"
        )
    return sorted(found, key=lambda it: blake2b(f"{it[1]}/{it[0].name}".encode()).digest())


def _look(file: Path) -> tuple[tuple[int, int], bool]:
    """Width and height of an image, and whether it is grey."""
    with _opened(file) as image:
        if image.mode in _DEEP:
            raise _unreadable(file, "its pixels have 32 bits")
        return image.size, image.mode in (*_GREY, *_GREY_16)


class _Images:
    """The pixels of image files."""

    def __init__(self, files: Sequence[Path], mode: str) -> None:
        self._files, self._mode = files, mode

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, rows: slice, /) -> NDArray[Any]:
        return np.stack([_pixels(file, self._mode) for file in self._files[rows]])


def read_image(file: Path, mode: str, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Return the pixels of one image as `[channel, y, x]`, brought to a size (width, height).

    Raises:
        DataError: If it cannot be read, or its pixels have 32 bits.
    """
    _look(file)
    return _pixels(file, mode, size)


def _pixels(file: Path, mode: str, size: tuple[int, int] | None = None) -> NDArray[np.uint8]:
    with _opened(file) as image:
        try:
            converted = _in_8_bits(image).convert(mode)
            if size not in (None, converted.size):
                converted = converted.resize(size)
            pixels = np.asarray(converted, dtype=np.uint8)
        except (OSError, ValueError, SyntaxError) as error:
            raise _unreadable(file, str(error)) from None
    return np.atleast_3d(pixels).transpose(2, 0, 1)


def _in_8_bits(image: Any) -> Any:
    """Bring grey pixels of 16 bits to 0 to 255; Pillow's own conversion would cut them off."""
    if image.mode not in _GREY_16:
        return image
    from PIL import Image

    return Image.fromarray(np.rint(np.asarray(image) / 257.0).astype(np.uint8))


def _opened(file: Path) -> Any:
    with needs_extra("reading images", "images"):
        from PIL import Image, UnidentifiedImageError
    try:
        return Image.open(file)
    except (UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise _unreadable(file, str(error)) from None


def _unreadable(file: Path, reason: str) -> DataError:
    return DataError(f"{file} is no image that can be read ({reason}); convert it or take it out")
