"""Table of stored runs, to filter, sort and tick in the browser; and links to runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from nicegui.element import Element
from nicegui.events import GenericEventArguments

from oneway.store import Entry


class RunTable(Element, component="run_table.js", default_classes="w-full"):
    """A table whose ticked runs are in the page's address too, so that it can be bookmarked."""

    def __init__(
        self, on_pick: Callable[[list[str]], Awaitable[None]], chosen: Sequence[str] = ()
    ) -> None:
        """Make an empty table; `on_pick` gets the ticked runs, at first `chosen`, in order."""
        super().__init__()

        async def picked(event: GenericEventArguments) -> None:
            names = event.args if isinstance(event.args, list) else []
            await on_pick([name for name in names if isinstance(name, str)])

        self.on("pick", picked)
        self._props.update({"rows": [], "chosen": list(chosen)})

    def show(self, entries: Sequence[Entry]) -> None:
        """Replace the rows; filter, order and ticks stay."""
        self._props["rows"] = [row(entry) for entry in entries]
        self.update()

    def drop(self, name: str) -> None:
        """Untick a run."""
        self.run_method("drop", name)


def row(entry: Entry) -> dict[str, Any]:
    """An entry as the table in the browser knows it; what is not known is None or empty."""
    as_they_are = ("name", "kind", "method", "data", "model", "graph", "modified", "problem")
    whole = "complete" if entry.complete else "ended early"
    return {name: getattr(entry, name) for name in as_they_are} | {
        "href": run_link(entry.name),
        "nodes": entry.num_nodes,
        "rounds": entry.rounds_done,
        "loss": entry.average_loss,
        "state": "damaged" if entry.problem else whole,
        "comparable": entry.is_run and not entry.problem,
    }


def run_link(name: str) -> str:
    """Where a run is opened."""
    return f"/run?{urlencode({'name': name})}"


def comparison_link(names: Sequence[str]) -> str:
    """Where runs are compared."""
    return f"/?{urlencode([('run', name) for name in names])}"
