"""What is done in parts, for graphs of millions of edges, is what it is in one go."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import GraphError
from oneway.topology import edge_files, generators, stationary, statistics
from oneway.topology.edge_files import read_edges


def distinct_numbers(counts, num_choices, rng):
    """All nodes at once, as it was first written."""
    inverted = counts > num_choices // 2
    wanted = np.where(inverted, num_choices - counts, counts)
    keys = np.empty(0, dtype=np.int64)
    missing = wanted
    while missing.any():
        nodes = np.repeat(np.arange(len(counts)), missing)
        fresh = nodes * num_choices + rng.integers(num_choices, size=len(nodes))
        keys = np.unique(np.concatenate([keys, fresh]))
        missing = wanted - np.bincount(keys // num_choices, minlength=len(counts))
    everything = np.flatnonzero(inverted)[:, None] * num_choices + np.arange(num_choices)
    keys = np.setxor1d(keys, everything.ravel(), assume_unique=True)
    return np.divmod(keys, max(num_choices, 1))


@settings(max_examples=60, deadline=None)
@given(
    num_nodes=st.integers(1, 60),
    num_choices=st.integers(0, 40),
    at_a_time=st.sampled_from([1, 7, 64, 2**20]),
    seed=st.integers(0, 2**32 - 1),
)
def test_drawing_in_parts_draws_the_same(num_nodes, num_choices, at_a_time, seed):
    counts = np.random.default_rng(seed + 1).integers(0, num_choices + 1, num_nodes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generators, "_DRAWS_AT_A_TIME", at_a_time)
        found = generators._distinct_numbers(counts, num_choices, np.random.default_rng(seed))
    expected = distinct_numbers(counts, num_choices, np.random.default_rng(seed))
    for part, whole in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part, whole)
        assert part.dtype == np.int32


EDGES = {
    "plain": "0 1\n1 2\n2 0\n3 1\n0 3\n",
    "gaps": "7 9\n9 -4\n-4 7\n7 9\n",
    "far": "1 9000000000\n9000000000 5\n5 1\n",
    "header": "source,target\n1,2\n2,3\n3,1\n",
    "quoted": 'sender,receiver\n"1","2"\n"2","1"\n',
    "weights": "# comment\n1 2 0.5\n2 1 2\n1 2 7\n",
    "blanks": "sender, receiver\n 1, 2\n2 ,1\n",
    "names": "ann bob\nbob cem\ncem ann\n",
    "undirected": "% sym\n1 2 3\n2 3 4\n1 2 5\n",
}


@pytest.mark.parametrize("name", EDGES)
def test_reading_in_parts_reads_the_same(name: str, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "edges.txt"
    path.write_text(EDGES[name])
    whole = ow.TrustGraph.read(path)
    monkeypatch.setattr(edge_files, "_BYTES_AT_A_TIME", 4)
    assert ow.TrustGraph.read(path) == whole
    assert whole.num_edges > 0


def test_ids_are_names_in_their_order_unless_they_are_0_to_n(tmp_path: Path) -> None:
    graphs = {}
    for name, text in EDGES.items():
        (tmp_path / name).write_text(text)
        graphs[name] = ow.TrustGraph.read(tmp_path / name)
    assert graphs["plain"].names is None
    assert graphs["plain"].num_nodes == 4
    assert graphs["gaps"].names == ("-4", "7", "9")
    assert graphs["far"].names == ("1", "5", "9000000000")
    assert graphs["names"].names == ("ann", "bob", "cem")
    assert graphs["weights"].mixing()[0, 1] == 0.5  # the last weight counts, alone
    np.testing.assert_array_equal(graphs["undirected"].weights, [5, 5, 4, 4])


def test_a_bad_line_in_a_later_part_is_named(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("0 1\n1 0\n0 2\n2 x\n")
    monkeypatch.setattr(edge_files, "_BYTES_AT_A_TIME", 4)
    with pytest.raises(GraphError, match="line 4"):
        ow.TrustGraph.read(path)


def test_shares_and_receivers_have_narrow_indices() -> None:
    graph = ow.TrustGraph.random(50, 8, seed=1)
    assert graph.receivers.dtype == np.int32
    for mixing in (graph.mixing(), graph.metropolis(), graph.mixing(kept_share=0.5)):
        assert mixing.indices.dtype == mixing.indptr.dtype == np.int32


def test_settled_masses_of_a_large_graph_are_those_of_the_solver(monkeypatch) -> None:
    mixing = ow.TrustGraph.random(500, 10, seed=2).mixing()
    solved = stationary.stationary_masses(mixing)
    monkeypatch.setattr(stationary, "LARGE", 1)
    monkeypatch.setattr(stationary, "_solve_iteratively", None)
    settled = stationary.stationary_masses(mixing)
    np.testing.assert_allclose(settled, solved, rtol=1e-10)
    assert settled.sum() == pytest.approx(500, rel=1e-14)


def test_drawing_and_reading_tell_how_far_they_are(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(generators, "_DRAWS_AT_A_TIME", 64)
    monkeypatch.setattr(edge_files, "_BYTES_AT_A_TIME", 16)
    path = tmp_path / "edges.txt"
    path.write_text(EDGES["plain"])
    for told in (
        _told(lambda progress: generators.random_pairs(200, 5, 1, progress)),
        _told(lambda progress: read_edges(path, progress=progress)),
    ):
        assert len(told) > 3
        assert told[-1] == 1.0
        assert all(before <= after for before, after in itertools.pairwise(told))


def _told(work) -> list[float]:
    told: list[float] = []
    work(told.append)
    return told


def test_a_large_graph_has_a_bar_from_the_start_if_asked_for(capsys, monkeypatch) -> None:
    graph = ow.TrustGraph.generate("ring", num_nodes=5, progress=True)
    assert capsys.readouterr().err == ""  # short work has none
    statistics.graph_statistics(graph)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(statistics, "LARGE", 1)
    statistics.graph_statistics(graph, progress=True)
    assert "measuring the graph" in capsys.readouterr().err
