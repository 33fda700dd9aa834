"""What became of the columns of a file, as one table for all commands that read one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from oneway.cli.output import make_table, print_table
from oneway.cli.output import note as note_more

if TYPE_CHECKING:
    from oneway.tables.inference import ColumnNote

MOST = 40
"""Of a wider table the columns that nothing is to be said about are only counted."""


def warn_of_statistics(remedy: str) -> None:
    """Say on stderr that a task tells about the data that it was made from."""
    note_more(
        "Careful: such centers, scales, values and flags are statistics of your data, and whoever "
        f"gets the file sees them; {remedy}"
    )


def show_columns(notes: Sequence[ColumnNote], num_rows: int) -> None:
    """Say on stderr as what every column is used, which are left out and why, and their gaps."""
    if not notes:
        return
    shown = notes if len(notes) <= MOST else [note for note in notes if note.remark][:MOST]
    table = make_table(
        "column", "used as", "gaps", "remark", right=["gaps"], wrapped="remark", drop=["gaps"]
    )
    for note in shown:
        gaps = f"{note.gaps:,} ({note.gaps / num_rows:.0%})" if note.gaps and num_rows else ""
        style = "yellow" if note.warns else "" if note.used else "dim"
        cells = (note.name, note.used or "left out", gaps, note.remark)
        table.add_row(*map(Text, cells), style=style)
    print_table(table, aside=True)
    if len(shown) < len(notes):
        note_more(f"and {len(notes) - len(shown):,} more columns")
