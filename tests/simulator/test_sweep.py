"""Sweeps: the same numbers as one run after the other, remembered by data, settings and code."""

from __future__ import annotations

import json
import math
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ClusterError, ConfigError, DivergenceError, MissingExtraError
from oneway.simulator import grid
from oneway.simulator import sweep as sweeps
from oneway.simulator.grid import Workers, require_complete, run_grid, source_hash
from oneway.simulator.sweep import (
    SweepResult,
    Trial,
    Tuned,
    compare,
    sweep_settings,
)  # fmt: skip
from oneway.task.assembly import assemble
from oneway.task.privacy import NO_PRIVACY
from oneway.task.settings import Settings

FEW = Settings(data="synthetic", nodes=5, rounds=40, privacy=NO_PRIVACY, seed=3)
GRID = {"rates": ("auto", 0.3), "methods": ("relay", "local"), "seeds": (1, 2), "jobs": 1}
TRIAL = Trial("relay", "auto", 7, math.inf, None, 0.1, 0.2)


def numbers(found):
    """All but the time it took."""
    return [replace(trial, seconds=0.0) for trial in found.trials]


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_trial_is_the_run_that_its_settings_describe(jobs):
    found = sweep_settings(
        FEW, (0.03, 0.3), methods=("relay", "local"), seeds=(1, 2), jobs=jobs
    )  # fmt: skip
    assert [(it.method, it.learning_rate, it.seed) for it in found.trials] == [
        (method, rate, seed)
        for method in ("relay", "local")
        for rate in (0.03, 0.3)
        for seed in (1, 2)
    ]
    for trial in found.trials:
        parts = assemble(
            replace(
                found.settings, method=trial.method, learning_rate=trial.learning_rate,
                seed=trial.seed,
            ),
            found.table,
        )  # fmt: skip
        run = ow.simulate(parts.method, parts.model, parts.stream, parts.graph, seed=trial.seed)
        assert trial.average_loss == run.average_loss
        assert trial.accuracy == run.accuracy


def test_what_is_not_compiled_runs_in_processes_and_gives_the_same():
    slow = replace(FEW, transforms=("momentum",), options={"momentum": {"beta": 0.5}})
    together, alone = (sweep_settings(slow, (0.1, 0.3), jobs=jobs) for jobs in (2, 1))
    assert numbers(together) == numbers(alone)


def test_a_rate_at_which_a_run_diverges_is_never_the_best():
    wild = replace(FEW, rounds=800, model="ridge", step="paper", l2=0.0)
    found = sweep_settings(wild, (0.01, 1e6), methods=("ops",), jobs=1)
    assert found.trials[1].diverged
    assert found.best.learning_rate == 0.01
    with pytest.raises(ConfigError, match="1000000"):
        _ = replace(found, trials=found.trials[1:]).best
    with pytest.raises(ConfigError, match="rates"):
        sweep_settings(FEW, ())


def test_the_best_has_the_smallest_mean_over_seeds_and_says_whether_it_lies_at_the_edge():
    losses = {0.1: (0.5, 0.7), 0.3: (0.1, 0.9), 1.0: (0.55, 0.6)}
    trials = [
        Trial("relay", rate, seed, loss, None, 0.0, 0.0)
        for rate, pair in losses.items()
        for seed, loss in enumerate(pair)
    ]
    result = SweepResult(tuple(trials), FEW, assemble(FEW).table)
    found = result.ranked
    assert [it.learning_rate for it in found] == [0.3, 1.0, 0.1]
    assert found[0].average_loss == pytest.approx(0.5)
    assert found[0].standard_error == pytest.approx(0.4)
    assert not result.at_edge
    assert replace(result, trials=tuple(trials[2:])).at_edge


def test_methods_are_compared_each_at_its_best_rate():
    model = ow.models.RidgeRegression(l2=1e-3)
    stream = ow.streams.synthetic(3_000, 3, seed=1, task="number").table.deal(6, seed=1)
    graph = ow.TrustGraph.random(6, max_receivers=3, seed=1)
    methods, rates, ticks = {"ops": ow.OnlinePushSum, "local": ow.Isolated}, (0.001, 0.03, 50.0), []
    found = compare(methods, rates, model, stream, graph, lambda: ticks.append(1))
    assert len(ticks) == 6
    for name, make in methods.items():
        losses = [ow.simulate(make(rate), model, stream, graph).average_loss for rate in rates[:2]]
        assert found[name].learning_rate == 0.03
        assert found[name].run.average_loss == losses[1]
        assert list(found[name].tried.values()) == [*losses, math.inf]  # the last rate diverges
    tried = {0.1: 3.0, 0.3: 2.0, 1.0: 1.0}
    edges = [Tuned(found["ops"].run, rate, tried).at_edge for rate in tried]
    assert edges == [True, False, True]
    with pytest.raises(DivergenceError, match="50"):
        compare({"ops": ow.OnlinePushSum}, (50.0, 100.0), model, stream, graph)


