"""Whom the peer sends to and who may send to it, with forms and buttons to change that."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from oneway.dashboard.components.frame import card
from oneway.dashboard.components.numbers import number_problem
from oneway.dashboard.components.question import Question
from oneway.dashboard.peer.acting import asked
from oneway.dashboard.peer.edge_list import EdgeList
from oneway.dashboard.peer.edges import EdgeRow, receiver_rows, sender_rows
from oneway.dashboard.peer.source import PeerLook, PeerSource
from oneway.records.weight import WEIGHT_RULE, is_weight

_NO_CARD = "paste the line that oneway peer card prints there"


class ReceiversCard:
    """Whom the peer sends to: trust and distrust."""

    def __init__(self, source: PeerSource, changed: Callable[[], None]) -> None:
        """Make it empty.

        Args:
            source: Whom to tell.
            changed: Called when something has changed.
        """
        self._source = source
        self._changed = changed
        self._question = Question("Distrust")
        with card("Sends to"):
            self._edges = EdgeList(
                "This peer sends to nobody, so nobody learns from it. Ask somebody for a card, and "
                "put it in below.",
                "Distrust",
                self._distrust,
            )
            with ui.element("div").classes("ow-form"):
                self._card = _card_field("Card of a peer to send to", self._trust)
                self._weight = ui.input("Weight", value="1", validation=weight_problem)
                self._weight.props("dense outlined inputmode=decimal hide-bottom-space")
                self._weight.classes("weight").on("keydown.enter", self._trust)
                ui.button("Trust", on_click=self._trust).props("no-caps")
            ui.label(
                "Trust is one-way: it lets this peer send. A weight says how much one receiver "
                "gets, compared with the others."
            ).classes("ow-soft")

    def show(self, look: PeerLook) -> None:
        """Bring it up to date."""
        self._edges.show(receiver_rows(look))

    async def _trust(self) -> None:
        card, weight = _typed(self._card), self._weight.value
        if card is None or not self._weight.validate():
            return
        said = await asked(lambda: self._source.trust(card, float(str(weight))), _at(self._card))
        if said is not None:
            self._card.value = ""
            _tell(said)
            self._changed()

    async def _distrust(self, row: EdgeRow) -> None:
        if await self._question.is_sure(
            f"Send no more to {row.name}?",
            f"What has not arrived at {row.name} comes back to this peer; what has arrived stays "
            "there.",
        ):
            said = await asked(lambda: self._source.distrust(row.key), _complain)
            if said is not None:
                _tell(said)
                self._changed()


class SendersCard:
    """Who may send to the peer: admit, and take that back."""

    def __init__(self, source: PeerSource, changed: Callable[[], None]) -> None:
        """Make it empty; arguments as of `ReceiversCard`."""
        self._source = source
        self._changed = changed
        self._question = Question("Admit no more")
        with card("Hears from"):
            self._edges = EdgeList(
                "Nobody may send to this peer, so its model is only its own. Ask somebody for a "
                "card, and put it in below.",
                "Admit no more",
                self._revoke,
            )
            self._anyone = ui.label(
                "Anyone may send to this peer. To end that: oneway peer admit --anyone --revoke"
            ).classes("ow-soft")
            with ui.element("div").classes("ow-form"):
                self._card = _card_field("Card or key of a peer to admit", self._admit)
                ui.button("Admit", on_click=self._admit).props("no-caps")
            ui.label(
                "To admit a peer lets it send its model to this one; every message is checked."
            ).classes("ow-soft")

    def show(self, look: PeerLook) -> None:
        """Bring it up to date."""
        self._edges.show(sender_rows(look))
        self._anyone.set_visibility(look.anyone)

    async def _admit(self) -> None:
        card = _typed(self._card)
        if card is None:
            return
        said = await asked(lambda: self._source.admit(card), _at(self._card))
        if said is not None:
            self._card.value = ""
            _tell(said)
            self._changed()

    async def _revoke(self, row: EdgeRow) -> None:
        if await self._question.is_sure(
            f"Take in nothing more from {row.name}?",
            f"What {row.name} has handed over already stays here; what it sends from now on is "
            "refused, and stays there.",
        ):
            said = await asked(lambda: self._source.revoke(row.key), _complain)
            if said is not None:
                _tell(said)
                self._changed()


def weight_problem(text: str | None) -> str | None:
    """What is wrong with a weight, as a sentence for its field; None if nothing is.

    >>> weight_problem("2"), weight_problem("0")
    (None, 'the weight is 0; it must be a number above 0, from 1e-06 to 1e+06')
    """
    problem = number_problem(text)
    if problem is not None or text is None:
        return problem
    typed = text.strip()
    if is_weight(float(typed)):
        return None
    shown = typed if len(typed) <= 20 else f"{typed[:20]}..."
    return f"the weight is {shown}; it must be {WEIGHT_RULE}"


def _card_field(label: str, on_enter: Callable[[], object]) -> ui.input:
    # What is wrong is known when the peer is asked; an edit takes the mark away.
    field = ui.input(label, placeholder="oneway:...", validation=lambda _: None)
    field.props("dense outlined autocomplete=off spellcheck=false hide-bottom-space")
    return field.classes("card").on("keydown.enter", on_enter)


def _typed(field: ui.input) -> str | None:
    """What is in the field; None if that is nothing, which is marked."""
    text = (field.value or "").strip()
    if not text:
        field.error = _NO_CARD
        return None
    return text


def _at(field: ui.input) -> Callable[[str], None]:
    def complain(sentence: str) -> None:
        field.error = sentence

    return complain


def _tell(sentence: str) -> None:
    ui.notify(sentence, type="positive", position="bottom", timeout=8000, close_button="Close")


def _complain(sentence: str) -> None:
    ui.notify(sentence, type="negative", position="bottom", timeout=0, close_button="Close")
