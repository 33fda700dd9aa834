"""The real trust graphs: files whose digests are known, and formats of those that are not here."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from oneway.datasets import DATASETS
from oneway.datasets.trust_graphs import graph_sha256, read_ratings
from oneway.errors import GraphError

RATINGS = b"""\
6,2,4,1289241911.72836
6,5,2,1289241941.53378
1,15,-1,1289243140.39049
15,1,8,1289245277.36975
2,6,-10,1289245300.1
5,6,1,1289245301.1
2,6,3,1289254254.44746
6,5,-3,1289254260.1
"""
"""As SNAP has Bitcoin OTC and Alpha: source,target,rating,time, without a header."""
VOTES = b"""\
# Directed graph (each unordered pair of nodes is saved once): Wiki-Vote.txt
# Wikipedia voting on promotion to administratorship (till January 2008).
# Nodes: 4 Edges: 4
# FromNodeId\tToNodeId
30\t1412
30\t3352
3352\t30
1412\t5254
"""
"""As SNAP has wiki-Vote."""


@pytest.mark.parametrize("name", ["advogato", "epinions"])
def test_the_real_graph_has_the_known_digest(real_data: Path, name: str) -> None:
    (file,) = DATASETS[name].files
    path = real_data / file.path
    if not path.is_file():
        pytest.skip(f"{file.path} is not in ONEWAY_DATA")
    assert file.digest(path) == file.sha256
    assert DATASETS[name].load(real_data).num_nodes > 6_000


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / DATASETS[name].files[0].path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content))
    return path


@pytest.mark.parametrize("name", ["bitcoin-alpha", "bitcoin-otc"])
def test_only_a_positive_rating_is_trust_and_the_last_one_counts(tmp_path: Path, name: str) -> None:
    put(tmp_path, name, RATINGS)
    graph = DATASETS[name].load(tmp_path)
    assert graph.names == ("1", "2", "5", "6", "15")
    senders, receivers = graph.edges()
    edges = {
        (graph.names[a], graph.names[b]): weight
        for a, b, weight in zip(senders, receivers, graph.weights, strict=True)
    }
    assert edges == {("6", "2"): 4, ("15", "1"): 8, ("2", "6"): 3, ("5", "6"): 1}
    component = graph.largest_strong_component()
    assert component.names == ("2", "6")


def test_who_voted_on_whom_is_read(tmp_path: Path) -> None:
    put(tmp_path, "wiki-vote", VOTES)
    graph = DATASETS["wiki-vote"].load(tmp_path)
    assert (graph.num_nodes, graph.num_edges, graph.weights) == (4, 4, None)
    assert graph.largest_strong_component().names == ("30", "3352")


def test_an_edge_list_without_ratings_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "bitcoin-otc", b"1,2\n2,1\n")
    with pytest.raises(GraphError, match=r"bitcoinotc.csv.gz has no ratings"):
        read_ratings(path)
    with pytest.raises(GraphError):
        read_ratings(put(tmp_path, "bitcoin-otc", b"<html>sorry</html>"))


def test_comments_line_ends_and_packing_make_no_other_graph(tmp_path: Path) -> None:
    def digest(content: bytes) -> str:
        (tmp_path / "edges").write_bytes(content)
        return graph_sha256(tmp_path / "edges")

    plain = digest(b"1 2 .8\n2 1 1\n3 1 .6")
    assert digest(b"% asym posweighted\n% 3 3 3\r\n1 2 0.8\r\n2 1 1.0\r\n3 1 .6\n") == plain
    assert digest(gzip.compress(b"1 2 .8\n2 1 1\n3 1 .6\n")) == plain
    for other in (b"1 2 .8\n2 1 1\n3 1 .8", b"1 2\n2 1\n3 1", b"1 2 .8\n2 1 1\n1 3 .6"):
        assert digest(other) != plain
    # A comment that changes what is loaded changes the digest.
    assert digest(b"% sym\n1 2 .8\n2 1 1\n3 1 .6") != plain


def test_the_digest_of_ratings_is_that_of_the_trust_in_them(tmp_path: Path) -> None:
    (file,) = DATASETS["bitcoin-otc"].files
    assert file.sha256 is None
    known = file.digest(put(tmp_path, "bitcoin-otc", RATINGS))
    assert file.digest(put(tmp_path, "bitcoin-otc", RATINGS.replace(b"-10", b"-9"))) == known
    assert file.digest(put(tmp_path, "bitcoin-otc", RATINGS.replace(b"1,8", b"1,7"))) != known
