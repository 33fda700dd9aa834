"""The page of stored runs, in a real browser, over runs that the real commands have made."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from oneway import metrics, store

SERIES = """element => element.chart.getOption().series.map(
    line => ({name: line.name, points: line.data.length, last: line.data.at(-1)}))"""

COLOURS = """element => element.chart.getOption().series.map((line) => {
    const [red, green, blue] = line.color.slice(1).match(/../g).map((part) => parseInt(part, 16));
    return `rgb(${red}, ${green}, ${blue})`;
})"""
BROKEN = """
from oneway.cli import main
from oneway.dashboard.runs import run_page

def fail(*_):
    raise ZeroDivisionError("a bug of ours")

run_page.figures = fail
main()
"""
STROKES = "paths => paths.map((path) => getComputedStyle(path).stroke)"


def simulate(out: Path, *more: str) -> None:
    command = [sys.executable, "-m", "oneway", "simulate", "--data", "synthetic", "--nodes", "6"]
    given = ["--max-receivers", "2", "--rounds", "120", "--out", str(out), *more]
    subprocess.run([*command, *given], check=True, capture_output=True, timeout=240)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs and a damaged one."""
    folder = tmp_path_factory.mktemp("made") / "runs"
    simulate(folder / "together")
    simulate(folder / "alone", "--algorithm", "local")
    simulate(folder / "more" / "ring", "--graph", "ring", "--algorithm", "dol-asymm")
    shutil.copytree(folder / "together", folder / "torn")
    (folder / "torn" / "run.json").write_text('{"format": 1, "algorithm": "op')
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path / "runs"


def rows(page: Page) -> list[str]:
    return [str(row.get_attribute("data-run")) for row in page.locator("tr[data-run]").all()]


def test_runs_are_listed_filtered_sorted_and_a_damaged_one_has_its_reason(start, open_page, folder):
    page = open_page(start("runs", str(folder), "--listen", "0").url)
    expect(page.locator("tr[data-run]")).to_have_count(4)
    torn = page.locator("tr[data-run=torn]")
    expect(torn).to_contain_text("Damaged: Unterminated string")
    expect(torn).to_contain_text("damaged")
    expect(torn.get_by_role("checkbox")).to_have_count(0)
    loss = metrics.average_loss(store.load(folder / "together"))
    expect(page.locator("tr[data-run=together]")).to_contain_text(f"{loss:.4f}")

    page.get_by_label("Filter").fill("dol-asymm RING")
    expect(page.locator("tr[data-run]")).to_have_count(1)
    assert rows(page) == ["more/ring"]
    page.get_by_label("Filter").fill("nothing like this")
    expect(page.get_by_text("No run fits the filter")).to_be_visible()
    page.get_by_label("Filter").fill("")
    page.get_by_label("only complete").check()
    expect(page.locator("tr[data-run]")).to_have_count(3)
    page.get_by_label("Method", exact=True).select_option("local")
    expect(page.locator("tr[data-run]")).to_have_count(1)
    page.get_by_label("Method", exact=True).select_option("")
    page.get_by_role("button", name="Name").press("Enter")
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Name")
    assert rows(page) == ["alone", "more/ring", "together"]
    page.get_by_role("button", name="Name").press("Enter")
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Name")
    assert rows(page) == ["together", "more/ring", "alone"]


def test_two_runs_are_compared_by_keyboard_bookmarked_and_exported(start, open_page, folder):
    page = open_page(start("runs", str(folder), "--listen", "0").url)
    expect(page.get_by_text("Tick runs in the list above")).to_be_visible()
    page.get_by_label("Compare together").press("Space")
    page.get_by_label("Compare alone").press("Space")
    expect(page.locator("tr[data-final]")).to_have_count(2)
    chart = page.locator(".ow-chart")
    page.wait_for_function(
        "document.querySelector('.ow-chart').chart?.getOption().series.length === 2"
    )
    records = {name: store.load(folder / name) for name in ("together", "alone")}
    drawn = {line["name"]: line for line in chart.evaluate(SERIES)}
    assert list(drawn) == list(records)
    for name, record in records.items():
        assert drawn[name]["points"] == 120
        assert drawn[name]["last"] == [120, pytest.approx(metrics.average_loss(record))]
        final = page.locator(f"tr[data-final={name}]")
        expect(final).to_contain_text(f"{metrics.average_loss(record):.4f}")

    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    assert download.value.suggested_filename == "oneway-average-loss.csv"
    table = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    for name, record in records.items():
        np.testing.assert_array_equal(
            [float(line[name]) for line in table], metrics.loss_curve(record)
        )
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as PNG").click()
    assert download.value.suggested_filename == "oneway-average-loss.png"
    picture = Path(download.value.path()).read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5_000

    around = page.locator(".ow-scroll", has=page.locator("tr[data-final]")).last
    assert around.evaluate("it => it.scrollWidth - it.clientWidth") == 0, "nothing is cut"

    assert page.url.endswith("/?run=together&run=alone")
    page.reload()
    expect(page.locator("tr[data-final]")).to_have_count(2)
    expect(page.get_by_label("Compare alone")).to_be_checked()
    page.get_by_role("button", name="Accuracy").click()
    page.wait_for_function(
        "document.querySelector('.ow-chart').chart?.getOption().yAxis[0].name.includes('%')"
    )
    assert chart.evaluate(SERIES)[1]["last"][1] == pytest.approx(
        100 * (metrics.accuracy(records["alone"]) or 0)
    )
    page.get_by_role("button", name="Remove together").click()
    expect(page.locator("tr[data-final]")).to_have_count(1)
    assert page.url.endswith("/?run=alone")
    page.get_by_role("button", name="Clear selection").click()
    expect(page.get_by_text("Tick runs in the list above")).to_be_visible()


