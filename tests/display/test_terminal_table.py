"""Tables keep their names in any terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from oneway.display.terminal_table import TerminalTable, print_table

NAMES = ["Online Push-Sum", "Mutual gossip (DOL-Symm)", "Relay"]


def table(**more: object) -> TerminalTable:
    columns = ("method", "loss", "accuracy", "disagreement", "rate", "seconds")
    made = TerminalTable(columns, right=columns[1:], **more)  # type: ignore[arg-type]
    for name in NAMES:
        made.add_row(name, "0.5123", "81.20%", "1.2e-05", "0.3*", "12.34")
    return made


def drawn(made: TerminalTable, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(made)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_names_stay_whole_and_no_line_is_wider_than_the_terminal(width):
    lines = drawn(table(), width)
    assert max(map(len, lines)) <= width
    assert all(any(name in line for line in lines) for name in NAMES)
    assert not any("…" in line for line in lines)


def test_the_least_important_columns_go_first_and_a_line_names_them():
    made = table(drop=("seconds", "rate"))
    console = Console(width=200)
    widths = range(20, 100)
    counts = [len(made.fitting(console, width)) for width in widths]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] == len(made.columns)
    losses = [set(made.columns) - set(made.fitting(console, width)) for width in reversed(widths)]
    order = list(dict.fromkeys(name for lost in losses for name in sorted(lost)))
    assert order == ["seconds", "rate", "disagreement", "accuracy", "loss"]
    assert any("Too narrow to show" in line and "seconds" in line for line in drawn(made, 60))
    assert not any("Too narrow" in line for line in drawn(made, 100))


def test_what_is_no_terminal_gets_every_column(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    made = TerminalTable(("name", *(f"number {i}" for i in range(20))))
    made.add_row("ann", *map(str, range(20)))
    print_table(made)
    out = capsys.readouterr().out
    assert "number 19" in out
    assert "Too narrow" not in out


def test_brackets_in_a_title_or_a_heading_are_no_markup():
    made = TerminalTable(("[red]name", "n"), title="[bold]all")
    made.add_row("ann", "1")
    text = "\n".join(drawn(made, 60))
    assert "[red]name" in text
    assert "[bold]all" in text
