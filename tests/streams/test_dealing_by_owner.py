from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.errors import DataError
from oneway.streams import Column, Table


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