def test_a_run_is_opened_with_its_config_and_graph(start, open_page, folder):
    page = open_page(start("runs", str(folder), "--listen", "0").url)
    page.get_by_role("link", name="together").click()
    record = store.load(folder / "together")
    loss = page.locator("[data-stat=loss]")
    expect(loss).to_contain_text(f"{metrics.average_loss(record):.4f}")
    expect(page.get_by_text("relay, Relay")).to_be_visible()
    expect(page.get_by_text(record.versions["numpy"], exact=True)).to_be_visible()
    expect(page.locator("[data-peer]")).to_have_count(6)
    expect(page.get_by_text("its checksum is the run's")).to_be_visible()
    page.locator("[data-peer='0']").press("Enter")
    expect(page.get_by_text("Node 0 sends to")).to_be_visible()
    page.get_by_text("As stored in run.json").click()
    expect(page.get_by_text('"max_receivers": 2')).to_be_visible()
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("link", name="torn").click()
    expect(page.get_by_text("Unterminated string")).to_be_visible()
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("link", name="alone").click()
    expect(page.get_by_text("This method needs no graph")).to_be_visible()


def test_a_bug_of_ours_is_told_as_one_with_its_traceback_on_the_server(start, open_page, folder):
    served = start("runs", str(folder), "--listen", "0", program=("-c", BROKEN))
    page = open_page(f"{served.url}run?name=together")
    expect(page.get_by_text("a mistake in oneway (ZeroDivisionError)")).to_be_visible()
    expect(page.get_by_text("Damaged")).to_have_count(0)
    assert page.get_by_text("a bug of ours").count() == 0
    served.wait_for(r"Traceback(.|\n)*ZeroDivisionError: a bug of ours")
    (folder / "together" / "run.json").write_text("{}")
    page.goto(served.url)
    expect(page.locator("tr[data-run=together]")).to_contain_text("Damaged")


def test_a_run_whose_damage_shows_when_it_is_opened_is_told_to_be_damaged(start, open_page, folder):
    arrays = folder / "together" / "arrays.npz"
    with np.load(arrays) as stored:
        changed = dict(stored) | {"masses": np.ones(3)}
    np.savez(arrays, **changed)
    served = start("runs", str(folder), "--listen", "0")
    page = open_page(f"{served.url}run?name=together")
    expect(page.get_by_role("heading", name="Damaged")).to_be_visible()
    expect(page.get_by_text("numerators has the shape")).to_be_visible()
    assert "Traceback" not in served.output


def test_only_what_was_found_can_be_opened(start, open_page, folder):
    url = start("runs", str(folder / "more"), "--listen", "0").url
    page = open_page(f"{url}run?name=../together")
    expect(page.get_by_text("there is no stored run '../together'")).to_be_visible()
    page.goto(f"{url}?run=../together&run=ring")
    expect(page.get_by_text("there is no stored run '../together'")).to_be_visible()
    expect(page.locator("tr[data-final=ring]")).to_be_visible()
    assert page.request.get(f"{url}report?name=../together").status == 404
    assert page.request.get(f"{url}report?name=ring").status == 404


def test_an_empty_folder_says_what_to_do_and_a_new_run_appears_by_itself(
    start, open_page, folder, tmp_path
):
    (tmp_path / "empty").mkdir()
    page = open_page(start("runs", "empty", "--listen", "0").url, width=390, dark=True)
    expect(page.get_by_text("oneway simulate --data synthetic --out empty/first")).to_be_visible()
    shutil.copytree(folder / "alone", tmp_path / "empty" / "new")
    expect(page.locator("tr[data-run=new]")).to_be_visible()
    expect(page.get_by_text("oneway simulate --data synthetic")).to_be_hidden()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    shutil.rmtree(tmp_path / "empty" / "new")
    expect(page.get_by_text("oneway simulate --data synthetic")).to_be_visible()


