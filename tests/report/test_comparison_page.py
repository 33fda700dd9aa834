from __future__ import annotations

import dataclasses
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

from oneway.display.charts import as_png, as_svg
from oneway.methods import METHODS
from oneway.methods.labels import label_of
from oneway.records import RunRecord
from oneway.report.comparison import Comparison, comparison_chart, comparison_page
from oneway.simulator import Run
from oneway.simulator.comparison import Tuned
from oneway.testing.records import make_record

LOADING = {"script", "link", "img", "iframe", "object", "embed", "video", "audio", "base", "form"}


def record(name: str, loss: float, accuracy: float | None = 0.75) -> RunRecord:
    """Forty rounds of four nodes whose loss approaches `loss` from above."""
    rounds = np.arange(1, 41)
    return make_record(
        algorithm=name,
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


def test_a_page_shows_every_method_with_its_numbers(comparison):
    text = Reader(comparison_page(comparison)).text
    for name, tuned in comparison.results.items():
        assert label_of(name).title in text
        assert label_of(name).meaning in text
        assert f"{tuned.run.average_loss:.4f}" in text
    assert "75.00 %" in text
    assert "0.013" in text  # disagreement after the last round: 0.5 / 40
    assert "oneway demo --rounds 40" in text


def test_a_page_escapes_what_it_shows(comparison):
    text = comparison_page(comparison)
    for shown in ("Clinics & <friends>", "Once upon a <time>.", "3 < 4 & so on", "numpy <2>"):
        assert shown not in text
        assert shown in Reader(text).text
    assert "<friends>" not in text


def test_a_rate_that_diverged_is_shown_as_such_and_a_huge_loss_in_few_digits(comparison):
    text = Reader(comparison_page(comparison)).text
    assert text.count("diverged") == len(METHODS) - 1
    assert "1.2e+05" in text
    assert "inf" not in text.replace("infinite", "")


def test_a_best_rate_at_the_edge_of_the_grid_is_starred_and_explained(comparison):
    text = Reader(comparison_page(comparison)).text
    assert "1*" in text
    assert "* best at the edge of the grid" in text
    results = {k: dataclasses.replace(v, learning_rate=0.1) for k, v in comparison.results.items()}
    inside = dataclasses.replace(comparison, results=results)
    assert "edge of the grid" not in comparison_page(inside)


def test_rows_come_smallest_loss_first_with_the_numbers_of_the_records(comparison):
    backwards = dict(reversed(comparison.results.items()))
    ranked = dataclasses.replace(comparison, results=backwards).ranked
    assert list(ranked) == list(METHODS)
    first = ranked["ops"].numbers
    assert first["average_loss"] == pytest.approx(0.5 + 0.2 * (1 / np.arange(1, 41)).mean())
    assert (first["accuracy"], first["seconds"], first["learning_rate"]) == (0.75, 1.25, 0.1)
    assert first["disagreement"] == 0.5 / 40
    edges = [tuned.numbers["at_edge"] for tuned in ranked.values()]
    assert edges == [name == "local" for name in METHODS]


def test_a_model_without_accuracy_gets_a_dash(comparison):
    results = {
        name: dataclasses.replace(tuned, run=Run(record(name, 0.5, accuracy=None)))
        for name, tuned in comparison.results.items()
    }
    text = Reader(comparison_page(dataclasses.replace(comparison, results=results))).text
    assert "\N{EN DASH}" in text
    assert "75.00 %" not in text


def test_the_same_comparison_gives_the_same_comparison_page(comparison):
    assert comparison_page(comparison) == comparison_page(comparison)


def test_the_same_records_give_the_same_chart_with_a_curve_for_each(comparison):
    first, second = (as_svg(comparison_chart(comparison)) for _ in range(2))
    assert first == second
    assert first.startswith("<svg")
    assert first.rstrip().endswith("</svg>")
    for name in METHODS:
        assert label_of(name).title in first
        assert label_of(name).color in first


def test_a_chart_can_be_a_png(comparison):
    image = as_png(comparison_chart(comparison))
    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    assert image == as_png(comparison_chart(comparison))


def chart_of(comparison: Comparison, record: RunRecord) -> Figure:
    """The chart of one run."""
    ops = dataclasses.replace(comparison.results["ops"], run=Run(record))
    return comparison_chart(dataclasses.replace(comparison, results={"ops": ops}))


def test_the_first_rounds_set_no_scale(comparison):
    """A curve starts high; what matters happens later."""
    wild = dataclasses.replace(
        comparison.results["ops"].run.record, loss_sums=np.r_[1000.0, np.full(399, 2.0)],
        sample_counts=np.full(400, 4), disagreement=np.zeros(400),
    )  # fmt: skip
    (axes,) = chart_of(comparison, wild).axes
    low, high = axes.get_ylim()
    assert low < wild.loss_sums.sum() / 1600 < high < 20


def test_a_chart_of_a_stream_that_starts_without_samples_has_a_scale(comparison):
    some = comparison.results["ops"].run.record
    late = dataclasses.replace(
        some,
        loss_sums=np.r_[np.zeros(5), some.loss_sums[5:]],
        sample_counts=np.r_[np.zeros(5, int), some.sample_counts[5:]],
    )
    (axes,) = chart_of(comparison, late).axes
    assert np.isfinite(axes.get_ylim()).all()


def test_every_method_has_a_label_and_is_told_apart_without_colour():
    dashes = {str(label_of(name).dashes) for name in METHODS}
    assert len(dashes) == len(METHODS)


def test_a_name_that_is_not_registered_stands_for_itself():
    assert label_of("of another version").title == "of another version"
