"""Tables in a terminal: a narrow one keeps the names and drops the least important columns."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

USUAL_WIDTH = 80
"""Of what is no terminal, say a file."""
_LEAST_TEXT = 18
"""A column of sentences is no narrower than this, if it can be had by dropping another."""
_WIDE = 100_000
_BOX = box.SIMPLE_HEAD


@dataclass(frozen=True)
class _Row:
    cells: tuple[RenderableType, ...]
    style: str
    ends_section: bool = False


@dataclass
class TerminalTable:
    """A table that fits its terminal: the first column, the names, is never dropped or cut.

    Too narrow a terminal loses columns one by one, in the order of `drop`, then from the right; a
    line below says which. Names, and the one column of sentences, are folded instead.

    Attributes:
        columns: The headings; the first is that of the names.
        right: Those whose cells stand to the right: numbers.
        wrapped: The column of sentences, if there is one; it is dropped last.
        drop: Which columns go first.
        title: Above the table.
        below: Below it.
        tight: Whether there is less room between the columns.
    """

    columns: Sequence[str]
    right: Collection[str] = ()
    wrapped: str = ""
    drop: Sequence[str] = ()
    title: str = ""
    below: str = ""
    tight: bool = False
    _rows: list[_Row] = field(default_factory=list)

    def add_row(self, *cells: RenderableType, style: str = "") -> None:
        """Add a row, a cell for each column; rich's markup is understood in text."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self._rows.append(_Row(cells, style))

    def add_section(self) -> None:
        """Draw a line below the last row."""
        if self._rows:
            last = self._rows[-1]
            self._rows[-1] = _Row(last.cells, last.style, ends_section=True)

    def least_width(self, console: Console) -> int:
        """How many columns of a terminal all columns of the table take."""
        return self._least(console, list(self.columns), _WIDE)

    def fitting(self, console: Console, width: int) -> list[str]:
        """The headings of the columns that are shown in so narrow a terminal."""
        kept = list(self.columns)
        for name in self._in_order_of_loss():
            if self._least(console, kept, width) <= width:
                break
            kept.remove(name)
        return kept

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw what fits, for rich."""
        kept = self.fitting(console, options.max_width)
        lost = [name for name in self.columns if name not in kept]
        # Beside the table, not in it: they may be wider than what is left of it.
        if self.title:
            yield Text(self.title, style="italic")
        yield self._table(kept)
        if self.below:
            yield Text(self.below, style="dim italic")
        if lost:
            yield Text(f"Too narrow to show: {', '.join(lost)}.", style="dim italic")

    def _in_order_of_loss(self) -> list[str]:
        first = [name for name in self.drop if name in self.columns]
        others = [name for name in reversed(self.columns[1:]) if name not in first]
        order = [*first, *others]
        return sorted(order, key=lambda name: name == self.wrapped)

    def _least(self, console: Console, kept: list[str], width: int) -> int:
        """How wide a terminal must be for these columns, whose headings stand in order."""
        wide = console.options.update(width=_WIDE)
        between = Table(*"x" * len(kept), box=_BOX, pad_edge=False, collapse_padding=self.tight)
        total = Measurement.get(console, wide, between).maximum - len(kept)
        for name in kept:
            cells = [row.cells[self.columns.index(name)] for row in self._rows]
            natural = max(
                Measurement.get(console, wide, _renderable(cell)).maximum
                for cell in [Text(name), *cells]
            )
            if name == self.wrapped:
                natural = min(natural, max(len(name), _LEAST_TEXT))
            elif name == self.columns[0]:
                # Half a terminal for names that are very long; beyond that they are folded.
                natural = min(natural, max(len(name), width // 2))
            total += natural
        return total

    def _table(self, kept: list[str]) -> Table:
        table = Table(box=_BOX, pad_edge=False, collapse_padding=self.tight)
        for name in kept:
            folds = name in (self.wrapped, self.columns[0])
            table.add_column(
                Text(name),
                justify="right" if name in self.right else "left",
                no_wrap=not folds,
                overflow="fold" if folds else "ellipsis",
                min_width=min(len(name), USUAL_WIDTH // 4) if folds else None,
            )
        places = [self.columns.index(name) for name in kept]
        for row in self._rows:
            cells = [row.cells[place] for place in places]
            table.add_row(*cells, style=row.style or None, end_section=row.ends_section)
        return table


def print_table(table: TerminalTable, *, aside: bool = False) -> None:
    """Print a table on stdout, or aside on stderr; a pipe gets every column, however wide."""
    console = Console(highlight=False, stderr=aside)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = max(USUAL_WIDTH, table.least_width(console))
    console.print(table)


def _renderable(cell: RenderableType) -> RenderableType:
    return Text.from_markup(cell) if isinstance(cell, str) else cell
