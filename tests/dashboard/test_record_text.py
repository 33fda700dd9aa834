from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from oneway import metrics
from oneway.dashboard.components.chart import MOST_LINES, line_style
from oneway.dashboard.runs.record_text import MEASURES, as_csv, config_sections, figures, points
from oneway.dashboard.runs.run_table import comparison_link, row, run_link
from oneway.records import RunRecord
from oneway.store.entry import Entry
from oneway.testing.records import make_record


def record(num_rounds: int = 3) -> RunRecord:
    rng = np.random.default_rng(num_rounds)
    return make_record(
        loss_sums=rng.random(num_rounds),
        correct_counts=np.ones(num_rounds, dtype=np.int64),
        disagreement=rng.random(num_rounds),
    )


def test_a_csv_has_a_row_per_round_and_a_column_per_run_with_every_digit():
    long, short = record(3), record(2)
    measure = MEASURES["Average loss"]
    table = list(csv.reader(io.StringIO(as_csv(measure, {"a,b": long, "c": short}))))
    assert table[0] == ["round", "a,b", "c"]
    assert [line[0] for line in table[1:]] == ["1", "2", "3"]
    assert [float(line[1]) for line in table[1:]] == metrics.loss_curve(long).tolist()
    assert [float(line[2]) for line in table[1:3]] == metrics.loss_curve(short).tolist()
    assert table[3][2] == ""


def test_a_csv_leaves_out_runs_for_which_a_measure_has_no_meaning():
    some = {"a": record(), "b": replace(record(), correct_counts=None)}
    header, first, *_ = as_csv(MEASURES["Accuracy"], some).splitlines()
    assert header == "round,a"
    assert first == "1,50.0"


def test_a_curve_has_few_points_and_ends_where_the_run_does():
    run = record(20_000)
    drawn = points(MEASURES["Average loss"], run)
    assert len(drawn) == 500
    assert drawn[0][0] == 1
    assert drawn[-1] == (20_000, pytest.approx(metrics.average_loss(run)))


def test_what_a_logarithmic_axis_cannot_show_is_left_out():
    run = replace(record(3), disagreement=np.array([0.0, np.nan, 2.0]))
    assert points(MEASURES["Disagreement"], run) == [(1, None), (2, None), (3, 2.0)]


def test_a_measure_without_meaning_has_no_points():
    assert points(MEASURES["Accuracy"], replace(record(), correct_counts=None)) == []


def test_any_two_lines_differ_in_colour_or_dash():
    assert len({line_style(slot) for slot in range(MOST_LINES)}) == MOST_LINES


def test_final_numbers_of_a_run_without_rounds_are_unknown():
    shown = {figure.key: figure.value for figure in figures(record(0))}
    assert (shown["loss"], shown["disagreement"], shown["rounds"]) == ("-", "-", "0")


def test_final_numbers_of_a_run_tell_the_spread_of_its_masses():
    shown = {figure.key: figure for figure in figures(replace(record(), masses=np.array([0.5, 2])))}
    assert (shown["nodes"].value, shown["nodes"].note) == ("2", "mass at the end: 0.5 to 2")
    assert (shown["accuracy"].value, shown["accuracy"].unit) == ("50.00", "%")
    assert shown["regret"].value == "-"


def test_a_config_is_told_in_parts_whatever_it_holds():
    config = {
        "learning_rate": 0.1,
        "cap_step": False,
        "resample": None,
        "stream": {"seed": 12345, "rows": 12345, "table": {"params": list(range(9)), "x": [1, 2]}},
        "graph": {"graph": "largest_strong_component", "of": {"graph": "ring"}},
    }
    told = {title: dict(facts) for title, facts in config_sections(config)}
    assert list(told) == ["Method", "Samples", "Data", "Graph", "Made from"]
    assert told["Method"] == {"learning rate": "0.1", "cap step": "no", "resample": "none"}
    assert told["Samples"] == {"seed": "12345", "rows": "12,345"}
    assert told["Data"] == {"params": "9 values; see the stored file below", "x": "1, 2"}
    assert told["Graph"] == {"graph": "largest strong component"}


def test_a_damaged_run_cannot_be_ticked(tmp_path):
    entry = Entry("a", tmp_path, "simulation", (), 0.0, is_run=True, complete=True)
    assert (row(entry)["state"], row(entry)["comparable"]) == ("complete", True)
    damaged = row(replace(entry, problem="torn"))
    assert (damaged["state"], damaged["comparable"]) == ("damaged", False)


def test_an_interrupted_run_is_listed_with_the_rounds_that_were_done(tmp_path):
    entry = Entry("a", tmp_path, "simulation", (), 0.0, is_run=True, num_rounds=9, rounds_done=2)
    assert (row(entry)["state"], row(entry)["rounds"]) == ("ended early", 2)


def test_names_are_quoted_in_addresses():
    assert run_link("a b/c&d") == "/run?name=a+b%2Fc%26d"
    assert comparison_link(["a", "b&c"]) == "/?run=a&run=b%26c"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"algorithm": "ops"}, "none: samples can be read from what is sent"),
        (
            {"algorithm": "ops", "batches": {"samples": 16, "noise": 0.0}},
            "none: samples can be read from what is sent",
        ),
        ({"algorithm": "ops", "batches": {"noise": 0.9}}, "noise on each batch"),
        ({"algorithm": "ops", "task": {"privacy": {"epsilon": 8.0}}}, "noise on each batch"),
        (
            {"algorithm": "ops", "task": {"privacy": "none"}},
            "none: samples can be read from what is sent",
        ),
        ({"algorithm": "local"}, None),
        ({"algorithm": ["damaged"]}, None),
        ({}, None),
    ],
)
def test_a_run_says_whether_there_was_noise(config, said):
    told = {title: dict(facts) for title, facts in config_sections(config)}
    assert told.get("Method", {}).get("privacy") == said
