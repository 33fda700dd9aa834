"""`oneway peer dashboard`: a page of one's own peer, whether it runs or not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oneway.cli.page import Listen, Open, TokenFile, dashboard_extra, show_page
from oneway.cli.peer_home import HomeFolder, open_home
from oneway.cli.serving import token_in


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("dashboard", epilog="Example: oneway peer dashboard --listen 0")(dashboard)


def dashboard(
    listen: Listen = None,
    token_file: TokenFile = None,
    open_browser: Open = False,
    api_token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What the peer's own --token-file holds, if its local API needs a token.",
            show_default=False,
        ),
    ] = None,
    home: HomeFolder = None,
) -> None:
    """Watch this peer in a browser, predict with it, and change whom it trusts.

    It shows what this peer alone can know. Only this machine can open it, unless a token is set.
    """
    with dashboard_extra():
        from oneway.cli.peer_source import FolderSource

    mine = open_home(home)
    name = mine.config().name
    source = FolderSource(mine, "" if api_token_file is None else token_in(api_token_file))

    def register() -> None:
        with dashboard_extra():
            from oneway.dashboard.peer.page import register_peer_page
        register_peer_page(source)

    show_page(register, listen, token_file, open_browser, f"the page of {name}")
