"""Scenarios that end: bounded in time, and what they opened is closed also when they fail."""

import asyncio
from collections.abc import Awaitable, Callable

from oneway.transport import Transport

WAIT = 240.0

_opened: list[Transport] = []


def noted(listen: Callable[..., Transport]) -> Callable[..., Transport]:
    """As `listen`, but `run` closes what it opens: a transport left open would hang the test."""

    def listen_and_note(*arguments: object, **options: object) -> Transport:
        _opened.append(listen(*arguments, **options))
        return _opened[-1]

    return listen_and_note


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario to its end, or for a minute."""

    async def bounded() -> None:
        try:
            async with asyncio.timeout(WAIT):
                await scenario()
        finally:
            while _opened:
                await _opened.pop().close()

    asyncio.run(bounded())
