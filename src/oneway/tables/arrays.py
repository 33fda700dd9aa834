"""Arrays in files: NumPy files, folders of images by class, and one sample in a file of its own.

Simulator and peer read them alike. `images.npy` has `images.labels.npy` beside it and is mapped,
never loaded; a `.npz` holds `features` and `labels`; a folder has one folder of images per class,
as `folder/cat/1.png`. Pixels are `[channel, y, x]`, 0 to 255, grey if all images are.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from oneway.errors import DataError, MissingDataError, needs_extra
from oneway.files.memory import require_unpacked
from oneway.sentences import listed, shown
from oneway.tables.encoder import Encoder
from oneway.tables.features import Array, format_shape

FEATURES, LABEL = "features", "label"
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib")
_DAMAGE = (ValueError, MemoryError, OverflowError)
"""Errors of NumPy for an array that is none of numbers, or claims an absurd shape."""
_WHITES = (1.0, 16.0, 255.0, 65535.0)
"""The usual brightest values of images."""
_GREY, _GREY_16 = ("1", "L", "LA"), ("I;16", "I;16L", "I;16B", "I;16N")


@dataclass(frozen=True, eq=False)
class Arrays:
    """Arrays of one shape and their labels.

    Attributes:
        path: The file or folder.
        name: The feature's name, unless the task has another one.
        features: `features[row, ...]`, numbers, perhaps mapped from a file.
        labels: One for each row: numbers or text.
    """

    path: Path
    name: str
    features: NDArray[Any]
    labels: NDArray[Any]

    def __post_init__(self) -> None:
        features, labels = self.features, self.labels
        if features.dtype.kind not in "biuf" or labels.dtype.kind not in "biufU":
            raise DataError(
                f"{self.path} has features of the type {features.dtype} and labels of the type "
                f"{labels.dtype}; features must be real numbers, labels numbers or text"
            )
        if features.ndim < 2 or features.size == 0 or labels.shape != features.shape[:1]:
            raise DataError(
                f"{self.path} has features of the shape {format_shape(features.shape)} and labels "
                f"of the shape {format_shape(labels.shape)}; it needs features [row, ...], as "
                "[row, channel, y, x], and one label for each row, and at least one row"
            )

    def __len__(self) -> int:
        return len(self.features)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample."""
        return self.features.shape[1:]

    def check_encoder(self, encoder: Encoder) -> None:
        """Check that a task is about such arrays; they have no names, so any name will do.

        Raises:
            DataError: If it has other features, or an array of another shape.
        """
        if isinstance(encoder.features[0], Array) and len(encoder.features) == 1:
            if encoder.features[0].shape == self.shape:
                return
            wanted = f"arrays of {format_shape(encoder.features[0].shape)}"
        else:
            wanted = f"the columns {listed(map(shown, encoder.names), 5)}"
        raise DataError(
            f"{self.path} holds arrays of {format_shape(self.shape)}, and the task needs {wanted}; "
            "give the data that the task is for"
        )


def holds_arrays(path: Path) -> bool:
    """Whether a path, by its name, is a file of arrays or a folder.

    Raises:
        DataError: If it is a pickle, which can execute arbitrary code.
    """
    if path.suffix.lower() in _PICKLES:
        raise DataError(
            f"{path.name} is a pickle, which can execute arbitrary code; oneway does not read "
            "pickles: save the arrays with numpy.save"
        )
    return path.suffix.lower() in (".npy", ".npz") or path.is_dir()


def open_arrays(path: Path) -> Arrays:
    """Open a path that `holds_arrays`.

    Raises:
        MissingDataError: If there is no such file, or its labels are missing.
        DataError: If it is not what its name says.
    """
    try:
        if path.is_dir():
            return _images(path)
        if path.suffix.lower() == ".npz":
            return Arrays(path, FEATURES, *_members(path))
        beside = labels_path(path)
        if path.is_file() and not beside.is_file():
            raise MissingDataError(
                f"{beside} is not there; it must hold a label for each row of {path.name}: write "
                "it with numpy.save, or both as features and labels into one .npz"
            )
        return Arrays(path, FEATURES, _load(path), np.array(_load(beside)))
    except FileNotFoundError as error:
        raise MissingDataError(f"{error.filename} is not there; check the path") from None
    except (OSError, EOFError, BadZipFile) as error:
        raise DataError(f"{path} cannot be read ({error}); check that it is whole") from None


def save_arrays(path: Path, features: NDArray[Any], labels: NDArray[Any]) -> None:
    """Write a `.npy` file and its labels, as `open_arrays` reads them."""
    np.save(path, features)
    np.save(labels_path(path), labels)


def labels_path(path: Path) -> Path:
    """Where the labels of a `.npy` file are."""
    return path.with_name(f"{path.stem}.labels.npy")


def _load(path: Path) -> NDArray[Any]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except _DAMAGE as error:
        raise _refused(path, error) from None
    if not isinstance(array, np.ndarray):  # a .npz by another name
        raise DataError(f"{path} holds several arrays; write one of them with numpy.save")
    return np.asanyarray(array)


