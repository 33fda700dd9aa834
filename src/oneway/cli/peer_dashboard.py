"""`oneway peer dashboard`: a page of one's own peer, whether it runs or not."""

from __future__ import annotations

from oneway.cli.page import Listen, Open, TokenFile, dashboard_extra, show_page
from oneway.cli.peer_home import HomeFolder, open_home


def dashboard(
    listen: Listen = None,
    token_file: TokenFile = None,
    open_browser: Open = False,
    home: HomeFolder = None,
) -> None:
    """Watch this peer in a browser, predict with it, and change whom it trusts.

    It shows what this peer alone can know. Only this machine can open it, unless a token is set.
    """
    with dashboard_extra():
        from oneway.peer.page_source import FolderSource

    mine = open_home(home)
    source = FolderSource(mine)

    def register() -> None:
        # Late: NiceGUI takes its time, and flags may be wrong.
        with dashboard_extra():
            from oneway.dashboard.peer.page import register_peer_page
        register_peer_page(source)

    show_page(register, listen, token_file, open_browser, f"the page of {mine.config().name}")
