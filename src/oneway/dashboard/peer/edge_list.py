"""Edges of a peer one below the other, each with its facts and a button that ends it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from nicegui import ui

from oneway.dashboard.components.facts import FactList
from oneway.dashboard.components.frame import empty
from oneway.dashboard.peer.edges import EdgeRow

OnEnd: TypeAlias = Callable[[EdgeRow], Awaitable[None]]


class EdgeList:
    """A row stays as long as its edge, so that its button keeps the focus."""

    def __init__(self, nobody: str, end: str, on_end: OnEnd) -> None:
        """Make it empty.

        Args:
            nobody: What to say if there is no edge.
            end: What the button says that ends an edge.
            on_end: What it does.
        """
        self._end = end
        self._on_end = on_end
        self._rows: dict[str, _Row] = {}
        self._empty = empty(nobody)
        self._list = ui.element("div").classes("ow-edges").props("role=list")

    def show(self, rows: Sequence[EdgeRow]) -> None:
        """Bring the rows up to date."""
        self._empty.set_visibility(not rows)
        wanted = {row.key for row in rows}
        for key in [key for key in self._rows if key not in wanted]:
            self._rows.pop(key).box.delete()
        for row in rows:
            if row.key not in self._rows:
                with self._list:
                    self._rows[row.key] = _Row(self._end, self._on_end)
            self._rows[row.key].show(row)


class _Row:
    """One edge."""

    def __init__(self, end: str, on_end: OnEnd) -> None:
        self._row: EdgeRow | None = None
        self._end = end

        async def ended() -> None:
            if self._row is not None:
                await on_end(self._row)

        with ui.element("div").classes("ow-edge").props("role=listitem") as self.box:
            with ui.element("div").classes("head"):
                self._name = ui.label("").classes("name")
                self._state = ui.label("").classes("ow-chip")
                self._button = ui.button(end, on_click=ended).props("outline dense no-caps")
            self._facts = FactList(abreast=True)
            self._problem = ui.label("").classes("ow-bad")

    def show(self, row: EdgeRow) -> None:
        before, self._row = self._row, row
        if row == before:
            return
        self._name.text = row.name
        self._state.text = row.state
        if before is None or before.mood != row.mood:
            self._state.classes(remove="good bad quiet", add=row.mood)
        if before is None or before.name != row.name:
            # Not in a text of props: a name may have anything in it.
            self.box.props["data-edge"] = row.name
            self._button.props["aria-label"] = f"{self._end} {row.name}"
        self._problem.text = row.problem
        self._problem.set_visibility(bool(row.problem))
        self._button.set_visibility(row.can_end)
        self._facts.show(row.facts)
