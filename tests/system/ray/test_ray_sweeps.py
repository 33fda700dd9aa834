"""Sweeps on a real Ray cluster of two nodes: the same bits, and the table is sent once."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ClusterError, ConfigError
from oneway.simulator import workers
from oneway.simulator.workers import open_workers


def numbers(found):
    """All but the time it took."""
    return [replace(trial, seconds=0.0) for trial in found.trials]


def test_a_sweep_has_the_same_bits_and_sends_its_table_once(ray_cluster, tmp_path, monkeypatch):
    import ray

    rng = np.random.default_rng(5)
    table = ow.Table.from_arrays(rng.normal(size=(6000, 5)), rng.integers(2, size=6000))
    told = {"nodes": 4, "rounds": 30, "transforms": ("momentum",), "privacy": "none"}
    grid = {"rates": (0.1, 0.3), "methods": ("relay", "local"), "seeds": (0, 1), **told}
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
        found = ow.sweep(table, on=on, resume=tmp_path, progress=False, **grid)
    assert len(pickled) == 2 * 2  # a stream for each seed: when it is stored, and to measure it
    assert [size for size in stored if size > table.features.nbytes] == stored[:1]
    assert stored[0] < 1.5 * table.features.nbytes
    assert not ray.is_initialized()
    assert len(list(tmp_path.iterdir())) == len(found.trials) == 8
    assert numbers(found) == numbers(ow.sweep(table, jobs=1, progress=False, **grid))


def test_ray_is_started_for_a_sweep_and_leaves_the_process_as_it_was(ray_cluster, monkeypatch):
    """Newer versions set RAY_AUTH_MODE: a cluster without tokens then loses all actors."""
    import ray

    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)  # or Ray writes one into the user's home
    told = {"nodes": 4, "rounds": 30, "privacy": "none", "progress": False, "rates": (0.1, 0.3)}
    here = numbers(ow.sweep("synthetic", jobs=1, **told))
    before, usual = dict(os.environ), signal.getsignal(signal.SIGTERM)
    assert numbers(ow.sweep("synthetic", on="ray", **told)) == here
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) is usual
    assert dict(os.environ) == before
    # The address of the environment is used, and a session of the caller is.
    monkeypatch.setenv("RAY_ADDRESS", ray_cluster.address)
    with open_workers("ray") as some:
        assert sorted(some.results([(pow, number, 2) for number in range(3)])) == [0, 1, 4]
        assert numbers(ow.sweep("synthetic", on="ray", **told)) == here
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


@pytest.mark.parametrize("answer", [None, b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_an_address_where_no_ray_answers_is_named_soon(answer, monkeypatch):
    """Nothing listens there, something is silent, or something else answers."""
    pytest.importorskip("ray")
    monkeypatch.setattr(workers, "_GREETING_SECONDS", 0.5)
    server = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{server.getsockname()[1]}"

    def reply():
        with contextlib.suppress(OSError):
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(answer)
                connection.recv(100)

    thread = threading.Thread(target=reply)
    if answer is None:
        server.close()
    else:
        thread.start()
    began = time.monotonic()
    with server, pytest.raises(ClusterError, match=address), open_workers(f"ray://{address}"):
        pass
    assert time.monotonic() - began < 120
    if answer is not None:
        thread.join(120)
