"""Edges of a peer: whom it sends to, who may send to it, and forms to change that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from nicegui import ui

from oneway.dashboard.components.dialogs import Question, attempt, complain, tell
from oneway.dashboard.components.elements import FactList, card, empty, say, set_mood
from oneway.dashboard.components.numbers import number_problem
from oneway.dashboard.peer.status_figures import EdgeRow, receiver_rows, sender_rows
from oneway.records.weight import WEIGHT_RULE, is_weight
from oneway.sentences import cut
from oneway.web.peer_page import PeerLook, PeerSource

_NO_CARD = "paste the line that oneway peer card prints there"


class Direction(NamedTuple):
    """What the card of edges in one direction says; {name} is who is at the other end."""

    heading: str
    nobody: str
    field: str
    begin: str
    about: str
    end: str
    question: str
    consequence: str
    rows: Callable[[PeerLook], list[EdgeRow]]


RECEIVERS = Direction(
    "Sends to",
    "This peer sends to nobody, so nobody learns from it. Ask somebody for a card, and put it in "
    "below.",
    "Card of a peer to send to",
    "Trust",
    "Trust is one-way: it lets this peer send. A weight says how much one receiver gets, compared "
    "with the others.",
    "Distrust",
    "Send no more to {name}?",
    "What has not arrived at {name} comes back to this peer; what has arrived stays there.",
    receiver_rows,
)
SENDERS = Direction(
    "Hears from",
    "Nobody may send to this peer, so its model is only its own. Ask somebody for a card, and put "
    "it in below.",
    "Card or key of a peer to admit",
    "Admit",
    "To admit a peer lets it send its model to this one; every message is checked.",
    "Admit no more",
    "Take in nothing more from {name}?",
    "What {name} has handed over already stays here; what it sends from now on is refused, and "
    "stays there.",
    sender_rows,
)


class EdgesCard:
    """The edges of one direction: begin one with a card, end one with its button."""

    def __init__(
        self, direction: Direction, source: PeerSource, changed: Callable[[], None]
    ) -> None:
        """Make it empty; `changed` is called when somebody has changed something."""
        self._direction = direction
        self._source = source
        self._changed = changed
        self._rows: dict[str, _Row] = {}
        self._question = Question(direction.end)
        with card(direction.heading):
            self._empty = empty(direction.nobody)
            self._list = ui.element("div").classes("ow-edges").props("role=list")
            self._anyone = ui.label(
                "Anyone may send to this peer. To end that: oneway peer admit --anyone --revoke"
            ).classes("ow-soft")
            with ui.element("div").classes("ow-form"):
                # What is wrong is known when the peer is asked; an edit takes the mark away.
                self._card = ui.input(
                    direction.field, placeholder="oneway:...", validation=lambda _: None
                )
                self._card.props("dense outlined autocomplete=off spellcheck=false")
                self._card.props("hide-bottom-space").classes("card")
                self._card.on("keydown.enter", self._begin)
                self._weight = ui.input("Weight", value="1", validation=weight_problem)
                self._weight.props("dense outlined inputmode=decimal hide-bottom-space")
                self._weight.classes("weight").on("keydown.enter", self._begin)
                self._weight.set_visibility(direction is RECEIVERS)
                ui.button(direction.begin, on_click=self._begin).props("no-caps")
            ui.label(direction.about).classes("ow-soft")

    def show(self, look: PeerLook) -> None:
        """Bring it up to date; a row stays as long as its edge, so its button keeps the focus."""
        edges = self._direction.rows(look)
        self._empty.set_visibility(not edges)
        self._anyone.set_visibility(look.anyone and self._direction is SENDERS)
        for key in self._rows.keys() - {edge.key for edge in edges}:
            self._rows.pop(key).box.delete()
        for edge in edges:
            if edge.key not in self._rows:
                with self._list:
                    self._rows[edge.key] = _Row(edge, self._direction.end, self._end)
            self._rows[edge.key].show(edge)

    async def _begin(self) -> None:
        text = (self._card.value or "").strip()
        if not text:
            self._card.error = _NO_CARD
        if not text or not self._weight.validate():
            return

        def refused(sentence: str) -> None:
            self._card.error = sentence

        if self._direction is RECEIVERS:
            asked = asyncio.to_thread(self._source.trust, text, float(str(self._weight.value)))
        else:
            asked = asyncio.to_thread(self._source.admit, text)
        if await self._done(asked, refused):
            self._card.value = ""

    async def _end(self, edge: EdgeRow) -> None:
        question, consequence = self._direction.question, self._direction.consequence
        if await self._question.is_sure(
            question.format(name=edge.name), consequence.format(name=edge.name)
        ):
            receives = self._direction is RECEIVERS
            end = self._source.distrust if receives else self._source.revoke
            await self._done(asyncio.to_thread(end, edge.key), complain)

    async def _done(self, asked: Awaitable[str], refused: Callable[[str], None]) -> bool:
        said = await attempt(asked, refused)
        if said is None:
            return False
        tell(said)
        self._changed()
        return True


class _Row:
    """One edge, with its facts and a button that ends it."""

    def __init__(
        self, edge: EdgeRow, end: str, on_end: Callable[[EdgeRow], Awaitable[None]]
    ) -> None:
        self._edge = edge
        with ui.element("div").classes("ow-edge").props("role=listitem") as self.box:
            with ui.element("div").classes("head"):
                self._name = ui.label("").classes("name")
                self._state = ui.label("").classes("ow-chip")
                self._button = ui.button(end, on_click=lambda: on_end(self._edge))
                self._button.props("outline dense no-caps")
            self._facts = FactList(abreast=True)
            self._problem = ui.label("").classes("ow-bad")

    def show(self, edge: EdgeRow) -> None:
        self._edge = edge
        if edge.name != self._name.text:
            self._name.text = edge.name
            # Not in a text of props: a name may have anything in it.
            self.box.props["data-edge"] = edge.name
            self._button.props["aria-label"] = f"{self._button.text} {edge.name}"
        self._state.text = edge.state
        set_mood(self._state, edge.mood)
        say(self._problem, edge.problem)
        self._button.set_visibility(edge.can_end)
        self._facts.show(edge.facts)


def weight_problem(text: str | None) -> str | None:
    """What is wrong with a weight, as a sentence for its field; None if nothing is.

    >>> weight_problem("2"), weight_problem("0")
    (None, 'the weight is 0; it must be a number above 0, from 1e-06 to 1e+06')
    """
    problem = number_problem(text)
    if problem is not None or text is None or is_weight(float(text)):
        return problem
    return f"the weight is {cut(text.strip())}; it must be {WEIGHT_RULE}"
