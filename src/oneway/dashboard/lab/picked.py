"""The peer that was picked in the picture: how it is, and the button that kills or starts it."""

from __future__ import annotations

from collections.abc import Mapping

from nicegui import ui

from oneway.dashboard.lab.acting import carry_out
from oneway.dashboard.lab.client import LabClient
from oneway.dashboard.lab.picture import about
from oneway.records.network import Kill, NetworkFrame, PeerView, Restart


class Picked:
    """One line beside the picture."""

    def __init__(self, client: LabClient) -> None:
        """Make the line.

        Args:
            client: The lab.
        """
        self._client = client
        self._peer: PeerView | None = None
        with ui.row().classes("items-center gap-3 w-full no-wrap ow-picked"):
            self._text = ui.label("").classes("grow ow-soft")
            # One button that changes, so that it keeps the focus.
            self._button = ui.button("kill -9", on_click=self._kill_or_restart).classes("shrink-0")
        self._button.visible = False

    def show(self, frame: NetworkFrame, masses: Mapping[str, float], name: str | None) -> None:
        """Show a peer, or say that one can be picked.

        Args:
            frame: The lab at this moment.
            masses: What each peer holds lately.
            name: Who was picked.
        """
        self._peer = peer = next((peer for peer in frame.peers if peer.name == name), None)
        if peer is None:
            what = "to see more of it" if frame.result else "to act on it"
            self._text.text = f"Pick a peer, with the pointer or with Tab and Enter, {what}."
            self._button.visible = False
            return
        is_down = peer.state == "down"
        self._text.text = about(peer, masses[peer.name])
        self._button.text = f"Restart {peer.name}" if is_down else f"kill -9 {peer.name}"
        self._button.props(f"color={'primary' if is_down else 'negative'}")
        self._button.visible = not frame.result
        self._button.set_enabled(frame.acts)

    async def _kill_or_restart(self) -> None:
        peer = self._peer
        if peer is not None:
            is_down = peer.state == "down"
            await carry_out(self._client, Restart(peer.name) if is_down else Kill(peer.name))
