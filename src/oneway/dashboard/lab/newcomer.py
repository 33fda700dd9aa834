"""The form that lets a newcomer join a lab."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nicegui import ui

from oneway.records.network import AddPeer, Command


class Newcomer:
    """A dialog: what it is called, whom it sends to, who sends to it."""

    def __init__(self, do: Callable[[Command], Awaitable[bool]]) -> None:
        """Make the dialog.

        Args:
            do: Does a command, and says whether it went well.
        """
        self._do = do
        with ui.dialog() as self._dialog, ui.card().classes("w-96 max-w-full"):
            ui.html("<h2>A peer joins</h2>", sanitize=False)
            ui.label(
                "It gets keys and samples of its own, and brings one unit of mass with it."
            ).classes("ow-soft")
            self._name = ui.input("Name", placeholder="the next free one").classes("w-full")
            self._name.props("autofocus").on("keydown.enter", self._add)
            self._receivers = ui.select([], label="Sends to", multiple=True).classes("w-full")
            self._senders = ui.select([], label="Hears from", multiple=True).classes("w-full")
            ui.label("Left empty, one of each is chosen.").classes("ow-soft")
            with ui.row().classes("w-full justify-end"):
                ui.button("Cancel", on_click=self._dialog.close).props("flat")
                ui.button("Add", on_click=self._add)

    def open(self, peers: Sequence[str]) -> None:
        """Ask.

        Args:
            peers: Who is there already.
        """
        for choice in (self._receivers, self._senders):
            choice.set_options(list(peers), value=[])
        self._name.value = ""
        self._dialog.open()

    async def _add(self) -> None:
        command = AddPeer(
            self._name.value.strip(), list(self._receivers.value), list(self._senders.value)
        )
        if await self._do(command):
            self._dialog.close()
