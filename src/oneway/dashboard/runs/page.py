"""The pages of stored runs: the list with its comparison, one entry, and reports."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nicegui import app, ui
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from oneway.dashboard.components.elements import card, page_frame
from oneway.dashboard.runs.comparison import Comparison
from oneway.dashboard.runs.run_page import run_page
from oneway.dashboard.runs.run_table import RunTable
from oneway.dashboard.runs.stored_runs import StoredRuns
from oneway.errors import StoreError
from oneway.store import Entry

_CSS = (Path(__file__).parent / "runs.css").read_text(encoding="utf-8")
_TURN_SECONDS = 3.0
_NO_SCRIPTS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "img-src data:; sandbox"
}


def register_runs_pages(runs: StoredRuns) -> None:
    """Declare the pages of stored runs."""

    @ui.page("/")
    def index(request: Request) -> None:
        ui.add_css(_CSS)
        _list_page(runs, request.query_params.getlist("run"))

    @ui.page("/run")
    async def one(name: str = "") -> None:
        ui.add_css(_CSS)
        await run_page(runs, name)

    @app.get("/report")
    def report(name: str = "") -> Response:
        try:
            path = runs[name].report
        except StoreError as error:
            return PlainTextResponse(f"{error}\n", 404)
        if path is None:
            return PlainTextResponse(f"{name} has no report.\n", 404)
        return FileResponse(path, media_type="text/html", headers=_NO_SCRIPTS)


def _list_page(runs: StoredRuns, asked: list[str]) -> None:
    """The list, which follows what happens in the folder."""
    with page_frame("Stored runs") as beside:
        with beside:
            where = runs.folder.resolve()
            ui.label(where.name or str(where)).classes("ow-soft ow-mono").tooltip(str(where))
        with card("Runs"):
            said = ui.label("").classes("ow-bad").props("role=status")
            nothing = _nothing_yet(runs.folder)
            names = list(dict.fromkeys(asked))
            table = RunTable(on_pick=lambda picked: comparison.show(picked), chosen=names)
        comparison = Comparison(runs, on_drop=table.drop)
    shown: list[Entry] | None = None

    def draw() -> None:
        nonlocal shown
        entries = list(runs.entries.values())
        said.text = runs.problem
        if entries == shown:
            return
        shown = entries
        nothing.set_visibility(not entries)
        table.set_visibility(bool(entries))
        table.show(entries)

    async def follow() -> None:
        await asyncio.to_thread(runs.refresh)
        draw()
        await comparison.follow()

    draw()
    if names:
        ui.timer(0.0, lambda: comparison.show(names), once=True)
    ui.timer(_TURN_SECONDS, follow)


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
