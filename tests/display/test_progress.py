"""A progress bar in a terminal, in a notebook, and nowhere else unless asked for."""

from __future__ import annotations

import sys
from contextlib import suppress
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from oneway.display import progress
from oneway.display.progress import bar_html, in_notebook, progress_bar


class FakeCell:
    """The output of a notebook's cell: what was shown, in order, in one place."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, content: Any, *, display_id: bool) -> FakeCell:
        assert display_id
        self.shown.append(content)
        return self

    def update(self, content: Any) -> None:
        self.shown.append(content)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> FakeCell:
    made = FakeCell()
    python = ModuleType("IPython")
    python.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    shows = ModuleType("IPython.display")
    shows.HTML, shows.display = str, made.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", shows)
    return made


def test_a_notebook_gets_one_bar_that_is_updated_and_goes_away(cell, capsys):
    assert in_notebook()
    with progress_bar("relay, rounds", 10, patience=0.0) as bar:
        for done in range(1, 11):
            bar.update(done)
    assert "1 of 10" in cell.shown[0]
    assert "10 of 10" in cell.shown[-2]
    assert cell.shown[-1] == ""
    assert capsys.readouterr() == ("", "")


def test_short_work_has_no_bar(cell):
    with progress_bar("rounds", 3, patience=1000.0) as bar:
        bar.update(3)
    assert cell.shown == []


def test_neither_a_pipe_nor_a_shell_of_ipython_is_a_notebook(monkeypatch, capsys):
    shell = ModuleType("IPython")
    shell.get_ipython = lambda: SimpleNamespace()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", shell)
    assert not in_notebook()
    with progress_bar("rounds", 3, patience=0.0) as bar:
        bar.update(3)
    assert capsys.readouterr() == ("", "")


def test_a_bar_that_is_asked_for_is_drawn_on_stderr(monkeypatch, capsys):
    monkeypatch.setattr(progress, "in_notebook", lambda: False)
    with progress_bar("[red]rounds", 3, shown=True, patience=0.0) as bar:
        bar.update(3)
    out, err = capsys.readouterr()
    assert out == ""
    assert "[red]rounds" in err
    assert "3/3" in err


def test_a_bar_that_is_not_wanted_is_not_there_even_in_a_notebook(cell):
    with progress_bar("rounds", 3, shown=False, patience=0.0) as bar:
        bar.update(3)
    assert cell.shown == []


def test_a_bar_goes_away_when_the_work_fails(cell):
    with suppress(RuntimeError), progress_bar("rounds", 3, patience=0.0) as bar:
        bar.update(1)
        raise RuntimeError
    assert cell.shown[-1] == ""


def test_the_bar_says_how_long_it_still_takes_and_escapes_its_name():
    shown = bar_html("<script>", 1, 4, 60.0)
    assert "3 min left" in shown
    assert "25.0%" in shown
    assert "<script>" not in shown
    assert "left" not in bar_html("rounds", 4, 4, 60.0)
