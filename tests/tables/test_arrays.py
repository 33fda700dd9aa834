"""Samples that are arrays: one feature to the user, flat rows to the model, whatever the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from npz_bombs import ABSURD, bomb, claiming, header

from oneway.datasets import load
from oneway.errors import DataError, MissingDataError
from oneway.tables import Array, Encoder, Number, Table
from oneway.tables.arrays import open_arrays, read_sample, white_of
from oneway.task.task import Task

RNG = np.random.default_rng(0)


def saved(folder: Path, features: np.ndarray, labels: object = None) -> Path:
    path = folder / "a.npy"
    np.save(path, features)
    np.save(folder / "a.labels.npy", np.arange(len(features)) % 3 if labels is None else labels)
    return path


def pictures(folder: Path, images: int = 3) -> Path:
    image = pytest.importorskip("PIL.Image", reason="Pillow reads images")
    for label in ("cat", "dog"):
        (folder / "pets" / label).mkdir(parents=True)
        for number in range(images):
            pixels = RNG.integers(0, 256, (4, 5), dtype=np.uint8)
            image.fromarray(pixels).save(folder / "pets" / label / f"{number}.png")
    return folder / "pets"


whole = arrays_of.arrays(np.uint8, (4, 2, 3))
real = arrays_of.arrays(np.float64, (4, 2, 3), elements=st.floats(-1e9, 1e9))


@given(whole | real, st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_a_whole_table_and_a_single_array_give_the_same_numbers(cells, center, scale):
    table = Table.from_arrays(cells, [0, 1, 0, 1])
    np.testing.assert_array_equal(table.arrays(), cells)
    feature = Array("x", (2, 3), center, scale)
    other = table.recoded(Encoder((feature,), "label", "binary", ("1", "0")))
    for each in (table, other):
        [name] = each.encoder.names
        for row, array in enumerate(cells):
            nested = array.tolist()
            for cell in (array, nested, array.ravel().tolist(), json.dumps(nested)):
                vector = each.encoder.vector({name: cell})
                assert vector.dtype == np.float64
                np.testing.assert_array_equal(vector.astype(np.float32), each.features[row])


def test_one_center_and_one_scale_standardise_all_cells():
    cells = RNG.normal(7, 3, (50, 3, 4, 2))
    table = Table.from_arrays(cells, np.arange(50) % 2)
    assert (table.shape, table.features.shape) == ((3, 4, 2), (50, 24))
    assert table.features.mean(dtype=float) == pytest.approx(0, abs=1e-6)
    assert table.features.std(dtype=float) == pytest.approx(1, abs=1e-6)
    [feature] = table.encoder.features
    assert (feature.center, feature.scale) == pytest.approx((cells.mean(), cells.std()))
    assert "3 x 4 x 2" in repr(table)
    assert "3 x 4 x 2" in table._repr_html_()


@pytest.mark.parametrize(
    "cell",
    [
        *([1, 2, 3], [[1, 2], [3]], [[1, 2, 3, 4]] * 2, [1, 2, 3, float("nan")]),
        *([1, 2, 3, 1e60], [1, 2, 3, None], ["1", "2", "3", "4"], [1j, 2, 3, 4]),
        *("[1, 2, 3, 4", "four", "[" * 100_000, 7, {"a": 1}),
    ],
)
def test_a_cell_that_is_no_such_array_is_refused_by_name(cell):
    with pytest.raises(DataError, match="'picture'") as refused:
        Array("picture", shape=(2, 2)).encode(cell)
    assert len(str(refused.value)) < 300


def test_a_task_of_arrays_reads_back_from_its_file_and_recodes_a_table():
    cells = RNG.integers(0, 256, (9, 1, 4, 4), dtype=np.uint8)
    table = Table.from_arrays(cells, np.arange(9) % 3, task="classes", feature_names=["grid"])
    task = Task.of(table)
    again = Task.parse(task.to_toml())
    assert (again, again.fingerprint) == (task, task.fingerprint)
    grid = task.features[0]
    other = replace(task, features=(Array("grid", (4, 4, 1), *grid.scaling),))
    assert other.fingerprint != task.fingerprint
    encoder = Encoder((Array("grid", (1, 4, 4), 0.0, 255.0),), "label", "classes", ("2", "1", "0"))
    recoded = table.recoded(encoder)
    np.testing.assert_allclose(recoded.features, cells.reshape(9, -1) / 255, rtol=1e-6)
    np.testing.assert_array_equal(recoded.labels, 2 - table.labels)


# Files.


def test_a_numpy_file_is_mapped_and_read_as_its_arrays(tmp_path):
    features = RNG.normal(size=(10, 2, 3)).astype(np.float32)
    path = saved(tmp_path, features)
    assert isinstance(open_arrays(path).features, np.memmap)
    found, kept = load(path), Table.from_arrays(features, np.arange(10) % 3, task="classes")
    np.testing.assert_array_equal(found.features, kept.features)
    assert found.encoder.features == kept.encoder.features


def test_labels_may_be_text_numbers_or_classes_and_rows_without_one_are_skipped(tmp_path):
    features = RNG.normal(size=(6, 2))
    table = load(saved(tmp_path, features, np.array(["b", "a"] * 3)), label="animal")
    assert (table.label_kind, table.encoder.classes, table.shape) == ("binary", ("a", "b"), (2,))
    assert table.encoder.label == "animal"
    used = [(note.name, note.used) for note in table.notes]
    assert used == [("animal", "label"), ("features", "array of 2")]
    labels = np.linspace(0, 1, 6)
    labels[[1, 4]] = np.nan
    table = load(saved(tmp_path, features, labels))
    assert (table.label_kind, table.origin["rows_without_label"]) == ("number", 2)
    np.testing.assert_array_equal(table.arrays(), features[[0, 2, 3, 5]])
    np.savez(tmp_path / "b.npz", features=features, labels=[0, 1, 2] * 2)
    assert load(tmp_path / "b.npz").label_kind == "classes"


def test_labels_and_shape_must_be_those_of_a_task(tmp_path):
    path = saved(tmp_path, RNG.normal(size=(6, 2)), np.array(["a", "b"] * 3))
    feature = Array("vector", (2,), 1.0, 2.0)
    table = load(path, encoder=Encoder((feature,), "kind", "binary", ("b", "a")))
    assert (table.labels.tolist(), table.encoder.names) == ([1, -1] * 3, ("vector",))
    with pytest.raises(DataError, match="'a'"):
        load(path, encoder=Encoder((feature,), "kind", "binary", ("b", "c")))
    for features in ((Array("vector", (1, 2)),), (Number("u"), Number("v"))):
        with pytest.raises(DataError, match=r"a\.npy"):
            load(path, encoder=Encoder(features, "kind", "binary", ("b", "a")))
    with pytest.raises(DataError, match=r"a\.npy"):
        load(path, exclude=["x"])


def with_nan(shape: tuple[int, ...]) -> np.ndarray:
    features = np.zeros(shape)
    features[4, 1] = np.nan
    return features


@pytest.mark.parametrize(
    ("features", "labels"),
    [
        *((with_nan((6, 2)), None), (np.zeros(6), None), (np.zeros((6, 2), complex), None)),
        *((np.zeros((0, 2)), None), (np.array([["a"]] * 6), None)),
        *((np.zeros((6, 2)), np.arange(5)), (np.zeros((6, 2)), np.zeros((6, 2)))),
    ],
)
def test_arrays_that_break_a_rule_are_named(tmp_path, features, labels):
    with pytest.raises(DataError, match=r"a\.npy"):
        load(saved(tmp_path, features, labels))


def cut_npz(folder: Path) -> Path:
    np.savez(folder / "b.npz", features=np.zeros((6, 2)), labels=np.arange(6))
    (folder / "b.npz").write_bytes((folder / "b.npz").read_bytes()[:50])
    return folder / "b.npz"


def no_labels_npz(folder: Path) -> Path:
    np.savez(folder / "b.npz", features=np.zeros((6, 2)))
    return folder / "b.npz"


def no_array(folder: Path) -> Path:
    saved(folder, np.zeros((6, 2))).write_bytes(b"no array")
    return folder / "a.npy"


def without_labels(folder: Path) -> Path:
    path = saved(folder, np.zeros((6, 2)))
    (folder / "a.labels.npy").unlink()
    return path


def picture(content: bytes) -> Callable[[Path], Path]:
    def spoil(folder: Path) -> Path:
        path = pictures(folder)
        (path / "dog" / "odd.png").write_bytes(content)
        return path

    return spoil


def odd_picture(mode: str, size: tuple[int, int], name: str) -> Callable[[Path], Path]:
    def spoil(folder: Path) -> Path:
        from PIL import Image

        path = pictures(folder)
        Image.new(mode, size).save(path / "dog" / name)
        return path

    return spoil


def empty_folder(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


@pytest.mark.parametrize(
    ("spoil", "culprit"),
    [
        *((cut_npz, r"b\.npz"), (no_labels_npz, r"b\.npz"), (no_array, r"a\.npy")),
        (without_labels, r"a\.labels\.npy"),
        *((picture(b"GIF89a and then nothing"), r"odd\.png"), (empty_folder, "empty")),
        (odd_picture("L", (6, 4), "odd.png"), r"odd\.png has 6 x 4 pixels"),
        (odd_picture("F", (5, 4), "odd.tiff"), r"odd\.tiff"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, spoil, culprit):
    pytest.importorskip("PIL.Image", reason="Pillow reads images")
    path = spoil(tmp_path)
    with pytest.raises(DataError, match=culprit) as raised:
        load(path)
    assert isinstance(raised.value, MissingDataError) == ("without" in spoil.__name__)


def test_a_file_that_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path):
    path = bomb(tmp_path / "b.npz")
    assert path.stat().st_size < 2.2e6
    with pytest.raises(DataError, match=r"b\.npz has 2\..* MB .* 2\.15 GB"):
        load(path)


@pytest.mark.parametrize("shape", ABSURD)
def test_a_file_that_claims_an_absurd_shape_is_named(tmp_path, shape):
    with pytest.raises(DataError, match=r"b\.npz"):
        load(claiming(tmp_path / "b.npz", shape))
    saved(tmp_path, np.zeros((6, 2))).write_bytes(header(shape) + bytes(96))
    with pytest.raises(DataError, match=r"a\.npy"):
        load(tmp_path / "a.npy")


def test_a_pickle_is_never_opened(tmp_path, monkeypatch):
    ran = []

    class Trap:
        def __reduce__(self):
            return ran.append, (1,)

    monkeypatch.setattr("pickle.loads", ran.append)
    np.save(tmp_path / "a.npy", np.array([Trap()] * 6, dtype=object), allow_pickle=True)
    np.save(tmp_path / "a.labels.npy", np.arange(6))
    for name in ("net.pt", "data.pkl"):
        (tmp_path / name).write_bytes(b"\x80\x04.")
    for name in ("a.npy", "net.pt", "data.pkl"):
        with pytest.raises(DataError, match=f"{name}.*pickle"):
            load(tmp_path / name)
    assert not ran


def test_a_folder_of_grey_images_has_one_channel_and_its_folders_as_classes(tmp_path):
    folder = pictures(tmp_path, images=20)
    from PIL import Image

    table = load(folder)
    assert (table.shape, table.encoder.classes) == ((1, 4, 5), ("cat", "dog"))
    rows = zip(table.arrays(), table.labels, strict=True)
    found = {tuple(row.ravel().tolist()): label for row, label in rows}
    for file in folder.glob("*/*.png"):
        pixels = tuple(np.asarray(Image.open(file)).ravel().tolist())
        assert found.pop(pixels) == {"cat": -1, "dog": 1}[file.parent.name]
    assert not found
    assert np.count_nonzero(np.diff(table.labels)) > 5, "classes are mixed"
    np.testing.assert_array_equal(load(folder).labels, table.labels)


def test_one_coloured_image_makes_all_of_them_red_green_and_blue(tmp_path):
    folder = pictures(tmp_path)
    from PIL import Image

    pixels = RNG.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / "cat" / "9.png")
    found = load(folder).arrays()
    assert (found.shape, found.dtype) == ((7, 3, 4, 5), np.uint8)
    assert any(np.array_equal(each, pixels.transpose(2, 0, 1)) for each in found)
    assert sum(np.array_equal(each[0], each[2]) for each in found) == 6


def test_grey_images_of_16_bits_have_their_real_brightness(tmp_path):
    folder = pictures(tmp_path)
    from PIL import Image

    ramp = np.linspace(0, 65535, 20).astype(np.uint16).reshape(4, 5)
    Image.fromarray(ramp).save(folder / "cat" / "deep.png")
    found = load(folder).arrays()
    expected = np.rint(ramp / 257.0)[None]
    assert found.shape == (7, 1, 4, 5)
    assert any(np.array_equal(each, expected) for each in found)


# One sample in a file of its own.

GREY = Array("image", (1, 2, 3), 100.0, 60.0)
FLAT = Array("image", (2, 3), 100.0, 60.0)
DIGIT = Array("image", (1, 2, 3), 4.9, 6.0)
COLOURED = Array("image", (3, 2, 3), 100.0, 60.0)
PIXELS = np.array([[0, 51, 255], [10, 20, 30]], np.uint8)
COLOURS = np.stack([PIXELS, PIXELS // 2, PIXELS // 3], axis=2)


def drawn(folder: Path, pixels: np.ndarray) -> Path:
    image = pytest.importorskip("PIL.Image", reason="Pillow reads images")
    image.fromarray(pixels).save(folder / "one.png")
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
    found = read_sample(drawn(tmp_path, pixels), feature)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert white_of(DIGIT) == 16.0
    by_hand = read_sample(drawn(tmp_path, PIXELS), DIGIT, white=1.0)
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
        read_sample(drawn(tmp_path, PIXELS), Array("series", shape=(6,)))
