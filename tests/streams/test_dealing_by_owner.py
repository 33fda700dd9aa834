from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.errors import DataError
from oneway.streams import Column, Table, load


def owned_by(owners: list[str]) -> Table:
    features = np.arange(len(owners), dtype=float)[:, None]
    return Table.from_arrays(
        features,
        np.arange(len(owners)) % 2,
        feature_names=["number"],
        columns={"owner": owners},
        name="some table",
    )


def test_a_new_round_begins_when_an_owner_comes_again() -> None:
    stream = owned_by(["b", "a", "c", "a", "b", "b", "a"]).deal_by("owner")
    assert stream.node_names == ("a", "b", "c")
    assert stream.rows.tolist() == [[1, 0, 2], [3, 4, -1], [6, 5, -1]]
    assert stream.num_samples == 7


@given(owners=st.lists(st.sampled_from("abcdef"), min_size=2, max_size=80))
@settings(deadline=None, max_examples=80)
def test_reading_the_rounds_in_turn_gives_back_the_order_of_the_table(owners: list[str]) -> None:
    table = owned_by(owners)
    stream = table.deal_by("owner")
    assert stream.num_samples == len(owners)
    in_turn = [sorted(row for row in of_round if row >= 0) for of_round in stream.rows.tolist()]
    assert [row for of_round in in_turn for row in of_round] == list(range(len(owners)))
    assert stream.node_names is not None
    for row, owner in enumerate(owners):
        (node,) = np.nonzero(stream.rows == row)[1]
        assert stream.node_names[node] == owner
    # No round could have begun later: its first owner has a sample in the round before.
    for before, after in zip(stream.rows, stream.rows[1:], strict=False):
        first = np.flatnonzero(after == after[after >= 0].min())[0]
        assert before[first] >= 0


def test_owners_with_few_samples_are_left_out_with_their_rows() -> None:
    stream = owned_by(["a", "b", "a", "c", "c", "a"]).deal_by("owner", min_samples=2)
    assert stream.node_names == ("a", "c")
    assert stream.rows.tolist() == [[0, -1], [2, 3], [5, 4]]
    assert stream.origin["rows_left_out"] == 1


def test_rows_without_an_owner_are_left_out() -> None:
    table = Table.from_arrays(
        np.eye(4),
        [0, 1, 0, 1],
        columns={"owner": Column(np.array([1, -1, 0, 1], np.int32), ("x", "y"))},
    )
    stream = table.deal_by("owner")
    assert stream.rows.tolist() == [[2, 0], [-1, 3]]
    assert stream.origin["rows_left_out"] == 1


def test_a_feature_can_name_the_owner() -> None:
    hours = np.array([17.0, 3.0, 17.0, 250.0])
    table = Table.from_arrays(
        np.column_stack([hours, hours**2]), [0, 1, 0, 1], feature_names=["hour", "square"]
    )
    stream = table.deal_by("hour")
    assert stream.node_names == ("3", "17", "250")
    assert stream.rows.tolist() == [[1, 0, -1], [-1, 2, 3]]


def test_an_unknown_column_is_answered_with_the_nearest_and_the_list() -> None:
    with pytest.raises(DataError) as caught:
        owned_by(["a", "b"]).deal_by("ownr")
    assert str(caught.value) == (
        "some table has no column 'ownr', did you mean 'owner'? it has: owner, number"
    )


def test_min_samples_must_leave_somebody() -> None:
    table = owned_by(["a", "b", "a"])
    with pytest.raises(DataError, match=r"no value of column 'owner' has 3 samples.*most is 2"):
        table.deal_by("owner", min_samples=3)
    with pytest.raises(DataError, match="min_samples is 0"):
        table.deal_by("owner", min_samples=0)


FAR_APART = [1, 2, *range(4_000_000_001, 4_000_000_051)]


