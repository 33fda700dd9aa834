"""What privacy costs: the figures, the verdict and the table, against literal numbers."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

import oneway as ow
from oneway.methods import DEFAULT_METHOD, Batches
from oneway.models import LogisticRegression
from oneway.paper.figures import Scale
from oneway.paper.methods import make_private
from oneway.paper.privacy import (
    ALONE,
    EPSILONS,
    METHODS,
    NO_NOISE,
    Tradeoff,
    markdown,
    measure,
    places,
    together_beats_alone,
)
from oneway.paper.privacy_section import privacy_section
from oneway.paper.reproduce import CATALOGUE, Plan, plan, reproduce
from oneway.paper.run_grid import Need, run_cells
from oneway.paper.world import World
from oneway.task.privacy import Privacy

DATA = Path(os.environ.get("ONEWAY_DATA", "nowhere"))
needs_data = pytest.mark.skipif(
    not all((DATA / name).is_dir() for name in ("susy", "occupancy", "adult")),
    reason="needs the data sets susy, occupancy and adult in ONEWAY_DATA",
)
RATES = (0.1, 1.0)
SMALL = Scale(susy_rounds=40, room_rounds=40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared: what one test has run, the other need not run again."""
    return tmp_path_factory.mktemp("privacy")


def tradeoff(
    together: list[float], alone: list[float], title: str = "Somewhere", epsilon: float = 1.0
) -> Tradeoff:
    """Losses per seed at rate 0.1; at rate 1 all are worse, or diverge."""
    by_seed = {
        (method, e): np.array([[9.0, math.inf]] * len(alone))
        for method in METHODS
        for e in EPSILONS
        if method != ALONE or e == NO_NOISE
    }
    by_seed[DEFAULT_METHOD, epsilon] = np.array([[loss, math.inf] for loss in together])
    by_seed[ALONE, NO_NOISE] = np.array([[loss, loss + 1] for loss in alone])
    return Tradeoff(title, World("occupancy", 6, max_receivers=2, rounds=9), RATES, by_seed)


@pytest.mark.parametrize(
    ("together", "verdict", "num_for"),
    [
        ([0.28, 0.38, 0.49], "holds", 3),
        ([0.32, 0.42, 0.51], "fails", 0),
        # Better on the mean, and the interval says that this may be chance.
        ([0.29, 0.36, 0.51], "mixed", 2),
        ([0.3, 0.4, 0.5], "fails", 0),
    ],
)
def test_together_beats_alone_only_if_the_whole_paired_interval_does(together, verdict, num_for):
    claim = together_beats_alone([tradeoff(together, [0.3, 0.4, 0.5])])
    assert claim.verdict == verdict
    assert (claim.findings[0].verdict, claim.findings[0].num_for) == (verdict, num_for)


def test_the_paired_interval_is_that_of_a_hand_calculation():
    """Differences 0.02, 0.02, 0.01: mean 1/60, sd sqrt(1/30000), t(2, 0.975) = 4.302653."""
    (finding,) = together_beats_alone([tradeoff([0.28, 0.38, 0.49], [0.3, 0.4, 0.5])]).findings
    half = 4.302652729911275 * math.sqrt(1 / 30000) / math.sqrt(3)
    expected = (1 / 60, 1 / 60 - half, 1 / 60 + half)
    assert (finding.effect, finding.low, finding.high) == pytest.approx(expected, rel=1e-9)


def test_data_sets_that_differ_are_reported_as_such():
    good, bad = (
        tradeoff(together, [0.3, 0.4, 0.5], title)
        for together, title in (([0.28, 0.38, 0.49], "Here"), ([0.32, 0.42, 0.51], "There"))
    )
    claim = together_beats_alone([good, bad])
    assert claim.verdict == "mixed"
    assert [(f.setting, f.verdict) for f in claim.findings] == [
        ("Here", "holds"),
        ("There", "fails"),
    ]


def test_the_best_rate_is_that_of_the_mean_over_seeds_and_a_divergence_is_never_best():
    by_seed = {("ops", 1.0): np.array([[0.5, 0.1, 0.6], [0.5, math.inf, 0.1], [0.5, 0.1, 0.6]])}
    found = Tradeoff("x", World("occupancy", 6), (0.1, 0.3, 1.0), by_seed)
    assert found.rate("ops", 1.0) == 1.0
    assert found.at_edge("ops", 1.0)
    assert found.losses("ops", 1.0).tolist() == [0.6, 0.1, 0.6]