def _members(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        require_unpacked(path, DataError)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as members:
            if not {FEATURES, "labels"} <= set(members.files):
                raise DataError(
                    f"{path} holds {listed(members.files) or 'nothing'}; it must hold features and "
                    "labels, as numpy.savez(file, features=..., labels=...) writes them"
                )
            return members[FEATURES], members["labels"]
    except _DAMAGE as error:
        raise _refused(path, error) from None


def _refused(path: Path, error: Exception) -> DataError:
    if "pickle" in str(error).lower() or "object" in str(error).lower():
        return DataError(
            f"{path} holds Python objects (a pickle, which can execute arbitrary code); save it as "
            "an array of numbers of one shape, with numpy.save"
        )
    return DataError(f"{path} is no NumPy file ({error}); write it with numpy.save")


def _images(path: Path) -> Arrays:
    """The images of a folder, shuffled by name: classes must not come one after another."""
    found = [
        (file, folder.name)
        for folder in path.iterdir()
        if folder.is_dir() and not folder.name.startswith(".")
        for file in folder.iterdir()
        if file.suffix.lower() in IMAGES and not file.name.startswith(".")
    ]
    if not found:
        raise DataError(
            f"{path} is a folder without images by class; name a file, or put images (they end in "
            f"{listed(IMAGES)}) into a folder for each class, as {path.name}/cat/1.png"
        )
    found.sort(key=lambda it: blake2b(f"{it[1]}/{it[0].name}".encode()).digest())
    looks = {file: _look(file) for file, _ in found}
    first, size = found[0][0], looks[found[0][0]][0]
    for file, (other, _) in looks.items():
        if other != size:
            raise DataError(
                f"{file} has {other[0]} x {other[1]} pixels and {first.name} has "
                f"{size[0]} x {size[1]}; all images must be of one size: resize it or take it out"
            )
    mode = "L" if all(is_grey for _, is_grey in looks.values()) else "RGB"
    pixels = np.stack([_pixels(file, mode) for file in looks])
    return Arrays(path, "image", pixels, np.array([label for _, label in found]))


def _look(file: Path) -> tuple[tuple[int, int], bool]:
    """Width and height of an image, and whether it is grey."""
    with _opened(file) as image:
        if image.mode in ("I", "F"):
            raise _unreadable(file, "its pixels have 32 bits")
        return image.size, image.mode in (*_GREY, *_GREY_16)


def _pixels(file: Path, mode: str, size: tuple[int, int] | None = None) -> NDArray[np.uint8]:
    with _opened(file) as image:
        try:
            if image.mode in _GREY_16:  # Pillow's own conversion would cut these off at 255
                from PIL import Image

                grey = np.rint(np.asarray(image) / 257.0).astype(np.uint8)
                image = Image.fromarray(grey)
            converted = image.convert(mode)
            if size not in (None, converted.size):
                converted = converted.resize(size)
            pixels = np.asarray(converted, dtype=np.uint8)
        except (OSError, ValueError, SyntaxError) as error:
            raise _unreadable(file, str(error)) from None
    return np.atleast_3d(pixels).transpose(2, 0, 1)


def _opened(file: Path) -> Any:
    with needs_extra("reading images", "images"):
        from PIL import Image, UnidentifiedImageError
    try:
        return Image.open(file)
    except (UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise _unreadable(file, str(error)) from None


def _unreadable(file: Path, reason: str) -> DataError:
    return DataError(f"{file} is no image that can be read ({reason}); convert it or take it out")


def white_of(feature: Array) -> float:
    """Guess the white level (1, 16, 255 or 65535) from center + scale.

    >>> white_of(Array("image", (1, 8, 8), 4.9, 6.0))
    16.0
    """
    typical = feature.center + feature.scale
    return next((white for white in _WHITES if white >= typical), _WHITES[-1])


def is_sample_file(name: str) -> bool:
    """Whether a name is, by its end, that of an image or of a `.npy` file."""
    return Path(name).suffix.lower() in (*IMAGES, ".npy")


def read_sample(path: Path, feature: Array, white: float | None = None) -> NDArray[Any]:
    """Return the array in a file, as a feature of one sample, unscaled.

    Args:
        path: A `.npy` file with the numbers of the data; or an image, which is brought to the size
            and the colours of the feature.
        feature: What the array is for.
        white: A white pixel in the data, `white_of` if not given; black is 0.

    Raises:
        MissingDataError: There is no such file.
        DataError: It cannot be read, or is nothing that the feature can be.
        MissingExtraError: It is an image, and Pillow is not installed.
    """
    if not path.is_file():
        raise MissingDataError(f"{path} is not there; check the path")
    if path.suffix.lower() == ".npy":
        try:
            array = _load(path)
        except (OSError, EOFError) as error:
            raise DataError(f"{path} cannot be read ({error}); check that it is whole") from None
        if array.shape == (1, *feature.shape):  # a batch of one
            return np.asarray(array[0])
        if array.ndim > len(feature.shape):
            raise DataError(
                f"{path} holds {format_shape(array.shape)} numbers, and one sample has "
                f"{format_shape(feature.shape)}; save the sample that is meant, as images[0]"
            )
        return array  # the feature says what else is wrong
    channels_first = len(feature.shape) == 3 and feature.shape[0] in (1, 3)
    if not (channels_first or len(feature.shape) == 2):
        raise DataError(
            f"{path} is an image, and feature {shown(feature.name)} is an array of "
            f"{format_shape(feature.shape)}; give a .npy file, or its numbers"
        )
    rows, columns = feature.shape[-2:]
    mode = "RGB" if feature.shape[0] == 3 and channels_first else "L"
    _look(path)  # checks it
    pixels = _pixels(path, mode, (columns, rows))
    top = white_of(feature) if white is None else white
    scaled = pixels if top == 255.0 else pixels * (top / 255.0)
    return scaled.reshape(feature.shape)
