"""What a button does: ask the source in a thread, and say what came of it where it belongs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from nicegui import ui

from oneway.errors import OnewayError

_Result = TypeVar("_Result")


async def asked(ask: Callable[[], _Result], complain: Callable[[str], None]) -> _Result | None:
    """Return what a source answers.

    If it refuses, its sentence is passed on and None is returned; so it is, silently, if whoever
    asked has closed the page meanwhile: then there is nothing to show anything on.
    """
    client = ui.context.client
    answer: _Result | None = None
    sentence = ""
    try:
        answer = await asyncio.to_thread(ask)
    except OnewayError as error:
        sentence = str(error)
    except OSError as error:
        sentence = f"the machine refuses: {error}"
    if client.is_deleted:
        return None
    if sentence:
        complain(sentence)
    return answer
