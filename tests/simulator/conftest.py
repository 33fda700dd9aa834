"""A real Ray cluster of two nodes on this machine, started once and stopped surely."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

_STORE = 80 * 2**20
_NODE = {"num_cpus": 1, "object_store_memory": _STORE}


@pytest.fixture(scope="session")
def _ray_nodes() -> Iterator[SimpleNamespace]:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        import ray
        from ray.cluster_utils import Cluster

        cluster = Cluster()
        try:
            cluster.add_node(**_NODE, include_dashboard=False)
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()
            del cluster
            # Ray leaves handles of its ended processes to the collector, which warns of them.
            with contextlib.suppress(ResourceWarning):
                gc.collect()


@pytest.fixture
def ray_cluster(_ray_nodes, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A `ray.cluster_utils.Cluster` of two nodes with a core each; no process is connected to it.

    A test may kill `second`: the next one has another.
    """
    import ray

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    alive = [it for it in _ray_nodes.worker_nodes if it.remaining_processes_alive()]
    second = alive[0] if alive else _ray_nodes.add_node(**_NODE)
    _ray_nodes.wait_for_nodes()
    try:
        yield SimpleNamespace(address=_ray_nodes.address, second=second, nodes=_ray_nodes)
    finally:
        ray.shutdown()
        assert os.environ.get("RAY_ADDRESS") is None
