"""What cannot fit is refused at once, with the memory that it would need."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ConfigError, DataError, GraphError
from oneway.files import memory
from oneway.task.assembly import assemble
from oneway.task.settings import Settings

BILLION = 1_000_000_000


@pytest.fixture
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 1e6)


def test_memory_is_known_and_a_container_has_less(tmp_path, monkeypatch):
    assert 1e6 < memory.available_memory() < 1e18
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_LIMITS", (limit, Path("nowhere")))
    limit.write_text("12345\n")
    assert memory.available_memory() == 12345
    limit.write_text("max\n")
    assert memory.available_memory() > 1e6


@pytest.mark.usefixtures("small_machine")
def test_what_needs_more_memory_than_there_is_is_refused_with_its_size():
    with pytest.raises(GraphError, match=r"1,000,000,000.*1 MB"):
        ow.TrustGraph.random(BILLION, 10, seed=0)
    with pytest.raises(GraphError, match="1,000,000,000"):
        assemble(Settings(data="no such file.csv", nodes=BILLION))
    table = ow.Table.from_arrays(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(DataError, match=r"1,000,000,000 samples.*16 GB"):
        table.deal(4, resample=BILLION)
    stream = ow.Stream.from_arrays(np.zeros((2, 50, 1000)), np.ones((2, 50)))
    with pytest.raises(ConfigError, match=r"50 nodes with 1,001 parameters.* MB"):
        ow.simulate(ow.Isolated(0.1), ow.models.LogisticRegression(), stream)
    with pytest.raises(GraphError, match="max_receivers"):  # a wrong parameter comes first
        ow.TrustGraph.random(10, "three", seed=0)  # type: ignore[arg-type]


def test_the_estimate_is_no_less_than_what_a_graph_keeps():
    graph = ow.TrustGraph.random(2000, 10, seed=0)
    kept = graph.indptr.nbytes + graph.receivers.nbytes
    asked: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "oneway.topology.generators.require_memory",
            lambda needed, *_, **__: asked.append(needed),
        )
        ow.TrustGraph.random(2000, 10, seed=0)
    assert kept < asked[0] < 20 * kept


def test_a_zip_file_may_unpack_to_a_multiple_of_its_size_or_to_little(tmp_path, monkeypatch):
    """The file unpacks to 16 MB, a thousand times its size."""
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, features=np.zeros((2**11, 2**10)))
    memory.require_unpacked(path, DataError)
    with monkeypatch.context() as patch:
        patch.setattr(memory, "available_memory", lambda: 1e6)
        with pytest.raises(DataError, match=r"zeros\.npz.* 16\.8 MB .*1 MB left"):
            memory.require_unpacked(path, DataError)
    monkeypatch.setattr(memory, "_HARMLESS", 2**23)
    with pytest.raises(DataError, match=r"zeros\.npz.* 16\.8 MB.* 100 times.*savez"):
        memory.require_unpacked(path, DataError)
    with ZipFile(path, "a") as archive:
        archive.writestr("noise", np.random.default_rng(0).bytes(2**18))  # now 60 times
    memory.require_unpacked(path, DataError)
