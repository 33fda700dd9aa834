"""`oneway runs`: the page of stored runs, or their list for programs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from oneway.cli.options import argument
from oneway.cli.output import AsJson, print_json
from oneway.cli.page import Listen, Open, TokenFile, dashboard_extra, show_page

_FOLDER = "Where runs, labs and demos are stored, or folders with them."


def runs(
    folder: Annotated[Path, argument("[FOLDER]", _FOLDER, "this folder")] = Path(),
    listen: Listen = None,
    token_file: TokenFile = None,
    open_browser: Open = False,
    as_json: AsJson = False,
) -> None:
    """See stored runs in a browser: list and filter them, compare their curves, open one.

    New runs appear by themselves. Ctrl-C ends it.
    """
    from oneway.store import find_runs

    entries = find_runs(folder)
    if as_json:
        print_json({"folder": str(folder), "runs": [entry.as_json() for entry in entries]})
        return
    with dashboard_extra():
        from oneway.dashboard.runs.page import register_runs_pages
        from oneway.dashboard.runs.stored_runs import StoredRuns
    register = partial(register_runs_pages, StoredRuns(folder))
    show_page(register, listen, token_file, open_browser, "the page of runs")
