"""The pages of stored runs: the list with its comparison, one entry, and reports."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nicegui import app, ui
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from oneway.dashboard.components.dialogs import mistake
from oneway.dashboard.components.elements import card, page_frame
from oneway.dashboard.runs.catalogue_cache import CatalogueCache
from oneway.dashboard.runs.comparison import Comparison
from oneway.dashboard.runs.run_page import run_page
from oneway.dashboard.runs.run_table import RunTable
from oneway.errors import StoreError

_CSS = (Path(__file__).parent / "runs.css").read_text(encoding="utf-8")
_TURN_SECONDS = 3.0
# A report of ours has no script. What somebody else put in its place gets none either.
_REPORT_RULES = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"


def register_runs_pages(runs: CatalogueCache) -> None:
    """Declare the pages of runs that were looked at once already."""

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
            path = runs.catalogue[name].report
        except StoreError as error:
            return PlainTextResponse(f"{error}\n", 404)
        if path is None or path.is_symlink() or not path.is_file():
            return PlainTextResponse(f"{name[:200]} has no report.\n", 404)
        rules = {"Content-Security-Policy": _REPORT_RULES, "X-Content-Type-Options": "nosniff"}
        return FileResponse(path, media_type="text/html", headers=rules)


def _list_page(runs: CatalogueCache, asked: list[str]) -> None:
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
    shown = -1

    def draw() -> None:
        nonlocal shown
        shown = runs.version
        more = "There is more than this page can list; open a folder further down."
        said.text = runs.problem or (more if runs.catalogue.cut_short else "")
        there = bool(runs.catalogue.entries)
        nothing.set_visibility(not there)
        table.set_visibility(there)
        table.show(runs.catalogue.entries)

    async def follow() -> None:
        try:
            await asyncio.to_thread(runs.refresh)
            if shown != runs.version:
                draw()
                await comparison.follow()
        except Exception as error:
            # Not the folder's fault: what was listed before stays, and the page says why.
            said.text = mistake(error)

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
