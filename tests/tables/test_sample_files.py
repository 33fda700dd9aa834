"""One sample in a file of its own: an image or numbers, brought to what a feature is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from npz_bombs import header

from oneway.errors import DataError
from oneway.tables.features import Feature
from oneway.tables.sample_files import is_sample_file, read_sample, white_of

Image = pytest.importorskip("PIL.Image", reason="the extra images is not installed")

GREY = Feature("image", 100.0, 60.0, shape=(1, 2, 3))
FLAT = Feature("image", 100.0, 60.0, shape=(2, 3))
DIGIT = Feature("image", 4.9, 6.0, shape=(1, 2, 3))
COLOURED = Feature("image", 100.0, 60.0, shape=(3, 2, 3))
PIXELS = np.array([[0, 51, 255], [10, 20, 30]], np.uint8)
COLOURS = np.stack([PIXELS, PIXELS // 2, PIXELS // 3], axis=2)


def saved(folder: Path, pixels: np.ndarray) -> Path:
    Image.fromarray(pixels).save(folder / "one.png")
    return folder / "one.png"


@pytest.mark.parametrize(
    ("pixels", "feature", "expected"),
    [
        (PIXELS, GREY, PIXELS[None]),
        (PIXELS, FLAT, PIXELS),
        (PIXELS.astype(np.uint16) * 257, GREY, PIXELS[None]),
        (COLOURS, COLOURED, COLOURS.transpose(2, 0, 1)),
        (PIXELS, DIGIT, PIXELS[None] * (16 / 255)),  # white is what the data has
        (np.full((20, 60), 77, np.uint8), GREY, np.full((1, 2, 3), 77)),
    ],
)
def test_an_image_has_the_size_colours_and_white_of_the_feature(
    tmp_path, pixels, feature, expected
):
    found = read_sample(saved(tmp_path, pixels), feature)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert white_of(DIGIT) == 16.0
    by_hand = read_sample(saved(tmp_path, PIXELS), DIGIT, white=1.0)
    np.testing.assert_allclose(by_hand, PIXELS[None] / 255, rtol=1e-15)


def test_numbers_are_those_of_the_data_alone_or_in_a_batch_of_one(tmp_path):
    for name, array in (("a.npy", PIXELS[None]), ("b.npy", PIXELS[None, None])):
        np.save(tmp_path / name, array)
        np.testing.assert_array_equal(read_sample(tmp_path / name, GREY), PIXELS[None])


@pytest.mark.parametrize(
    "name", ["gone.png", "text.png", "text.npy", "two.npy", "objects.npy", "vast.npy"]
)
def test_a_file_that_is_no_sample_is_named(tmp_path, name):
    for text in ("text.png", "text.npy"):
        (tmp_path / text).write_text("no image")
    (tmp_path / "vast.npy").write_bytes(header((2**70, 2)))
    np.save(tmp_path / "two.npy", np.zeros((2, 1, 2, 3)))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(DataError, match=name):
        read_sample(tmp_path / name, GREY)
    with pytest.raises(DataError, match="series"):
        read_sample(saved(tmp_path, PIXELS), Feature("series", shape=(6,)))


def test_files_are_told_by_their_ends():
    assert [is_sample_file(name) for name in ("a.PNG", "b/c.npy", "0.5", "[[1.0, 2.0]]")] == [
        *(True, True, False, False)
    ]
