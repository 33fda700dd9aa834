"""The card of the peer, to hand to others: as text that can be copied, and as QR code."""

from __future__ import annotations

import segno
from nicegui import ui

from oneway.dashboard.components.frame import card
from oneway.dashboard.peer.source import PeerLook

_COPY = """() => {
  const text = document.querySelector("[data-card]").innerText;
  const done = () => document.querySelector("[data-copied]").innerText = "Copied.";
  const byHand = () => {
    // Without HTTPS a browser gives its clipboard only to what is selected.
    const range = document.createRange();
    range.selectNodeContents(document.querySelector("[data-card]"));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    if (document.execCommand("copy")) done();
  };
  navigator.clipboard ? navigator.clipboard.writeText(text).then(done, byHand) : byHand();
}"""


class CardCard:
    """The peer's own card."""

    def __init__(self) -> None:
        """Make it empty."""
        self._shown: tuple[str, str] | None = None
        with card("Its card"):
            self._problem = ui.label("").classes("ow-bad")
            with ui.element("div").classes("ow-own-card") as self._box:
                self._code = ui.html("", sanitize=False).classes("ow-qr")
                with ui.element("div").classes("side"):
                    ui.label(
                        "Hand this line to others: it says who this peer is and where it listens, "
                        "and holds no secret. They trust it to send here, and admit it to hear "
                        "from here."
                    ).classes("ow-soft")
                    self._text = ui.label("").classes("ow-mono").props("data-card tabindex=0")
                    with ui.row().classes("items-center gap-3"):
                        button = ui.button("Copy").props('no-caps aria-label="Copy the card"')
                        button.on("click", js_handler=_COPY)
                        ui.label("").classes("ow-good").props("data-copied role=status")

    def show(self, look: PeerLook) -> None:
        """Bring it up to date."""
        if (look.card, look.card_problem) == self._shown:
            return
        self._shown = look.card, look.card_problem
        self._problem.text = look.card_problem
        self._problem.set_visibility(bool(look.card_problem))
        self._box.set_visibility(bool(look.card))
        if look.card:
            self._text.text = look.card
            self._code.content = qr_code(look.card)


def qr_code(text: str) -> str:
    """A text as an SVG that scans on a dark page too: black on white, with its margin."""
    drawn = segno.make(text, error="m", micro=False).svg_inline(
        dark="#000000", light="#ffffff", omitsize=True
    )
    return drawn.replace("<svg ", '<svg role="img" aria-label="The card as a QR code" ', 1)
