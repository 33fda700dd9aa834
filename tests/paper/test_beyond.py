"""Beyond the paper: what is compared and judged, against literal numbers and small real runs."""

from __future__ import annotations

import gzip
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import oneway as ow
from oneway.methods import METHODS, Batches
from oneway.models import LogisticRegression
from oneway.paper import beyond
from oneway.paper.beyond import (
    ALONE,
    ASYNCHRONOUS,
    CONTESTED,
    EPSILONS,
    LOCKSTEP,
    OPS_BY_RULE,
    PRIVATE,
    PUBLISHED_OPS,
    RATES,
    SERVER,
    TWICE,
    Measured,
    Results,
    Setting,
    held_networks,
    measure,
    settings,
)
from oneway.paper.beyond_claims import judged
from oneway.paper.beyond_section import beyond_sections, markdown
from oneway.paper.bias import Bias
from oneway.paper.figures import FIGURES, Scale
from oneway.paper.methods import PUBLISHED, VARIANTS, label, make, make_private
from oneway.paper.reproduce import CATALOGUE, plan, without_former_names
from oneway.paper.run_grid import Cell, Need, run_cells
from oneway.paper.world import World
from oneway.task.privacy import Privacy

DATA = Path(os.environ.get("ONEWAY_DATA", "nowhere"))
needs_data = pytest.mark.skipif(
    not all((DATA / name).is_dir() for name in ("susy", "occupancy", "trust")),
    reason="needs the data sets susy, occupancy and advogato in ONEWAY_DATA",
)
ROOM = World("occupancy", 6, max_receivers=2, rounds=40)


def cell(*losses: float) -> Cell:
    """A cell with these losses at the rates 0.1, 0.2, ...; its curves are flat."""
    rates = 0.1 * np.arange(1, 1 + len(losses))
    curves = np.tile(np.array(losses)[:, None], (1, 3))
    return Cell(rates, np.array(losses), np.array([1, 2, 3]), curves, np.zeros(len(losses)), 0.0)


def measured(title: str = "Somewhere", **losses: list[float]) -> Measured:
    """Losses per seed at the middle one of three rates; all methods that are not named lose 1."""
    names = {name.replace("_", "-"): values for name, values in losses.items()}
    num_seeds = len(next(iter(names.values())))
    cells = {
        method: [cell(9.0, loss, math.inf) for loss in names.get(method, [1.0] * num_seeds)]
        for method in LOCKSTEP
    }
    return Measured(Setting(title, ROOM, LOCKSTEP, 9), (0.1, 0.2, 0.3), cells)


def results(*lockstep: Measured, bias: float = 0.02) -> Results:
    differing = {method: [Bias(None, bias, bias, 1.0, 0.01)] * 2 for method in CONTESTED}
    return Results(lockstep, [], [], {"a graph": differing}, 3000, ["wiki-Vote"])


def verdicts(found: Results) -> dict[str, str]:
    return {claim.text: claim.verdict for claim in judged(found)}


def test_the_best_rate_is_that_of_the_mean_over_seeds_and_the_edge_is_told():
    cells = {"relay": [cell(0.5, 0.1, 0.6), cell(0.5, math.inf, 0.1), cell(0.5, 0.1, 0.6)]}
    found = Measured(Setting("x", ROOM, ("relay",), 9), (0.1, 0.2, 0.3), cells)
    assert found.rates[found.best("relay")] == 0.3
    assert found.at_edge("relay")
    assert found.losses("relay").tolist() == [0.6, 0.1, 0.6]
    assert not measured(relay_plain=[0.3, 0.4]).at_edge("relay-plain")


def test_the_share_of_the_gap_is_zero_for_published_ops_and_one_for_the_server():
    found = measured(ops_published=[0.6, 0.7], col_published=[0.4, 0.5], relay_plain=[0.45, 0.45])
    assert found.closed(PUBLISHED_OPS).tolist() == [0, 0]
    assert found.closed(SERVER).tolist() == [1, 1]
    np.testing.assert_allclose(found.closed("relay-plain"), [0.75, 1.25])


def test_relay_is_judged_against_the_best_step_rule_in_every_setting():
    """Against the published step it would hold in both."""
    best = {"ops_published": [0.9, 0.9, 0.9]}
    here = measured("Here", **best, ops_mass=[0.52, 0.53, 0.52], relay_plain=[0.5, 0.5, 0.5])
    there = measured("There", **best, ops_capped=[0.48, 0.47, 0.48], relay_plain=[0.5, 0.5, 0.5])
    claim = judged(results(here, there))[0]
    assert [finding.verdict for finding in claim.findings] == ["holds", "fails"]
    assert claim.verdict == "mixed"
    assert claim.findings[0].effect == pytest.approx(0.07 / 3)
    assert "mass step" in claim.findings[0].reading


