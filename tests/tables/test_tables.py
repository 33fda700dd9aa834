from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.errors import DataError
from oneway.streams import Column, Table


def two_labels(num_rows: int) -> list[int]:
    return [row % 2 for row in range(num_rows)]


@given(
    num_rows=st.integers(2, 60),
    num_features=st.integers(1, 5),
    seed=st.integers(0, 1000),
    offset=st.sampled_from([0.0, 1.0, 1.7e9]),
)
@settings(deadline=None, max_examples=40)
def test_standardised_features_have_zero_mean_and_unit_variance(
    num_rows: int, num_features: int, seed: int, offset: float
) -> None:
    raw = np.random.default_rng(seed).normal(offset, 3.0, size=(num_rows, num_features))
    table = Table.from_arrays(raw, two_labels(num_rows))
    assert table.features.dtype == np.float32
    assert table.features.flags.c_contiguous
    as_float64 = table.features.astype(np.float64)
    # Numbers that are far from zero and close together have few digits that differ.
    atol = 1e-6 + 4.0 * np.spacing(offset) / table.scales.min()
    np.testing.assert_allclose(as_float64.mean(axis=0), 0.0, atol=atol)
    np.testing.assert_allclose(as_float64.std(axis=0), 1.0, atol=atol)
    np.testing.assert_allclose(as_float64 * table.scales + table.means, raw, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("constant", [0.1, 0.0, -7e12, 1e-200])
def test_constant_column_gets_scale_one(constant: float) -> None:
    table = Table.from_arrays(np.full((1000, 1), constant), two_labels(1000))
    assert table.scales.tolist() == [1.0]
    np.testing.assert_allclose(table.features, 0.0, atol=1e-3)


def test_blocks_do_not_change_the_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = np.random.default_rng(0).normal(5.0, 2.0, size=(1000, 3))
    whole = Table.from_arrays(raw, two_labels(1000))
    monkeypatch.setattr("oneway.tables.scaling.ROWS_AT_A_TIME", 7)
    blocks = Table.from_arrays(raw, two_labels(1000))
    np.testing.assert_allclose(blocks.means, whole.means, rtol=1e-13)
    np.testing.assert_allclose(blocks.scales, whole.scales, rtol=1e-13)
    np.testing.assert_allclose(blocks.means, raw.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(blocks.scales, raw.std(axis=0), rtol=1e-13)


def test_float32_features_are_not_copied_when_not_standardised() -> None:
    raw = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    table = Table.from_arrays(raw, two_labels(10), standardise=False)
    assert table.features is raw
    assert table.means.tolist() == [0, 0, 0]
    assert table.scales.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("labels", "encoded", "meaning"),
    [
        ([0, 1, 0], [-1, 1, -1], (0, 1)),
        ([1.0, -1.0, 1.0], [1, -1, 1], (-1, 1)),
        ([2.5, 0.5, 0.5], [1, -1, -1], (0.5, 2.5)),
        (["yes", "no", "no"], [1, -1, -1], ("no", "yes")),
        ([True, False, True], [1, -1, 1], (False, True)),
    ],
)
def test_the_larger_of_two_labels_becomes_plus_one(
    labels: list[object], encoded: list[int], meaning: tuple[object, ...]
) -> None:
    table = Table.from_arrays(np.eye(3), labels)
    assert table.labels.dtype == np.float32
    assert table.labels.tolist() == encoded
    assert table.label_values == meaning


def test_classes_are_numbered_in_order() -> None:
    table = Table.from_arrays(np.eye(4), ["dog", "cat", "eel", "cat"], task="classes")
    assert table.labels.tolist() == [1, 0, 2, 0]
    assert table.label_values == ("cat", "dog", "eel")


def test_numbers_stay_numbers() -> None:
    table = Table.from_arrays(np.eye(3), [0.5, 7, -2], task="number")
    assert table.labels.tolist() == [0.5, 7, -2]
    assert table.label_values == ()


def test_columns_are_coded_in_the_order_of_their_names() -> None:
    column = Column.of(["10", "9", "10", "2"])
    assert column.names == ("2", "9", "10")
    assert column.values.tolist() == ["10", "9", "10", "2"]
    assert Column.of(["b", "a", "10"]).names == ("10", "a", "b")


def test_a_table_knows_its_size_and_how_it_was_made() -> None:
    table = Table.from_arrays(np.eye(4), two_labels(4), origin={"kind": "test"})
    assert (len(table), table.num_features) == (4, 4)
    assert table.feature_names == ("feature 1", "feature 2", "feature 3", "feature 4")
    assert json.loads(json.dumps(table.origin))["kind"] == "test"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite_are_named_by_row_and_column(value: float) -> None:
    features = np.zeros((20, 2))
    features[17, 1] = value
    with pytest.raises(DataError) as caught:
        Table.from_arrays(features, two_labels(20), feature_names=["CO2", "Light"])
    assert str(caught.value) == (
        f"row 17, column 'Light' is {value}; features must be finite; drop or fill it"
    )


@pytest.mark.parametrize(
    ("features", "labels", "options", "message"),
    [
        (np.eye(3), [0, 1, 2], {}, r"'label' has 3 distinct values \(0, 1, 2\).*task='classes'"),
        (np.eye(3), [1, 1, 1], {}, r"'label' has 1 distinct value \(1\)"),
        (np.eye(3), [1, 1, 1], {"task": "classes"}, "nothing to learn"),
        (np.eye(3), ["a", "b", "a"], {"task": "number"}, "not numeric"),
        (np.eye(3), [0, 1, np.nan], {}, "row 2, label column 'label' is nan"),
        (np.eye(3), [0, 1, np.inf], {"task": "number"}, "row 2, label column 'label' is inf"),
        (np.eye(3), [0, 1, 0], {"task": "clases"}, "task is 'clases'.*'classes'"),
        (np.eye(3), [0, 1], {}, r"shape \(3, 3\) and labels \(2,\)"),
        (np.zeros(3), [0, 1, 0], {}, r"shape \(3,\)"),
        (np.zeros((2, 0)), [0, 1], {}, r"shape \(2, 0\)"),
        ([["a"], ["b"]], [0, 1], {}, "not an array of numbers"),
        ([[1.0], [2.0, 3.0]], [0, 1], {}, "not an array of numbers"),
        (np.eye(2), [0, 1], {"feature_names": ["x"]}, "1 feature names for 2 features"),
        (np.eye(2), [0, 1], {"columns": {"who": ["me"]}}, "'who' has 1 entries for 2 rows"),
        ([[1e300], [-1e300]], [0, 1], {}, "column 'feature 1' reaches from -1e.300 to 1e.300"),
        ([[1e39], [0.0]], [0, 1], {"standardise": False}, "does not fit in float32"),
    ],
)
def test_bad_arrays_are_refused_with_a_reason(
    features: object, labels: object, options: dict[str, object], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Table.from_arrays(features, labels, **options)


@pytest.mark.parametrize("missing", [None, np.nan, float("nan")])
@pytest.mark.parametrize("task", ["binary", "classes", "number"])
def test_a_missing_label_is_no_class(missing: object, task: str) -> None:
    for labels in (["a", "b", missing], np.array([1, 0, missing], dtype=object)):
        with pytest.raises(DataError, match=r"row 2, label column 'label' is (None|nan)"):
            Table.from_arrays(np.eye(3), labels, task=task)


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (np.ma.masked_equal(np.eye(2), 1), [0, 1], "features have masked entries"),
        (np.eye(2), np.ma.masked_equal([0, 1], 1), "labels have masked entries"),
        (np.eye(2) * 1j, [0, 1], "features have the type complex128"),
        (np.eye(2), [[0], [1, 2]], "labels are not an array"),
    ],
)
def test_masked_and_complex_arrays_are_refused(
    features: object, labels: object, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Table.from_arrays(features, labels)


def test_a_mask_without_masked_entries_does_no_harm() -> None:
    table = Table.from_arrays(np.ma.array(np.eye(2)), np.ma.array([0, 1]))
    assert type(table.features) is np.ndarray
