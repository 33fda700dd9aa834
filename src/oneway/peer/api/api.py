"""The local HTTP API, for the application beside the peer: predict, learn, look.

It needs the extra `serve`; a peer that does not serve runs without, so nothing of it is imported
before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from oneway.errors import MissingExtraError
from oneway.peer.api.local_peer import LocalPeer
from oneway.web.access import check_bind
from oneway.web.listening import listen, url_of

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["LocalPeer", "build_app", "check_bind", "serve"]

DEFAULT_HOST = "127.0.0.1"


def build_app(peer: LocalPeer, host: str = DEFAULT_HOST, token: str = "") -> Starlette:
    """Return the web application of a peer.

    Args:
        peer: Whom the requests are for.
        host: The host it will be served on: requests for another host are refused.
        token: What every request has to show, as `Authorization: Bearer TOKEN`; empty for none.

    Raises:
        ConfigError: If other machines could reach it and there is no token.
        MissingExtraError: If the extra `serve` is not installed.
    """
    check_bind(host, token)
    try:
        from oneway.peer.api.app import make_app
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    return make_app(peer, host, token)


async def serve(app: Starlette, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until cancelled, then let requests under way end, for a second at most.

    Args:
        app: What `build_app` made, for the same host.
        host: Where to listen.
        port: Where to listen; 0 for any free port.
        ready: Called once with the address, say `http://127.0.0.1:8701`, when requests are taken.

    Raises:
        TransportError: If that cannot be listened on; names a port that is free.
        MissingExtraError: If the extra `serve` is not installed.
    """
    try:
        from oneway.web.server import run
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    listener = listen(host, port)
    url = url_of(host, listener)
    await run(app, listener, lambda: ready(url))


def _missing(error: ModuleNotFoundError) -> MissingExtraError:
    return MissingExtraError(
        f"the local API needs {error.name}, which is not installed; "
        "run: pip install 'oneway[serve]'"
    )
