from __future__ import annotations

import numpy as np
import pytest

from oneway import store
from oneway.dashboard.runs import graph_card, lab_result
from oneway.dashboard.runs.shelf import Shelf
from oneway.records import RunRecord

RECORD = RunRecord(
    algorithm="ops",
    loss_sums=np.array([2.0, 1.0]),
    sample_counts=np.array([2, 2]),
    correct_counts=None,
    disagreement=np.zeros(2),
    numerators=np.zeros((2, 1)),
    masses=np.ones(2),
    complete=True,
    seconds=0.5,
)


@pytest.mark.parametrize("error", [LookupError("odd"), MemoryError()])
def test_losses_that_cannot_be_read_do_not_take_the_list_down(tmp_path, monkeypatch, error):
    def fail(_: object) -> None:
        raise error

    store.save(RECORD, tmp_path / "run")
    monkeypatch.setattr(store, "load_losses", fail)
    shelf = Shelf(tmp_path)
    shelf.read_all()
    (entry,) = shelf.catalogue.entries
    assert entry.problem == f"{str(error) or 'MemoryError'}; run it again"


@pytest.mark.parametrize("losses", [[1e308, 1e308], [np.inf, -np.inf], [np.nan, 1.0]])
def test_losses_without_a_mean_are_listed_without_one(tmp_path, losses):
    store.save(RECORD, tmp_path / "run")
    with np.load(tmp_path / "run" / "arrays.npz") as stored:
        arrays = dict(stored) | {"loss_sums": np.array(losses)}
    np.savez(tmp_path / "run" / "arrays.npz", **arrays)
    shelf = Shelf(tmp_path)
    shelf.read_all()
    (entry,) = shelf.catalogue.entries
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
    graph, problem = graph_card._made_again(origin)
    assert graph is None
    assert "no more than 200,000 are made again" in problem


def test_a_long_list_of_edges_is_not_looked_at():
    edges = [[0, 1]] * (graph_card.MADE_AGAIN + 1)
    graph, problem = graph_card._made_again({"graph": "edges"}, edges)
    assert graph is None
    assert "200,001 edges" in problem


def test_an_edge_to_a_node_of_a_huge_number_makes_no_huge_graph():
    graph, problem = graph_card._made_again({"graph": "edges"}, [[0, 2_000_000_000], [1, 0]])
    assert graph is None
    assert "more than 200,000 nodes" in problem


@pytest.mark.parametrize(
    "edges", [[[0, 10**12], [1, 0]], [[0, 10**30], [1.5, None]], [[0, {}], [1, []]], [[1], "x"]]
)
def test_edges_that_make_no_sense_are_said_and_not_raised(edges):
    graph, problem = graph_card._made_again({"graph": "edges"}, edges)
    assert graph is None or graph.num_nodes <= 4
    assert (graph is None) == bool(problem)


def test_numbers_too_large_to_show_are_left_out():
    assert lab_result._shown(10**400, ".4f") == "-"
    assert lab_result._number(10**400) is None
