"""Dialogue with the user: a question before something is ended, and how an action went."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from nicegui import ui

from oneway.errors import OnewayError

_Result = TypeVar("_Result")


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
        """Ask, and wait for the answer; closing the page counts as Cancel."""
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
    """Carry out an action of a page; an expected error becomes a sentence for `refused`.

    Returns the result; None after an error, or if the page was closed meanwhile.
    """
    client = ui.context.client
    try:
        answer = await action
    except (OnewayError, OSError) as error:
        if not client.is_deleted:
            refused(str(error))
        return None
    return None if client.is_deleted else answer
