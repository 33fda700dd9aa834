"""Sweeps on a real Ray cluster of two nodes: the same bits, and the table is sent once."""

from __future__ import annotations

import os
import pickle
import signal
import socket
from dataclasses import replace

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ClusterError, ConfigError
from oneway.simulator import grid
from oneway.simulator.grid import open_workers


def numbers(found):
    """All but the time it took."""
    return [replace(trial, seconds=0.0) for trial in found.trials]


def test_a_sweep_has_the_same_bits_and_sends_its_table_once(ray_cluster, tmp_path, monkeypatch):
    import ray

    rng = np.random.default_rng(5)
    table = ow.Table.from_arrays(rng.normal(size=(6000, 5)), rng.integers(2, size=6000))
    told = {"nodes": 4, "rounds": 30, "transforms": ("momentum",), "privacy": "none"}
    tried = {"rates": (0.1, 0.3), "methods": ("relay", "local"), "seeds": (0, 1), **told}
    stored, pickled = [], []
    real = ray.put
    monkeypatch.setattr(ray, "put", lambda it: (stored.append(len(pickle.dumps(it))), real(it))[1])
    on = f"ray://{ray_cluster.address}"
    with monkeypatch.context() as patch:
        patch.setattr(
            ow.Stream,
            "__getstate__",
            lambda it: (pickled.append(it), vars(it))[1],
            raising=False,
        )
        found = ow.sweep(table, on=on, resume=tmp_path, progress=False, **tried)
    assert len(pickled) == 2 * 2  # a stream for each seed: when it is stored, and to measure it
    assert [size for size in stored if size > table.features.nbytes] == stored[:1]
    assert stored[0] < 1.5 * table.features.nbytes
    assert not ray.is_initialized()
    assert len(list(tmp_path.iterdir())) == len(found.trials) == 8
    assert numbers(found) == numbers(ow.sweep(table, jobs=1, progress=False, **tried))


TOLD = {"nodes": 4, "rounds": 30, "privacy": "none", "progress": False, "rates": (0.1, 0.3)}


def test_the_cluster_of_the_environment_and_a_session_of_the_caller_are_used(
    ray_cluster, monkeypatch
):
    import ray

    here = numbers(ow.sweep("synthetic", jobs=1, **TOLD))
    monkeypatch.setenv("RAY_ADDRESS", ray_cluster.address)
    with open_workers("ray") as some:
        assert sorted(some.results([(pow, number, 2) for number in range(3)])) == [0, 1, 4]
        assert numbers(ow.sweep("synthetic", on="ray", **TOLD)) == here
        with pytest.raises(ConfigError, match="already"), open_workers("ray://127.0.0.1:9"):
            pass
        assert ray.is_initialized()


def end():
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_is_one_sentence(ray_cluster):
    with (
        open_workers(f"ray://{ray_cluster.address}") as some,
        pytest.raises(ClusterError, match="lost"),
    ):
        list(some.results([(end,)] * 2))


def test_an_address_where_no_ray_answers_is_named_soon(monkeypatch):
    """Ray itself would try for a quarter of an hour."""
    pytest.importorskip("ray")
    monkeypatch.setattr(grid, "_JOIN_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ClusterError, match=address), open_workers(f"ray://{address}"):
            pass


def test_ray_is_started_for_a_sweep_and_leaves_the_process_as_it_was(monkeypatch):
    """The last test: Ray goes on to ask for a token, which clusters of other tests do not have."""
    ray = pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)  # or Ray writes one into the user's home
    before, usual = dict(os.environ), signal.getsignal(signal.SIGTERM)
    here = numbers(ow.sweep("synthetic", jobs=1, **TOLD))
    assert numbers(ow.sweep("synthetic", on="ray", **TOLD)) == here
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) is usual
    assert dict(os.environ) == before
