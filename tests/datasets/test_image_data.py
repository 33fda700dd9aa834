"""Data sets of images: digits comes along, MNIST and CIFAR-10 in their original formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oneway.datasets import DATASETS, fetch, info, load, load_for
from oneway.errors import DataError, MissingDataError
from oneway.tables.cifar_arrays import CLASSES, RECORD
from oneway.tables.raw_cells import raw_arrays


def batch(path: Path, rows: int, seed: int) -> np.ndarray:
    records = np.random.default_rng(seed).integers(0, 256, (rows, RECORD), dtype=np.uint8)
    records[:, 0] = np.arange(rows) % 10
    path.parent.mkdir(exist_ok=True)
    records.tofile(path)
    return records


@pytest.fixture
def cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path))
    return [batch(tmp_path / "cifar10" / f"data_batch_{n}.bin", 20, n) for n in range(1, 6)]


def test_digits_come_with_scikit_learn():
    table = load("digits")
    assert (len(table), table.shape, table.label_kind) == (1797, (1, 8, 8), "classes")
    assert table.encoder.names == ("image",)
    assert info("digits").present
    assert [path.name for path in fetch("digits")] == ["digits.csv.gz"]
    plain = load("digits", standardise=False)
    assert (plain.features.min(), plain.features.max()) == (0, 1)
    np.testing.assert_array_equal(
        raw_arrays(plain, slice(None), plain.encoder), raw_arrays(table, slice(None), table.encoder)
    )
    with pytest.raises(DataError, match="digits"):
        load_for("digits", "binary")


@pytest.mark.usefixtures("real_data")
def test_mnist_has_its_real_images():
    table = load("mnist", standardise=False)
    assert table.shape == (1, 28, 28)
    assert table.encoder.label == "digit"
    assert (table.features.min(), table.features.max()) == (0, 1)
    if "test" in table.name:
        assert len(table) == 10_000


def test_mnist_takes_the_images_to_learn_from_before_those_to_test(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"train-images-idx3-ubyte\.gz.*data fetch mnist"):
        load("mnist")
    for name, rows in (("t10k", 4), ("train", 6)):
        for what, shape in (("images-idx3", (rows, 2, 2)), ("labels-idx1", (rows,))):
            path = tmp_path / "mnist" / f"{name}-{what}-ubyte"
            path.parent.mkdir(exist_ok=True)
            numbers = np.arange(np.prod(shape), dtype=np.uint8) % 3
            head = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">u4").tobytes()
            path.write_bytes(head + numbers.tobytes())
        table = load("mnist")
        assert len(table) == rows
        assert ("test" in table.name) == (name == "t10k")


def test_cifar_is_read_from_its_binary_files(cifar):
    table = load("cifar10")
    assert (len(table), table.shape) == (100, (3, 32, 32))
    assert table.label_values == CLASSES
    records = np.concatenate(cifar)
    np.testing.assert_array_equal(table.labels, records[:, 0])
    raw = raw_arrays(table, np.array([0, 19, 20, 99]), table.encoder)
    np.testing.assert_array_equal(raw.reshape(4, -1), records[[0, 19, 20, 99], 1:])
    [feature] = load("cifar10", standardise=False).encoder.features
    assert (feature.center, feature.scale) == (0, 255)


@pytest.mark.usefixtures("cifar")
def test_a_folder_of_batches_and_a_single_one_are_files_like_others(tmp_path):
    assert len(load(tmp_path / "cifar10")) == 100
    table = load(tmp_path / "cifar10" / "data_batch_3.bin")
    assert (len(table), table.encoder.names) == (20, ("image",))


@pytest.mark.usefixtures("cifar")
def test_a_batch_that_is_cut_or_something_else_is_named(tmp_path):
    path = tmp_path / "cifar10" / "data_batch_2.bin"
    content = path.read_bytes()
    for wrong in (content[:-1], b"", b"\x63" + content[1:]):
        path.write_bytes(wrong)
        with pytest.raises(DataError, match="cifar10"):
            load("cifar10")
    path.unlink()
    with pytest.raises(MissingDataError, match=r"data_batch_2\.bin is missing"):
        load("cifar10")
    assert DATASETS["cifar10"].label_kind == "classes"
