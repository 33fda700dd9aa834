"""The reproduction on real data: it resumes, it remembers, it judges, it writes one page."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ConfigError
from oneway.paper import run_grid as cells
from oneway.paper.bias import biases
from oneway.paper.claims import SENTENCES
from oneway.paper.figures import (
    FIGURES,
    SETTINGS,
    Scale,
    reference_world,
    same_samples,
    size_worlds,
)
from oneway.paper.methods import label
from oneway.paper.reproduce import Plan, plan, reproduce
from oneway.paper.run_grid import Need, run_cells
from oneway.paper.world import World, trust_network

DATA = Path(os.environ.get("ONEWAY_DATA", "nowhere"))
needs_data = pytest.mark.skipif(
    not (DATA / "susy").is_dir() or not (DATA / "occupancy").is_dir(),
    reason="needs the data sets susy and occupancy in ONEWAY_DATA",
)
SMALL = Scale(susy_rounds=40, room_rounds=40, trust_rounds=5)


def test_there_are_the_papers_fourteen_panels():
    if not (DATA / "occupancy").is_dir():
        pytest.skip("needs the data set occupancy in ONEWAY_DATA")
    figures = {
        name: FIGURES[name].panels(SMALL) for name in ("comparison", "size", "density", "local")
    }
    counts = {name: len(panels) for name, panels in figures.items()}
    assert counts == {"comparison": 4, "size": 4, "density": 4, "local": 2}
    assert [line.label for line in figures["comparison"][0].lines] == [
        "ops",
        "dol-symm",
        "dol-asymm",
        "col",
    ]
    names = [panel.name for panels in figures.values() for panel in panels]
    assert len(set(names)) == 14
    assert {line.world.num_nodes for line in figures["size"][0].lines} == {
        128,
        256,
        512,
        1024,
    }


def test_every_figure_says_how_many_panels_it_has_and_what_it_is_about():
    for name, figure in FIGURES.items():
        assert figure.name == name
        assert figure.text
        assert "panels" in figure.shows


def test_every_claim_names_a_figure_or_a_part_of_the_paper():
    assert len(SENTENCES) == len({sentence.text for sentence in SENTENCES}) == 12
    places = {*FIGURES, "text", "second theorem"}
    assert {sentence.where for sentence in SENTENCES} <= places


def test_curves_that_stand_for_a_method_are_told_apart():
    methods = ("col", "ops-mass", "ops-capped", "dol-symm", "local", "ops", "dol-asymm")
    assert len({label(method).color for method in methods}) == len(methods)
    assert len({label(method).title for method in methods}) == len(methods)


def test_a_quick_run_is_not_also_long():
    with pytest.raises(ConfigError, match="--quick"):
        plan(["local"], 5, None, True)


def test_an_unknown_figure_is_refused():
    with pytest.raises(ConfigError, match="'sizes'"):
        plan(["sizes"], 10, None, False)


@needs_data
def test_equal_samples_means_equal_samples_but_for_a_round():
    for data, stochastic in SETTINGS:
        worlds = size_worlds(data, stochastic, Scale(susy_rounds=800))
        samples = [world.num_nodes * same_samples(world).rounds for world in worlds]
        assert max(samples) - min(samples) <= max(world.num_nodes for world in worlds)


@needs_data
def test_cells_are_computed_once_and_resumed(tmp_path, monkeypatch):
    world = World("occupancy", 6, 1.0, 2, 30)
    needs = [Need(world, method, seed) for method in ("ops", "col") for seed in range(2)]
    progress: list[tuple[int, int]] = []
    rates = (0.1, 1.0)
    first = run_cells(needs[:2], rates, tmp_path, lambda *counts: progress.append(counts))
    assert progress[-1] == (2, 2)
    second = run_cells(needs, rates, tmp_path, lambda *counts: progress.append(counts))
    assert progress[3] == (2, 4)  # it went on where it stopped
    np.testing.assert_array_equal(second[needs[0]].curves, first[needs[0]].curves)

    def refuse(*_: object) -> object:
        raise AssertionError("a remembered cell was computed again")

    monkeypatch.setattr(cells, "_run_groups", lambda groups, _: refuse() if groups else [])
    third = run_cells(needs, rates, tmp_path, lambda *_: None)
    np.testing.assert_array_equal(third[needs[3]].losses, second[needs[3]].losses)
    with pytest.raises(AssertionError, match="computed again"):
        run_cells([replace(needs[0], seed=9)], rates, tmp_path, lambda *_: None)


@needs_data
def test_a_damaged_cell_is_computed_again(tmp_path):
    need = Need(World("occupancy", 6, 1.0, 2, 30), "ops", 0)
    cell = run_cells([need], (0.1,), tmp_path, lambda *_: None)[need]
    (path,) = tmp_path.glob("*.npz")
    path.write_bytes(path.read_bytes()[:100])
    again = run_cells([need], (0.1,), tmp_path, lambda *_: None)[need]
    np.testing.assert_array_equal(again.curves, cell.curves)
    assert not list(tmp_path.glob("*.part"))


@needs_data
def test_a_cell_holds_what_the_simulator_says(tmp_path):
    world = World("occupancy", 6, 0.5, 2, 30)
    cell = run_cells([Need(world, "ops", 1)], (0.1, 1.0), tmp_path, lambda *_: None)[
        Need(world, "ops", 1)
    ]
    run = ow.simulate(
        ow.OnlinePushSum(1.0), ow.models.LogisticRegression(), world.stream(1), world.graph(1)
    )
    assert cell.losses[1] == run.average_loss
    np.testing.assert_array_equal(cell.curves[1], run.loss_curve)
    assert cell.last_disagreement[1] == run.disagreement[-1]


@needs_data
def test_a_small_reproduction_writes_page_panels_and_numbers(tmp_path):
    outcome = reproduce(Plan(("comparison", "local"), 2, SMALL, (0.1, 1.0)), tmp_path, lambda *_: 0)
    page = outcome.page.read_text(encoding="utf-8")
    for loading in ("<script", "<link", "src=", "url(http", 'href="http'):
        assert loading not in page
    for text in ("10,000 real", "Learning rates", "smallest mass", "numba", "OPS beats local"):
        assert text in page
    alone = next(claim for claim in outcome.claims if "OPS beats local" in claim.text)
    assert [finding.num_for for finding in alone.findings] == [2, 2]
    panels = {path.name for path in (tmp_path / "panels").iterdir()}
    assert {"comparison-room-50.png", "local-susy-100.svg", "comparison-susy-100.csv"} <= panels
    numbers = (tmp_path / "panels" / "comparison-susy-100.csv").read_text()
    rows = list(csv.DictReader(numbers.splitlines()))
    assert {row["curve"] for row in rows} == {"ops", "dol-symm", "dol-asymm", "col"}
    assert all(0 < float(row["mean"]) < 5 for row in rows)
    doubly = next(c for c in outcome.claims if c.text.startswith("If the mixing is doubly"))
    assert doubly.verdict == "holds"


@needs_data
def test_a_table_that_is_large_enough_is_not_resampled():
    stream = World("occupancy", 20, 1.0, 10, 100).stream(0)
    assert stream.num_rounds == 100
    assert stream.origin["resample"] is None
    assert reference_world("susy", 1.0, SMALL).stream(0).origin["resample"] is None
    assert World("susy", 128, 1.0, 32, 2000).stream(0).origin["resample"] == 128 * 2000


def test_the_bias_of_a_step_rule_is_what_the_fixed_point_predicts():
    graph = ow.TrustGraph.random(40, max_receivers=6, seed=2)
    found = biases(graph, seed=2, rounds=4000, rate=0.01)
    assert found["ops"].predicted < 1e-12
    assert found["ops"].measured < 0.05
    for method in ("ops-capped", "ops-mass"):
        assert found[method].predicted > 0.1
        assert found[method].measured == pytest.approx(found[method].predicted, abs=0.04)
    assert found["ops-capped"].predicted < found["ops-mass"].predicted


@pytest.mark.skipif(not (DATA / "trust").is_dir(), reason="needs advogato in ONEWAY_DATA")
def test_on_advogato_published_ops_is_worse_than_learning_alone(tmp_path):
    """The smallest stationary mass is 7e-5; a capped or mass-proportional step repairs it."""
    nodes = trust_network("advogato").num_nodes
    world = World("susy", nodes, rounds=150, network="advogato")
    best = {}
    for method, rate in (("ops", 0.01), ("local", 0.03), ("ops-capped", 0.3), ("ops-mass", 0.3)):
        need = Need(world, method, 1)
        best[method] = run_cells([need], (rate,), tmp_path, lambda *_: None)[need].losses[0]
    assert nodes == 3140
    assert best["ops-mass"] < best["ops-capped"] < best["local"] < best["ops"]
    assert best["ops-capped"] == pytest.approx(0.5245, abs=5e-4)
    assert best["ops"] == pytest.approx(0.6272, abs=5e-4)
