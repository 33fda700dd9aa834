"""One sample in a file of its own: the array of an image, or of a `.npy` file, for a feature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError, MissingDataError
from oneway.sentences import shown
from oneway.tables import image_arrays
from oneway.tables.features import Feature, format_shape

_WHITES = (1.0, 16.0, 255.0, 65535.0)
"""What images have as their brightest value."""


def white_of(feature: Feature) -> float:
    """What a white pixel probably is in the data: the least usual value above most pixels.

    >>> white_of(Feature("image", 4.9, 6.0, shape=(1, 8, 8)))
    16.0
    """
    typical = feature.center + feature.scale
    return next((white for white in _WHITES if white >= typical), _WHITES[-1])


def is_sample_file(name: str) -> bool:
    """Whether something is, by its end, the name of an image or of a `.npy` file."""
    return Path(name).suffix.lower() in (*image_arrays.SUFFIXES, ".npy")


def read_sample(path: Path, feature: Feature, white: float | None = None) -> NDArray[Any]:
    """Return the array in a file, as a feature of a sample, unscaled.

    Args:
        path: A `.npy` file with the numbers of the data; or an image, which is brought to the size
            and the colours of the feature.
        feature: An array.
        white: What a white pixel of an image is in the data, `white_of` if not given; black is 0.

    Raises:
        MissingDataError: There is no such file.
        DataError: It cannot be read, or is nothing that the feature can be.
        MissingExtraError: It is an image, and Pillow is not installed.
    """
    if not path.is_file():
        raise MissingDataError(f"{path} is not there; check the path")
    if path.suffix.lower() == ".npy":
        return _numbers(path, feature)
    channels_first = len(feature.shape) == 3 and feature.shape[0] in (1, 3)
    if not (channels_first or len(feature.shape) == 2):
        raise DataError(
            f"{path} is an image, and feature {shown(feature.name)} is an array of "
            f"{format_shape(feature.shape)}; give a .npy file, or its numbers"
        )
    rows, columns = feature.shape[-2:]
    mode = "RGB" if feature.shape[0] == 3 and channels_first else "L"
    pixels = image_arrays.read_image(path, mode, (columns, rows))
    top = white_of(feature) if white is None else white
    scaled = pixels if top == image_arrays.TOP else pixels * (top / image_arrays.TOP)
    return scaled.reshape(feature.shape)


def _numbers(path: Path, feature: Feature) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OverflowError, OSError, EOFError) as error:
        raise DataError(
            f"{path} cannot be read as one array of numbers ({error}); write it with numpy.save"
        ) from None
    if not isinstance(array, np.ndarray):  # a .npz by another name
        raise DataError(f"{path} holds several arrays; write one of them with numpy.save")
    if array.shape == (1, *feature.shape):  # a batch of one
        return np.asarray(array[0])
    if array.ndim > len(feature.shape):
        raise DataError(
            f"{path} holds {format_shape(array.shape)} numbers, and one sample has "
            f"{format_shape(feature.shape)}; save the sample that is meant, as images[0]"
        )
    return array  # the feature says what else is wrong
