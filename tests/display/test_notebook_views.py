"""What a notebook shows of a value: bounded, escaped, self-contained."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import oneway as ow
from oneway.display.html import MOST_ROWS, Html, grid, text
from oneway.display.pictures import curves_picture
from oneway.errors import ConfigError

HOSTILE = '<img src=x onerror="alert(1)">\'&amp;<script>alert(2)</script>'
ALLOWED = {
    "div", "b", "span", "table", "thead", "tbody", "tr", "th", "td", "svg", "line", "polygon",
    "polyline", "circle", "title", "text",
}  # fmt: skip
ATTRIBUTES = {
    "style", "viewbox", "width", "height", "role", "aria-label", "x1", "y1", "x2", "y2", "stroke",
    "stroke-width", "stroke-opacity", "points", "fill", "cx", "cy", "r", "x", "y", "font-size",
    "text-anchor",
}  # fmt: skip
VOID: set[str] = set()


class Strict(HTMLParser):
    """Every tag and attribute is one of ours, everything that opens closes, nothing is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        for name, value in attrs:
            assert name in ATTRIBUTES, (tag, name)
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
        label_name=HOSTILE,
    )


def small_run(**more: Any) -> ow.Run:
    stream = hostile_table().deal(4, seed=1)
    graph = ow.TrustGraph.ring(4)
    return ow.simulate(ow.OnlinePushSum(0.1), ow.models.LogisticRegression(), stream, graph, **more)


def test_a_small_graph_is_drawn_and_names_cannot_inject_markup():
    graph = ow.TrustGraph.from_edges([("ann", HOSTILE), (HOSTILE, "bob"), ("bob", "ann")])
    assert "<svg" in graph._repr_html_()
    words = words_of(graph)
    assert "strongly connected" in words
    assert "<img" in words  # as text


@pytest.mark.parametrize("num_nodes", [1, 2, 24, 60, 61, 5_000, 300_000])
def test_any_graph_has_a_view_of_bounded_length(num_nodes):
    graph = ow.TrustGraph.ring(num_nodes) if num_nodes > 1 else ow.TrustGraph.from_edges([], 1)
    assert f"{num_nodes:,}" in words_of(graph)
    assert len(graph._repr_html_()) < 80_000


def test_tables_streams_and_runs_cannot_inject_markup():
    table = hostile_table()
    for value in (table, table.deal(4), table.deal_by(f"owner {HOSTILE}"), small_run()):
        assert words_of(value)
    assert "<img" in words_of(table)
    assert "40" in words_of(table)


def test_a_table_says_what_its_columns_are_used_as_and_where_cells_are_missing(tmp_path):
    (tmp_path / "mine.csv").write_text("age,sex,ill\n" + "40,f,no\n,m,yes\n50,,no\n60,m,yes\n" * 9)
    words = words_of(ow.datasets.load(tmp_path / "mine.csv", label="ill"))
    assert re.search(r"age\s+number\s+center 50, scale [\d.]+\s+9", words), words


def test_a_wide_table_and_many_nodes_are_counted_not_listed():
    rng = np.random.default_rng(0)
    table = ow.Table.from_arrays(rng.normal(size=(600, 300)), rng.normal(size=600), task="number")
    assert f"and {300 - MOST_ROWS} more" in words_of(table)
    assert f"and {300 - MOST_ROWS} more" in words_of(table.deal(300))
    assert len(table._repr_html_()) < 20_000


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


def test_a_run_shows_what_the_command_line_says_and_its_curve():
    run = small_run()
    words = words_of(run)
    assert f"{run.average_loss:.4f}" in words
    assert "Online Push-Sum" in words
    assert "<polyline" in run._repr_html_()


def test_a_curve_that_leaves_the_finite_numbers_is_still_drawn():
    broken = {HOSTILE: ("#123456", np.array([1.0, np.nan, np.inf, 0.5])), "b": ("red", np.ones(3))}
    assert curves_picture(broken, HOSTILE).count("<polyline") == 4
    assert "<img" in words_of(curves_picture(broken, HOSTILE))
    assert curves_picture({"a": ("red", np.full(3, np.nan))}, "loss") == ""


def test_only_html_of_ours_is_not_escaped():
    assert text("<b>") == "&lt;b&gt;"
    assert text(Html("<b>")) == "<b>"
    assert len(text("x" * 1000)) < 100
    assert "more" not in grid(("a",), [("1",)] * MOST_ROWS)


def test_plots_are_figures_that_a_notebook_shows_without_a_window():
    before = pyplot.get_fignums()
    run = small_run()
    for figure in (run.plot(), ow.TrustGraph.ring(5).plot(), ow.TrustGraph.ring(500).plot()):
        assert isinstance(figure, Figure)
        assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert pyplot.get_fignums() == before
    assert run.plot().axes[0].get_legend_handles_labels()[1] == ["Online Push-Sum"]


def test_a_name_with_a_dollar_is_no_mathematics():
    graph = ow.TrustGraph.from_edges([("$\\bad", "b"), ("b", "$\\bad")])
    graph.plot().savefig("/dev/null", format="png")


def test_plots_go_into_axes_that_are_given():
    figure = Figure()
    axes = figure.add_subplot()
    assert small_run().plot(axes) is figure
    assert ow.TrustGraph.ring(3).plot(axes) is figure
    assert len(axes.lines) == 1
    assert len(figure.axes) == 1


def test_a_frame_has_a_row_per_round_whose_numbers_are_those_of_the_run():
    run = small_run()
    frame = run.to_frame()
    assert isinstance(frame, polars.DataFrame)
    assert frame.columns == ["round", "samples", "loss", "running_loss", "correct", "disagreement"]
    assert frame["round"].to_list() == list(range(1, 11))
    np.testing.assert_array_equal(frame["loss"], run.losses)
    np.testing.assert_array_equal(frame["running_loss"], run.loss_curve)
    assert frame["correct"].mean() == pytest.approx(run.accuracy)
    as_pandas = run.to_frame("pandas")
    assert isinstance(as_pandas, pandas.DataFrame)
    np.testing.assert_array_equal(as_pandas["disagreement"], run.disagreement)


def test_a_frame_of_nodes_has_their_masses_and_names():
    run = small_run()
    frame = run.to_frame(of="nodes")
    np.testing.assert_array_equal(frame["mass"], run.masses)
    assert frame["samples"].to_list() == [10, 10, 10, 10]
    away = np.linalg.norm(run.estimates - run.estimates.mean(axis=0), axis=1)
    np.testing.assert_allclose(frame["distance_from_mean"], away, rtol=0, atol=0)
    assert "name" not in ow.Run(run.record).to_frame(of="nodes").columns


def test_an_unknown_frame_is_refused():
    with pytest.raises(ConfigError, match="spark"):
        small_run().to_frame("spark")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="edges"):
        small_run().to_frame(of="edges")  # type: ignore[arg-type]