def test_reaching_the_server_is_judged_by_the_whole_interval():
    near, far = (
        measured(col_published=[0.5, 0.5, 0.5], relay_plain=losses)
        for losses in ([0.505, 0.506, 0.507], [0.505, 0.506, 0.53])
    )
    text = "Relay reaches the server's loss up to 2%."
    assert verdicts(results(near))[text] == "holds"
    assert verdicts(results(far))[text] == "mixed"


def test_a_bias_is_judged_in_spreads():
    text = "Where nodes differ, Relay settles within 0.1 spreads of the best model."
    found = measured(relay_plain=[0.5, 0.5])
    assert verdicts(results(found, bias=0.02))[text] == "holds"
    assert verdicts(results(found, bias=0.4))[text] == "fails"


def test_published_ops_is_compared_with_learning_alone_on_trust_networks_only():
    here = measured("Here", ops_published=[0.9, 0.91], local_published=[0.6, 0.62])
    network = replace(here.setting, title="A site", world=replace(ROOM, network="advogato"))
    (claim,) = (
        claim
        for claim in judged(results(here, Measured(network, here.rates, here.cells)))
        if "Published OPS" in claim.text
    )
    assert [(finding.setting, finding.verdict) for finding in claim.findings] == [
        ("A site", "holds")
    ]


def test_tables_have_every_method_with_interval_rate_and_cost():
    found = measured(relay_plain=[0.3, 0.5], ops_published=[0.6, 0.6], col_published=[0.4, 0.4])
    sections = beyond_sections(replace(results(found), asynchronous=[found]))
    text = markdown(sections)
    half = 12.706204736 * 0.1  # t(1, 0.975) times the standard error of 0.3 and 0.5
    assert f"| Relay | 2 | 0.4000 ± {half:.4f} at 0.2 |" in text
    assert "| Online Push-Sum, mass step, two mixes | 2 |" in text
    assert "| Pull | 1 |" in text
    assert "| Isolated (local) | 0 |" in text
    assert "| Relay | 0.020 ± 0.000 at 0.01 |" in text
    assert "wiki-Vote: the files are not on this machine" in sections[0].text[-1]
    assert {panel.name for panel in sections[0].panels} == {"beyond-somewhere"}


def test_a_loss_that_exploded_is_shown_in_few_digits_and_drawn_without_a_word():
    usual = measured(relay_plain=[0.5, 0.4])
    exploded = [cell(4e160, 1e160, math.inf), cell(4e160, 3e160, math.inf)]
    found = replace(usual, cells={**usual.cells, PUBLISHED_OPS: exploded})
    assert "| Online Push-Sum, as published | 1 | 2e+160 at 0.2 |" in markdown(
        beyond_sections(replace(results(usual), asynchronous=[found]))
    )


def test_every_method_is_told_apart():
    methods = dict.fromkeys([*LOCKSTEP, *PRIVATE, *ASYNCHRONOUS])
    assert len({label(method).title for method in methods}) == len(methods)
    assert len({(label(method).color, label(method).dashes) for method in methods}) == len(methods)


def test_variants_are_what_they_are_called():
    for name in PUBLISHED:
        assert make(f"{name}-published", 0.3) == make(name, 0.3) == METHODS[name](0.3, step="paper")
    assert make("ops-capped", 0.3) == ow.OnlinePushSum(0.3, step="capped")
    assert make("ops-mass", 0.3) == ow.OnlinePushSum(0.3, step="mass")
    assert make("ops-curvature", 0.3) == ow.OnlinePushSum(0.3, step="curvature")
    assert make(TWICE, 0.3) == ow.OnlinePushSum(0.3, step="mass", mixes=2)
    assert make("pull-plain", 0.3) == ow.Pull(0.3)
    assert make("tracking-plain", 0.3) == ow.Tracking(0.3)
    assert make("relay-plain", 0.3) == make("relay", 0.3) == ow.Relay(0.3)
    assert make("relay-mass", 0.3) == ow.Relay(0.3, deposit="mass")
    assert make("relay-adagrad", 0.3) == ow.Relay(0.3, deposit_transforms=("adagrad",))
    adagrad = make("ops-mass-adagrad", 0.3)
    assert (adagrad.rule.name, [it.name for it in adagrad.transforms]) == ("mass", ["adagrad"])


