"""Tables from arrays in memory: what they become, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from oneway.errors import DataError
from oneway.tables import Encoder, Number, Table


@given(
    arrays_of.arrays(
        np.float64,
        st.tuples(st.integers(2, 30), st.integers(1, 5)),
        elements=st.floats(-1e6, 1e6).map(lambda number: round(number, 3)),
    )
)
def test_standardised_features_have_zero_mean_and_unit_variance(features):
    labels = np.arange(len(features)) % 2
    table = Table.from_arrays(features, labels)
    means, scales = table.encoder.scaling
    np.testing.assert_allclose(means, features.mean(axis=0), atol=1e-6)
    varies = features.min(axis=0) < features.max(axis=0)
    np.testing.assert_allclose(scales[varies], features.std(axis=0)[varies], rtol=1e-6)
    assert (scales[~varies] == 1.0).all()
    assert (table.features[:, ~varies] == 0.0).all()
    assert table.features.flags.c_contiguous


def test_what_is_not_standardised_stays():
    features = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    table = Table.from_arrays(features, np.arange(9) % 2, standardise=False)
    np.testing.assert_array_equal(table.features, features)


@pytest.mark.parametrize(
    ("labels", "task", "encoded", "classes"),
    [
        ([3, 1, 3], "binary", [1, -1, 1], ("1", "3")),
        ([True, False, True], "binary", [1, -1, 1], ("false", "true")),
        (["b", "a", "b"], "binary", [1, -1, 1], ("a", "b")),
        ([10, 9, 2], "classes", [2, 1, 0], ("2", "9", "10")),
        ([1.5, -2.0, 0.0], "number", [1.5, -2.0, 0.0], ()),
    ],
)
def test_labels_are_encoded_in_order(labels, task, encoded, classes):
    table = Table.from_arrays(np.eye(3), labels, task=task)
    assert (table.labels.tolist(), table.encoder.classes) == (encoded, classes)
    assert table.label_kind == task


def test_a_table_knows_its_size_its_label_and_how_it_was_made():
    table = Table.from_arrays(
        np.eye(4), [0, 1] * 2, name="four", label_name="late", origin={"kind": "made up"}
    )
    assert (len(table), table.num_features, table.shape) == (4, 4, (4,))
    assert table.origin == {
        "kind": "made up", "standardised": True, "rows": 4, "features": 4, "label": "late",
        "task": "binary",
    }  # fmt: skip
    assert repr(table) == "<Table: four, 4 rows of 4 features>"
    shown = table._repr_html_()
    assert "late: 0 (50.0%), 1 (50.0%)" in shown
    assert "4 model inputs" in shown


@pytest.mark.parametrize(
    ("features", "labels", "options", "culprit"),
    [
        ([[1.0], [np.nan]], [0, 1], {}, "row 1, column 'feature 1' is nan"),
        ([[1.0], [2.0]], [0, None], {}, "row 1, label column 'label' is None"),
        ([[1.0], [2.0]], [0], {}, r"shape \(2, 1\) and labels \(1,\)"),
        ([1.0, 2.0], [0, 1], {}, r"shape \(2,\)"),
        ([[1.0], [2.0]], [0, 1], {"feature_names": ["a", "b"]}, "2 feature names for 1"),
        ([[1.0], [2.0]], [0, 1], {"feature_names": ["label"]}, "named 'label'"),
        ([[1.0, 2.0]] * 2, [0, 1], {"feature_names": ["a", "a"]}, "named 'a'"),
        ([[1.0], [2.0]], [0, 1], {"columns": {"who": ["a"]}}, "'who' has 1 entries for 2"),
        ([[1.0], [2.0], [3.0]], [0, 1, 2], {}, "3 distinct values"),
        ([[1.0], [2.0]], [0, 0], {}, "1 distinct value"),
        ([["a"], ["b"]], [0, 1], {}, "features"),
        ([[1.0], [2.0]], ["a", "b"], {"task": "number"}, "holds 'a'"),
        ([[1.0], [2.0]], [0, 1], {"task": "ranks"}, "task"),
        ([[1e300], [-1e300]], [0, 1], {}, "'feature 1' is too large"),
        ([[1e300], [1.0]], [0, 1], {"standardise": False}, "row 0.*far too large"),
        (np.ma.masked_equal([[1.0], [2.0]], 2.0), [0, 1], {}, "masked"),
        ([[1.0], [2.0]], np.ma.masked_equal([0, 1], 1), {}, "masked"),
    ],
)  # fmt: skip
def test_bad_arrays_are_refused_with_their_culprit(features, labels, options, culprit):
    with pytest.raises(DataError, match=culprit):
        Table.from_arrays(features, labels, **options)


def test_a_table_is_recoded_as_a_task_says_or_says_what_it_lacks():
    table = Table.from_arrays([[1.0, 2.0], [3.0, 4.0]], ["u", "v"], feature_names=["a", "b"])
    encoder = Encoder((Number("b", 2.0, 0.5),), "label", "binary", ("v", "u"))
    recoded = table.recoded(encoder)
    assert (recoded.features.tolist(), recoded.labels.tolist()) == ([[0.0], [4.0]], [1, -1])
    assert recoded.as_numbers().encoder.kind == "number"
    with pytest.raises(DataError, match="no column 'c'"):
        table.recoded(Encoder((Number("c"),), "label", "binary", ("v", "u")))
    with pytest.raises(DataError, match="row 1: label 'label' is 'v'"):
        table.recoded(Encoder((Number("a"),), "label", "binary", ("x", "u")))
