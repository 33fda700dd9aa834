from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oneway.errors import DataError
from oneway.streams import Stream, Table, synthetic
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
@settings(deadline=None, max_examples=60)
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
@settings(deadline=None, max_examples=15)
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


def test_mini_batches_find_the_same_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oneway.streams.clusters.MINI_BATCHES_ABOVE", 100)
    monkeypatch.setattr("oneway.streams.clusters.FIT_ROWS", 1500)
    monkeypatch.setattr("oneway.streams.clusters.PREDICT_ROWS", 64)
    table, blob_of_row = blobs(num_blobs=4, rows_each=500)
    stream = table.deal(4, adversarial=1.0, seed=2)
    assert stream.adversarial_share == 1.0
    owners = [set(blob_of_row[stream.rows[:, node]]) for node in range(4)]
    assert sorted(blob for (blob,) in owners) == [0, 1, 2, 3]
    np.testing.assert_array_equal(stream.rows, table.deal(4, adversarial=1.0, seed=2).rows)


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


def test_without_adversarial_part_the_labels_of_a_node_are_a_fair_sample() -> None:
    table = some_table(20_000)
    stream = table.deal(4, seed=9)
    shares = (table.labels[stream.rows] > 0).mean(axis=0)
    np.testing.assert_allclose(shares, 0.5, atol=0.03)
    assert stream.adversarial_share == 0.0


def test_the_stream_of_a_node_is_shuffled() -> None:
    table, blob_of_row = blobs(num_blobs=4, rows_each=400)
    stream = table.deal(4, adversarial=0.5, seed=5)
    for node in range(4):
        blob = blob_of_row[stream.rows[:, node]]
        main = blob == np.bincount(blob).argmax()
        early, late = main[: len(main) // 2].mean(), main[len(main) // 2 :].mean()
        assert abs(early - late) < 0.15


@given(resample=st.integers(5, 500), num_nodes=st.integers(1, 5), seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=30)
def test_resampling_gives_as_many_rounds_as_asked_for(
    resample: int, num_nodes: int, seed: int
) -> None:
    stream = some_table(20).deal(num_nodes, seed=seed, resample=resample)
    assert stream.num_rounds == resample // num_nodes
    assert 0 <= stream.rows.min() <= stream.rows.max() < 20


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


def test_one_node_gets_everything() -> None:
    stream = some_table(10).deal(1, adversarial=1.0)
    assert sorted(stream.rows[:, 0].tolist()) == list(range(10))


def test_the_origin_says_what_was_done_in_terms_of_json() -> None:
    stream = some_table(100).deal(4, adversarial=0.5, seed=7)
    origin = json.loads(json.dumps(stream.origin))
    assert origin["seed"] == 7
    assert origin["adversarial"] == 0.5
    assert origin["adversarial_share"] == stream.adversarial_share
    assert origin["table"]["rows"] == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_nodes": 20}, "20 nodes but only 12 samples: .*fewer nodes, or resample"),
        ({"num_nodes": 20, "resample": 19}, "20 nodes but only 19 samples"),
        ({"num_nodes": 0}, "num_nodes is 0"),
        ({"num_nodes": 2, "adversarial": 1.5}, "adversarial is 1.5; it is a share"),
        ({"num_nodes": 2, "adversarial": -0.1}, "adversarial is -0.1"),
        ({"num_nodes": 2, "adversarial": float("nan")}, "adversarial is nan"),
        ({"num_nodes": 2, "seed": -1}, "seed is -1"),
        ({"num_nodes": 2, "resample": 0}, "resample is 0"),
        ({"num_nodes": 6, "adversarial": 0.25}, "6 nodes, one cluster each, but only 3 distinct"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        some_table(12).deal(**arguments)


def test_equal_rows_cannot_be_more_clusters_than_there_are_values() -> None:
    features = np.repeat(np.eye(3), 1000, axis=0)
    table = Table.from_arrays(features, np.arange(3000) % 2)
    with pytest.raises(DataError, match="4 nodes, one cluster each, but only 3 distinct"):
        table.deal(4, adversarial=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table.deal(3, adversarial=1.0).adversarial_share == 1.0


def test_a_large_table_is_dealt_from_one_permutation() -> None:
    table = synthetic(1_000_000, 2, seed=0).table
    stream = table.deal(128, seed=1)
    assert isinstance(stream, Stream)
    assert stream.num_rounds == 7812
    assert stream.rows.dtype == np.int32
    assert len(np.unique(stream.rows)) == 7812 * 128


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


def test_whole_floats_count_as_integers() -> None:
    table = some_table(60)
    plain = table.deal(6, seed=1, resample=100)
    stream = table.deal(6.0, seed=np.int64(1), resample=100.0)  # type: ignore[arg-type]
    np.testing.assert_array_equal(stream.rows, plain.rows)
    assert json.dumps(stream.origin) == json.dumps(plain.origin)
    assert len(synthetic(10.0, 3.0).table) == 10  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_nodes": 6.5}, "num_nodes is 6.5; it must be a whole number"),
        ({"num_nodes": "6"}, "num_nodes is '6'; it must be a whole number"),
        ({"seed": None}, "seed is None; it must be a whole number"),
        ({"seed": 1.5}, "seed is 1.5; it must be a whole number"),
        ({"resample": 99.5}, "resample is 99.5; it must be a whole number"),
        ({"adversarial": None}, "adversarial is None; it is a share"),
    ],
)
def test_what_is_no_number_is_refused_with_a_sentence(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        some_table(60).deal(**{"num_nodes": 6, **options})  # type: ignore[arg-type]


def test_owners_need_a_whole_number_of_samples() -> None:
    table = Table.from_arrays(np.eye(2), [0, 1], columns={"who": ["a", "b"]})
    with pytest.raises(DataError, match=r"min_samples is 1\.5; it must be a whole number"):
        table.deal_by("who", min_samples=1.5)  # type: ignore[arg-type]


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
    with pytest.raises(DataError, match="overflow is 'drop'"):
        table.deal(3, overflow="drop")  # type: ignore[arg-type]
