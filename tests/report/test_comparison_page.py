from __future__ import annotations

import dataclasses
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from builders import make_record

from oneway.errors import StoreError
from oneway.methods import METHODS
from oneway.records import RunRecord
from oneway.report.comparison import Comparison, comparison_page, write
from oneway.simulator import Run
from oneway.simulator.sweep import Tuned

LOADING = {"script", "link", "img", "iframe", "object", "embed", "video", "audio", "base", "form"}


def record(name: str, loss: float, accuracy: float | None = 0.75) -> RunRecord:
    """Forty rounds of four nodes whose loss approaches `loss` from above."""
    rounds = np.arange(1, 41)
    return make_record(
        method=name,
        loss_sums=4 * (loss + 0.2 / rounds),
        sample_counts=np.full(40, 4),
        correct_counts=None if accuracy is None else np.full(40, round(4 * accuracy)),
        disagreement=0.5 / rounds,
        numerators=np.zeros((4, 2)),
        masses=np.ones(4),
        seconds=1.25,
        versions={"oneway": "0.0", "numpy": "<2>"},
    )


@pytest.fixture
def comparison() -> Comparison:
    return Comparison(
        title="Clinics & <friends>",
        story=["Once upon a <time>.", "Twice."],
        results={
            name: Tuned(
                Run(record(name, 0.5 + 0.01 * place)),
                1.0 if name == "local" else 0.1,
                {0.01: 0.8, 0.1: 0.7, 1.0: 0.6}
                if name == "local"
                else {0.01: 123456.0, 0.1: 0.5, 1.0: math.inf},
            )
            for place, name in enumerate(METHODS)
        },
        facts={"graph": "3 < 4 & so on"},
        command="oneway demo --rounds 40",
    )


class Reader(HTMLParser):
    """Collects the tags, where they point to, and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.targets: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.targets += [
            value or ""
            for name, value in attrs
            if name in ("src", "srcset", "href", "xlink:href", "data", "action", "background")
        ]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_loads_nothing_from_elsewhere(comparison):
    text = comparison_page(comparison)
    reader = Reader(text)
    assert not reader.tags & LOADING
    assert all(target.startswith("#") for target in reader.targets)
    assert "src=" not in text
    assert "@import" not in text
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))
    assert "javascript:" not in text
    assert not re.search(r"\son\w+=", text)


def test_a_page_escapes_what_it_shows(comparison):
    text = comparison_page(comparison)
    for shown in ("Clinics & <friends>", "Once upon a <time>.", "3 < 4 & so on", "numpy <2>"):
        assert shown not in text
        assert shown in Reader(text).text
    assert "<friends>" not in text


def test_the_result_is_one_sentence_and_the_default_method_is_bold(comparison):
    sentence = comparison.result
    assert sentence.startswith("Relay has an average loss of 0.")
    for other in ("learning alone", "mutual trust only", "a server"):
        assert other in sentence
    page = comparison_page(comparison)
    assert sentence in Reader(page).text
    [bold] = re.findall(r'<tr class="default">.*?</tr>', page, re.DOTALL)
    assert "Relay" in bold


def test_report_chart_and_runs_are_written_and_replaced(tmp_path, comparison):
    folder = tmp_path / "new" / "demo"
    some = dataclasses.replace(comparison, results={"relay": comparison.results["relay"]})
    assert write(folder, some) == folder / "report.html"
    assert {path.name for path in folder.rglob("*") if path.is_file()} == {
        "oneway.json",
        "report.html",
        "loss.png",
        "run.json",
        "arrays.npz",
    }
    write(folder, dataclasses.replace(some, title="second"))
    assert "<h1>second</h1>" in (folder / "report.html").read_text(encoding="utf-8")
    (folder / "runs" / "relay" / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"notes\.txt"):
        write(folder, some)
