"""Controls of a lab: commands to one peer, to its edges, or to all; they act on real processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from nicegui import ui

from oneway.dashboard.components.dialogs import Question, attempt, tell
from oneway.dashboard.components.elements import card
from oneway.dashboard.components.numbers import number_problem
from oneway.dashboard.lab.client import LabClient
from oneway.dashboard.lab.frame_text import about
from oneway.records.network import (
    AddPeer,
    Command,
    Cut,
    Distrust,
    EdgeView,
    Finish,
    Heal,
    Kill,
    NetworkFrame,
    PeerView,
    Restart,
    SetLoss,
    Trust,
)

Do: TypeAlias = Callable[[Command], Awaitable[bool]]
"""Carries out a command, says how it went, and returns whether it went well."""


async def carry_out(client: LabClient, command: Command) -> bool:
    """Do it, and say how it went; whether it went well."""
    said = await attempt(client.do(command))
    if said is not None:
        tell(said)
    return said is not None


class PickedPeer:
    """The peer that was picked in the picture: one line about it, and kill or restart."""

    def __init__(self, do: Do) -> None:
        self._do = do
        self._peer: PeerView | None = None
        with ui.row().classes("items-center gap-3 w-full no-wrap ow-picked"):
            self._text = ui.label("").classes("grow ow-soft")
            # One button that changes, so that it keeps the focus.
            self._button = ui.button("kill -9", on_click=self._kill_or_restart).classes("shrink-0")
        self._button.visible = False

    def show(self, frame: NetworkFrame, masses: Mapping[str, float], name: str | None) -> None:
        """Show the peer of this name, or say that one can be picked; `masses` are those lately."""
        self._peer = peer = next((peer for peer in frame.peers if peer.name == name), None)
        self._button.visible = peer is not None and not frame.result
        if peer is None:
            what = "to see more of it" if frame.result else "to act on it"
            self._text.text = f"Pick a peer, with the pointer or with Tab and Enter, {what}."
            return
        is_down = peer.state == "down"
        self._text.text = about(peer, masses[peer.name])
        self._button.text = f"Restart {peer.name}" if is_down else f"kill -9 {peer.name}"
        self._button.props(f"color={'primary' if is_down else 'negative'}")
        self._button.set_enabled(frame.acts)

    async def _kill_or_restart(self) -> None:
        if self._peer is not None:
            act = Restart if self._peer.state == "down" else Kill
            await self._do(act(self._peer.name))


class Controls:
    """What can be done to all peers, and to the edges of the one that was picked."""

    def __init__(self, do: Do, on_pick: Callable[[str | None], None]) -> None:
        """Make the buttons; `on_pick` gets the peer that is chosen in the list."""
        self._do = do
        self._frame: NetworkFrame | None = None
        self._drawn: object = None
        with ui.element("div") as self._card, card("Break it"):
            with ui.row().classes("items-start gap-3 w-full"):
                self._loss = ui.input("Messages lost", value="0", validation=share_problem)
                self._loss.props('dense outlined suffix="%" inputmode=decimal data-control=loss')
                self._loss.classes("w-36").on("keydown.enter", self._set_loss)
                set_loss = ui.button("Set", on_click=self._set_loss)
                add = ui.button("Add a peer", on_click=self._add)
                finish = ui.button("Finish and audit", on_click=self._finish)
                finish.tooltip("Stop learning, let everything arrive, count every unit of mass")
            self._whole = [set_loss, add, finish]
            for button in self._whole:
                button.props("outline")
            ui.separator()
            self._peer = ui.select(
                [],
                label="Peer",
                with_input=True,
                clearable=True,
                on_change=lambda event: on_pick(event.value),
            ).classes("w-full")
            self._peer.props("dense outlined data-control=peer")
            self._one = ui.element("div").classes("flex flex-col gap-2 w-full")
        self._newcomer = _Newcomer(do)
        self._question = Question("Finish")

    def show(self, frame: NetworkFrame, picked: str | None) -> None:
        """Offer what can be done now, also to the picked peer; nothing once the lab is over."""
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
        edges = [edge for edge in frame.edges if picked in (edge.sender, edge.receiver)]
        ends = [(edge.sender, edge.receiver, edge.cut) for edge in edges]
        drawn = (picked, ends, frame.acts, names)
        # Drawn again only if it looks different, so that a button keeps its focus.
        if drawn != self._drawn:
            self._drawn = drawn
            self._one.clear()
            with self._one:
                self._offer(picked if picked in names else None, names, edges)
            for element in self._one.descendants():
                if isinstance(element, ui.button):
                    element.set_enabled(frame.acts)

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

    def _offer(self, peer: str | None, names: list[str], edges: list[EdgeView]) -> None:
        """What can be done to a peer's edges."""
        if peer is None:
            ui.label(
                "Pick a peer in the picture or in the list: then you can kill its process, cut "
                "its lines, or change whom it trusts."
            ).classes("ow-soft")
            return
        to = [edge for edge in edges if edge.sender == peer]
        for edge in to:
            self._offer_edge(f"sends to {edge.receiver}", edge, "Distrust")
        for edge in edges:
            if edge.receiver == peer:
                self._offer_edge(f"hears from {edge.sender}", edge, "Let it stop")
        taken = {peer, *(edge.receiver for edge in to)}
        others = [name for name in names if name not in taken]
        if others:
            with ui.row().classes("items-center gap-2 w-full"):
                chosen = ui.select(others, label=f"Let {peer} send to", value=others[0])
                chosen.classes("grow").props("dense outlined")
                self._button("Trust", lambda: Trust(peer, chosen.value)).props("outline")

    def _offer_edge(self, text: str, edge: EdgeView, end: str) -> None:
        sender, receiver = edge.sender, edge.receiver
        switch, act = ("Heal", Heal) if edge.cut else ("Cut", Cut)
        with ui.row().classes("items-center gap-2 w-full"):
            ui.label(text + (" (cut)" if edge.cut else "")).classes("grow")
            self._button(switch, lambda: act(sender, receiver)).props(
                f'flat dense aria-label="{switch} the line from {sender} to {receiver}"'
            )
            self._button(end, lambda: Distrust(sender, receiver)).props(
                f'flat dense aria-label="{end}: {sender} no longer sends to {receiver}"'
            )

    def _button(self, text: str, command: Callable[[], Command]) -> ui.button:
        return ui.button(text, on_click=lambda: self._do(command()))


class _Newcomer:
    """The dialog that lets a newcomer join: its name, whom it sends to, who sends to it."""

    def __init__(self, do: Do) -> None:
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
        """Ask; `peers` are those that are there already."""
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


def share_problem(text: str | None) -> str | None:
    """What is wrong with a share in per cent; None if nothing is.

    >>> share_problem("20"), share_problem("120"), share_problem("many")
    (None, '120 is not from 0 to 100', 'many is not a number')
    """
    problem = number_problem(text)
    if problem is not None or text is None or 0.0 <= float(text) <= 100.0:
        return problem
    return f"{text.strip()} is not from 0 to 100"
