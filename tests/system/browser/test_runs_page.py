"""The page of stored runs, in a real browser, over runs that the real commands have made."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oneway import metrics, store

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
Page, expect = playwright.Page, playwright.expect

SERIES = """element => element.chart.getOption().series.map(
    line => ({name: line.name, points: line.data.length, last: line.data.at(-1)}))"""


def oneway(*arguments: object) -> None:
    command = [sys.executable, "-m", "oneway", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, timeout=240)


def simulate(out: Path, *more: str) -> None:
    oneway(
        "simulate", "--data", "synthetic", "--nodes", 6, "--max-receivers", 2, "--rounds", 120,
        "--out", out, *more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs and a damaged one."""
    folder = tmp_path_factory.mktemp("made") / "runs"
    simulate(folder / "together")
    simulate(folder / "alone", "--method", "local")
    simulate(folder / "more" / "ring", "--graph", "ring", "--method", "dol-asymm")
    shutil.copytree(folder / "together", folder / "torn")
    (folder / "torn" / "run.json").write_text('{"format": 1, "method": "op')
    return folder


def rows(page: Page) -> list[str]:
    return [str(row.get_attribute("data-run")) for row in page.locator("tr[data-run]").all()]


def test_runs_are_listed_filtered_sorted_compared_and_opened(start, open_page, folder):
    served = start("runs", str(folder), "--listen", "0")
    page = open_page(served.url)
    expect(page.locator("tr[data-run]")).to_have_count(4)
    torn = page.locator("tr[data-run=torn]")
    expect(torn).to_contain_text("Damaged:")
    expect(torn.get_by_role("checkbox")).to_have_count(0)
    records = {name: store.load(folder / name) for name in ("together", "alone")}
    losses = {name: metrics.average_loss(record) for name, record in records.items()}
    expect(page.locator("tr[data-run=together]")).to_contain_text(f"{losses['together']:.4f}")

    page.get_by_label("Filter").fill("dol-asymm RING")
    expect(page.locator("tr[data-run]")).to_have_count(1)
    assert rows(page) == ["more/ring"]
    page.get_by_label("Filter").fill("")
    page.get_by_label("only complete").check()
    expect(page.locator("tr[data-run]")).to_have_count(3)
    page.get_by_role("button", name="Name").press("Enter")
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Name")
    assert rows(page) == ["alone", "more/ring", "together"]

    page.get_by_label("Compare together").press("Space")
    page.get_by_label("Compare alone").press("Space")
    expect(page.locator("tr[data-final]")).to_have_count(2)
    chart = page.locator(".ow-chart")
    page.wait_for_function(
        "document.querySelector('.ow-chart').chart?.getOption().series.length === 2"
    )
    drawn = {line["name"]: line for line in chart.evaluate(SERIES)}
    assert list(drawn) == list(records)
    for name, loss in losses.items():
        assert drawn[name]["points"] == 120
        assert drawn[name]["last"] == [120, pytest.approx(loss)]
        expect(page.locator(f"tr[data-final={name}]")).to_contain_text(f"{loss:.4f}")
    assert page.url.endswith("/?run=together&run=alone")
    page.reload()
    expect(page.get_by_label("Compare alone")).to_be_checked()
    page.get_by_role("button", name="Remove together").click()
    expect(page.locator("tr[data-final]")).to_have_count(1)

    page.locator("tr[data-run=together]").get_by_role("link", name="together").click()
    expect(page.locator("[data-stat=loss]")).to_contain_text(f"{losses['together']:.4f}")
    label = "Average loss of 1 run after each round"  # its baselines are no runs
    expect(page.get_by_role("img", name=label)).to_be_visible()
    page.get_by_text("How it was made").click()
    expect(page.get_by_text('"max_receivers": 2')).to_be_visible()
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("link", name="torn").click()
    expect(page.get_by_role("heading", name="Damaged")).to_be_visible()

    page.goto(f"{served.url}run?name=../together")
    expect(page.get_by_text("there is no stored run '../together'")).to_be_visible()
    assert page.request.get(f"{served.url}report?name=../together").status == 404
    assert served.interrupt() == 0
    assert served.output == f"Open {served.url} in a browser; Ctrl-C ends it.\n"


def test_a_new_run_appears_by_itself_and_fits_a_phone(start, open_page, folder, tmp_path):
    (tmp_path / "empty").mkdir()
    page = open_page(start("runs", "empty", "--listen", "0").url, width=390, dark=True)
    expect(page.get_by_text("oneway simulate --data synthetic --out empty/first")).to_be_visible()
    shutil.copytree(folder / "alone", tmp_path / "empty" / "new")
    expect(page.locator("tr[data-run=new]")).to_be_visible()
    page.get_by_label("Compare new").check()
    expect(page.locator("tr[data-final=new]")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
