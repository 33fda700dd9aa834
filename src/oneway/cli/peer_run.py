"""`oneway peer run`: learn from a stream and exchange models until stopped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oneway.cli.peer_home import HomeFolder, folder_of
from oneway.cli.peer_stream import check_stream, samples_of
from oneway.cli.serving import host_and_port, token_in
from oneway.errors import ConfigError

if TYPE_CHECKING:
    from oneway.cli.peer_live import LocalApi
    from oneway.cli.peer_voice import Voice
    from oneway.peer.home.config import PeerConfig
    from oneway.records.status import Status

GRACE_SECONDS = 5.0
"""How long --until-done waits for acknowledgements after the stream has ended."""

SKIPPED_SECONDS = 10.0
"""Bad samples are told no more often than this."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", epilog="Example: oneway peer run --data stream.csv --until-done")(run)


def run(
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="What to learn from: CSV or JSON lines; - is standard input.",
            show_default="nothing: only exchange models",
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", metavar="", help="Wait at the end of the file for more.")
    ] = False,
    rate: Annotated[
        float | None,
        typer.Option(metavar="N", help="Samples per second at most.", show_default="no limit"),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", metavar="", help="Stop at a bad sample instead of skipping it."),
    ] = False,
    until_done: Annotated[
        bool,
        typer.Option(
            "--until-done",
            metavar="",
            help="Stop when the stream has ended and all pushes are acknowledged, or 5 s later.",
        ),
    ] = False,
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Offer a local HTTP API: predict, learn, status, metrics.",
            show_default="no API; 127.0.0.1 if only a port is given",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Who uses the API must show what this file holds."),
    ] = None,
    home: HomeFolder = None,
) -> None:
    """Run the peer: learn, push to those it trusts, take in what others push.

    Ctrl-C stops it; what it has learned is on the disk at any moment, and it goes on from there.
    """
    from oneway.cli.peer_live import run_here
    from oneway.cli.peer_voice import Voice, tell
    from oneway.peer.peer import Peer
    from oneway.peer.status import read_status

    check_stream(data, follow=follow, rate=rate, until_done=until_done)
    api = None if serve is None else _local_api(serve, token_file)
    if token_file is not None and api is None:
        raise ConfigError("--token-file is for the local API; add --serve PORT")
    peer, voice = Peer(folder_of(home)), Voice()
    with closing(peer):
        config = peer.node.config
        if config.leaving and peer.node.is_drained:
            voice.say(
                f"{config.name} has left and handed over everything; to take part again, make a "
                "new peer in another folder with oneway peer init"
            )
            return
        _say_whom_it_knows(config, voice)
        samples = None if data is None else samples_of(peer, data, follow, rate, voice)
        if data is None and not config.leaving:
            voice.say(f"{config.name} has no stream of its own; to give it one: --data FILE")
        run_here(
            peer,
            voice,
            _Watcher(
                voice,
                _Done(voice) if until_done else lambda _: False,
                skipped_before=peer.node.snapshot.journal.skipped,
                tell_end=data is not None and not until_done,
            ),
            samples=samples,
            strict=strict,
            api=api,
        )
    status = read_status(peer.home.status_path)
    tell(_summary(config, status))


def _local_api(address: str, token_file: Path | None) -> LocalApi:
    """Where to serve, and with which token.

    Raises:
        ConfigError: If the address is none, the token cannot be read, or other machines could reach
            the API without a token.
    """
    from oneway.cli.peer_live import LocalApi
    from oneway.web.access import check_bind

    host, port = host_and_port(address)
    token = "" if token_file is None else token_in(token_file)
    check_bind(host, token)
    return LocalApi(host, port, token)


class _Done:
    """Whether the stream has ended and everything is acknowledged, or that has taken too long."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._ended_at: float | None = None

    def __call__(self, status: Status) -> bool:
        if not status.finished:
            return False
        if self._ended_at is None:
            self._ended_at = status.time
        owing = [peer.name for peer in status.receivers if peer.seq > peer.acked]
        if owing and status.time - self._ended_at < GRACE_SECONDS:
            return False
        if owing:
            self._voice.say(
                f"not acknowledged yet by {', '.join(owing)}; it is kept, and sent again next time"
            )
        return True


class _Watcher:
    """Passes a status on, and says what its owner should hear: bad samples, and the end."""

    def __init__(
        self,
        voice: Voice,
        done: Callable[[Status], bool],
        *,
        skipped_before: int,
        tell_end: bool,
    ) -> None:
        self._voice = voice
        self._done = done
        self._tell_end = tell_end
        self._skipped = skipped_before
        self._quiet_until = 0.0

    def __call__(self, status: Status) -> bool:
        self._say_skipped(status)
        if status.finished and self._tell_end:
            self._tell_end = False
            self._voice.say(
                f"the stream has ended after {status.samples:,} samples in all; {status.name} goes "
                "on exchanging models until you stop it with Ctrl-C"
            )
        return self._done(status)

    def _say_skipped(self, status: Status) -> None:
        new = status.skipped - self._skipped
        if new > 0 and status.time >= self._quiet_until:
            count = "a sample" if new == 1 else f"{new:,} samples, the last"
            self._voice.warn(f"skipped {count}: {status.last_skipped}")
            self._skipped, self._quiet_until = status.skipped, status.time + SKIPPED_SECONDS


def _say_whom_it_knows(config: PeerConfig, voice: Voice) -> None:
    from oneway.sentences import listed

    name = config.name
    if config.leaving:
        voice.say(f"{name} is leaving: it hands everything over and stops")
    if config.receivers:
        names = listed((peer.name for peer in config.receivers), 10)
        voice.say(f"{name} sends to {_peers(len(config.receivers))}: {names}")
    else:
        voice.say(
            f"{name} sends to nobody yet, so nobody learns from it; with a card of somebody: "
            "oneway peer trust 'CARD'"
        )
    if config.anyone:
        voice.say(f"anyone may send to {name}")
    elif config.senders:
        names = listed((config.name_of(peer.key) for peer in config.senders), 10)
        voice.say(f"{_peers(len(config.senders))} may send to {name}: {names}")
    else:
        voice.say(
            f"nobody may send to {name} yet, so its model is only its own; with a card of "
            "somebody: oneway peer admit 'CARD'"
        )


def _peers(count: int) -> str:
    return "1 peer" if count == 1 else f"{count} peers"


def _summary(config: PeerConfig, status: Status | None) -> str:
    if status is None:
        return f"{config.name} has stopped."
    if status.drained:
        return f"{config.name} has handed over everything and stopped."
    loss = "" if status.average_loss is None else f", average loss {status.average_loss:.4f}"
    skipped = f", {status.skipped:,} skipped" if status.skipped else ""
    return f"{config.name} has stopped: {status.samples:,} samples in all{loss}{skipped}."
