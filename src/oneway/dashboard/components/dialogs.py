"""Dialogue with the user: a question before something is ended, and how an action went."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nicegui import ui

from oneway.errors import OnewayError

_Result = TypeVar("_Result")
_log = logging.getLogger("oneway.dashboard")


class Question:
    """A dialog with a question, its consequence, and two answers; made once, asked often."""

    def __init__(self, act: str) -> None:
        """Make it, closed; `act` is what the button says that goes on."""
        with ui.dialog() as self._dialog, ui.card().classes("ow-dialog"):
            self._question = ui.label("").classes("ow-question")
            self._consequence = ui.label("")
            with ui.row().classes("w-full justify-end gap-2"):
                cancel = ui.button("Cancel", on_click=lambda: self._dialog.submit(False))
                cancel.props("flat no-caps autofocus")
                go_on = ui.button(act, on_click=lambda: self._dialog.submit(True))
                go_on.props("no-caps color=negative")

    async def is_sure(self, question: str, consequence: str) -> bool:
        """Ask, and wait for the answer; whoever closes the page is not sure."""
        self._question.text = question
        self._consequence.text = consequence
        return bool(await self._dialog)


def tell(sentence: str) -> None:
    """Say what was done, for some seconds."""
    ui.notify(sentence, type="positive", position="bottom", timeout=8000, close_button="Close")


def complain(sentence: str) -> None:
    """Say what went wrong, until the sentence is closed."""
    ui.notify(sentence, type="negative", position="bottom", timeout=0, close_button="Close")


async def attempt(
    action: Awaitable[_Result], refused: Callable[[str], object] = complain
) -> _Result | None:
    """Carry out an action of a page; if it raises an expected error, tell `refused` its sentence.

    Returns what came of it; None if it was refused, or if the page was closed meanwhile: there is
    nothing left to show anything on.
    """
    client = ui.context.client
    try:
        answer = await action
    except (OnewayError, OSError) as error:
        if not client.is_deleted:
            is_ours = isinstance(error, OnewayError)
            refused(str(error) if is_ours else f"the machine refuses: {error}")
        return None
    return None if client.is_deleted else answer


def mistake(error: Exception) -> str:
    """Log a bug of ours with its traceback, and return what a page says about it."""
    _log.error("a mistake in oneway: %r", error, exc_info=error)
    return (
        f"This cannot be shown, because of a mistake in oneway ({type(error).__name__}); what it "
        "printed says where. Please report it."
    )
