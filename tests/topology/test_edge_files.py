from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from oneway.errors import DataError, GraphError
from oneway.topology import TrustGraph, stationary_masses


def edges_by_name(graph: TrustGraph) -> dict[tuple[str, str], float]:
    names = graph.names or tuple(map(str, range(graph.num_nodes)))
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    return {
        (names[sender], names[receiver]): float(weight)
        for sender, receiver, weight in zip(*graph.edges(), weights, strict=True)
    }


def read(folder: Path, text: str, name: str = "edges.txt") -> TrustGraph:
    file = folder / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return TrustGraph.read(file)


PLAIN = {("10", "20"): 1.0, ("20", "10"): 1.0, ("20", "30"): 1.0}
WEIGHTED = {("10", "20"): 0.5, ("20", "10"): 1.0, ("20", "30"): 0.25}


@pytest.mark.parametrize("name", ["edges.txt", "edges.txt.gz"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# SNAP\n# FromNodeId\tToNodeId\n10\t20\n20\t10\n20\t30\n", PLAIN),
        ("10 20\n20   10\n  20\t30  ", PLAIN),
        ("% asym positive\n10 20\t.5\n20 10\t1\n20 30\t.25\n", WEIGHTED),
        ("% asym positive\n10 20 0.5 1082\n20 10 1 1083\n20 30 0.25 1084\n", WEIGHTED),
        ("10,20\n20,10\n20,30\n", PLAIN),
        ("sender,receiver,weight\n10,20,.5\n20,10,1\n20,30,0.25\n", WEIGHTED),
        ("Source;Target\r\n10;20\r\n20;10\r\n20;30\r\n", PLAIN),
        ("weight, source, target\n0.5, 10, 20\n1, 20, 10\n0.25, 20, 30\n", WEIGHTED),
        ("source,target,time\n10,20,7\n20,10,8\n20,30,9\n", PLAIN),
        ('"who","whom"\n"10","20"\n"20","10"\n\n"20","30"\n', PLAIN),
        ("\ufeff10 20\n\n# in between\n20 10\n20 30\n", PLAIN),
    ],
)
def test_formats(tmp_path: Path, name: str, text: str, expected: dict) -> None:
    graph = read(tmp_path, text, name)
    assert edges_by_name(graph) == expected
    assert graph.names == ("10", "20", "30")


def test_names_are_numbered_in_order_of_appearance(tmp_path: Path) -> None:
    graph = read(tmp_path, "zoe ann\nbob zoe\n")
    assert graph.names == ("zoe", "ann", "bob")
    spaced = read(tmp_path, 'truster,trustee\n"Zoe, the first",Ann B.\nAnn B.,Bob\n')
    assert spaced.names == ("Zoe, the first", "Ann B.", "Bob")


def test_self_loops_are_dropped_but_their_node_counts(tmp_path: Path) -> None:
    graph = read(tmp_path, "0 1\n1 0\n2 2\n1 1\n")
    assert graph.num_nodes == 3
    assert graph.num_edges == 2


def test_a_damaged_gz_is_named_with_how_far_it_could_be_read(tmp_path: Path) -> None:
    lines = "".join(f"{node} {node + 1}\n" for node in range(5_000))
    packed, file = gzip.compress(lines.encode()), tmp_path / "edges.txt.gz"
    for content, edges in ((packed[:-8], "5,000 edges"), (packed[:5], "0 edges")):
        file.write_bytes(content)
        with pytest.raises(DataError, match=rf"edges.txt.gz .* {edges}"):
            TrustGraph.read(file)
    file.write_bytes(packed[:1000] + bytes(1000) + packed[2000:])
    with pytest.raises(DataError, match=r"edges.txt.gz .*damaged"):
        TrustGraph.read(file)


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("7 alice\n1 2\n2 1\n", {("7", "alice"), ("1", "2"), ("2", "1")}),
        ("alice 7\n1 2\n", {("alice", "7"), ("1", "2")}),
        ("0 99999999999999999999\n1 0\n", {("0", "99999999999999999999"), ("1", "0")}),
        ("0.5 1\n1 2\n", {("0.5", "1"), ("1", "2")}),
        ("who whom\n1 2\n", {("1", "2")}),
        ("who whom\n", {("who", "whom")}),
    ],
)
def test_a_first_line_with_a_number_is_an_edge_and_no_header(
    tmp_path: Path, text: str, edges: set
) -> None:
    assert set(edges_by_name(read(tmp_path, text))) == edges


