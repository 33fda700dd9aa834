"""Tables from arrays: standardised features, encoded labels, owners, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.datasets import load
from oneway.errors import DataError
from oneway.streams import Column, Table
from oneway.tables import Encoder, Feature


def two_labels(num_rows: int) -> list[int]:
    return [row % 2 for row in range(num_rows)]


@given(
    num_rows=st.integers(2, 60),
    num_features=st.integers(1, 5),
    seed=st.integers(0, 1000),
    offset=st.sampled_from([0.0, 1.0, 1.7e9]),
    block=st.sampled_from([7, 65_536]),
)
def test_standardised_features_have_zero_mean_and_unit_variance(
    num_rows: int, num_features: int, seed: int, offset: float, block: int
) -> None:
    raw = np.random.default_rng(seed).normal(offset, 3.0, size=(num_rows, num_features))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oneway.tables.scaling.ROWS_AT_A_TIME", block)
        table = Table.from_arrays(raw, two_labels(num_rows))
    assert table.features.dtype == np.float32
    assert table.features.flags.c_contiguous
    np.testing.assert_allclose(table.means, raw.mean(axis=0), rtol=1e-13, atol=1e-13)
    # Numbers that are far from zero and close together have few digits that differ.
    atol = 1e-6 + 4.0 * np.spacing(offset) / table.scales.min()
    np.testing.assert_allclose(table.scales, raw.std(axis=0), rtol=atol)
    expected = (raw - table.means) / table.scales
    np.testing.assert_array_equal(table.features, expected.astype(np.float32))


@pytest.mark.parametrize("constant", [0.1, 0.0, -7e12, 1e-200])
def test_constant_column_gets_scale_one(constant: float) -> None:
    table = Table.from_arrays(np.full((1000, 1), constant), two_labels(1000))
    assert table.scales.tolist() == [1.0]
    np.testing.assert_allclose(table.features, 0.0, atol=1e-3)


@pytest.mark.parametrize("shape", [(10, 3), (10, 2, 2)])
def test_float32_features_are_not_copied_when_not_standardised(shape: tuple[int, ...]) -> None:
    raw = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    table = Table.from_arrays(raw, two_labels(10), standardise=False)
    assert np.shares_memory(table.features, raw)
    assert not table.means.any()
    assert (table.scales == 1.0).all()


@pytest.mark.parametrize(
    ("labels", "task", "encoded", "meaning"),
    [
        ([0, 1, 0], "binary", [-1, 1, -1], (0, 1)),
        ([1.0, -1.0, 1.0], "binary", [1, -1, 1], (-1, 1)),
        ([2.5, 0.5, 0.5], "binary", [1, -1, -1], (0.5, 2.5)),
        (["yes", "no", "no"], "binary", [1, -1, -1], ("no", "yes")),
        ([True, False, True], "binary", [1, -1, 1], (False, True)),
        (["dog", "cat", "eel"], "classes", [1, 0, 2], ("cat", "dog", "eel")),
        ([0.5, 7, -2], "number", [0.5, 7, -2], ()),
    ],
)
def test_labels_are_encoded_in_order(
    labels: list[object], task: str, encoded: list[float], meaning: tuple[object, ...]
) -> None:
    table = Table.from_arrays(np.eye(3), labels, task=task)
    assert table.labels.dtype == np.float32
    assert table.labels.tolist() == encoded
    assert table.label_values == meaning


def test_columns_are_coded_in_the_order_of_their_names() -> None:
    column = Column.of(["10", "9", "10", "2"])
    assert column.names == ("2", "9", "10")
    assert column.values.tolist() == ["10", "9", "10", "2"]
    assert Column.of(["b", "a", "10"]).names == ("10", "a", "b")


def test_a_table_knows_its_size_its_label_and_how_it_was_made() -> None:
    table = Table.from_arrays(np.eye(4), two_labels(4), label_name="ill", origin={"kind": "test"})
    assert (len(table), table.num_features, table.shape) == (4, 4, (4,))
    assert table.feature_names == ("feature 1", "feature 2", "feature 3", "feature 4")
    assert json.loads(json.dumps(table.origin))["kind"] == "test"
    assert table.encoder.label == "ill"


@pytest.mark.parametrize(
    ("features", "labels", "options", "culprit"),
    [
        (np.eye(3), [0, 1, 2], {}, r"'label' has 3 distinct values \(0, 1, 2\).*task='classes'"),
        (np.eye(3), [1, 1, 1], {}, "'label'"),
        (np.eye(3), [1, 1, 1], {"task": "classes"}, "'label'"),
        (np.eye(3), ["a", "b", "a"], {"task": "number"}, "'label'"),
        (np.eye(3), [0, 1, np.nan], {}, "row 2, label column 'label'"),
        (np.eye(3), [0, 1, np.inf], {"task": "number"}, "row 2, label column 'label' is inf"),
        *(
            (np.eye(3), ["a", "b", missing], {"task": task}, "row 2, label column 'label'")
            for missing in (None, np.nan)
            for task in ("binary", "classes", "number")
        ),
        (np.eye(3), [0, 1, 0], {"task": "clases"}, "'clases'.*'classes'"),
        (np.eye(3), [0, 1], {}, r"\(3, 3\) and labels \(2,\)"),
        (np.zeros(3), [0, 1, 0], {}, r"\(3,\)"),
        (np.zeros((2, 0)), [0, 1], {}, r"\(2, 0\)"),
        ([["a"], ["b"]], [0, 1], {}, "features"),
        ([[1.0], [2.0, 3.0]], [0, 1], {}, "features"),
        ([[0.0, 0.0], [0.0, np.inf]], [0, 1], {"feature_names": ["x", "Light"]}, "row 1.*'Light'"),
        (np.eye(2), [0, 1], {"feature_names": ["x"]}, "1 feature names for 2 features"),
        (np.eye(2), [0, 1], {"feature_names": ["x", "label"]}, "'label'"),
        (np.eye(2), [0, 1], {"feature_names": ["x", "y"], "label_name": "y"}, "'y'"),
        (np.eye(2), [0, 1], {"columns": {"who": ["me"]}}, "'who'"),
        ([[1e300], [-1e300]], [0, 1], {}, "'feature 1'"),
        ([[1e39], [0.0]], [0, 1], {"standardise": False}, "'feature 1'"),
        (np.ma.masked_equal(np.eye(2), 1), [0, 1], {}, "features have masked"),
        (np.eye(2), np.ma.masked_equal([0, 1], 1), {}, "labels have masked"),
        (np.eye(2) * 1j, [0, 1], {}, "features have the type complex128"),
        (np.eye(2), [[0], [1, 2]], {}, "labels are not an array"),
    ],
)
def test_bad_arrays_are_refused_with_their_culprit(
    features: object, labels: object, options: dict[str, object], culprit: str
) -> None:
    with pytest.raises(DataError, match=culprit):
        Table.from_arrays(features, labels, **options)


def test_a_mask_without_masked_entries_does_no_harm() -> None:
    table = Table.from_arrays(np.ma.array(np.eye(2)), np.ma.array([0, 1]))
    assert type(table.features) is np.ndarray


@pytest.mark.parametrize("kind", ["time", "category"])
def test_cells_that_a_table_does_not_keep_are_not_made_up(tmp_path, kind):
    """A CSV file once held cells such as 'no red or blue'."""
    values = ("red", "blue") if kind == "category" else ()
    encoder = Encoder((Feature("c", kind=kind, values=values),), "y", "binary", ("0", "1"))
    table = Table(
        features=np.zeros((2, encoder.width), np.float32),
        labels=np.array([-1, 1], np.float32),
        feature_names=encoder.outputs,
        name="made",
        columns={},
        means=encoder.scaling.means,
        scales=encoder.scaling.scales,
        label_values=("0", "1"),
        origin={"task": "binary", "label": "y"},
        encoding=encoder.features,
    )
    with pytest.raises(DataError, match="'c'"):
        table.write_csv(tmp_path / "x.csv", np.arange(2))


@pytest.mark.parametrize("name", ["adult", "heart"])
def test_real_tables_write_files_that_read_back_as_they_are(name, real_data, tmp_path):
    if not (real_data / name).is_dir():
        pytest.skip(f"ONEWAY_DATA holds no {name}")
    table = load(name)
    rows = np.arange(0, len(table), max(1, len(table) // 300))
    table.write_csv(tmp_path / "x.csv", rows)
    again = load(tmp_path / "x.csv", encoder=table.encoder)
    np.testing.assert_array_equal(again.features, table.features[rows])
    np.testing.assert_array_equal(again.labels, table.labels[rows])
