"""Learning rates x methods x seeds: the same numbers as one run after the other."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import oneway as ow
from oneway.errors import ConfigError
from oneway.simulator.sweep import Trial, at_edge, best, by_setting, sweep
from oneway.task.assembly import assemble
from oneway.task.privacy import NO_PRIVACY
from oneway.task.settings import Settings

FEW = Settings(data="synthetic", nodes=5, rounds=40, privacy=NO_PRIVACY, seed=3)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_trial_is_the_run_that_its_settings_describe(jobs):
    ticks = []
    trials = sweep(
        FEW,
        rates=(0.03, 0.3),
        methods=("relay", "local"),
        seeds=(1, 2),
        jobs=jobs,
        tick=lambda: ticks.append(1),
    )
    assert len(ticks) == len(trials) == 8
    assert [(it.method, it.learning_rate, it.seed) for it in trials] == [
        (method, rate, seed)
        for method in ("relay", "local")
        for rate in (0.03, 0.3)
        for seed in (1, 2)
    ]
    for trial in trials:
        # All rates of a seed have the same model, which starts from the labels.
        known = assemble(replace(FEW, seed=trial.seed)).settings
        assert known.options["logistic"].keys() == {"start"}
        parts = assemble(replace(known, method=trial.method, learning_rate=trial.learning_rate))
        run = ow.simulate(parts.method, parts.model, parts.stream, parts.graph, seed=trial.seed)
        assert trial.average_loss == run.average_loss
        assert trial.accuracy == run.accuracy


def test_what_is_not_compiled_runs_in_processes_and_gives_the_same():
    slow = replace(FEW, transforms=("momentum",), options={"momentum": {"beta": 0.5}})
    together, alone = (sweep(slow, rates=(0.1, 0.3), jobs=jobs) for jobs in (2, 1))
    assert [replace(it, seconds=0.0) for it in together] == [
        replace(it, seconds=0.0) for it in alone
    ]


def test_options_of_a_method_stay_with_it():
    told = replace(
        FEW, learning_rate=0.1, options={"relay": {"amount": 0.2}, "curvature": {"stable": 0.4}}
    )
    trials = sweep(told, rates=(0.1,), methods=("relay", "ops"), jobs=1)
    parts = assemble(told)
    run = ow.simulate(parts.method, parts.model, parts.stream, parts.graph, seed=3)
    assert trials[0].average_loss == run.average_loss


def test_a_rate_at_which_a_run_diverges_is_never_the_best():
    wild = replace(FEW, model="ridge", step="paper", l2=0.0)
    trials = sweep(wild, rates=(0.01, 1e200), methods=("ops",), jobs=1)
    assert math.isinf(trials[1].average_loss)
    assert trials[1].diverged
    assert best(trials).learning_rate == 0.01
    with pytest.raises(ConfigError, match="1e\\+200"):
        best(trials[1:])


def test_the_best_has_the_smallest_mean_over_seeds_and_says_whether_it_lies_at_the_edge():
    losses = {0.1: (0.5, 0.7), 0.3: (0.1, 0.9), 1.0: (0.55, 0.6)}
    trials = [
        Trial("relay", rate, seed, loss, None, 0.0, 0.0)
        for rate, pair in losses.items()
        for seed, loss in enumerate(pair)
    ]
    found = by_setting(trials)
    assert [it.learning_rate for it in found] == [0.3, 1.0, 0.1]
    assert found[0].average_loss == pytest.approx(0.5)
    assert found[0].standard_error == pytest.approx(0.4)
    assert not at_edge(trials, found[0])
    assert at_edge(trials, found[1])


def test_one_network_on_a_cluster_is_no_sweep():
    with pytest.raises(ConfigError, match="ray"):
        sweep(replace(FEW, engine="ray"))


def test_no_rates_are_refused():
    with pytest.raises(ConfigError, match="rates"):
        sweep(FEW, rates=())
