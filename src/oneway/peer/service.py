"""Peer process in the foreground: stream, local API, console and signals around a `Peer`."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from pathlib import Path

from threadpoolctl import threadpool_limits

from oneway.errors import DataError, OnewayError, needs_extra
from oneway.peer.console import LOG, PeerConsole, print_result
from oneway.peer.home.config import PeerConfig
from oneway.peer.peer import Peer
from oneway.peer.sample_stream import SampleStream
from oneway.peer.samples import source_name
from oneway.peer.status_text import how_it_ended, status_line
from oneway.peer.store.snapshot import Journal
from oneway.records.status import Status
from oneway.sentences import listed
from oneway.tables.rows import BadRow, Row
from oneway.transport.descriptors import warn_of_shortage
from oneway.web.endpoint import Endpoint
from oneway.web.listening import listen, url_of

LOOK_SECONDS = 0.5

GRACE_SECONDS = 5.0
"""How long a peer that stops with its stream waits for acknowledgements."""

SKIPPED_SECONDS = 10.0
"""Bad samples are told no more often than this."""


def run_peer(
    folder: Path,
    stream: SampleStream | None = None,
    *,
    until_done: bool = False,
    api: Endpoint | None = None,
    exact_status: bool = False,
) -> None:
    """Run a peer until a signal; it says on the console what it does and what came of it.

    Args:
        folder: Of a peer that `oneway peer init` made.
        stream: What to learn from.
        until_done: Whether to stop when the stream has ended and all pushes are acknowledged, or
            `GRACE_SECONDS` later.
        api: Where to serve the local API, if at all.
        exact_status: As for `Peer`.

    Raises:
        DataError: The stream had rows, and every one of them was skipped.
        OnewayError: The peer stopped itself, or as `Peer`, `Peer.run` and `serve` say.
    """
    if stream is not None:
        stream.check()
    with (
        PeerConsole().attached() as console,
        closing(Peer(folder, exact_status=exact_status)) as peer,
    ):
        config = peer.node.config
        if config.leaving and peer.node.is_drained:
            LOG.info(
                f"{config.name} has left and handed over everything; to take part again, make a "
                "new peer in another folder with oneway peer init"
            )
            return
        if stream is not None:
            stream.check_columns(peer.task)
        _say_what_is_promised(peer)
        _say_whom_it_knows(config)
        if stream is None and not config.leaving:
            LOG.info(f"{config.name} has no stream of its own; to give it one: --data FILE")
        before = peer.node.snapshot.journal
        says_end = stream is not None and not until_done
        run_until(
            peer,
            console,
            _StreamWatch(until_done, before.skipped, says_end=says_end),
            samples=None if stream is None else stream.samples(peer.node, LOG.info),
            api=api,
        )
    status = peer.home.status()
    print_result(how_it_ended(config.name, status))
    if status is not None and status.stopped and status.pid == os.getpid():  # not a former life
        raise OnewayError(status.stopped)
    if stream is not None:
        _require_use(peer, stream, before)


def _require_use(peer: Peer, stream: SampleStream, before: Journal) -> None:
    """Raise if a stream was read and nothing could be learned from it, in this life."""
    after = peer.node.snapshot.journal
    skipped = after.skipped - before.skipped
    if skipped and after.samples == before.samples:
        raise DataError(
            f"every row that was read of {source_name(stream.source)} was skipped ({skipped:,}), "
            f"so nothing was learned; the last: {peer.node.last_skipped}",
            remedy="correct the rows, or learn from another stream",
            flag_remedy="correct the rows, or name another file with --data",
        )


def run_until(
    peer: Peer,
    console: PeerConsole,
    is_enough: Callable[[Status], bool],
    *,
    samples: AsyncGenerator[Row | BadRow, None] | None = None,
    api: Endpoint | None = None,
) -> None:
    """Run a peer until SIGINT, SIGTERM or its owner has enough; all is durable on return.

    `is_enough` is asked twice a second; the rest is as for `run_peer`.

    Raises:
        OnewayError: As `Peer.run` and `serve` say.
    """

    async def watch(listening: asyncio.Event) -> None:
        await listening.wait()
        while not is_enough(status := peer.disclosed_status()):
            console.show(status_line(status))
            await asyncio.sleep(LOOK_SECONDS)
        peer.stop()

    async def run() -> None:
        whole, listening = asyncio.current_task(), asyncio.Event()
        assert whole is not None

        def end() -> None:
            peer.stop() if listening.is_set() else whole.cancel()

        def ready() -> None:
            listening.set()
            print_result(f"{peer.node.config.name} listens on {peer.node.config.listen}")

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(warn_of_shortage(LOG))
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end)
        async with asyncio.TaskGroup() as group:
            address = ""
            beside = [group.create_task(watch(listening), name="watch")]
            if api is not None:
                started: asyncio.Future[str] = asyncio.Future()
                serving = serve(peer, api, started.set_result)
                beside.append(group.create_task(serving, name="local API"))
                address = await started
                shown = f"; its token is in {api.token_file}" if api.token_file else ""
                print_result(f"the local API is {address}{shown}")
            await peer.run(samples, api=address, ready=ready)
            for task in beside:
                task.cancel()

    try:
        with threadpool_limits(1, user_api="blas"):  # two would mostly wait for each other
            asyncio.run(run())
    except BaseExceptionGroup as group:
        raise _first(group) from None
    except asyncio.CancelledError:
        # A signal before the peer listened.
        return


async def serve(peer: Peer, api: Endpoint, ready: Callable[[str], None]) -> None:
    """Serve the local API of a peer until cancelled.

    Requests under way then have a second to end. `ready` is called once with the address, say
    `http://127.0.0.1:8701`, when requests are taken.

    Raises:
        ConfigError: If other machines could reach it and there is no token.
        TransportError: If that cannot be listened on; names a port that is free.
        MissingExtraError: If the extra `serve` is not installed.
    """
    with needs_extra("the local API", "serve"):
        from oneway.peer.api.app import build_app
        from oneway.web.server import run
    app, listener = build_app(peer, api.host, api.token), listen(api.host, api.port)
    await run(app, listener, lambda: ready(url_of(api.host, listener)))


class _StreamWatch:
    """Says what the owner of a stream should hear, and whether the peer is done with it."""

    def __init__(self, until_done: bool, skipped_before: int, *, says_end: bool) -> None:
        self._until_done = until_done
        self._says_end = says_end
        self._skipped = skipped_before
        self._quiet_until = 0.0
        self._ended_at: float | None = None

    def __call__(self, status: Status) -> bool:
        new = status.skipped - self._skipped
        if new > 0 and status.time >= self._quiet_until:
            count = "a sample" if new == 1 else f"{new:,} samples, the last"
            LOG.warning(f"skipped {count}: {status.last_skipped}")
            self._skipped, self._quiet_until = status.skipped, status.time + SKIPPED_SECONDS
        if status.finished and self._says_end:
            self._says_end = False
            LOG.info(
                f"the stream has ended after {status.samples:,} samples in all; {status.name} goes "
                "on exchanging models until you stop it with Ctrl-C"
            )
        return status.finished and self._until_done and self._is_acknowledged(status)

    def _is_acknowledged(self, status: Status) -> bool:
        if self._ended_at is None:
            self._ended_at = status.time
        owing = [peer.name for peer in status.receivers if peer.seq > peer.acked]
        if owing and status.time - self._ended_at < GRACE_SECONDS:
            return False
        if owing:
            LOG.info(
                f"not acknowledged yet by {', '.join(owing)}; it is kept, and sent again next time"
            )
        return True


def _say_what_is_promised(peer: Peer) -> None:
    learned = peer.node.learner.as_learned
    nothing = peer.node.learner.exchanges and not learned.privacy
    (LOG.warning if nothing else LOG.info)(f"privacy: {learned.privacy_in_words}")


def _say_whom_it_knows(config: PeerConfig) -> None:
    name = config.name
    receivers = [peer.name for peer in config.receivers]
    senders = [config.name_of(peer.key) for peer in config.senders]
    if config.leaving:
        LOG.info(f"{name} is leaving: it hands everything over and stops")
    LOG.info(
        f"{name} sends to {_peers(receivers)}: {listed(receivers, 10)}"
        if receivers
        else f"{name} sends to nobody yet, so nobody learns from it; with a card of somebody: "
        "oneway peer trust 'CARD'"
    )
    if config.anyone:
        LOG.info(f"anyone may send to {name}")
    elif senders:
        LOG.info(f"{_peers(senders)} may send to {name}: {listed(senders, 10)}")
    else:
        LOG.info(
            f"nobody may send to {name} yet, so its model is only its own; with a card of "
            "somebody: oneway peer admit 'CARD'"
        )


def _peers(names: list[str]) -> str:
    return "1 peer" if len(names) == 1 else f"{len(names)} peers"


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong first; what followed from it is not worth telling."""
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