def test_ctrl_c_ends_it_quietly(start, folder):
    served = start("runs", str(folder), "--listen", "0")
    assert served.interrupt() == 0
    assert served.output == f"Open {served.url} in a browser; Ctrl-C ends it.\n"


def test_a_report_is_served_without_any_right_to_run_scripts(start, open_page, tmp_path):
    store_like = tmp_path / "again"
    (store_like / "cells").mkdir(parents=True)
    (store_like / "panels").mkdir()
    (store_like / "report.html").write_text("<h1>Claims</h1><script>document.title='x'</script>")
    lines = ["curve,iteration,mean,standard_deviation,seeds", "ops,1,0.7,0,2", "ops,2,0.6,0,2"]
    (store_like / "panels" / "local-susy.csv").write_text("\n".join(lines))
    url = start("runs", str(tmp_path), "--listen", "0").url
    page = open_page(f"{url}run?name=again")
    expect(page.get_by_role("heading", name="local-susy")).to_be_visible()
    expect(page.get_by_text("0.6000")).to_be_visible()
    answer = page.request.get(f"{url}report?name=again")
    assert answer.text().startswith("<h1>Claims</h1>")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert "script-src" not in answer.headers["content-security-policy"]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lab of three peers, as it is stored."""
    folder = tmp_path_factory.mktemp("with-a-lab")
    command = [sys.executable, "-m", "oneway", "lab", "--data", "synthetic", "--nodes", "3"]
    given = ["--samples", "30", "--out", str(folder / "lab")]
    subprocess.run([*command, *given], check=True, capture_output=True, timeout=240)
    return folder


def test_a_stored_lab_is_opened_with_its_verdict_peers_graph_events_and_runs(start, open_page, lab):
    page = open_page(start("runs", str(lab), "--listen", "0").url)
    page.locator("tr[data-run=lab]").get_by_role("link", name="lab", exact=True).click()
    result = json.loads((lab / "lab" / "result.json").read_text())
    assert len(result["sentences"]) == 7
    assert result["sentences"][-1] == "privacy: epsilon 8, delta 1e-05 per sample"
    for sentence in result["sentences"]:
        said = f"{sentence[0].upper()}{sentence[1:]}."
        expect(page.get_by_text(said, exact=True)).to_be_visible()
    expect(page.locator("[data-peer]")).to_have_count(3)
    page.locator("[data-peer=peer0]").press("Enter")
    expect(page.get_by_text("Node peer0 sends to peer")).to_be_visible()
    for peer in result["peers"]:
        cells = page.locator("tbody tr", has_text=peer["name"]).locator("td")
        expect(cells).to_have_text(
            [
                peer["name"],
                str(peer["samples"]),
                *(f"{peer[loss]:.4f}" for loss in ("average_loss", "base_loss", "alone_loss")),
                f"{peer['mass']:.4f}",
                str(peer["restarts"]),
            ]
        )
    assert result["events"]
    expect(page.get_by_text(result["events"][0], exact=True)).to_be_visible()
    page.get_by_text("As stored in result.json").click()
    expect(page.get_by_text('"minted_units"')).to_be_visible()

    page.get_by_role("link", name="Compare its 9 runs").click()
    expect(page.locator("tr[data-final]")).to_have_count(9)
    together = metrics.average_loss(store.load(lab / "lab" / "runs" / "peers"))
    final = page.locator("tr[data-final='lab/runs/peers']")
    expect(final).to_contain_text(f"{together:.4f}")
    final.get_by_role("link").click()
    page.get_by_role("link", name="lab", exact=True).click()
    expect(page.get_by_role("heading", name="What came out")).to_be_visible()


def test_a_comparison_fits_a_phone_and_its_swatches_are_the_lines_in_the_dark_too(
    start, open_page, folder
):
    url = start("runs", str(folder), "--listen", "0").url
    for dark in (False, True):
        page = open_page(f"{url}?run=together&run=alone&run=more/ring", width=390, dark=dark)
        expect(page.locator("tr[data-final]")).to_have_count(3)
        page.wait_for_function(
            "document.querySelector('.ow-chart').chart?.getOption().series.length === 3"
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        lines = page.locator(".ow-chart").evaluate(COLOURS)
        swatches = page.locator("tr[data-final] .ow-swatch path")
        assert swatches.evaluate_all(STROKES) == lines
        assert (lines[0] == "rgb(0, 114, 178)") != dark