def test_alone_is_the_same_at_every_epsilon():
    found = tradeoff([0.2, 0.2], [0.3, 0.4])
    for epsilon in EPSILONS:
        assert found.losses(ALONE, epsilon).tolist() == [0.3, 0.4]


def test_the_table_marks_what_is_better_than_alone():
    text = markdown([tradeoff([0.28, 0.38, 0.49], [0.3, 0.4, 0.5], "Here", epsilon=2.0)])
    assert text.splitlines() == [
        "| epsilon | Here |",
        "| --- | --- |",
        "| none | 9.0000 |",
        "| 8 | 9.0000 |",
        "| 2 | **0.3833** |",
        "| 1 | 9.0000 |",
        "| 0.5 | 9.0000 |",
        "| alone, nothing sent | 0.4000 |",
    ]


def test_methods_learn_as_a_new_task_does():
    private = make_private("ops", 0.1, 1.0, 20)
    assert private.batches == Privacy(epsilon=1.0).batches(16, 20)
    assert private.batches.band == 32
    assert private.rule.name == "curvature"
    assert make_private("col", 0.1, NO_NOISE, 20).batches == Batches(16)
    for epsilon in EPSILONS:
        assert make_private(ALONE, 0.1, epsilon, 20).batches is None


def test_it_can_be_asked_for_by_name_and_is_among_all():
    assert "panels" in CATALOGUE["privacy"][0]
    assert plan(["privacy"], None, None, False).figures == ("privacy",)
    assert "privacy" in plan(["all"], None, None, False).figures
    assert len(places(Scale())) == 5


@needs_data
def test_a_private_cell_is_what_the_simulator_says_and_not_the_papers(tmp_path):
    world = World("occupancy", 6, 1.0, 2, 64)
    needs = [Need(world, "ops", 1, epsilon) for epsilon in (None, NO_NOISE, 1.0)]
    cells = run_cells(needs, (0.1,), tmp_path, lambda *_: None)
    assert len(list(tmp_path.glob("*.npz"))) == 3
    method = ow.OnlinePushSum(0.1, step="curvature", batches=Privacy(epsilon=1.0).batches(16, 6))
    run = ow.simulate(method, LogisticRegression(), world.stream(1), world.graph(1), seed=1)
    assert cells[needs[2]].losses[0] == run.average_loss
    assert len({cell.losses[0] for cell in cells.values()}) == 3


@needs_data
def test_noise_costs_and_its_absence_is_the_limit(folder):
    found = measure(SMALL, RATES, 2, folder / "cells", lambda *_: None)
    assert [tradeoff.title for tradeoff in found] == list(places(SMALL))
    room = found[0]
    assert room.losses("ops", NO_NOISE).mean() < room.losses("ops", 0.5).mean()
    assert not room.resampled
    assert Tradeoff("x", World("susy", 128, rounds=2000), RATES, {}).resampled
    section = privacy_section(found)
    assert len(section.panels) == len(section.tables) == 5
    assert "Of 20,560 rows none is seen twice" in section.panels[0].caption
    assert {row[0] for row in section.tables[0].rows} >= {"Online Push-Sum", "Isolated (local)"}
    header, *rows = section.panels[0].csv.splitlines()
    assert header == "method,epsilon,learning_rate,mean,low,high,seeds"
    assert len(rows) == len(METHODS) * len(EPSILONS)


@needs_data
def test_the_page_of_privacy_alone_has_its_verdict_its_table_and_its_warning(folder):
    chosen = Plan(("privacy",), 2, SMALL, RATES, RATES)
    outcome = reproduce(chosen, folder, lambda *_: None)
    assert [claim.where for claim in outcome.claims] == ["privacy"]
    page = outcome.page.read_text(encoding="utf-8")
    for text in ("beats alone without noise", "not covered by the guarantee", "epsilon"):
        assert text in page
    assert (folder / "privacy.md").read_text(encoding="utf-8") == outcome.markdown
    assert (folder / "panels" / "privacy-adult.svg").is_file()
