"""One sample in a file of its own: an image or numbers, brought to what a feature is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oneway.errors import DataError
from oneway.tables.features import Feature
from oneway.tables.sample_files import is_sample_file, read_sample, white_of

Image = pytest.importorskip("PIL.Image", reason="the extra images is not installed")

GREY = Feature("image", 100.0, 60.0, shape=(1, 2, 3))
PIXELS = np.array([[0, 51, 255], [10, 20, 30]], np.uint8)


def saved(folder: Path, pixels: np.ndarray, name: str = "one.png") -> Path:
    Image.fromarray(pixels).save(folder / name)
    return folder / name


def test_an_image_is_the_pixels_that_a_folder_of_images_has(tmp_path):
    found = read_sample(saved(tmp_path, PIXELS), GREY)
    np.testing.assert_array_equal(found, PIXELS[None])


def test_an_image_without_an_axis_of_channels_is_grey(tmp_path):
    flat = Feature("image", 100.0, 60.0, shape=(2, 3))
    np.testing.assert_array_equal(read_sample(saved(tmp_path, PIXELS), flat), PIXELS)


def test_colours_are_channels_and_rows_stay_rows(tmp_path):
    colours = np.stack([PIXELS, PIXELS // 2, PIXELS // 3], axis=2)
    feature = Feature("image", 100.0, 60.0, shape=(3, 2, 3))
    found = read_sample(saved(tmp_path, colours), feature)
    np.testing.assert_array_equal(found, colours.transpose(2, 0, 1))


def test_white_is_what_the_data_has(tmp_path):
    digits = Feature("image", 4.9, 6.0, shape=(1, 2, 3))
    assert white_of(digits) == 16.0
    path = saved(tmp_path, PIXELS)
    np.testing.assert_allclose(read_sample(path, digits), PIXELS[None] * (16 / 255), rtol=1e-15)
    np.testing.assert_allclose(read_sample(path, digits, 1.0), PIXELS[None] / 255, rtol=1e-15)


def test_an_image_of_another_size_is_brought_to_the_feature(tmp_path):
    large = saved(tmp_path, np.full((20, 60), 77, np.uint8))
    np.testing.assert_array_equal(read_sample(large, GREY), np.full((1, 2, 3), 77))


def test_numbers_are_those_of_the_data_alone_or_in_a_batch_of_one(tmp_path):
    for name, array in (("a.npy", PIXELS[None]), ("b.npy", PIXELS[None, None])):
        np.save(tmp_path / name, array)
        np.testing.assert_array_equal(read_sample(tmp_path / name, GREY), PIXELS[None])


@pytest.mark.parametrize("name", ["gone.png", "text.png", "text.npy", "two.npy", "objects.npy"])
def test_a_file_that_is_no_sample_is_named(tmp_path, name):
    for text in ("text.png", "text.npy"):
        (tmp_path / text).write_text("no image")
    np.save(tmp_path / "two.npy", np.zeros((2, 1, 2, 3)))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(DataError, match=name):
        read_sample(tmp_path / name, GREY)


def test_an_image_is_no_series(tmp_path):
    with pytest.raises(DataError, match="series"):
        read_sample(saved(tmp_path, PIXELS), Feature("series", shape=(6,)))


def test_files_are_told_by_their_ends():
    assert is_sample_file("a.PNG")
    assert is_sample_file("b/c.npy")
    assert not is_sample_file("0.5")
    assert not is_sample_file("[[1.0, 2.0]]")