def test_with_batches_a_variant_keeps_its_step_and_the_server_has_the_plain_one():
    batches = Privacy(epsilon=8.0).batches(16, 20)
    for method in PRIVATE:
        private = make_private(method, 0.1, 8.0, 20)
        assert private.rule.name == VARIANTS[method]["step"]
        assert private.batches == (None if method == ALONE else batches)
    assert make_private(SERVER, 0.1, math.inf, 20).batches == Batches(16)
    assert make_private("relay", 0.1, 8.0, 20).rule.name == "curvature"  # as a new task has it


def test_it_is_asked_for_by_name_and_trust_is_its_former_name():
    assert plan(["beyond"], None, None, False).beyond_rates == RATES
    assert "beyond" in plan(["all"], None, None, False).figures
    assert "trust" not in CATALOGUE
    assert "trust" not in FIGURES
    assert plan(["trust", "beyond"], None, None, False).figures == ("beyond",)
    names, (sentence,) = without_former_names(["local", "trust"])
    assert names == ["local", "beyond"]
    assert "trust" in sentence
    assert "beyond" in sentence


@needs_data
def test_a_world_that_is_in_lockstep_is_described_as_before():
    """Cells that were remembered before there was another kind are still found."""
    assert "asynchronous" not in ROOM.describe()
    late = replace(ROOM, asynchronous=True).describe()
    assert {"acting": 0.5, "delays": [1, 5]}.items() <= late.items()


@needs_data
def test_an_asynchronous_cell_is_what_the_simulator_says(tmp_path):
    late = replace(ROOM, asynchronous=True)
    needs = [Need(world, "relay", 3) for world in (ROOM, late)]
    cells = run_cells(needs, (0.2,), tmp_path, lambda *_: None)
    assert len(list(tmp_path.glob("*.npz"))) == 2
    stream = ROOM.stream(3).at_random_rounds(0.5, seed=3)
    run = ow.simulate(
        ow.Relay(0.2), LogisticRegression(), stream, ROOM.graph(3), delays=(1, 5), seed=3
    )
    assert cells[needs[1]].losses[0] == run.average_loss
    assert cells[needs[0]].losses[0] != run.average_loss


@needs_data
def test_every_part_has_its_worlds():
    parts = settings(Scale(susy_rounds=40, room_rounds=40, trust_rounds=5))
    titles = {name: [setting.title for setting in part] for name, part in parts.items()}
    assert titles["lockstep"][:3] == ["Room Occupancy", "SUSY, 128 nodes", "Advogato"]
    assert len(parts["private"]) == 3 * len(EPSILONS)
    assert all(setting.world.asynchronous for setting in parts["asynchronous"])
    assert {setting.epsilon for setting in parts["asynchronous"]} == {None, 8.0}
    for part in parts.values():
        for setting in part:
            assert set(OPS_BY_RULE) | {SERVER, ALONE, "relay-plain", "tracking-plain"} <= set(
                setting.methods
            )


def test_a_held_network_is_measured_if_its_file_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path))
    assert held_networks() == {}
    (tmp_path / "trust").mkdir()
    (tmp_path / "trust" / "wiki-Vote.txt.gz").write_bytes(gzip.compress(b"# a b\n3\t8\n8\t3\n"))
    assert held_networks() == {"wiki-vote": ("wiki-Vote", 3)}


@needs_data
def test_a_small_run_is_remembered_and_shown(tmp_path, monkeypatch):
    """One method of each kind, on the smaller network."""
    few = (SERVER, *OPS_BY_RULE, ALONE, "pull-plain", "tracking-plain", "relay-plain")
    monkeypatch.setattr(beyond, "NETWORKS", {"advogato": ("Advogato", 4)})
    for name in ("LOCKSTEP", "PRIVATE", "ASYNCHRONOUS"):
        monkeypatch.setattr(beyond, name, few)
    scale = Scale(susy_rounds=20, room_rounds=20, trust_rounds=1)
    counts: list[tuple[int, int]] = []
    found = measure(scale, (0.1,), 1, tmp_path, lambda *done: counts.append(done))
    assert counts[-1] == (18 * len(few), 18 * len(few))
    assert list(found.differing) == ["random, 128 nodes", "Advogato"]
    assert all(0 < it.losses("relay-plain")[0] < 1 for it in found.all)
    counts.clear()
    again = measure(scale, (0.1,), 1, tmp_path, lambda *done: counts.append(done))
    assert counts == [(18 * len(few), 18 * len(few))]
    assert again.differing == found.differing
    sections = beyond_sections(found)
    assert [len(section.panels) for section in sections] == [3, 3, 6, 0]
    assert sections[1].panels[0].csv.startswith("method,epsilon,mean,low,high,seeds\n")
    assert len(judged(found)) == 11
