"""Pages in a browser: the flags that say where and for whom, and serving until a signal."""

from __future__ import annotations

import signal
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from oneway.cli.options import option, switch
from oneway.errors import needs_extra

if TYPE_CHECKING:
    import socket

DEFAULT_PORT = 8700

dashboard_extra = partial(needs_extra, "the page", "dashboard")
"""What the extra `dashboard` brings is imported in such a block."""

Listen: TypeAlias = Annotated[
    str | None,
    option(
        "[HOST:]PORT",
        "Where to serve the page; port 0 is any that is free.",
        f"127.0.0.1:{DEFAULT_PORT}",
        panel="Page",
    ),
]
TokenFile: TypeAlias = Annotated[
    Path | None,
    option(
        "FILE",
        "Who opens the page must show what this file holds; other machines need it.",
        panel="Page",
    ),
]
Open: TypeAlias = Annotated[bool, switch("--open", "Open the page in a browser.", panel="Page")]


def show_page(
    register: Callable[[], None],
    listen: str | None,
    token_file: Path | None,
    open_browser: bool,
    what: str,
) -> None:
    """Serve a page, which `register` declares with `nicegui.ui.page`, until Ctrl-C or SIGTERM.

    Raises:
        OnewayError: As `page_place` does, or if the extra `dashboard` is not installed.
    """
    from oneway.web.interrupts import on_signals

    with page_place(listen, token_file, what) as place:
        with dashboard_extra():
            from oneway.dashboard.server import serve

        def ready() -> None:
            place.announce(open_browser)

        def end(*_: object) -> None:
            signal.raise_signal(signal.SIGINT)

        # A shell lets its background processes ignore Ctrl-C; SIGTERM needs it here.
        ctrl_c = on_signals(signal.default_int_handler, (signal.SIGINT,))
        with suppress(KeyboardInterrupt), ctrl_c, on_signals(end, (signal.SIGTERM,)):
            serve(register, place.listener, place.host, token=place.token, ready=ready)


@dataclass(frozen=True)
class Place:
    """Where a page is served.

    Attributes:
        listener: Bound already.
        host: What it is bound to.
        token: What has to be shown there; empty for nothing.
        token_file: Where the token is from.
    """

    listener: socket.socket
    host: str
    token: str
    token_file: Path | None

    def announce(self, open_browser: bool, *, aside: bool = False) -> None:
        """Say where the page is, aside on stderr or not, and open it if that is wanted."""
        from oneway.transport.address import is_wildcard
        from oneway.web.listening import url_of

        # "Every interface" is for listening, not for opening.
        own = "::1" if ":" in self.host else "127.0.0.1"
        url = f"{url_of(own if is_wildcard(self.host) else self.host, self.listener)}/"
        shown = f" with the token in {self.token_file}" if self.token else ""
        typer.echo(f"Open {url} in a browser{shown}; Ctrl-C ends it.", err=aside)
        if open_browser:
            # Without the token: what a program is started with, all users of a machine see. In
            # a thread, as some browsers take the terminal and do not return.
            threading.Thread(target=webbrowser.open, args=[url], daemon=True).start()


@contextmanager
def page_place(listen: str | None, token_file: Path | None, what: str) -> Iterator[Place]:
    """Bind a socket for a page, as the flags say; closed in the end. `what` is for messages.

    Raises:
        ConfigError: If the token is missing, poor, or cannot be read.
        TransportError: If that cannot be listened on; names a port that is free.
    """
    from oneway.web.endpoint import Endpoint
    from oneway.web.listening import listen as bind

    end = Endpoint.read(listen or str(DEFAULT_PORT), token_file, what)
    with bind(end.host, end.port, what) as listener:
        yield Place(listener, end.host, end.token, token_file)
