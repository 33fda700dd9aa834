"""The frame of runs: what is cached, what is tuned, and which runs the paper's panels need."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import lib
import oneway as ow
from asynchronous import bins_to, end_loss
from lib import NO_NOISE, Case, Job, grid, paired, simulate_job, tuned, values
from networks import DIGITS
from oneway.models import LogisticRegression
from paper import SENTENCES, Cases, counted_once

SMALL = Case("synthetic", 4, max_receivers=2, rounds=40)


def test_a_row_holds_what_the_simulator_says():
    (row,) = simulate_job(Job(SMALL, "ops", 1, (0.5,)))
    run = ow.simulate(
        ow.OnlinePushSum(0.5), LogisticRegression(), SMALL.stream(1), SMALL.graph(1), seed=1
    )
    assert (row["loss"], row["disagreement"]) == (run.average_loss, run.disagreement[-1])
    np.testing.assert_array_equal(row["curve"], run.loss_curve)


def test_finished_jobs_are_not_run_again(tmp_path, monkeypatch):
    longer = dataclasses.replace(SMALL, rounds=400)
    jobs = [Job(longer, "ops", seed, (0.1, 1e6)) for seed in (1, 0)]
    first = grid(simulate_job, jobs, tmp_path)
    assert first["seed"].to_list() == [1, 1, 0, 0]
    assert np.isinf(values(first, rate=1e6)).all()
    monkeypatch.setattr("oneway.simulator.grid._keyed", None)
    assert grid(simulate_job, jobs, tmp_path).equals(first)


def test_the_tuned_rate_has_the_smallest_mean_and_a_divergence_is_never_best():
    rows = {
        "case": "x",
        "method": "ops",
        "seed": [1, 0] * 3,
        "rate": [0.1, 0.1, 0.3, 0.3, 1.0, 1.0],
    }
    frame = pl.DataFrame(rows | {"loss": [0.5, 0.4, 0.1, math.inf, 0.2, 0.3]})
    best = tuned(frame)
    assert best["rate"].unique().to_list() == [1.0]
    assert values(best, method="ops").tolist() == [0.3, 0.2]


@pytest.mark.parametrize("method", ["ops", "relay-plain"])
def test_every_seed_has_noise_of_its_own_and_without_noise_all_are_equal(method, monkeypatch):
    monkeypatch.setattr(lib, "_stream_and_graph", lambda *_: (SMALL.stream(0), SMALL.graph(0)))

    def loss(seed: int, epsilon: float) -> float:
        (row,) = simulate_job(Job(replace(SMALL, epsilon=epsilon), method, seed, (0.3,)))
        return row["loss"]

    assert loss(0, 8.0) != loss(1, 8.0)
    assert loss(0, NO_NOISE) == loss(1, NO_NOISE)


def test_there_are_the_papers_fourteen_panels_and_a_run_for_every_line():
    cases = Cases(40, 40)
    figures = cases.figures()
    counts = {name: len(panels) for name, panels in figures.items()}
    assert counts == {"comparison": 4, "size": 6, "density": 4, "local": 2}  # two sizes read twice
    names = {panel.name for panels in figures.values() for panel in panels}
    assert len(names) == 16
    assert len({sentence.text for sentence in SENTENCES}) == 13
    needed = {(job.case, job.method) for job in cases.jobs(range(1), (0.1,))}
    for panels in figures.values():
        for line in (line for panel in panels for line in panel.lines):
            assert (line.case, line.method) in needed


def test_only_a_variant_with_the_same_numbers_counts_as_the_same_runs():
    same, other = np.array([0.1, 0.3]), np.array([0.1, 0.4])
    found = counted_once(
        [
            paired("A", same),
            paired("B", same),
            paired("A, at a rate", same),
            paired("B, at a rate", other),
            paired("A, in an order", same),
        ]
    )
    assert [finding.setting for finding in found] == [
        "A (the same runs: at a rate; in an order)",
        "B",
        "B, at a rate",
    ]


def test_a_loss_is_reached_by_the_falling_curve_and_not_by_one_lucky_bin():
    counts = [10] * 8
    sums = [9, 8, 2, 8, 5, 4, 3, 3]
    assert end_loss(sums, counts) == pytest.approx(0.3)
    assert bins_to(0.45, sums, counts) == 6
    assert bins_to(0.1, sums, counts) == math.inf


def test_no_node_learns_from_the_images_that_judge():
    pytest.importorskip("sklearn", reason="digits come with scikit-learn")
    images, choosing, judging = DIGITS.split(seed=3)
    table = lib.data_table("digits")
    assert len(images) + len(choosing) + len(judging) == len(table)
    assert not set(choosing) & set(judging)
    held = {row.tobytes() for row in table.features[np.concatenate([choosing, judging])]}
    assert not held & {row.tobytes() for row in images.features}
