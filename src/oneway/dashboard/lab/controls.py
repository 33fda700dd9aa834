"""What one can do to the peers of a lab: to one of them, to its edges, to all."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from oneway.dashboard.components.frame import card
from oneway.dashboard.components.numbers import number_problem
from oneway.dashboard.components.question import Question
from oneway.dashboard.lab.acting import carry_out
from oneway.dashboard.lab.client import LabClient
from oneway.dashboard.lab.newcomer import Newcomer
from oneway.records.network import (
    Command,
    Cut,
    Distrust,
    EdgeView,
    Finish,
    Heal,
    NetworkFrame,
    PeerView,
    SetLoss,
    Trust,
)


class Controls:
    """Buttons that act on real processes."""

    def __init__(self, client: LabClient, on_pick: Callable[[str | None], None]) -> None:
        """Make the buttons.

        Args:
            client: The lab.
            on_pick: Called when a peer is chosen in the list.
        """
        self._client = client
        self._on_pick = on_pick
        self._frame: NetworkFrame | None = None
        self._drawn: object = None
        with ui.element("div") as self._card, card("Break it"):
            self._make_whole()
            ui.separator()
            self._peer = ui.select(
                [], label="Peer", with_input=True, clearable=True, on_change=self._peer_chosen
            ).classes("w-full")
            self._peer.props("dense outlined data-control=peer")
            self._one = ui.element("div").classes("flex flex-col gap-2 w-full")
        self._newcomer = Newcomer(self._do)
        self._question = Question("Finish")

    def show(self, frame: NetworkFrame, picked: str | None) -> None:
        """Offer what can be done now; nothing once the lab is over.

        Args:
            frame: The lab at this moment.
            picked: The peer that the page is about.
        """
        first, self._frame = self._frame is None, frame
        self._card.visible = not frame.result
        names = [peer.name for peer in frame.peers]
        if self._peer.options != names:
            self._peer.set_options(names)
        if self._peer.value != picked:
            self._peer.value = picked
        if first:
            self._loss.value = f"{100 * frame.loss_rate:g}"
        for button in self._whole:
            button.set_enabled(frame.acts)
        self._show_one(frame, picked)

    async def _do(self, command: Command) -> bool:
        return await carry_out(self._client, command)

    # All peers.

    def _make_whole(self) -> None:
        with ui.row().classes("items-start gap-3 w-full"):
            self._loss = ui.input("Messages lost", value="0", validation=share_problem).classes(
                "w-36"
            )
            self._loss.props('dense outlined suffix="%" inputmode=decimal data-control=loss')
            self._loss.on("keydown.enter", self._set_loss)
            set_loss = ui.button("Set", on_click=self._set_loss).props("outline")
            add = ui.button("Add a peer", on_click=self._add).props("outline")
            finish = ui.button("Finish and audit", on_click=self._finish)
            finish.props("outline").tooltip(
                "Stop learning, let everything arrive, count every unit of mass"
            )
        self._whole = [set_loss, add, finish]

    async def _finish(self) -> None:
        if await self._question.is_sure(
            "Finish the lab?",
            "Learning stops for good, everything arrives, and every unit of mass is counted.",
        ):
            await self._do(Finish())

    async def _set_loss(self) -> None:
        if self._loss.validate():
            await self._do(SetLoss(float(self._loss.value) / 100.0))

    def _add(self) -> None:
        if self._frame is not None:
            self._newcomer.open([peer.name for peer in self._frame.peers])

    # One peer.

    def _peer_chosen(self) -> None:
        self._on_pick(self._peer.value)

    def _show_one(self, frame: NetworkFrame, picked: str | None) -> None:
        peer = next((peer for peer in frame.peers if peer.name == picked), None)
        to = [edge for edge in frame.edges if edge.sender == picked]
        by = [edge for edge in frame.edges if edge.receiver == picked]
        ends = [(edge.sender, edge.receiver, edge.cut) for edge in (*to, *by)]
        drawn = (picked, ends, frame.acts, len(frame.peers))
        # Drawn again only if it looks different, so that a button keeps its focus.
        if drawn == self._drawn:
            return
        self._drawn = drawn
        self._one.clear()
        with self._one:
            if peer is None:
                ui.label(
                    "Pick a peer in the picture or in the list: then you can kill its process, cut "
                    "its lines, or change whom it trusts."
                ).classes("ow-soft")
                return
            for edge in to:
                self._offer_edge(f"sends to {edge.receiver}", edge, "Distrust")
            for edge in by:
                self._offer_edge(f"hears from {edge.sender}", edge, "Let it stop")
            self._offer_trust(peer, [edge.receiver for edge in to])
        if not frame.acts:
            for element in self._one.descendants():
                if isinstance(element, ui.button):
                    element.disable()

    def _offer_edge(self, text: str, edge: EdgeView, end: str) -> None:
        sender, receiver = edge.sender, edge.receiver
        with ui.row().classes("items-center gap-2 w-full"):
            ui.label(text + (" (cut)" if edge.cut else "")).classes("grow")
            if edge.cut:
                ui.button("Heal", on_click=lambda: self._do(Heal(sender, receiver))).props(
                    f'flat dense aria-label="Heal the line from {sender} to {receiver}"'
                )
            else:
                ui.button("Cut", on_click=lambda: self._do(Cut(sender, receiver))).props(
                    f'flat dense aria-label="Cut the line from {sender} to {receiver}"'
                )
            ui.button(end, on_click=lambda: self._do(Distrust(sender, receiver))).props(
                f'flat dense aria-label="{end}: {sender} no longer sends to {receiver}"'
            )

    def _offer_trust(self, peer: PeerView, receivers: list[str]) -> None:
        assert self._frame is not None
        taken = {peer.name, *receivers}
        others = [other.name for other in self._frame.peers if other.name not in taken]
        if not others:
            return
        with ui.row().classes("items-center gap-2 w-full"):
            chosen = ui.select(others, label=f"Let {peer.name} send to", value=others[0])
            chosen.classes("grow").props("dense outlined")
            ui.button("Trust", on_click=lambda: self._do(Trust(peer.name, chosen.value))).props(
                "outline"
            )


def share_problem(text: str | None) -> str | None:
    """What is wrong with a share in per cent; None if nothing is.

    >>> share_problem("20"), share_problem("120"), share_problem("many")
    (None, '120 is not from 0 to 100', 'many is not a number')
    """
    problem = number_problem(text)
    if problem is not None or text is None:
        return problem
    return None if 0.0 <= float(text) <= 100.0 else f"{text.strip()} is not from 0 to 100"
