"""What a notebook shows of a value: bounded, escaped, self-contained."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import polars
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import oneway as ow
from oneway.display.html import MOST_ROWS, Html, grid, text
from oneway.errors import ConfigError

HOSTILE = '<img src=x onerror="alert(1)">\'&amp;<script>alert(2)</script>'
ALLOWED = {"div", "b", "span", "table", "thead", "tbody", "tr", "th", "td"}


class Strict(HTMLParser):
    """Every tag and attribute is one of ours, everything that opens closes, nothing is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        for name, value in attrs:
            assert name == "style", (tag, name)
            assert "url(" not in (value or "")
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def words_of(value: Any) -> str:
    markup = value if isinstance(value, str) else value._repr_html_()
    parser = Strict()
    parser.feed(markup)
    parser.close()
    assert parser.open == []
    return " ".join(parser.words)


def hostile_table(rows: int = 40) -> ow.Table:
    rng = np.random.default_rng(0)
    return ow.Table.from_arrays(
        rng.normal(size=(rows, 2)),
        [f"{HOSTILE}{i % 2}" for i in range(rows)],
        feature_names=[HOSTILE, "x"],
        name=HOSTILE,
        columns={f"owner {HOSTILE}": [f"{HOSTILE}{i % 3}" for i in range(rows)]},
        label_name=f"label {HOSTILE}",
    )


def small_run(**more: Any) -> ow.Run:
    stream = hostile_table().deal(4, seed=1)
    graph = ow.TrustGraph.ring(4)
    return ow.simulate(ow.OnlinePushSum(0.1), ow.models.LogisticRegression(), stream, graph, **more)


@pytest.mark.parametrize("num_nodes", [1, 24, 300_000])
def test_any_graph_has_a_view_of_bounded_length(num_nodes):
    graph = ow.TrustGraph.ring(num_nodes) if num_nodes > 1 else ow.TrustGraph.from_edges([], 1)
    assert f"{num_nodes:,}" in words_of(graph)
    assert len(graph._repr_html_()) < 20_000


def test_tables_streams_and_runs_cannot_inject_markup():
    table = hostile_table()
    for value in (table, table.deal(4), table.deal_by(f"owner {HOSTILE}"), small_run()):
        assert words_of(value)
    assert "<img" in words_of(table)
    assert "40" in words_of(table)


def test_a_node_without_samples_and_a_run_without_rounds_are_shown():
    stream = replace(hostile_table().deal(3), rows=np.array([[0, -1, 1]]))
    assert "0" in words_of(stream)
    run = small_run()
    cut = replace(
        run.record,
        loss_sums=np.zeros(0),
        sample_counts=np.zeros(0, np.int64),
        correct_counts=None,
        disagreement=np.zeros(0),
        complete=False,
    )
    assert "interrupted" in words_of(ow.Run(cut))


def test_only_html_of_ours_is_not_escaped():
    assert text("<b>") == "&lt;b&gt;"
    assert text(Html("<b>")) == "<b>"
    assert len(text("x" * 1000)) < 100
    assert "more" not in grid(("a",), [("1",)] * MOST_ROWS)


def test_plots_are_figures_that_a_notebook_shows_without_a_window():
    before = pyplot.get_fignums()
    run = small_run()
    for figure in (run.plot(), ow.TrustGraph.ring(5).plot()):
        assert isinstance(figure, Figure)
        assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert pyplot.get_fignums() == before
    assert run.plot().axes[0].get_legend_handles_labels()[1] == ["Online Push-Sum"]
    with pytest.raises(ConfigError, match="500 nodes"):
        ow.TrustGraph.ring(500).plot()


def test_a_frame_has_a_row_per_round_whose_numbers_are_those_of_the_run():
    run = small_run()
    frame = run.to_frame()
    assert isinstance(frame, polars.DataFrame)
    assert frame.columns == ["round", "samples", "loss", "running_loss", "correct", "disagreement"]
    assert frame["round"].to_list() == list(range(1, 11))
    np.testing.assert_array_equal(frame["loss"], run.losses)
    np.testing.assert_array_equal(frame["running_loss"], run.loss_curve)
    assert frame["correct"].mean() == pytest.approx(run.accuracy)
