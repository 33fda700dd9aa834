"""Samples that are arrays: one feature to the user, flat rows to the model, whatever the file."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from oneway.datasets import load
from oneway.errors import DataError, MissingDataError, TaskError
from oneway.tables import Encoder, Feature, Table
from oneway.tables.array_source import open_arrays
from oneway.tables.names import CellNames
from oneway.tables.raw_cells import raw_arrays
from oneway.task.task import Task

RNG = np.random.default_rng(0)


def saved(folder: Path, features: np.ndarray, labels: object = None) -> Path:
    path = folder / "a.npy"
    np.save(path, features)
    np.save(folder / "a.labels.npy", np.arange(len(features)) % 3 if labels is None else labels)
    return path


def idx(array: np.ndarray) -> bytes:
    kinds = {"uint8": 8, "int8": 9, "int16": 11, "int32": 12, "float32": 13, "float64": 14}
    head = bytes([0, 0, kinds[array.dtype.name], array.ndim])
    lengths = np.array(array.shape, ">u4").tobytes()
    return head + lengths + array.astype(array.dtype.newbyteorder(">")).tobytes()


def digits(folder: Path, suffix: str = "", **changed: bytes) -> Path:
    pixels = RNG.integers(0, 256, (12, 4, 5), dtype=np.uint8)
    files = {
        "images-idx3": idx(pixels),
        "labels-idx1": idx((np.arange(12) % 3).astype(np.uint8)),
        **changed,
    }
    for name, content in files.items():
        packed = gzip.compress(content) if suffix else content
        (folder / f"t-{name}-ubyte{suffix}").write_bytes(packed)
    return folder / f"t-images-idx3-ubyte{suffix}"


def pictures(
    folder: Path, mode: str = "L", size: tuple[int, int] = (5, 4), images: int = 3
) -> Path:
    image = pytest.importorskip("PIL.Image", reason="Pillow reads images")
    for label in ("cat", "dog"):
        (folder / "pets" / label).mkdir(parents=True)
        for number in range(images):
            shape = (size[1], size[0]) if mode == "L" else (size[1], size[0], 3)
            pixels = RNG.integers(0, 256, shape, dtype=np.uint8)
            image.fromarray(pixels).save(folder / "pets" / label / f"{number}.png")
    return folder / "pets"


whole = arrays_of.arrays(np.uint8, (4, 2, 3))
real = arrays_of.arrays(np.float64, (4, 2, 3), elements=st.floats(-1e9, 1e9))


@given(whole | real, st.booleans(), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_a_whole_table_and_a_single_row_give_the_same_numbers(cells, standardise, center, scale):
    table = Table.from_arrays(cells, [0, 1, 0, 1], standardise=standardise)
    told = Encoder((Feature("x", center, scale, shape=(2, 3)),), "label", "number")
    for encoder, features in ((table.encoder, table.features), (told, told.arrays(cells))):
        [name] = encoder.names
        for row, array in enumerate(cells):
            nested = array.tolist()
            for cell in (array, nested, array.ravel().tolist(), json.dumps(nested), tuple(nested)):
                vector = encoder.vector({name: cell})
                assert vector.dtype == np.float64
                np.testing.assert_array_equal(vector.astype(np.float32), features[row])


def test_one_center_and_one_scale_standardise_all_cells():
    cells = RNG.normal(7, 3, (50, 3, 4, 2))
    table = Table.from_arrays(cells, np.arange(50) % 2)
    assert (table.shape, table.features.shape) == ((3, 4, 2), (50, 24))
    assert table.features.mean(dtype=float) == pytest.approx(0, abs=1e-6)
    assert table.features.std(dtype=float) == pytest.approx(1, abs=1e-6)
    [feature] = table.encoder.features
    assert (feature.center, feature.scale) == pytest.approx((cells.mean(), cells.std()))
    assert repr(table) == "<Table: arrays, 50 rows of 3 x 4 x 2>"
    assert "3 x 4 x 2" in table._repr_html_()


def test_floats_that_stay_as_they_are_are_not_copied():
    cells = RNG.normal(size=(6, 2, 2)).astype(np.float32)
    table = Table.from_arrays(cells, [0, 1] * 3, standardise=False, feature_names=["sound"])
    assert np.shares_memory(table.features, cells)
    assert table.encoder.names == ("sound",)


def test_a_row_of_numbers_has_its_width_as_shape():
    table = Table.from_arrays(RNG.normal(size=(4, 3)), [0, 1] * 2)
    assert (table.shape, table.is_arrays) == ((3,), False)
    mixed = Encoder((Feature("x", shape=(2, 2)), Feature("age", gaps=True)), "y", "number")
    assert (mixed.shape, mixed.width) == ((6,), 6)
    assert list(mixed.outputs) == [*CellNames("x", (2, 2)), "age", "age missing"]
    assert mixed.outputs.index("age missing") == 5
    assert mixed.vector({"x": [1, 2, 3, 4], "age": None}).tolist() == [1, 2, 3, 4, 0, 1]


def test_a_gap_is_an_array_of_zeros_with_a_flag_if_gaps_tell():
    feature = Feature("x", 5.0, 2.0, shape=(2, 2))
    assert tuple(feature.encode(None)) == (0, 0, 0, 0)
    flagged = replace(feature, gaps=True)
    assert tuple(flagged.encode("")) == (0, 0, 0, 0, 1)
    assert tuple(flagged.encode([5, 5, 5, 7])) == (0, 0, 0, 1, 0)
    assert Encoder((flagged,), "y", "number").shape == (5,)


def test_a_million_names_take_no_memory():
    tracemalloc.start()
    encoder = Encoder((Feature("x", shape=(1024, 1024)), Feature("age")), "y", "number")
    assert encoder.width == 2**20 + 1
    assert encoder.outputs[2**20 - 1] == "x[1023, 1023]"
    assert encoder.outputs.index("age") == 2**20
    assert "(intercept)" not in encoder.outputs
    assert tracemalloc.get_traced_memory()[1] < 200_000
    tracemalloc.stop()


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_every_cell_has_one_name_and_every_name_one_cell(shape):
    names = CellNames("a[0]", tuple(shape))
    assert [names.index(name) for name in names] == list(range(len(names)))
    assert len(set(names)) == len(names) == np.prod(shape)
    for other in ("a[0]", "b[0]", "a[0][9]", "a[0][0, 0, 0, 0, 0]", "a[0][x]"):
        assert other not in names


@pytest.mark.parametrize(
    "cell",
    [
        [1, 2, 3],
        [[1, 2], [3]],
        [[1, 2, 3, 4]] * 2,
        [1, 2, 3, float("nan")],
        [1, 2, 3, float("inf")],
        [1, 2, 3, 1e60],
        [1, 2, 3, None],
        ["1", "2", "3", "4"],
        [1j, 2, 3, 4],
        "[1, 2, 3, 4",
        "four",
        "[" * 100_000,
        7,
        {"a": 1},
    ],
)
def test_a_cell_that_is_no_such_array_is_refused_by_name(cell):
    with pytest.raises(DataError, match="'picture'") as refused:
        Feature("picture", shape=(2, 2)).encode(cell)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "told",
    [
        {"shape": (0, 2)},
        {"shape": (2.5,)},
        {"shape": "28"},
        {"shape": (5000, 5000)},
        {"kind": "array"},
        {"kind": "time", "shape": (2,)},
        {"values": ("a", "b"), "shape": (2,)},
        {"shape": (2,), "scale": 0.0},
        {"shape": (2,), "hash": "abc"},
    ],
)
def test_an_array_that_breaks_a_rule_is_named(told):
    with pytest.raises(TaskError, match="'picture'"):
        Feature("picture", **told)


def test_a_task_of_arrays_reads_back_from_its_file():
    task = Task.of(
        Table.from_arrays(RNG.normal(size=(9, 1, 4, 4)), np.arange(9) % 3, task="classes")
    )
    again = Task.parse(task.to_toml())
    assert again == task
    assert again.fingerprint == task.fingerprint
    other = replace(task, features=(replace(task.features[0], shape=(4, 4, 1)),))
    assert other.fingerprint != task.fingerprint
    [feature] = Task.parse('model = "ridge"\nlabel = "y"\n[features]\nx = { shape = 3 }\n').features
    assert (feature.kind, feature.shape) == ("array", (3,))


# Files.


@pytest.mark.usefixtures("cache_everything")
def test_a_numpy_file_is_mapped_and_never_loaded(tmp_path):
    features = RNG.normal(size=(10, 2, 3)).astype(np.float32)
    path = saved(tmp_path, features)
    assert isinstance(open_arrays(path).rows, np.memmap)
    table = load(path)
    base = table.features
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    again, kept = load(path), Table.from_arrays(features, np.arange(10) % 3, task="classes")
    for found in (table, again):
        np.testing.assert_array_equal(found.features, kept.features)
        assert found.shape == (2, 3)
        assert found.encoder.features == kept.encoder.features
    saved(tmp_path, features + 1)
    assert load(path).encoder.features[0].center == pytest.approx(features.mean() + 1, abs=1e-5)


def test_what_a_source_takes_as_a_table_decides_whether_it_is_cached(tmp_path, monkeypatch):
    monkeypatch.setattr("oneway.tables.cache.CACHE_ABOVE_BYTES", 100_000)
    monkeypatch.setenv("ONEWAY_CACHE", str(tmp_path / "cache"))
    load(saved(tmp_path, np.zeros((10, 50, 50), np.uint8) + np.arange(50, dtype=np.uint8)))
    assert not (tmp_path / "cache").exists()
    load(saved(tmp_path, np.zeros((20, 50, 50), np.uint8) + np.arange(50, dtype=np.uint8)))
    assert len(list((tmp_path / "cache").iterdir())) == 1, "50,000 bytes become 200,000"


def test_labels_may_be_text_numbers_or_classes(tmp_path):
    features = RNG.normal(size=(6, 2))
    table = load(saved(tmp_path, features, np.array(["b", "a"] * 3)), label="animal")
    assert (table.label_kind, table.label_values, table.shape) == ("binary", ("a", "b"), (2,))
    assert table.encoder.label == "animal"
    assert [(note.name, note.used) for note in table.notes] == [
        ("animal", "what is predicted"),
        ("features", "array of 2"),
    ]
    assert load(saved(tmp_path, features, np.linspace(0, 1, 6))).label_kind == "number"
    np.savez(tmp_path / "b.npz", features=features, labels=[0, 1, 2] * 2)
    assert load(tmp_path / "b.npz").label_kind == "classes"


def test_labels_must_be_those_of_a_tasks_classes(tmp_path):
    path = saved(tmp_path, RNG.normal(size=(6, 2)), np.array(["a", "b"] * 3))
    feature = Feature("vector", 1.0, 2.0, shape=(2,))
    table = load(path, encoder=Encoder((feature,), "kind", "binary", ("b", "a")))
    assert (table.labels.tolist(), table.encoder.names) == ([1, -1] * 3, ("vector",))
    assert table.means.tolist() == [1, 1]
    with pytest.raises(DataError, match="'a'"):
        load(path, encoder=Encoder((feature,), "kind", "binary", ("b", "c")))
    for features in ((replace(feature, shape=(1, 2)),), (Feature("u"), Feature("v"))):
        with pytest.raises(DataError, match=r"a\.npy holds arrays of 2, and the task needs"):
            load(path, encoder=Encoder(features, "kind", "binary", ("b", "a")))
    with pytest.raises(DataError, match=r"a\.npy"):
        load(path, exclude=["x"])


def test_a_numpy_file_that_breaks_a_rule_is_named(tmp_path):
    features = RNG.normal(size=(6, 2, 2))
    features[4, 1, 0] = np.nan
    with pytest.raises(DataError, match=r"a\.npy: row 4, column 'features\[1, 0\]' is nan"):
        load(saved(tmp_path, features))
    with pytest.raises(DataError, match=r"a\.npy: row 4"):
        load(tmp_path / "a.npy", standardise=False)
    for wrong in (np.zeros(6), np.zeros((6, 2), complex), np.zeros((0, 2)), np.array([["a"]] * 6)):
        with pytest.raises(DataError, match=r"a\.npy"):
            load(saved(tmp_path, wrong))
    for labels in (np.arange(5), np.zeros((6, 2)), np.zeros(6, complex)):
        with pytest.raises(DataError, match=r"a\.npy"):
            load(saved(tmp_path, np.zeros((6, 2)), labels))
    (tmp_path / "a.npy").write_bytes(b"no array")
    with pytest.raises(DataError, match=r"a\.npy is no NumPy file|a\.npy holds Python objects"):
        load(tmp_path / "a.npy")
    saved(tmp_path, np.zeros((6, 2)))
    (tmp_path / "a.labels.npy").unlink()
    with pytest.raises(MissingDataError, match=r"a\.labels\.npy is not there"):
        load(tmp_path / "a.npy")
    np.savez(tmp_path / "b.npz", features=np.zeros((6, 2)))
    with pytest.raises(DataError, match=r"b\.npz holds features;"):
        load(tmp_path / "b.npz")
    (tmp_path / "b.npz").write_bytes((tmp_path / "b.npz").read_bytes()[:50])
    with pytest.raises(DataError, match=r"b\.npz cannot be read"):
        load(tmp_path / "b.npz")


def test_a_pickle_is_never_opened(tmp_path, monkeypatch):
    ran = []

    class Trap:
        def __reduce__(self):
            return ran.append, (1,)

    monkeypatch.setattr("pickle.loads", ran.append)
    objects = np.array([Trap()] * 6, dtype=object)
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    np.save(tmp_path / "a.labels.npy", np.arange(6))
    with pytest.raises(DataError, match=r"a\.npy holds Python objects"):
        load(tmp_path / "a.npy")
    for name in ("data_batch_1", "net.pt", "data.pkl"):
        (tmp_path / name).write_bytes(b"\x80\x04.")
        with pytest.raises(DataError, match=f"{name} is a pickle"):
            load(tmp_path / name)
    assert not ran


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_an_idx_file_is_read_with_the_labels_beside_it(tmp_path, suffix):
    path = digits(tmp_path, suffix)
    table = load(path, standardise=False)
    packed = path.read_bytes()
    raw = np.frombuffer(gzip.decompress(packed) if suffix else packed, np.uint8)[16:]
    assert (table.shape, table.label_values) == ((1, 4, 5), (0, 1, 2))
    np.testing.assert_array_equal(table.features.ravel(), (raw / 255).astype(np.float32))
    assert table.encoder.names == ("image",)
    assert table.encoder.vector({"image": raw[:20]}).max() <= 1


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "float32", "float64"])
def test_idx_holds_numbers_of_any_type_and_shape(tmp_path, dtype):
    numbers = np.arange(-12, 12).astype(dtype).reshape(12, 2)
    table = load(digits(tmp_path, **{"images-idx3": idx(numbers)}), standardise=False)
    np.testing.assert_array_equal(table.features, numbers)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\0", b"\0\0\x08", b"\1\2\3\4" * 9, idx(np.zeros((12, 2, 2), np.uint8))[:-1]],
)
def test_an_idx_file_that_is_damaged_is_named(tmp_path, content):
    with pytest.raises(DataError, match="t-images-idx3-ubyte"):
        load(digits(tmp_path, **{"images-idx3": content}))


def test_idx_labels_are_no_images_and_must_be_there(tmp_path):
    path = digits(tmp_path, ".gz")
    with pytest.raises(DataError, match=r"labels-idx1-ubyte\.gz holds one number a row"):
        load(tmp_path / "t-labels-idx1-ubyte.gz")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"t-images-idx3-ubyte\.gz cannot be read"):
        load(path)
    (tmp_path / "t-labels-idx1-ubyte.gz").unlink()
    digits(tmp_path, ".gz")
    (tmp_path / "t-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(MissingDataError, match=r"t-labels-idx1-ubyte\.gz"):
        load(path)


def test_the_real_mnist_images_are_read(real_data):
    table = load(real_data / "mnist" / "t10k-images-idx3-ubyte.gz")
    assert (len(table), table.shape) == (10_000, (1, 28, 28))
    counts = np.bincount(table.labels.astype(int))
    assert counts.tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_a_folder_of_grey_images_has_one_channel_and_its_folders_as_classes(tmp_path):
    folder = pictures(tmp_path)
    table = load(folder, standardise=False)
    assert (table.shape, table.label_values) == ((1, 4, 5), ("cat", "dog"))
    from PIL import Image

    found = {tuple(row): label for row, label in zip(table.features, table.labels, strict=True)}
    for file in folder.glob("*/*.png"):
        pixels = (np.asarray(Image.open(file)) / 255).astype(np.float32)
        assert found.pop(tuple(pixels.ravel())) == {"cat": -1, "dog": 1}[file.parent.name]
    assert not found


def test_images_come_in_an_order_that_mixes_classes_and_stays(tmp_path):
    folder = pictures(tmp_path, images=20)
    labels = load(folder).labels
    assert np.count_nonzero(np.diff(labels)) > 5  # by class it would be 1
    np.testing.assert_array_equal(load(folder).labels, labels)


def test_one_coloured_image_makes_all_of_them_red_green_and_blue(tmp_path):
    folder = pictures(tmp_path)
    from PIL import Image

    pixels = RNG.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / "cat" / "9.png")
    table = load(folder)
    assert table.shape == (3, 4, 5)
    raw = raw_arrays(table, slice(None), table.encoder)
    assert raw.dtype == np.uint8
    np.testing.assert_array_equal(raw[3], pixels.transpose(2, 0, 1))
    np.testing.assert_array_equal(raw[0][0], raw[0][2])


def test_an_image_that_does_not_fit_is_named(tmp_path):
    folder = pictures(tmp_path)
    from PIL import Image

    Image.new("L", (6, 4)).save(folder / "dog" / "odd.png")
    with pytest.raises(DataError, match=r"odd\.png has 6 x 4 pixels"):
        load(folder)
    (folder / "dog" / "odd.png").write_bytes(b"GIF89a and then nothing")
    with pytest.raises(DataError, match=r"odd\.png is no image"):
        load(folder)
    cut = (folder / "dog" / "1.png").read_bytes()[:-30]
    (folder / "dog" / "odd.png").write_bytes(cut)
    with pytest.raises(DataError, match=r"odd\.png is no image"):
        load(folder)
    Image.new("F", (5, 4)).save(folder / "dog" / "odd.tiff")
    (folder / "dog" / "odd.png").unlink()
    with pytest.raises(DataError, match=r"odd\.tiff is no image"):
        load(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty is a folder without images"):
        load(tmp_path / "empty")


# And back.


def test_raw_arrays_encode_to_the_very_numbers_of_the_table():
    for cells in (RNG.integers(0, 256, (20, 3, 4), dtype=np.uint8), RNG.normal(5, 3, (20, 3, 4))):
        table = Table.from_arrays(cells, np.arange(20) % 2)
        raw = raw_arrays(table, np.arange(20), table.encoder)
        np.testing.assert_array_equal(table.encoder.arrays(raw), table.features)
        np.testing.assert_allclose(raw, cells, rtol=1e-5, atol=1e-5)


def test_arrays_written_as_text_are_read_back_by_a_task(tmp_path):
    table = Table.from_arrays(RNG.integers(0, 9, (8, 2, 2)), [0, 1] * 4, feature_names=["grid"])
    table.write_csv(tmp_path / "a.csv", np.arange(8))
    again = load(tmp_path / "a.csv", encoder=table.encoder)
    np.testing.assert_array_equal(again.features, table.features)
    np.testing.assert_array_equal(again.labels, table.labels)


def test_a_task_recodes_arrays_with_its_own_scale():
    cells = RNG.integers(0, 256, (8, 2, 2), dtype=np.uint8)
    table = Table.from_arrays(cells, ["a", "b"] * 4, feature_names=["grid"])
    feature = Feature("grid", 0.0, 255.0, shape=(2, 2))
    other = table.recoded(Encoder((feature,), "label", "binary", ("b", "a")))
    np.testing.assert_allclose(other.features, cells.reshape(8, 4) / 255, atol=1e-6)
    np.testing.assert_array_equal(other.labels, -table.labels)