def table_of(ids: list[int], standardise: bool = True) -> Table:
    features = np.column_stack([np.array(ids, dtype=float), np.arange(len(ids)) / 7])
    return Table.from_arrays(
        features, np.arange(len(ids)) % 2, feature_names=["id", "x"], standardise=standardise
    )


@pytest.mark.parametrize("ids", [FAR_APART, list(range(1_000_001, 1_000_051)), [-3, 0, 2**52, 7]])
@pytest.mark.parametrize("standardise", [True, False])
def test_every_number_of_a_file_or_array_is_an_owner_of_its_own(
    tmp_path: Path, cache_everything: Path, ids: list[int], standardise: bool
) -> None:
    lines = [f"{number},{row / 7},{row % 2}" for row, number in enumerate([*ids, *ids])]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["id,x,y", *lines]))
    expected = tuple(str(number) for number in sorted(ids))
    read, mapped = (load(path, label="y", standardise=standardise) for _ in range(2))
    assert list(cache_everything.iterdir())
    for table in (read, mapped, table_of([*ids, *ids], standardise)):
        assert table.feature_names == ("id", "x")
        stream = table.deal_by("id")
        assert stream.node_names == expected
        for row, number in enumerate([*ids, *ids]):
            assert row in stream.rows[:, expected.index(str(number))]


@given(
    ids=st.lists(st.integers(-50, 50), min_size=2, max_size=40),
    step=st.sampled_from([1, 10_000, 30_000, 2**40]),
    offset=st.sampled_from([0, 10**6, 2**47, -(2**50)]),
    standardise=st.booleans(),
)
@settings(deadline=None, max_examples=150)
def test_owners_are_never_merged_or_renamed(
    ids: list[int], step: int, offset: int, standardise: bool
) -> None:
    numbers = [offset + step * number for number in ids]
    stream = table_of(numbers, standardise).deal_by("id")
    assert stream.node_names == tuple(str(number) for number in sorted(set(numbers)))


def test_a_feature_that_float32_does_not_keep_apart_is_no_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match=r"'x' of arrays cannot name owners.*columns=\{...\}"):
        table_of([1, 2, 3]).deal_by("x")
    with pytest.raises(DataError, match="'id' of arrays cannot name owners"):
        table_of([1, 2**53, 2**53 + 2]).deal_by("id")
    # The codes of a file begin with its first block, before the numbers grow.
    monkeypatch.setattr("oneway.tables.lines.BLOCK_BYTES", 30)
    path = tmp_path / "x.csv"
    lines = [f"{10**9 * (row > 20) + row},{row},{row % 2}" for row in range(40)]
    path.write_text("\n".join(["id,x,y", *lines]))
    with pytest.raises(DataError, match=r"'id' of x\.csv cannot name owners"):
        load(path, label="y").deal_by("id")
    stream = load(path, label="y", features=["x"]).deal_by("id")
    assert stream.num_nodes == 40


def test_features_with_very_many_values_are_no_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oneway.tables.owners.MAX_DISTINCT_NAMES", 51)
    table = table_of(FAR_APART)
    assert not table.columns
    with pytest.raises(DataError, match="too many"):
        table.deal_by("id")


@pytest.mark.parametrize(
    "owners",
    [
        ["a", None, "b", np.nan],
        np.array(["a", None, "b", np.nan], dtype=object),
        np.array([1.0, np.nan, 2.0, np.nan]),
        np.array(["2020-01-01", "NaT", "2020-01-02", "NaT"], dtype="datetime64[D]"),
    ],
)
def test_none_and_nan_are_nobody(owners: object) -> None:
    column = Column.of(owners)
    assert column.codes.tolist() == [0, -1, 1, -1]
    assert len(column.names) == 2


def test_masked_owners_are_refused() -> None:
    with pytest.raises(DataError, match="owners have masked entries"):
        Column.of(np.ma.masked_equal([1, 2, 3], 2))
    assert Column.of(np.ma.array([1, 2])).names == ("1", "2")
