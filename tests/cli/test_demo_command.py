from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

import oneway as ow
from oneway.records.values import ALONE, YOURS
from oneway.report import demo as flights

METHODS = {"ops", "relay", "pull", "dol-symm", "dol-asymm", "col", "local"}


def test_json_holds_seven_methods_what_they_ran_on_and_where_the_report_is(demo):
    assert (demo.result.code, demo.result.err) == (0, "")
    answer = demo.result.json
    assert set(answer) == {
        "methods", "result", "base_loss", "facts", "report",
        "yours", "shared", "alone", "weights", "believes", "verdict", "user_result",
    }  # fmt: skip
    assert set(answer["methods"]) == METHODS
    for numbers in answer["methods"].values():
        assert 0 < numbers["average_loss"] < numbers["late_loss"] < 0.75
        assert 0.5 < numbers["accuracy"] < 1
        assert 0.4 < numbers["roc_auc"] < 1
        assert numbers["learning_rate"] in flights.RATES
    losses = {name: row["average_loss"] for name, row in answer["methods"].items()}
    assert list(losses.values()) == sorted(losses.values())
    one_way = losses["ops"], losses["relay"]
    assert losses["col"] < min(one_way)
    assert all(max(one_way) < losses[name] for name in ("dol-symm", "dol-asymm", "local"))
    facts = answer["facts"]
    assert 80 <= int(facts["participants"].split()[0]) <= 100
    assert "9% of them go both ways" in facts["graph"]
    assert Path(answer["report"]) == demo.folder / "report.html"


def test_the_folder_holds_the_report_the_chart_and_seven_runs_and_no_drafts(demo):
    assert {path.name for path in demo.folder.iterdir()} == {
        "oneway.json",
        "report.html",
        "loss.png",
        "runs",
    }
    assert {path.name for path in (demo.folder / "runs").iterdir()} == METHODS | {"yours"}
    run, answer = ow.Run.load(demo.folder / "runs" / "ops"), demo.result.json
    assert run.average_loss == answer["methods"]["ops"]["average_loss"]
    assert run.base_loss == pytest.approx(answer["base_loss"])
    assert run.alone_loss == pytest.approx(answer["alone"], rel=1e-12)
    own = ow.Run.load(demo.folder / "runs" / "yours")
    assert (own.personal_loss, own.verdict) == (answer["yours"], answer["verdict"])
    assert own.record.config["batches"]["noise"] > 0


def test_what_a_user_gets_comes_first_and_beats_being_alone(demo):
    answer = demo.result.json
    assert answer["yours"] < answer["alone"] < answer["base_loss"]
    assert answer["verdict"].startswith("together you lose 2.")
    assert answer["verdict"] in answer["user_result"]
    own = ow.Run.load(demo.folder / "runs" / "yours").personal
    assert own is not None
    gains = 1.0 - own.node_losses[:, YOURS] / own.node_losses[:, ALONE]
    assert (gains > 0).mean() > 0.9
    assert gains.min() > -0.005  # those that gain nothing pay less than this for trying
    assert f"at most {-100 * gains.min():.1f} % above it" in answer["user_result"]
    text = (demo.folder / "report.html").read_text(encoding="utf-8")
    assert text.index("What a user gets") < text.index("beside it")
    assert f"{answer['yours']:.4f}" in text


def test_the_report_says_its_result_and_what_is_true_about_privacy(demo):
    text = (demo.folder / "report.html").read_text(encoding="utf-8")
    HTMLParser().feed(text)
    assert demo.result.json["result"] in text
    assert demo.result.json["user_result"] in text
    assert "without differential privacy" in text
    assert "reconstruct that flight" in text
    assert "no flight ever leaves" not in text
    assert "oneway demo<" in text


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_fits_its_terminal_and_the_last_words_are_the_result(
    oneway, monkeypatch, columns
):
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = oneway("demo", "--rounds", 1, "--seed", 3, "--out", "there")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert max(map(len, lines)) <= columns
    assert "Too narrow" not in shown.out
    for title in ("Online Push-Sum", "DOL-Symm", "DOL-Asymm", "COL", "local"):
        assert title in shown.out
    # After one round the best rate of some method lies at the edge of the grid.
    assert "* best at the edge of the grid" in shown.out
    sentence = shown.out[shown.out.rindex("Relay has an average loss") :]
    assert " ".join(sentence.split()).endswith("a server that everybody would have to trust.")
    assert "there/report.html" in shown.err
    assert "oneway demo --rounds 1 --seed 3<" in Path("there/report.html").read_text("utf-8")


def test_ctrl_c_says_that_nothing_was_written(oneway, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(flights, "flights_demo", interrupted)
    result = oneway("demo", "--out", "there")
    assert (result.code, result.out) == (130, "")
    assert result.err == "Interrupted: nothing was written.\n"
    assert not Path("there").exists()
