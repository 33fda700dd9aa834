from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oneway.datasets import load
from oneway.errors import DataError
from oneway.streams import Table
from oneway.streams.clusters import cluster_rows


def some_table(num_rows: int, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    return Table.from_arrays(rng.normal(size=(num_rows, 3)), np.arange(num_rows) % 2)


def blobs(num_blobs: int, rows_each: int, num_features: int = 4) -> tuple[Table, np.ndarray]:
    """Blobs a thousand widths apart; returns which blob each row is from."""
    rng = np.random.default_rng(3)
    blob_of_row = rng.permutation(np.repeat(np.arange(num_blobs), rows_each))
    centres = rng.normal(size=(num_blobs, num_features)) * 1000
    features = centres[blob_of_row] + rng.normal(size=(len(blob_of_row), num_features))
    return Table.from_arrays(features, np.arange(len(features)) % 2), blob_of_row


@given(
    num_rows=st.integers(10, 300),
    num_nodes=st.integers(1, 10),
    adversarial=st.floats(0, 1),
    seed=st.integers(0, 2**31),
)
def test_every_node_gets_the_same_rounds_and_no_row_is_dealt_twice(
    num_rows: int, num_nodes: int, adversarial: float, seed: int
) -> None:
    table = some_table(num_rows)
    to_cluster = round(adversarial * (num_rows // num_nodes) * num_nodes)
    if 0 < to_cluster < num_nodes:
        with pytest.raises(DataError, match=f"only {to_cluster} distinct samples to cluster"):
            table.deal(num_nodes, adversarial, seed)
        return
    stream = table.deal(num_nodes, adversarial, seed)
    assert stream.rows.shape == (num_rows // num_nodes, num_nodes)
    assert stream.num_samples == stream.rows.size
    assert len(np.unique(stream.rows)) == stream.rows.size
    assert stream.rows.dtype == np.int32
    assert 0 <= stream.adversarial_share <= to_cluster / stream.rows.size
    assert stream.features is table.features
    assert stream.labels is table.labels


@given(adversarial=st.sampled_from([0.0, 0.3, 1.0]), seed=st.integers(0, 1000))
def test_the_seed_decides_everything(adversarial: float, seed: int) -> None:
    table = some_table(200)
    first = table.deal(7, adversarial, seed, resample=350)
    again = table.deal(7, adversarial, seed, resample=350)
    other = table.deal(7, adversarial, seed + 1, resample=350)
    np.testing.assert_array_equal(first.rows, again.rows)
    assert first.adversarial_share == again.adversarial_share
    assert not np.array_equal(first.rows, other.rows)


@pytest.mark.parametrize("resample", [None, 1000])
def test_separate_blobs_go_to_one_node_each(resample: int | None) -> None:
    table, blob_of_row = blobs(num_blobs=5, rows_each=80)
    stream = table.deal(5, adversarial=1.0, seed=1, resample=resample)
    if resample is None:
        assert stream.adversarial_share == 1.0
        owners = [set(blob_of_row[stream.rows[:, node]]) for node in range(5)]
        assert sorted(blob for (blob,) in owners) == [0, 1, 2, 3, 4]
    else:  # the blobs are of unequal size now, and what overflows is dealt at random
        assert 0.9 < stream.adversarial_share < 1.0
        for node in range(5):
            counts = np.bincount(blob_of_row[stream.rows[:, node]], minlength=5)
            assert counts.max() >= 0.8 * stream.num_rounds


def test_half_adversarial_means_half_of_each_node_is_its_cluster() -> None:
    table, blob_of_row = blobs(num_blobs=4, rows_each=400)
    stream = table.deal(4, adversarial=0.5, seed=5)
    assert 0.45 < stream.adversarial_share <= 0.5
    largest = [
        np.bincount(blob_of_row[stream.rows[:, node]], minlength=4).max() for node in range(4)
    ]
    # Half its cluster, and a quarter of the random half.
    assert all(0.52 < count / stream.num_rounds < 0.72 for count in largest)


def test_what_overflows_a_cluster_is_dealt_to_everybody() -> None:
    # One blob holds 70 % of the rows: its node can keep a quarter, the others share the rest.
    rng = np.random.default_rng(0)
    blob_of_row = rng.permutation(np.repeat([0, 1, 2, 3], [700, 100, 100, 100]))
    features = np.eye(4)[blob_of_row] * 1000 + rng.normal(size=(1000, 4))
    stream = Table.from_arrays(features, blob_of_row % 2).deal(4, adversarial=1.0, seed=0)
    assert stream.adversarial_share == pytest.approx((250 + 3 * 100) / 1000)
    from_large = [np.count_nonzero(blob_of_row[stream.rows[:, node]] == 0) for node in range(4)]
    assert sorted(from_large) == [150, 150, 150, 250]


@pytest.mark.parametrize("mini_batches_above", [50_000, 10])
def test_repetitions_of_a_row_are_in_one_cluster(
    mini_batches_above: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oneway.streams.clusters.MINI_BATCHES_ABOVE", mini_batches_above)
    rows = np.random.default_rng(0).integers(0, 60, size=2000)
    clusters = cluster_rows(some_table(60).features, rows, num_clusters=7, seed=1)
    assert len(clusters) == 2000
    assert set(clusters.tolist()) <= set(range(7))
    assert all(len(set(clusters[rows == row].tolist())) == 1 for row in range(60))


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"num_nodes": 20}, "20 nodes but only 12 samples"),
        ({"num_nodes": 20, "resample": 19}, "20 nodes but only 19 samples"),
        ({"num_nodes": 6, "adversarial": 0.25}, "6 nodes.* 3 distinct"),
        *(({"num_nodes": wrong}, f"num_nodes is '?{wrong}") for wrong in (0, 6.5, "6")),
        *(({"adversarial": wrong}, f"adversarial is {wrong}") for wrong in (1.5, -0.1, None)),
        *(({"seed": wrong}, f"seed is {wrong}") for wrong in (-1, 1.5, None)),
        *(({"resample": wrong}, f"resample is {wrong}") for wrong in (0, 99.5)),
        ({"adversarial": float("nan")}, "adversarial is nan"),
        ({"overflow": "drop"}, "overflow is 'drop'"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, object], culprit: str) -> None:
    with pytest.raises(DataError, match=culprit):
        some_table(12).deal(**{"num_nodes": 2, **options})  # type: ignore[arg-type]


def test_without_shuffling_a_node_sees_its_cluster_first() -> None:
    rng = np.random.default_rng(0)
    blob = np.repeat([0, 1], 100)
    table = Table.from_arrays(
        np.where(blob, 50.0, -50.0)[:, None] + rng.standard_normal((200, 1)),
        rng.choice([-1, 1], 200),
        standardise=False,
    )
    mixed, sorted_ = (
        table.deal(2, adversarial=0.5, seed=3, shuffle=shuffle) for shuffle in (True, False)
    )
    for node in range(2):
        assert sorted(mixed.rows[:, node]) == sorted(sorted_.rows[:, node])
        assert len(set(blob[sorted_.rows[:40, node]])) == 1
        assert len(set(blob[mixed.rows[:40, node]])) == 2


def test_overflow_to_the_next_node_keeps_all_of_the_adversarial_part() -> None:
    """Three blobs of unequal size for three nodes: the large one is cut, not diluted."""
    rng = np.random.default_rng(0)
    blob = np.repeat([0, 1, 2], [150, 90, 60])
    table = Table.from_arrays(
        100.0 * blob[:, None] + rng.standard_normal((300, 1)),
        rng.choice([-1, 1], 300),
        standardise=False,
    )
    pool, following = (
        table.deal(3, adversarial=1.0, seed=3, overflow=overflow) for overflow in ("pool", "next")
    )
    assert pool.adversarial_share < 1 == following.adversarial_share
    assert sorted(following.rows.ravel()) == list(range(300))
    blobs_per_node = [len(set(blob[following.rows[:, node]])) for node in range(3)]
    assert sum(blobs_per_node) <= 5


# By class: every node sees rows of few classes, no row twice.


def classes_of(sizes: list[int]) -> Table:
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
    table = classes_of(sizes)
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
    skewed = classes_of([900, 100])
    stream = skewed.deal(10, classes_per_node=1)
    ones = [skewed.labels[stream.rows[0, node]] for node in range(10)]
    assert sum(ones) == 1
    assert stream.num_samples == 1000


def test_what_cannot_be_dealt_by_class_is_named():
    table = classes_of([20, 20, 20])
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
