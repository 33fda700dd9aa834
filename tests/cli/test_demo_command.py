from __future__ import annotations

import inspect
from html.parser import HTMLParser
from pathlib import Path

import pytest

import oneway as ow
from oneway.cli import demo as command
from oneway.report import demo as flights

METHODS = {"ops", "relay", "pull", "dol-symm", "dol-asymm", "col", "local"}


def test_json_holds_seven_methods_what_they_ran_on_and_where_the_report_is(demo):
    assert demo.result.code == 0
    assert demo.result.err == ""
    answer = demo.result.json
    assert set(answer) == {"methods", "base_loss", "facts", "report"}
    assert set(answer["methods"]) == METHODS
    for numbers in answer["methods"].values():
        assert set(numbers) == {
            "average_loss",
            "late_loss",
            "accuracy",
            "roc_auc",
            "disagreement",
            "learning_rate",
            "at_edge",
            "seconds",
        }
        assert 0 < numbers["average_loss"] < numbers["late_loss"] < 0.75
        assert 0.5 < numbers["accuracy"] < 1
        assert 0.4 < numbers["roc_auc"] < 1
        assert numbers["learning_rate"] in flights.RATES
    assert Path(answer["report"]) == demo.folder / "report.html"


def test_about_ninety_airports_take_part_in_a_one_way_graph(demo):
    facts = demo.result.json["facts"]
    assert 80 <= int(facts["participants"].split()[0]) <= 100
    assert facts["rounds"].startswith("300,")
    assert "6% of them go both ways" in facts["graph"]


def test_centralised_beats_relay_then_comes_online_push_sum_and_then_the_rest(demo):
    loss = {name: row["average_loss"] for name, row in demo.result.json["methods"].items()}
    assert loss["col"] < loss["relay"] < loss["ops"]
    assert all(loss["ops"] < loss[name] for name in ("dol-symm", "dol-asymm", "local"))


def test_the_report_says_what_labels_cost_that_come_when_a_flight_has_landed(demo):
    late = demo.result.json["methods"]["relay"]["late_loss"]
    page = (demo.folder / "report.html").read_text()
    assert "<th>labels late</th>" in page
    assert f"<td>{late:.4f}</td>" in page
    assert "rounds later on average" in demo.result.json["facts"]["late labels"]


def test_methods_come_smallest_loss_first(demo):
    losses = [row["average_loss"] for row in demo.result.json["methods"].values()]
    assert losses == sorted(losses)


def test_the_folder_holds_the_report_the_chart_and_seven_runs_and_no_drafts(demo):
    assert {path.name for path in demo.folder.iterdir()} == {"report.html", "loss.png", "runs"}
    assert {path.name for path in (demo.folder / "runs").iterdir()} == METHODS
    assert (demo.folder / "loss.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    run = ow.Run.load(demo.folder / "runs" / "ops")
    assert run.average_loss == demo.result.json["methods"]["ops"]["average_loss"]
    assert run.record.config["graph"]["seed"] == 7
    assert run.base_loss == pytest.approx(demo.result.json["base_loss"])
    assert run.alone_loss == demo.result.json["methods"]["local"]["average_loss"]
    assert run.measures.roc_auc == demo.result.json["methods"]["ops"]["roc_auc"]


def test_the_report_is_whole_and_says_how_to_get_it_again(demo):
    text = (demo.folder / "report.html").read_text(encoding="utf-8")
    HTMLParser().feed(text)
    assert text.rstrip().endswith("</html>")
    assert "oneway demo --rounds 300<" in text


def test_a_table_names_every_method_and_explains_the_star(oneway):
    """After two rounds the best rate of some method lies at the edge of the grid."""
    shown = oneway("demo", "--rounds", 2, "--seed", 3, "--out", "there")
    assert shown.code == 0
    for title in ("Online Push-Sum", "DOL-Symm", "DOL-Asymm", "COL", "local"):
        assert title in shown.out
    assert "* best at the edge of the grid" in shown.out
    assert "Report: there/report.html" in shown.err
    assert "oneway demo --rounds 2 --seed 3<" in Path("there/report.html").read_text("utf-8")


def test_the_seed_shown_in_the_help_is_the_one_the_demo_has_by_default():
    shown = inspect.signature(command.demo).parameters["seed"].default
    assert shown == flights.DEFAULT_SEED


def test_an_output_folder_that_cannot_be_written_is_refused_before_the_work(oneway):
    Path("taken").write_text("mine")
    refused = oneway("demo", "--out", "taken/demo")  # the whole year: it would take a while
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.startswith("Error: cannot write to taken/demo: ")
    assert "taken is a file; choose another folder" in refused.err
    assert Path("taken").read_text() == "mine"


def test_ctrl_c_says_that_nothing_was_written(oneway, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(flights, "flights_demo", interrupted)
    result = oneway("demo", "--out", "there")
    assert (result.code, result.out) == (130, "")
    assert result.err == "Interrupted: nothing was written.\n"
    assert not Path("there").exists()
