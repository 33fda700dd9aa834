"""A real Ray cluster of two nodes on this machine, started once and stopped surely."""

from __future__ import annotations

import gc
import warnings
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
            _collect()


@pytest.fixture
def ray_cluster(_ray_nodes, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Two nodes with a core each, and an `address`; no process is connected to them.

    A test may kill `second`: the next test has another. `nodes` is Ray's own
    `ray.cluster_utils.Cluster`.
    """
    import ray

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    for node in list(_ray_nodes.worker_nodes):
        if not node.remaining_processes_alive():
            _ray_nodes.remove_node(node, allow_graceful=False)
    second = next(iter(_ray_nodes.worker_nodes), None) or _ray_nodes.add_node(**_NODE)
    _ray_nodes.wait_for_nodes()
    try:
        yield SimpleNamespace(address=_ray_nodes.address, second=second, nodes=_ray_nodes)
    finally:
        ray.shutdown()
        _collect()


def _collect() -> None:
    """Let go of what Ray leaves of its ended processes, here and not in another file's test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
