"""Dealing by class: every node sees rows of few classes, no row twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oneway.datasets import load
from oneway.errors import ConfigError, DataError
from oneway.tables import Table
from oneway.task.assembly import assemble
from oneway.task.settings import Settings


def table_of(sizes: list[int]) -> Table:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    features = np.arange(len(labels), dtype=float)[:, None]
    return Table.from_arrays(features, labels, task="classes")


@given(
    st.lists(st.integers(30, 200), min_size=2, max_size=6),
    st.integers(1, 8),
    st.integers(1, 6),
    st.integers(0, 5),
    st.none() | st.integers(200, 2_000),
)
def test_every_node_sees_exactly_so_many_classes(sizes, nodes, classes, seed, resample):
    assume(classes <= len(sizes) <= nodes * classes)
    table = table_of(sizes)
    stream = table.deal(nodes, classes_per_node=classes, seed=seed, resample=resample)
    seen = [set(table.labels[stream.rows[:, node]]) for node in range(nodes)]
    if resample is None:
        assert [len(each) for each in seen] == [classes] * nodes
        assert len(np.unique(stream.rows)) == stream.rows.size, "no row is dealt twice"
    else:
        counts = [
            np.unique(table.labels[stream.rows[:, node]], return_counts=True)[1]
            for node in range(nodes)
        ]
        assert all(set(count) == {resample // (nodes * classes)} for count in counts)
    assert set().union(*seen) == set(range(len(sizes))), "every class is somewhere"
    again = table.deal(nodes, classes_per_node=classes, seed=seed, resample=resample)
    np.testing.assert_array_equal(stream.rows, again.rows)


def test_classes_of_equal_size_lose_few_rows_and_large_ones_go_to_more_nodes():
    digits = load("digits")
    stream = digits.deal(10, classes_per_node=2, seed=3)
    assert stream.num_samples > 0.95 * len(digits)
    assert stream.origin["classes_per_node"] == 2
    skewed = table_of([900, 100])
    stream = skewed.deal(10, classes_per_node=1)
    ones = [skewed.labels[stream.rows[0, node]] for node in range(10)]
    assert sum(ones) == 1
    assert stream.num_samples == 1000


def test_what_cannot_be_dealt_by_class_is_named():
    table = table_of([20, 20, 20])
    for nodes, classes in ((1, 2), (4, 4), (2, 0), (2, 1)):
        with pytest.raises(DataError, match="classes_per_node"):
            table.deal(nodes, classes_per_node=classes)
    with pytest.raises(DataError, match="30 nodes"):
        table.deal(30, classes_per_node=3)
    with pytest.raises(DataError, match="6 nodes"):
        table.deal(6, classes_per_node=3, resample=10)
    with pytest.raises(DataError, match="adversarial"):
        table.deal(3, adversarial=0.5, classes_per_node=1)
    numbers = Table.from_arrays([[0.0], [1.0]], [0.5, 0.7], task="number")
    with pytest.raises(DataError, match="labels are numbers"):
        numbers.deal(2, classes_per_node=1)


def test_a_label_names_owners_as_a_column_does():
    table = Table.from_arrays(
        np.zeros((6, 1)), ["b", "a", "b", "c", "a", "b"], task="classes", standardise=False
    )
    stream = table.deal_by("label")
    assert stream.node_names == ("a", "b", "c")
    assert [(stream.rows[:, node] >= 0).sum() for node in range(3)] == [2, 3, 1]
    two = Table.from_arrays(np.zeros((3, 1)), ["y", "x", "y"], standardise=False)
    assert two.deal_by("label").node_names == ("x", "y")


def test_settings_deal_by_class():
    parts = assemble(Settings(data="digits", nodes=6, classes_per_node=2, rounds=20))
    for node in range(6):
        assert len(set(parts.table.labels[parts.stream.rows[:, node]])) <= 2
    with pytest.raises(ConfigError, match="classes_per_node"):
        assemble(Settings(data="heart", owner="hospital", classes_per_node=2))