# Where runs are carried out.


@pytest.mark.parametrize("threads", [False, True])
def test_every_job_comes_back_once(threads):
    jobs = [(pow, number, 2) for number in range(20)]
    found = sorted(Workers().results(jobs, num_workers=2, threads=threads))
    assert found == [number**2 for number in range(20)]


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_is_one_sentence():
    with pytest.raises(ClusterError, match="memory"):
        list(Workers().results([(kill,)] * 2, num_workers=2))


def test_without_the_extra_a_sweep_on_ray_is_one_sentence(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"\.\[ray\]"):
        ow.sweep("synthetic", on="ray")


# Finished runs in a folder.


class StoppedError(Exception):
    """An interruption that pytest takes for none of its own."""


def test_a_sweep_that_was_stopped_goes_on_where_it_stopped(tmp_path, monkeypatch):
    made, real = [], grid._store

    def store_three(path, result):
        if len(made) == 3:
            raise StoppedError
        made.append(path)
        real(path, result)

    with monkeypatch.context() as patch:
        patch.setattr(grid, "_store", store_three)
        with pytest.raises(StoppedError):
            sweep_settings(FEW, folder=tmp_path, **GRID)
    assert len(list(tmp_path.iterdir())) == 3
    made.clear()
    monkeypatch.setattr(grid, "_store", lambda path, it: (made.append(path), real(path, it)))
    found = sweep_settings(FEW, folder=tmp_path, **GRID)
    assert len(made) == 5
    made.clear()
    assert sweep_settings(FEW, folder=tmp_path, **GRID).trials == found.trials
    assert made == []
    assert numbers(found) == numbers(sweep_settings(FEW, **GRID))
    made.clear()
    # Runs of other code are not taken.
    monkeypatch.setattr(grid, "source_hash", lambda _module: "other")
    sweep_settings(FEW, folder=tmp_path, **GRID)
    assert len(made) == 8


def test_the_hash_of_the_source_follows_every_file(tmp_path, monkeypatch):
    source_hash.cache_clear()
    monkeypatch.setattr(grid, "_PACKAGE", tmp_path)
    found = []
    for path, content in (("a.py", "1"), ("a.py", "2"), ("b.py", "2"), ("deep/a.py", "2")):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content)
        found.append(source_hash("oneway"))
        source_hash.cache_clear()
    assert len(set(found)) == 4


@pytest.mark.parametrize(
    "change",
    [{"nodes": 6}, {"max_receivers": 2}, {"step": "paper"}, {"l2": 0.5}, {"engine": "reference"},
     {"transforms": ("momentum",)}, {"seed": 4}],
)  # fmt: skip
def test_a_run_with_another_setting_is_another_run(change, tmp_path):
    options = {"folder": tmp_path, "jobs": 1}
    sweep_settings(FEW, (0.1,), **options)
    sweep_settings(replace(FEW), (0.1,), **options)
    assert len(list(tmp_path.iterdir())) == 1
    sweep_settings(replace(FEW, **change), (0.1,), **options)
    assert len(list(tmp_path.iterdir())) == 2


def test_one_changed_number_of_the_table_is_another_run():
    parts = assemble(FEW)
    features = parts.stream.features.copy()
    features[-1, -1] += 1.0
    other = replace(parts, stream=replace(parts.stream, features=features))
    assert sweeps._described(parts) != sweeps._described(other)


def trial_with(rate, loss):
    return replace(TRIAL, learning_rate=rate, average_loss=loss)


def test_results_are_read_back_and_unreadable_files_are_ignored(tmp_path):
    jobs = {"a": ("auto", math.inf), "b": (0.1 + 0.2, 1e-300)}
    first = run_grid(trial_with, jobs, folder=tmp_path, kind=Trial, num_workers=1)
    assert first == {key: trial_with(*job) for key, job in jobs.items()}
    others = dict.fromkeys(jobs, (1.0, 1.0))  # a job is known by its description alone
    assert run_grid(trial_with, others, folder=tmp_path, kind=Trial) == first
    for damage in ("", "[1]", json.dumps({"method": 3})):
        for path in tmp_path.iterdir():
            path.write_text(damage)
        assert run_grid(trial_with, jobs, folder=tmp_path, kind=Trial, num_workers=1) == first


def test_half_a_run_is_never_remembered():
    run = ow.simulate(ow.Isolated(0.1), ow.models.RidgeRegression(), small_stream())
    assert require_complete(run) is run
    with pytest.raises(KeyboardInterrupt):
        require_complete(replace(run, record=replace(run.record, complete=False)))


def small_stream():
    return ow.Stream.from_arrays(np.ones((2, 2, 3)), np.ones((2, 2)))