@pytest.mark.parametrize(
    "comment",
    [
        "% sym unweighted\n% 2 3 3\n",
        "% SYM\n",
        "\n# a comment first\n# Undirected graph: ../../data/output/amazon.ungraph.txt\n",
    ],
)
def test_edges_of_an_undirected_network_go_both_ways(tmp_path: Path, comment: str) -> None:
    graph = read(tmp_path, comment + "1 2 0.5\n2 3 0.25\n2 1 0.75\n")
    assert edges_by_name(graph) == {
        ("1", "2"): 0.75,
        ("2", "1"): 0.75,
        ("2", "3"): 0.25,
        ("3", "2"): 0.25,
    }


@pytest.mark.parametrize(
    "text",
    [
        "% asym positive\n1 2\n",
        "% symbols\n1 2\n",
        "# Directed graph (each unordered pair of nodes is saved once)\n1 2\n",
        "1 2\n% sym\n",
    ],
)
def test_edges_of_other_networks_go_one_way(tmp_path: Path, text: str) -> None:
    assert set(edges_by_name(read(tmp_path, text))) == {("1", "2")}


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("", r"edges\.txt holds no edges"),
        ("sender,receiver\n", r"edges\.txt holds no edges"),
        ("# two\n1 2\n3\n", "line 3 of .* is '3': .*a receiver"),
        ("1 2\n3 4 5\n", "line 2 of .* is '3 4 5': .*3 columns"),
        ("1 2 1\n3 4\n", "line 2 of .* is '3 4': .*2 columns"),
        ("1 2\n\n3 x\n", "line 3 of .* is '3 x': .*integers"),
        ("1 2\n2 99999999999999999999\n", "line 2 of .* is '2 9.*64 bits"),
        ("1 2 0.5\n2 3 much\n", "line 2 of .* weight 'much'"),
        ("a,b,1\nb,,1\n", "line 2 of .* is 'b,,1': .*node"),
        ("1 2 0.5\n2 3 -1\n", "edge 2 -> 3 has weight -1"),
    ],
)
def test_a_line_that_does_not_parse_is_shown(tmp_path: Path, text: str, culprit: str) -> None:
    with pytest.raises(GraphError, match=culprit):
        read(tmp_path, text)


def trust_file(name: str) -> Path:
    if "ONEWAY_DATA" not in os.environ:
        pytest.skip("ONEWAY_DATA is not set")
    file = Path(os.environ["ONEWAY_DATA"]) / "trust" / name
    if not file.exists():
        pytest.skip(f"{name} is not in ONEWAY_DATA")
    return file


def test_advogato() -> None:
    file = trust_file("out.advogato")
    assert len(file.read_text().splitlines()) == 51_127
    graph = TrustGraph.read(file)
    assert graph.num_nodes == 6_539
    assert graph.num_edges == 51_127 - 3_992  # self-loops
    assert set(graph.weights.tolist()) == {0.6, 0.8, 1.0}
    with pytest.raises(GraphError, match="3,140 of 6,539 nodes"):
        stationary_masses(graph.mixing())
    component = graph.largest_strong_component()
    assert component.num_nodes == 3_140
    assert stationary_masses(component.mixing(weighted=False)).min() == pytest.approx(
        7.4697610674e-5, rel=1e-9
    )


def test_epinions() -> None:
    graph = TrustGraph.read(trust_file("soc-Epinions1.txt.gz"))
    assert (graph.num_nodes, graph.num_edges) == (75_879, 508_837)
    component = graph.largest_strong_component()
    assert (component.num_nodes, component.num_edges) == (32_223, 443_506)
    mixing = component.mixing()
    masses = stationary_masses(mixing)
    np.testing.assert_allclose(mixing.T @ masses, masses, rtol=1e-12)
    assert masses.min() == pytest.approx(9.0414237159e-5, rel=1e-9)
