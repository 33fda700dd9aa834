"""A peer in this process, until it is enough: a signal, a wish, or that it has left."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oneway.cli.peer_status_line import status_line
from oneway.cli.peer_voice import Voice, tell

if TYPE_CHECKING:
    from oneway.peer.peer import Peer
    from oneway.peer.samples.row import BadRow, Row
    from oneway.records.status import Status

LOOK_SECONDS = 0.5
SHOW_SECONDS = 1.0
LINE_SECONDS = 30.0
"""How often a status line is printed where there is no terminal to keep one up to date."""


@dataclass(frozen=True)
class LocalApi:
    """Where the application beside the peer reaches it, and what it has to show."""

    host: str
    port: int
    token: str = ""


def run_here(
    peer: Peer,
    voice: Voice,
    enough: Callable[[Status], bool],
    *,
    samples: AsyncGenerator[Row | BadRow, None] | None = None,
    strict: bool = False,
    api: LocalApi | None = None,
) -> None:
    """Run a peer until a signal, or until it is enough; everything is durable on return.

    Args:
        peer: Not running yet.
        voice: What to speak with.
        enough: Asked twice a second whether to stop.
        samples: What to learn from.
        strict: Whether a sample that cannot be used stops the peer.
        api: Where to serve it, if at all.

    Raises:
        OnewayError: As `Peer.run` and `oneway.peer.api.api.serve` say.
    """
    try:
        with voice.speaking():
            asyncio.run(_live(peer, voice, enough, samples, strict, api))
    except BaseExceptionGroup as group:
        raise _first(group) from None
    except asyncio.CancelledError:
        # A signal before the peer listened.
        return


async def _live(
    peer: Peer,
    voice: Voice,
    enough: Callable[[Status], bool],
    samples: AsyncGenerator[Row | BadRow, None] | None,
    strict: bool,
    api: LocalApi | None,
) -> None:
    listening = asyncio.Event()
    whole = asyncio.current_task()
    assert whole is not None

    def end() -> None:
        peer.stop() if listening.is_set() else whole.cancel()

    def ready() -> None:
        listening.set()
        tell(f"{peer.node.config.name} listens on {peer.node.config.listen}")

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    async with asyncio.TaskGroup() as group:
        beside: list[asyncio.Task[Any]] = []
        address = ""
        if api is not None:
            started: asyncio.Future[str] = loop.create_future()
            beside.append(group.create_task(_serve(peer, api, started), name="local API"))
            address = await started
            tell(f"the local API is {address}")
        beside.append(group.create_task(_watch(peer, voice, enough, listening), name="watch"))
        await peer.run(samples, strict=strict, api=address, ready=ready)
        for task in beside:
            task.cancel()


async def _serve(peer: Peer, api: LocalApi, started: asyncio.Future[str]) -> None:
    from oneway.peer.api.api import build_app, serve

    app = build_app(peer, api.host, api.token)
    await serve(app, api.host, api.port, started.set_result)


async def _watch(
    peer: Peer, voice: Voice, enough: Callable[[Status], bool], listening: asyncio.Event
) -> None:
    """Show how it goes, and stop the peer when it is enough."""
    await listening.wait()
    loop = asyncio.get_running_loop()
    show_at, line_at = 0.0, loop.time() + LINE_SECONDS
    while True:
        status = peer.status()
        if enough(status):
            peer.stop()
            return
        now = loop.time()
        if now >= show_at:
            show_at = now + SHOW_SECONDS
            voice.show(status_line(status))
        if now >= line_at and not voice.is_live:
            line_at = now + LINE_SECONDS
            voice.say(status_line(status))
        await asyncio.sleep(LOOK_SECONDS)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong first; what followed from it is not worth telling."""
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
