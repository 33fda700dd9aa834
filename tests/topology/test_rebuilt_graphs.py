from __future__ import annotations

import gzip
import json
import tracemalloc
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import oneway as ow
from oneway.errors import GraphError
from oneway.topology import TrustGraph
from oneway.topology.rebuild import rebuild

EDGES = "0 1\n1 0\n1 2 \n2 0\n3 0\n"


@pytest.fixture
def edge_list(tmp_path: Path) -> Path:
    file = tmp_path / "edges.txt"
    file.write_text(EDGES)
    return file


def written_down(graph: TrustGraph) -> dict[str, Any]:
    """What a run's JSON says about its graph."""
    said: dict[str, Any] = json.loads(json.dumps(graph.description))
    return said


@pytest.mark.parametrize(
    "graph",
    [
        TrustGraph.random(12, 4, seed=3),
        TrustGraph.ring(5),
        TrustGraph.complete(4),
        TrustGraph.erdos_renyi(20, 0.2, seed=1),
        TrustGraph.scale_free(30, seed=2),
        TrustGraph.scale_free(30, seed=2).largest_strong_component(),
        TrustGraph.random(9, 6, seed=1).mutual(),
        TrustGraph.ring(4).without(1, 2),
        TrustGraph.erdos_renyi(40, 0.04, seed=5).largest_strong_component().mutual(),
    ],
    ids=lambda graph: graph.origin["graph"],
)
def test_a_graph_is_made_again_from_its_origin(graph):
    assert rebuild(written_down(graph)) == graph


def test_a_graph_is_read_again_from_its_file(edge_list):
    graph = TrustGraph.read(edge_list).largest_strong_component()
    assert rebuild(written_down(graph)) == graph


def test_the_graph_of_a_real_run_agrees_with_its_checksum():
    graph = TrustGraph.random(6, 2, seed=1)
    table = ow.streams.synthetic(60, 3, seed=1).table
    run = ow.simulate(
        ow.OnlinePushSum(0.1), ow.models.LogisticRegression(), table.deal(6, seed=1), graph
    )
    assert rebuild(run.record.config["graph"]) == graph


def test_a_file_that_is_gone_is_named(edge_list):
    origin = written_down(TrustGraph.read(edge_list))
    edge_list.unlink()
    with pytest.raises(GraphError, match=r"edges\.txt is not there"):
        rebuild(origin)


def test_a_file_that_has_changed_is_not_read(edge_list):
    origin = written_down(TrustGraph.read(edge_list))
    edge_list.write_text("this is no edge list\n")
    with pytest.raises(GraphError, match=r"edges\.txt has changed"):
        rebuild(origin)


def test_something_else_than_a_file_is_not_read():
    with pytest.raises(GraphError, match="/dev/zero is not there"):
        rebuild({"graph": "file", "file": "/dev/zero", "sha256": ""})


def test_another_checksum_is_told():
    origin = written_down(TrustGraph.ring(5)) | {"checksum": "00000000"}
    with pytest.raises(GraphError, match=r"checksum .*00000000"):
        rebuild(origin)


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (TrustGraph.from_edges([(0, 1), (1, 0)]).origin, "edges.*not written down"),
        ({"graph": "a function of the round"}, "a function of the round.*not written down"),
        ({"graph": "in turns", "graphs": []}, "in turns.*not written down"),
        ({"graph": "mutual"}, "nothing was written down"),
        ({}, "nothing was written down"),
        ({"graph": "random", "num_nodes": 5}, "random.*damaged.*max_receivers"),
        ({"graph": "ring", "num_nodes": "many"}, "ring.*damaged.*many"),
        ({"graph": "complete", "num_nodes": 10**6}, r"1e\+12 edges"),
        ({"graph": "ring", "num_nodes": 10**12}, r"1e\+12 edges"),
    ],
)
def test_what_cannot_be_made_again_gets_a_reason(origin, said):
    with pytest.raises(GraphError, match=said):
        rebuild(origin)


def test_origins_nested_without_end_are_refused():
    origin: dict[str, Any] = {"graph": "ring", "num_nodes": 3}
    for _ in range(200):
        origin = {"graph": "mutual", "of": origin}
    with pytest.raises(GraphError):
        rebuild(origin)


def test_a_small_gzip_of_a_huge_edge_list_is_not_unfolded(tmp_path):
    bomb = tmp_path / "edges.txt.gz"
    bomb.write_bytes(gzip.compress(b"0 1\n" * 16_000_000))
    origin = {"graph": "file", "file": str(bomb), "sha256": sha256(bomb.read_bytes()).hexdigest()}
    tracemalloc.start()
    try:
        with pytest.raises(GraphError, match=r"edges\.txt\.gz has more than 12,800,000 bytes"):
            rebuild(origin, 200_000)
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()
