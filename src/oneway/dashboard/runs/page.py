"""The pages of `oneway runs`: the list with its comparison, one run, and reports."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nicegui import app, ui
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from oneway.dashboard.components.frame import card, page_frame
from oneway.dashboard.runs.comparison import Comparison
from oneway.dashboard.runs.run_page import run_page
from oneway.dashboard.runs.run_table import RunTable
from oneway.dashboard.runs.shelf import Shelf
from oneway.errors import StoreError

_CSS = (Path(__file__).parent / "runs.css").read_text(encoding="utf-8")
_TURN_SECONDS = 3.0
# A report of ours has no script. What somebody else put in its place gets none either.
_REPORT_RULES = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"


def register_runs_pages(shelf: Shelf) -> None:
    """Declare the pages.

    Args:
        shelf: The runs, looked at once already.
    """

    @ui.page("/")
    def index(request: Request) -> None:
        ui.add_css(_CSS)
        _list_page(shelf, request.query_params.getlist("run"))

    @ui.page("/run")
    async def one(name: str = "") -> None:
        ui.add_css(_CSS)
        await run_page(shelf, name)

    @app.get("/report")
    def report(name: str = "") -> Response:
        try:
            path = shelf.catalogue[name].report
        except StoreError as error:
            return PlainTextResponse(f"{error}\n", 404)
        if path is None or path.is_symlink() or not path.is_file():
            return PlainTextResponse(f"{name[:200]} has no report.\n", 404)
        rules = {"Content-Security-Policy": _REPORT_RULES, "X-Content-Type-Options": "nosniff"}
        return FileResponse(path, media_type="text/html", headers=rules)


def _list_page(shelf: Shelf, asked: list[str]) -> None:
    with page_frame("Stored runs") as beside:
        with beside:
            where = shelf.folder.resolve()
            ui.label(where.name or str(where)).classes("ow-soft ow-mono").tooltip(str(where))
        with card("Runs"):
            said = ui.label("").classes("ow-bad").props("role=status")
            nothing = _nothing_yet(shelf.folder)
            names = list(dict.fromkeys(asked))
            table = RunTable(on_pick=lambda picked: comparison.show(picked), chosen=names)
        comparison = Comparison(shelf, on_drop=table.drop)
    view = _View(shelf, table, comparison, said, nothing)
    view.draw()
    if names:
        ui.timer(0.0, lambda: comparison.show(names), once=True)
    ui.timer(_TURN_SECONDS, view.follow)


class _View:
    """One open page, which follows what happens in the folder."""

    def __init__(
        self,
        shelf: Shelf,
        table: RunTable,
        comparison: Comparison,
        said: ui.label,
        nothing: ui.element,
    ) -> None:
        self._shelf = shelf
        self._table = table
        self._comparison = comparison
        self._said = said
        self._nothing = nothing
        self._version = -1

    async def follow(self) -> None:
        """Look whether something is new."""
        await asyncio.to_thread(self._shelf.refresh)
        if self._version != self._shelf.version:
            self.draw()
            await self._comparison.follow()

    def draw(self) -> None:
        """Show what the shelf knows."""
        shelf = self._shelf
        self._version = shelf.version
        self._said.text = shelf.problem or (
            "There is more than this page can list; open a folder further down."
            if shelf.catalogue.cut_short
            else ""
        )
        there = bool(shelf.catalogue.entries)
        self._nothing.set_visibility(not there)
        self._table.set_visibility(there)
        self._table.show(shelf.catalogue.entries)


def _nothing_yet(folder: Path) -> ui.element:
    with ui.element("div").classes("ow-empty") as element:
        ui.label(f"No runs are stored in {folder.resolve()} yet. Make one, and it appears here:")
        for command in (
            f"oneway simulate --data synthetic --out {folder / 'first'}",
            f"oneway demo --out {folder / 'demo'}",
            f"oneway lab --out {folder / 'lab'}",
        ):
            ui.label(command).classes("ow-mono")
    return element
