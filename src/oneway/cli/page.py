"""What all commands that serve a page share: where, for whom, and until when."""

from __future__ import annotations

import signal
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from oneway.cli.serving import host_and_port, token_in
from oneway.errors import MissingExtraError

if TYPE_CHECKING:
    import socket

DEFAULT_PORT = 8700

Listen: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--listen",
        metavar="[HOST:]PORT",
        help="Where to serve the page; port 0 is any that is free.",
        show_default=f"127.0.0.1:{DEFAULT_PORT}",
    ),
]

TokenFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="Who opens the page must show what this file holds; other machines need it.",
        show_default=False,
    ),
]

Open: TypeAlias = Annotated[
    bool, typer.Option("--open", metavar="", help="Open the page in a browser.")
]


def show_page(
    register: Callable[[], None],
    listen: str | None,
    token_file: Path | None,
    open_browser: bool,
    what: str,
) -> None:
    """Serve a page until Ctrl-C or SIGTERM.

    Args:
        register: Declares the page with `nicegui.ui.page`.
        listen: `[HOST:]PORT`; None for the default.
        token_file: Holds what has to be shown, if anything.
        open_browser: Whether to open a browser.
        what: What is served, for messages: "the page of alice".

    Raises:
        ConfigError: If the address is none, the token is missing or poor, or cannot be read.
        TransportError: If that cannot be listened on; names a port that is free.
        MissingExtraError: If the extra `dashboard` is not installed.
    """
    with page_place(listen, token_file, what) as place:
        with dashboard_extra():
            from oneway.dashboard.server import serve

        with _signals_end_it():
            serve(
                register,
                place.listener,
                place.host,
                token=place.token,
                ready=lambda: announce(place, open_browser),
            )


@dataclass(frozen=True)
class Place:
    """Where a page is served.

    Attributes:
        listener: Bound already.
        host: What it is bound to.
        token: What has to be shown there; empty for nothing.
        url: Where a browser on this machine finds it.
        token_file: Where the token is from.
    """

    listener: socket.socket
    host: str
    token: str
    url: str
    token_file: Path | None


@contextmanager
def page_place(listen: str | None, token_file: Path | None, what: str) -> Iterator[Place]:
    """Find a place for a page, as the flags say; given back in the end.

    Raises:
        ConfigError: If the address is none, the token is missing or poor, or cannot be read.
        TransportError: If that cannot be listened on; names a port that is free.
    """
    from oneway.web.access import check_bind
    from oneway.web.listening import listen as bind

    host, port = host_and_port(listen or str(DEFAULT_PORT))
    token = "" if token_file is None else token_in(token_file)
    check_bind(host, token, what)
    with bind(host, port, what) as listener:
        yield Place(listener, host, token, _url(host, listener), token_file)


def announce(place: Place, open_browser: bool, *, aside: bool = False) -> None:
    """Say where the page is, and open it if that is wanted.

    Args:
        place: Where it is.
        open_browser: Whether to open it.
        aside: Whether stdout is for something else.
    """
    shown = f" with the token in {place.token_file}" if place.token else ""
    typer.echo(f"Open {place.url} in a browser{shown}; Ctrl-C ends it.", err=aside)
    if open_browser:
        # Without the token: what a program is started with, all users of a machine see. In
        # a thread, as some browsers take the terminal and do not return.
        threading.Thread(target=webbrowser.open, args=[place.url], daemon=True).start()


@contextmanager
def dashboard_extra() -> Iterator[None]:
    """Import what the extra `dashboard` brings.

    Raises:
        MissingExtraError: If something of it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "oneway").startswith("oneway"):
            raise
        raise MissingExtraError(
            f"the page needs {error.name}, which is not installed; "
            "run: pip install 'oneway[dashboard]'"
        ) from None


def _url(host: str, listener: socket.socket) -> str:
    """Where a browser on this machine finds the page."""
    from oneway.transport.address import is_wildcard
    from oneway.web.listening import url_of

    # "Every interface" is for listening, not for opening.
    own = ("::1" if ":" in host else "127.0.0.1") if is_wildcard(host) else host
    return f"{url_of(own, listener)}/"


@contextmanager
def _signals_end_it() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end what is in the block, which then counts as done."""

    def end(*_: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    # A shell lets its background processes ignore Ctrl-C; SIGTERM needs it here.
    before = [
        (signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler)),
        (signal.SIGTERM, signal.signal(signal.SIGTERM, end)),
    ]
    try:
        yield
    except KeyboardInterrupt:
        return
    finally:
        for number, handler in before:
            signal.signal(number, handler)
