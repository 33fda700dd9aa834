"""Asks before something is ended."""

from __future__ import annotations

from nicegui import ui


class Question:
    """A dialog with a question, its consequence, and two answers; made once, asked often."""

    def __init__(self, act: str) -> None:
        """Make it, closed.

        Args:
            act: What the button says that goes on.
        """
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
