from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import DataError
from oneway.streams import Stream, synthetic


def test_from_arrays_deals_each_node_its_own_samples() -> None:
    features = np.arange(24.0).reshape(4, 3, 2)
    labels = np.arange(12.0).reshape(4, 3)
    stream = Stream.from_arrays(features, labels)
    assert (stream.num_rounds, stream.num_nodes, stream.dim, stream.num_samples) == (4, 3, 2, 12)
    for round_index in range(4):
        nodes, batch = stream.batch(round_index)
        assert nodes.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(batch.features, features[round_index])
        np.testing.assert_array_equal(batch.labels, labels[round_index])


def test_a_node_without_a_sample_is_not_in_the_batch() -> None:
    features, labels = np.arange(3.0)[:, None], np.arange(3.0)
    stream = Stream(features, labels, rows=np.array([[2, -1, 0], [-1, -1, -1]], np.int32))
    assert stream.num_samples == 2
    nodes, batch = stream.batch(0)
    assert nodes.tolist() == [0, 2]
    assert batch.labels.tolist() == [2, 0]
    nodes, batch = stream.batch(1)
    assert len(nodes) == len(batch) == 0


def test_head_keeps_the_first_rounds() -> None:
    stream = Stream.from_arrays(np.zeros((5, 2, 1)), np.arange(10.0).reshape(5, 2))
    assert stream.head(2).num_rounds == 2
    assert stream.head(2).batch(1)[1].labels.tolist() == [2, 3]
    assert stream.head(99).num_rounds == 5
    assert stream.head(2).num_samples == 4


def test_rounds_that_do_not_exist_are_refused() -> None:
    stream = Stream.from_arrays(np.zeros((5, 2, 1)), np.zeros((5, 2)))
    for round_index in (-1, 5):
        with pytest.raises(DataError, match="rounds 0 to 4"):
            stream.batch(round_index)
    assert stream.head(2.0).origin["head"] == 2  # type: ignore[arg-type]
    for wrong in (0, 2.5, None, "2", np.nan):
        with pytest.raises(DataError, match="num_rounds"):
            stream.head(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (">f4", np.float32),
        (">f8", np.float64),
        ("f2", np.float32),
        ("i8", np.float64),
        ("u1", np.float64),
        ("?", np.float64),
        ("g", np.float64),
        ("O", np.float64),
    ],
)
def test_other_numbers_become_native_floats(given: str, kept: type) -> None:
    features = np.array([[0, 1], [1, 1], [1, 0]]).astype(given)
    stream = Stream(features, features[:, 0], rows=np.zeros((1, 1), int))
    for array in (stream.features, stream.labels):
        assert array.dtype == kept
        assert array.dtype.isnative
        assert array.flags.c_contiguous
    assert stream.features.tolist() == [[0, 1], [1, 1], [1, 0]]


def test_floats_in_order_are_not_copied(tmp_path: Path) -> None:
    features, labels = np.zeros((4, 2), np.float32), np.zeros(4)
    stream = Stream(features, labels, rows=np.zeros((1, 1), int))
    assert stream.features is features
    assert stream.labels is labels
    dealt = Stream.from_arrays(features[None], labels[None])
    assert np.shares_memory(dealt.features, features)
    features.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.float32, "r", shape=(4, 2))
    assert np.shares_memory(Stream(mapped, labels, rows=stream.rows).features, mapped)
    turned = np.asfortranarray(np.arange(8.0).reshape(4, 2))
    assert Stream(turned, labels, rows=stream.rows).features.flags.c_contiguous


