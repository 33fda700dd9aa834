"""The real trust graphs: files whose digests are known."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from oneway.datasets import DATASETS
from oneway.datasets.trust_graphs import graph_sha256


@pytest.mark.parametrize("name", ["advogato", "epinions"])
def test_the_real_graph_has_the_known_digest(real_data: Path, name: str) -> None:
    (file,) = DATASETS[name].files
    path = real_data / file.path
    if not path.is_file():
        pytest.skip(f"{file.path} is not in ONEWAY_DATA")
    assert file.digest(path) == file.sha256
    assert DATASETS[name].load(real_data).num_nodes > 6_000


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
