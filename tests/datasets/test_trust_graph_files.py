"""The files of the real trust graphs are those whose digests are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from oneway.datasets import DATASETS


@pytest.mark.parametrize("name", ["advogato", "epinions"])
def test_the_real_graph_has_the_known_digest(real_data: Path, name: str) -> None:
    (file,) = DATASETS[name].files
    path = real_data / file.path
    if not path.is_file():
        pytest.skip(f"{file.path} is not in ONEWAY_DATA")
    assert file.digest(path) == file.sha256
    assert DATASETS[name].load(real_data).num_nodes > 6_000
