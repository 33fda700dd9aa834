"""The stream of `oneway peer run`: what was asked for, and the rows from where the peer stopped."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from oneway.errors import ConfigError, DataError, MissingDataError

if TYPE_CHECKING:
    from oneway.cli.peer_voice import Voice
    from oneway.peer.peer import Peer
    from oneway.peer.samples.row import BadRow, Position, Row


def check_stream(data: str | None, *, follow: bool, rate: float | None, until_done: bool) -> None:
    """Find out before the peer is woken whether the flags fit together.

    Raises:
        ConfigError: If they do not.
        DataError: If there is no such file, or it is a folder.
    """
    given = {"--follow": follow, "--rate": rate is not None, "--until-done": until_done}
    for flag, used in given.items():
        if used and data is None:
            raise ConfigError(f"{flag} is about a stream, and there is none; add --data FILE")
    if follow and until_done:
        raise ConfigError("a file that is followed has no end, so --until-done would never stop it")
    if rate is not None and not rate > 0:
        raise ConfigError(f"--rate is {rate:g}; it must be a number of samples above 0")
    if data is None or data == "-":
        return
    if not Path(data).exists():
        raise MissingDataError(f"{data} does not exist; check the path")
    if Path(data).is_dir():
        raise DataError(f"{data} is a folder; name a CSV or JSON-lines file, or - for a pipe")


async def samples_of(
    peer: Peer, data: str, follow: bool, rate: float | None, voice: Voice
) -> AsyncGenerator[Row | BadRow, None]:
    """The rows of the source from where the peer stopped, which is said when it is known."""
    from oneway.peer.samples.source import pace, rows

    before = peer.position
    columns = (peer.task.label, *(feature.name for feature in peer.task.features))
    items = rows(data, follow=follow, skip=before, task_columns=columns, say=voice.warn)
    if rate is not None:
        items = pace(items, rate)
    first = True
    async with aclosing(items):
        async for item in items:
            if first and _goes_on(item, before):
                voice.say(
                    f"going on in {data} at line {item.line:,}, after {before.num_rows:,} rows "
                    "that were read before"
                )
            first = False
            yield item
    if first and before.num_rows and data != "-":
        voice.say(f"{data} has nothing new: all of it was read before")


def _goes_on(item: Row | BadRow, before: Position) -> bool:
    return before.num_rows > 0 and item.position.num_rows == before.num_rows + 1
