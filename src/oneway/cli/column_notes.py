"""What became of the columns of a file, in a few sentences for all commands that read one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oneway.cli.output import note as print_note
from oneway.sentences import listed, shown

if TYPE_CHECKING:
    from oneway.tables.inference import ColumnNote

MOST = 5
"""More notes than these are only counted."""
_CHOSEN = ("", "excluded", "not asked for", "owner column", "not in the task")
"""Remarks that repeat what the user said."""
_PLURALS = {"category": "categories"}


def warn_of_statistics(origin: str, remedy: str) -> None:
    """Say on stderr that a task discloses facts about the data that it was made from."""
    print_note(f"Careful: {origin} Whoever gets the task sees them; {remedy}")


def show_columns(notes: Sequence[ColumnNote], num_rows: int) -> None:
    """Say on stderr what columns are used as, and the remarks that matter most, warnings first."""
    if not notes:
        return
    label, *others = notes
    kinds = Counter(note.used.split()[0].strip(",:") for note in others if note.used)
    counts = [f"{count:,} {_noun(kind, count)}" for kind, count in kinds.items()]
    sentence = f"Predicted from {listed(counts)}"
    empty = [note for note in others if note.used and note.missing]
    if empty:
        worst = max(empty, key=lambda note: note.missing)
        share = f"{worst.missing / num_rows:.0%}" if num_rows else "all"
        columns = f"{len(empty):,} column{'s' if len(empty) > 1 else ''}"
        sentence += f"; missing values in {columns}, most in {shown(worst.name)} ({share})"
    print_note(f"{sentence}.")
    remarks = [note for note in (label, *others) if note.remark not in _CHOSEN]
    remarks.sort(key=lambda note: not note.warns)
    for note in remarks[:MOST]:
        left_out = "left out, " if not note.used else ""
        print_note(f"- {shown(note.name)}: {left_out}{note.remark}")
    if len(remarks) > MOST:
        print_note(f"- and {len(remarks) - MOST:,} more; ow.load(...).notes has all")


def _noun(kind: str, count: int) -> str:
    return kind if count == 1 else _PLURALS.get(kind, f"{kind}s")
