"""The reproduction on real data: it resumes, it remembers, it judges, it writes one page."""

from __future__ import annotations

import csv
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ConfigError
from oneway.paper import run_grid as cells
from oneway.paper.claims import SENTENCES, _counted_once, claims
from oneway.paper.evidence import Evidence
from oneway.paper.figures import (
    FIGURES,
    SIZE_BOUNDS,
    SIZE_SETTINGS,
    Scale,
    dealt_worlds,
    receivers_text,
    reference_world,
    same_samples,
    size_worlds,
)
from oneway.paper.methods import label
from oneway.paper.reproduce import Plan, plan, reproduce
from oneway.paper.run_grid import Cell, Need, run_cells
from oneway.paper.verdict import paired
from oneway.paper.world import World, data_table, trust_network

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
    cycles = [p for p in figures["size"] if p.name.endswith("-cycle")]
    counts = {name: len(panels) for name, panels in figures.items()}
    assert counts == {"comparison": 4, "size": 4 + len(cycles), "density": 4, "local": 2}
    assert [panel.name for panel in cycles] == ["size-room-100-cycle", "size-room-50-cycle"]
    assert [line.label for line in figures["comparison"][0].lines] == [
        "ops",
        "dol-symm",
        "dol-asymm",
        "col",
    ]
    names = [panel.name for panels in figures.values() for panel in panels]
    assert len(set(names)) == 14 + len(cycles)
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
    assert len(SENTENCES) == len({sentence.text for sentence in SENTENCES}) == 13
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
    for data, stochastic, bound in SIZE_SETTINGS:
        worlds = size_worlds(data, stochastic, bound, Scale(susy_rounds=800))
        samples = [world.num_nodes * same_samples(world).rounds for world in worlds]
        assert max(samples) - min(samples) <= max(world.num_nodes for world in worlds)


@needs_data
def test_fewer_than_two_neighbours_is_a_directed_cycle_where_mass_never_moves():
    for world in size_worlds("occupancy", 0.5, 1, SMALL):
        graph = world.graph(3)
        senders, receivers = graph.edges()
        for ends in (senders, receivers):
            np.testing.assert_array_equal(np.sort(ends), np.arange(world.num_nodes))
        np.testing.assert_allclose(graph.mixing().sum(axis=0), 1.0, rtol=1e-15)
        assert receivers_text(world) == "one receiver (a directed cycle)"
    assert SIZE_BOUNDS["occupancy"] == (2, 1)


@needs_data
def test_both_readings_of_two_neighbours_are_judged_and_the_same_runs_counted_once(tmp_path):
    """With one learning rate a network's best rate is the common one: these are the same runs."""
    rooms = [world for setting in SIZE_SETTINGS for world in _room_worlds(*setting)]
    needs = [Need(world, "ops", seed) for world in rooms for seed in range(2)]
    cells = run_cells(needs, (0.3,), tmp_path, lambda *_: None)
    judged = claims(Evidence(cells, (0.3,), range(2), SMALL))
    close = next(claim for claim in judged if "close together" in claim.text)
    assert len(close.findings) == 8
    for reading in ("at most 2 receivers", "one receiver (a directed cycle)"):
        found = [finding.setting for finding in close.findings if reading in finding.setting]
        assert len(found) == 4
        assert sum("(the same runs: each size at its best rate)" in name for name in found) == 2


def _room_worlds(data, stochastic, bound):
    if data != "occupancy":
        return []
    worlds = size_worlds(data, stochastic, bound, SMALL)
    return [*worlds, *map(same_samples, worlds), reference_world(data, stochastic, SMALL)]


