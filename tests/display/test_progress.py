"""A progress bar in a terminal, and nowhere else unless asked for."""

from __future__ import annotations

import pytest

from oneway.display import progress
from oneway.display.progress import progress_bar


@pytest.mark.parametrize(
    ("shown", "patience", "is_drawn"),
    [(True, 0.0, True), (True, 1000.0, False), (None, 0.0, False)],
)
def test_a_bar_is_drawn_if_asked_for_and_if_the_work_takes_long(
    shown, patience, is_drawn, monkeypatch, capsys
):
    monkeypatch.setattr(progress, "PATIENCE", patience)
    with progress_bar("[red]rounds", 3, shown=shown) as bar:
        bar.update(3)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("[red]rounds" in err and "3/3" in err) == is_drawn


def test_a_kernel_that_forces_colour_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress_bar("rounds", 3) as bar:
        bar.update(3)
    assert capsys.readouterr().err == ""