TWO = [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("features", "labels", "rows", "culprit"),
    [
        ([[1.0], [np.nan]], [1, 1], [[0]], r"features\[1, 0\] is nan"),
        ([[1.0], [None]], [1, 1], [[0]], r"features\[1, 0\] is nan"),
        ([[1j], [2.0]], [1, 1], [[0]], "features have the type complex128"),
        ([[1.0], ["b"]], [1, 1], [[0]], "features"),
        (np.ma.masked_equal(TWO, 2), [1, 1], [[0]], "features have masked"),
        (TWO, [1, np.inf], [[0]], r"labels\[1\] is inf"),
        (TWO, np.ma.masked_equal([1, 2], 2), [[0]], "labels have masked"),
        (TWO, [1], [[0]], r"\(2, 1\) and labels \(1,\)"),
        (TWO, [1, 1], [[0], [0, 1]], "rows"),
        (TWO, [1, 1], [[2]], "rows reach from 2 to 2"),
        (TWO, [1, 1], [[-2]], "rows reach from -2 to -2"),
        (TWO, [1, 1], [0], r"rows.*\(1,\)"),
        (TWO, [1, 1], [[0.0]], "rows.*float64"),
        (TWO, [1, 1], [[True]], "rows.*bool"),
        (TWO, [1, 1], np.zeros((0, 2), int), "rows"),
        (TWO, [1, 1], np.array([[2**64 - 1]], np.uint64), "rows"),
    ],
)
def test_what_is_no_finite_number_makes_no_stream(
    features: object, labels: object, rows: object, culprit: str
) -> None:
    with pytest.raises(DataError, match=culprit):
        Stream(features, labels, rows=rows)


def test_node_names_are_one_per_node() -> None:
    with pytest.raises(DataError, match="1 node names for 2 nodes"):
        Stream(np.zeros((3, 1)), np.zeros(3), rows=np.zeros((1, 2), int), node_names=("a",))


def test_a_broken_number_is_named_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oneway.streams.arguments.NUMBERS_AT_A_TIME", 7)
    features = np.zeros((50, 2))
    features[33, 1] = -np.inf
    with pytest.raises(DataError, match=r"features\[33, 1\] is -inf"):
        Stream(features, np.zeros(50), rows=np.zeros((1, 1), int))


def test_rows_cannot_be_changed_by_accident() -> None:
    mine = np.zeros((3, 2), np.int32)
    table = synthetic(12, 2).table
    for stream in (
        Stream(np.zeros((3, 1)), np.zeros(3), rows=mine),
        Stream.from_arrays(np.zeros((3, 2, 1)), np.zeros((3, 2))),
        table.deal(3),
        table.deal(3).head(2),
    ):
        with pytest.raises(ValueError, match="read-only"):
            stream.rows[0, 0] = 1
    mine[0, 0] = 1


def literal_at_most(rows: list[list[int]], count: int, groups: list[int]) -> list[list[int]]:
    """Go through the rounds; what a node has seen often enough, or is nobody's, it does not see."""
    seen: dict[tuple[int, int], int] = {}
    kept = []
    for dealt in rows:
        kept.append([-1] * len(dealt))
        for node, row in enumerate(dealt):
            if row < 0 or groups[row] < 0:
                continue
            key = (node, groups[row])
            seen[key] = seen.get(key, 0) + 1
            if seen[key] <= count:
                kept[-1][node] = row
    return kept


@given(st.data())
def test_at_most_keeps_the_first_samples_of_each_group_at_each_node(data: st.DataObject) -> None:
    groups = data.draw(st.lists(st.integers(-1, 3), min_size=1, max_size=8), label="groups")
    num_rounds, num_nodes = data.draw(st.tuples(st.integers(1, 12), st.integers(1, 4)))
    cell = st.integers(-1, len(groups) - 1)
    line = st.lists(cell, min_size=num_nodes, max_size=num_nodes)
    rows = data.draw(st.lists(line, min_size=num_rounds, max_size=num_rounds), label="rows")
    count = data.draw(st.integers(1, 4), label="count")
    stream = Stream(np.zeros((len(groups), 1)), np.zeros(len(groups)), np.array(rows))
    limited = stream.at_most(count, np.array(groups))
    expected = np.array(literal_at_most(rows, count, groups))
    np.testing.assert_array_equal(limited.rows, expected)
    assert limited.origin["at_most"] == count
    assert limited.origin["left_out"] == stream.num_samples - limited.num_samples
    np.testing.assert_array_equal(stream.rows, rows)
    again = limited.at_most(count, np.array(groups))
    np.testing.assert_array_equal(again.rows, limited.rows)