def test_only_a_variant_with_the_same_numbers_is_the_same_runs():
    same, other = np.array([0.1, 0.3]), np.array([0.1, 0.4])
    found = _counted_once(
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


@needs_data
def test_less_stochastic_data_costs_ops_something_past_its_best_rate_only(tmp_path):
    """On Room Occupancy, clusters first: at rate 3, while 1 is the best of the grid."""
    scale, rates, seeds = Scale(), (0.3, 1.0, 3.0), range(10)
    worlds = {part: dealt_worlds("occupancy", part, scale) for part in (1.0, 0.5, 0.0)}
    clustered = worlds[0.0][", cluster first"]
    needs = [
        Need(world, "ops", seed)
        for world in (worlds[1.0][""], worlds[0.5][""], clustered)
        for seed in seeds
    ]
    cells = run_cells(needs, rates, tmp_path, lambda *_: None)
    evidence = Evidence(cells, rates, seeds, scale)
    assert evidence.rate_past_best("occupancy", "ops") == 3.0
    at_best, past = (paired("x", evidence.excess(clustered, "ops", rate)) for rate in (1.0, 3.0))
    assert at_best.verdict == "mixed"
    assert past.verdict == "holds"
    assert past.effect == pytest.approx(0.0131, abs=2e-3)
    assert past.effect > 5 * at_best.effect
    (judged,) = (claim for claim in claims(evidence) if claim.text.startswith("Past the best rate"))
    assert {finding.effect for finding in judged.findings} >= {past.effect}


def test_there_is_no_rate_past_the_largest():
    cell = Cell(np.array([0.1, 1.0]), np.array([0.5, 0.4]), *[np.empty(0)] * 3, 0.0)
    needs = {
        Need(reference_world("susy", part, SMALL), method, 0): cell
        for part in (1.0, 0.5)
        for method in ("ops", "col")
    }
    evidence = Evidence(needs, (0.1, 1.0), [0], SMALL)
    assert evidence.tuned_rate("susy", "ops") == 1.0
    assert evidence.rate_past_best("susy", "ops") is None
    assert Evidence(needs, (0.1, 1.0, 3.0), [0], SMALL).rate_past_best("susy", "ops") == 3.0


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

    monkeypatch.setattr(cells, "_run_groups", lambda groups, *_: refuse() if groups else [])
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
    with (tmp_path / "claims.csv").open(encoding="utf-8") as file:
        findings = list(csv.DictReader(file))
    assert len(findings) == sum(len(claim.findings) for claim in outcome.claims)
    for finding in findings:
        assert 0 <= float(finding["p_wilcoxon"]) <= 1
        assert 0 <= float(finding["p_student"]) <= 1
        assert finding["verdict"] in {"holds", "fails", "mixed"}
    for text in ("p, Wilcoxon", "with the level divided by 24 tests", "candidate explanation"):
        assert text in page
    doubly = next(c for c in outcome.claims if c.text.startswith("If the mixing is doubly"))
    assert doubly.verdict == "holds"


@needs_data
def test_a_table_that_is_large_enough_is_not_resampled():
    stream = World("occupancy", 20, 1.0, 10, 100).stream(0)
    assert stream.num_rounds == 100
    assert stream.origin["resample"] is None
    assert reference_world("susy", 1.0, SMALL).stream(0).origin["resample"] is None
    assert World("susy", 128, 1.0, 32, 2000).stream(0).origin["resample"] == 128 * 2000


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


@pytest.mark.skipif(not (DATA / "trust").is_dir(), reason="needs epinions in ONEWAY_DATA")
def test_published_ops_is_worse_than_learning_alone_on_epinions_but_not_on_the_papers_graph(
    tmp_path,
):
    """A sentence about Advogato and Epinions, not about trust graphs as such."""
    nodes = trust_network("epinions").num_nodes
    epinions = World("susy", nodes, rounds=150, network="epinions")
    random = World("susy", 128, max_receivers=32, rounds=150)
    excess = {}
    for world, rates in ((epinions, (0.001, 0.003, 0.01, 0.03)), (random, (0.03, 0.3))):
        needs = [Need(world, method, 0) for method in ("ops", "local")]
        cells = run_cells(needs, rates, tmp_path, lambda *_: None)
        ops, local = (cells[need].losses.min() for need in needs)
        excess[world] = ops - local
    assert excess[epinions] == pytest.approx(0.074, abs=5e-3)
    assert excess[random] < -0.05


class Alike(World):
    """Data and graph are the same for every seed."""

    def stream(self, seed: int, table: ow.Table | None = None) -> ow.Stream:
        return super().stream(0, table)

    def graph(self, seed: int) -> ow.TrustGraph:
        return super().graph(0)


@pytest.mark.parametrize("method", ["ops", "relay-plain"])
def test_every_seed_has_noise_of_its_own_and_without_noise_all_are_alike(method):
    world = Alike("synthetic", 4, max_receivers=2, rounds=40)

    def losses(seed: int, epsilon: float) -> list[float]:
        needs = [Need(world, method, seed, epsilon)]
        table = data_table(world.data)
        [(_, cell)] = cells._run_group(world, seed, needs, (0.3,), table, None)
        return cell.losses.tolist()

    assert losses(0, 8.0) != losses(1, 8.0)
    assert losses(1, 8.0) == losses(1, 8.0)
    assert losses(0, math.inf) == losses(1, math.inf)
