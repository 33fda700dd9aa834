"""Sweeps on a real Ray cluster of two nodes: the same bits, also when one of them is killed."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ClusterError, DivergenceError, MissingExtraError
from oneway.paper.run_grid import Need, run_cells
from oneway.paper.world import World
from oneway.simulator import sweep as sweeps
from oneway.simulator.executors import Job, opened, ray_tasks
from oneway.simulator.ray_cluster import connected
from oneway.simulator.sweep import sweep
from oneway.task.privacy import NO_PRIVACY
from oneway.task.settings import Settings

FEW = Settings(data="synthetic", nodes=5, rounds=40, privacy=NO_PRIVACY, seed=3)
GRID = {"rates": ("auto", 0.1, 0.3), "methods": ("relay", "local"), "seeds": (1, 2)}
STORE = 80 * 2**20


class Answer:
    """An actor."""

    def given(self):
        return 42


def numbers(trials):
    """All but the time it took."""
    return [replace(trial, seconds=0.0) for trial in trials]


def test_a_node_that_is_killed_in_a_sweep_costs_its_run_only(ray_cluster, tmp_path, monkeypatch):
    """And all trials have the bits that they have in this process, in threads and on Ray."""
    alone = numbers(sweep(FEW, jobs=1, **GRID))
    assert numbers(sweep(FEW, jobs=2, **GRID)) == alone
    real, second, killed = sweeps._trial, ray_cluster.second.node_id, tmp_path / "killed"

    def killed_once(*arguments):
        import ray

        if ray.get_runtime_context().get_node_id() == second and not killed.exists():
            killed.touch()
            os.kill(os.getppid(), signal.SIGKILL)  # the node
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)

    monkeypatch.setattr(sweeps, "_trial", killed_once)
    ticks = []
    with opened(f"ray://{ray_cluster.address}") as tasks:
        found = sweep(FEW, executor=tasks, tick=lambda: ticks.append(1), **GRID)
    assert killed.exists()
    assert numbers(found) == alone
    assert len(ticks) == len(alone) == 12


def test_tables_and_reference_runs_and_cells_are_the_same_bits(ray_cluster, tmp_path, monkeypatch):
    """What several runs have in common is put into the object store once."""
    import ray

    rng = np.random.default_rng(5)
    table = ow.Table.from_arrays(rng.normal(size=(6000, 5)), rng.integers(2, size=6000))
    told = {"nodes": 4, "rounds": 30, "transforms": ("momentum",), "privacy": "none"}
    grid = {"rates": (0.1, 0.3), "seeds": (0, 1), "progress": False, **told}
    sent = []
    real = ray.put
    monkeypatch.setattr(ray, "put", lambda array: (sent.append(array.nbytes), real(array))[1])
    on = f"ray://{ray_cluster.address}"
    found = ow.sweep(table, on=on, resume=tmp_path / "runs", **grid)
    assert sent == [table.features.nbytes]
    assert numbers(found.trials) == numbers(ow.sweep(table, jobs=1, **grid).trials)
    assert len(list((tmp_path / "runs").iterdir())) == 4
    needs = [Need(World("synthetic", 6, 1.0, 2, 30), method, 0) for method in ("ops", "col")]
    with opened(on) as tasks:
        there = run_cells(needs, (0.1, 1.0), tmp_path / "ray", lambda *_: None, tasks)
    here = run_cells(needs, (0.1, 1.0), tmp_path / "here", lambda *_: None)
    for need in needs:
        for one, other in zip(vars(there[need]).values(), vars(here[need]).values(), strict=True):
            np.testing.assert_array_equal(one, other)


def test_what_goes_wrong_in_a_worker_is_said_as_it_is_here(ray_cluster, monkeypatch):
    def diverge():
        raise DivergenceError("it left", round_index=3, node=1, smallest_mass=0.5)

    def read_only(array, same):
        return array.flags.writeable, array is same, len(array)

    def end():
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(ray_tasks, "ATTEMPTS", 1)
    large = np.arange(20_000.0)
    with opened(f"ray://{ray_cluster.address}") as tasks:
        with pytest.raises(DivergenceError, match=r"^it left$") as found:
            list(tasks.results([Job(diverge, ())]))
        assert found.value.round_index == 3
        with pytest.raises(ZeroDivisionError):
            list(tasks.results([Job(divmod, (1, 0))]))
        with pytest.raises(ClusterError, match="memory"):
            list(tasks.results([Job(end, ())]))
        assert list(tasks.results([Job(read_only, (large, large))])) == [(False, True, 20_000)]
        with pytest.raises(ClusterError, match=r"the data of a run needs 83\.9 MB"):
            list(tasks.results([Job(len, (np.zeros(STORE + 1, np.int8),))]))


def test_ray_is_started_for_a_sweep_where_there_is_none(ray_cluster, monkeypatch):
    import ray

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)  # or Ray writes one into the user's home
    usual = signal.getsignal(signal.SIGTERM)
    told = {"nodes": 4, "rounds": 30, "privacy": "none", "progress": False, "rates": (0.1, 0.3)}
    found = ow.sweep("synthetic", on="ray", **told)
    assert numbers(found.trials) == numbers(ow.sweep("synthetic", jobs=1, **told).trials)
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) is usual
    # There Ray asked for tokens: a cluster without them must not be asked, or it loses all actors.
    assert "RAY_AUTH_MODE" not in os.environ
    with connected(ray_cluster.address):
        actor = ray.remote(Answer).remote()
        assert ray.get(actor.given.remote()) == 42


def test_without_the_extra_a_sweep_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"oneway\[ray\]"):
        ow.sweep("synthetic", on="ray")
