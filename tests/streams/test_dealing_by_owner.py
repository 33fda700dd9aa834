from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import DataError
from oneway.streams import Table, load


def owned_by(owners: list[str]) -> Table:
    features = np.arange(len(owners), dtype=float)[:, None]
    return Table.from_arrays(
        features,
        np.arange(len(owners)) % 2,
        feature_names=["number"],
        columns={"owner": owners},
        name="some table",
    )


def literal_deal(owners: list[str]) -> list[dict[str, int]]:
    """Walk the rows: one goes into the round, unless its owner has a sample there already."""
    rounds: list[dict[str, int]] = [{}]
    for row, owner in enumerate(owners):
        if owner in rounds[-1]:
            rounds.append({})
        rounds[-1][owner] = row
    return rounds


@given(owners=st.lists(st.sampled_from("abcdef"), min_size=2, max_size=80))
def test_rows_are_dealt_as_if_walked_one_by_one(owners: list[str]) -> None:
    stream = owned_by(owners).deal_by("owner")
    assert stream.num_samples == len(owners)
    assert stream.node_names == tuple(sorted(set(owners)))
    names = stream.node_names
    dealt = [
        {name: row for name, row in zip(names, of_round, strict=True) if row >= 0}
        for of_round in stream.rows.tolist()
    ]
    assert dealt == literal_deal(owners)


def test_spellings_of_an_owner_are_one_as_for_a_peer() -> None:
    """`group_name` is the rule of both; an owner counted twice has two times the samples."""
    table = owned_by(["7", "007", " 7.0", "NA", "None", "Ada ", "Ada", "?"])
    stream = table.deal_by("owner")
    assert stream.node_names == ("7", "Ada")
    assert stream.rows.tolist() == [[0, -1], [1, -1], [2, 5], [-1, 6]]
    assert stream.origin["rows_left_out"] == 3
    assert table.frame["owner"][1] == "007", "the data keeps its cells"


def test_rows_without_an_owner_are_left_out() -> None:
    table = Table.from_arrays(
        np.eye(4),
        [0, 1, 0, 1],
        columns={"owner": ["y", None, "x", "y"]},
    )
    stream = table.deal_by("owner")
    assert stream.rows.tolist() == [[2, 0], [-1, 3]]
    assert stream.origin["rows_left_out"] == 1


def test_an_unknown_column_is_answered_with_the_nearest_and_the_list() -> None:
    with pytest.raises(DataError, match=r"some table.*'ownr'.*'owner'.* number, label, owner"):
        owned_by(["a", "b"]).deal_by("ownr")


def test_min_samples_must_leave_somebody() -> None:
    table = owned_by(["a", "b", "a"])
    with pytest.raises(DataError, match=r"no value of column 'owner' has 3 samples.*most is 2"):
        table.deal_by("owner", min_samples=3)
    for wrong in (0, 1.5):
        with pytest.raises(DataError, match=f"min_samples is {wrong}"):
            table.deal_by("owner", min_samples=wrong)  # type: ignore[arg-type]


FAR_APART = [1, 2, *range(4_000_000_001, 4_000_000_051)]


def table_of(ids: list[int], standardise: bool = True) -> Table:
    features = np.column_stack([np.array(ids, dtype=float), np.arange(len(ids)) / 7])
    return Table.from_arrays(
        features, np.arange(len(ids)) % 2, feature_names=["id", "x"], standardise=standardise
    )


@pytest.mark.parametrize("ids", [FAR_APART, list(range(1_000_001, 1_000_051)), [-3, 0, 2**52, 7]])
def test_every_number_of_a_file_or_array_is_an_owner_of_its_own(
    tmp_path: Path, ids: list[int]
) -> None:
    lines = [f"{number},{row / 7},{row % 2}" for row, number in enumerate([*ids, *ids])]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["id,x,y", *lines]))
    expected = tuple(str(number) for number in sorted(ids))
    for table in (load(path, label="y"), table_of([*ids, *ids]), table_of([*ids, *ids], False)):
        assert table.encoder.names == ("id", "x")
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
def test_owners_are_never_merged_or_renamed(
    ids: list[int], step: int, offset: int, standardise: bool
) -> None:
    numbers = [offset + step * number for number in ids]
    stream = table_of(numbers, standardise).deal_by("id")
    assert stream.node_names == tuple(str(number) for number in sorted(set(numbers)))


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
    table = Table.from_arrays(np.eye(4), [0, 1, 0, 1], columns={"owner": owners})
    assert table.owners("owner").codes.tolist() == [0, -1, 1, -1]


def test_masked_owners_are_refused() -> None:
    with pytest.raises(DataError, match="masked entries"):
        Table.from_arrays(np.eye(3), [0, 1, 0], columns={"owner": np.ma.masked_equal([1, 2, 3], 2)})
