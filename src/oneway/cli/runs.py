"""`oneway runs`: the page of stored runs, or their list for programs."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Annotated

from oneway.cli.options import argument
from oneway.cli.output import AsJson, print_json
from oneway.cli.page import Listen, Open, TokenFile, dashboard_extra, show_page
from oneway.errors import StoreError

_FOLDER = "Where runs, labs, demos and reproductions are stored, or folders with them."


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
    from oneway.dashboard.runs.catalogue_cache import TURN_SECONDS, CatalogueCache, as_plain

    shelf = CatalogueCache(folder)
    shelf.refresh(math.inf if as_json else TURN_SECONDS)
    if shelf.problem:
        raise StoreError(shelf.problem)
    if as_json:
        found = shelf.catalogue
        print_json(
            {
                "folder": str(folder),
                "cut_short": found.cut_short,
                "runs": [as_plain(entry) for entry in found.entries],
            }
        )
        return
    with dashboard_extra():
        from oneway.dashboard.runs.page import register_runs_pages
    register = partial(register_runs_pages, shelf)
    show_page(register, listen, token_file, open_browser, "the page of runs")
