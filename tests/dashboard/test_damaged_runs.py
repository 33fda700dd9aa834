from __future__ import annotations

import math

import numpy as np
import pytest

from oneway import metrics, store
from oneway.dashboard.components.dialogs import mistake
from oneway.dashboard.components.numbers import number
from oneway.dashboard.runs import graph_card
from oneway.dashboard.runs.catalogue_cache import CatalogueCache
from oneway.errors import GraphError, StoreError
from oneway.store.entry import as_number
from oneway.testing.records import make_record

RECORD = make_record()


@pytest.mark.parametrize("error", [StoreError("odd; run it again"), MemoryError()])
def test_losses_that_cannot_be_read_do_not_take_the_list_down(tmp_path, monkeypatch, error):
    def fail(*_: object, **__: object) -> None:
        raise error

    store.save(RECORD, tmp_path / "run")
    monkeypatch.setattr(np, "load", fail)
    runs = CatalogueCache(tmp_path)
    runs.refresh(math.inf)
    (entry,) = runs.catalogue.entries
    assert (str(error) or "MemoryError") in entry.problem


def test_a_bug_of_ours_is_not_told_as_damage_of_a_run(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    store.save(RECORD, tmp_path / "run")
    monkeypatch.setattr(metrics, "mean_loss", fail)
    runs = CatalogueCache(tmp_path)
    with pytest.raises(ZeroDivisionError):
        runs.refresh()
    monkeypatch.undo()
    runs.refresh()
    assert [entry.problem for entry in runs.catalogue.entries] == [""]


def test_a_bug_is_logged_with_its_traceback_and_told_in_a_plain_sentence(caplog):
    try:
        raise ZeroDivisionError("a bug")
    except ZeroDivisionError as error:
        said = mistake(error)
    assert "mistake in oneway" in said
    assert "a bug" not in said
    assert "Traceback" in caplog.text
    assert "test_damaged_runs.py" in caplog.text


@pytest.mark.parametrize("losses", [[1e308, 1e308], [np.inf, -np.inf], [np.nan, 1.0]])
def test_losses_without_a_mean_are_listed_without_one(tmp_path, losses):
    store.save(RECORD, tmp_path / "run")
    with np.load(tmp_path / "run" / "arrays.npz") as stored:
        arrays = dict(stored) | {"loss_sums": np.array(losses)}
    np.savez(tmp_path / "run" / "arrays.npz", **arrays)
    runs = CatalogueCache(tmp_path)
    runs.refresh(math.inf)
    (entry,) = runs.catalogue.entries
    assert (entry.average_loss, entry.rounds_done, entry.problem) == (None, 2, "")


@pytest.mark.parametrize(
    "origin",
    [
        {"graph": "scale_free", "num_nodes": 6_000_000, "seed": 0},
        {"graph": "ring", "num_nodes": 200_001},
        {"graph": "mutual", "of": {"graph": "complete", "num_nodes": 1_000}},
    ],
    ids=lambda origin: origin["graph"],
)
def test_a_large_graph_is_not_made_again_for_a_page(origin):
    with pytest.raises(GraphError, match="200,000"):
        graph_card.made_again(origin)


@pytest.mark.parametrize(
    ("edges", "culprit"),
    [
        ([[0, 1]] * (graph_card.MADE_AGAIN + 1), "a list of 200001.*200000"),
        ([[0, 2_000_000_000], [1, 0]], r"199999.*\$\[0\]\[1\]"),
        ([[0, 10**30], [1, 0]], r"\$\[0\]\[1\]"),
        ([[0, 1], [1.5, None]], "damaged"),
        ([[0, {}], [1, []]], "damaged"),
        ([[-1, 0]], "damaged"),
        ([[1], "x"], "damaged"),
        ([], "no"),
        ("x", "'x'"),
    ],
)
def test_edges_that_make_no_sense_are_told_and_not_followed(edges, culprit):
    with pytest.raises(GraphError, match=culprit):
        graph_card.made_again({"graph": "edges"}, edges)


def test_edges_that_a_lab_wrote_down_are_its_graph():
    graph, facts = graph_card.made_again({"graph": "edges"}, [[0, 1], [1, 0], [1, 2]])
    assert (graph.num_nodes, graph.num_edges) == (3, 3)
    assert dict(facts)["everybody reaches everybody"] == "no"


def test_a_bug_in_making_a_graph_again_is_raised_and_not_told_as_damage(monkeypatch):
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("oneway.topology.rebuild.rebuild", fail)
    with pytest.raises(ZeroDivisionError):
        graph_card.made_again({"graph": "ring", "num_nodes": 3})


def test_numbers_too_large_to_show_are_left_out():
    assert number(as_number(10**400), ".4f") == "-"
    assert as_number(10**400) is None
