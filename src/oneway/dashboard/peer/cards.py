"""Cards of the page of a peer that only show: state and figures, charts, own card, health."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import segno
from nicegui import ui

from oneway.dashboard.components.chart import Chart, Line
from oneway.dashboard.components.colours import AMBER, BLUE, GREEN, INK, ORANGE
from oneway.dashboard.components.elements import (
    FactList,
    Figures,
    card,
    empty,
    say,
    sentences,
    set_mood,
)
from oneway.dashboard.components.numbers import size
from oneway.dashboard.peer.status_figures import complaints, figures, privacy_of, state_of
from oneway.metrics.learning_curve import (
    accuracies,
    coarser,
    known_means,
    last_samples,
    mean_losses,
    recent_width,
)
from oneway.metrics.measure_rows import ALONE, BASE_RATE, SHARED
from oneway.records.curve import Curve
from oneway.web.peer_page import PeerLook

_MOST_POINTS = 512
_X = "samples learned from"
_COPY = '() => window.owCopy("[data-card]", "[data-copied]")'


class Headline:
    """The state beside the heading, a banner if there is something to say, and the figures."""

    def __init__(self, beside: ui.element) -> None:
        with beside:
            self._word = ui.label("").classes("ow-chip").props("data-state role=status")
        self._banner = ui.element("div").classes("ow-banner").props("role=status data-banner")
        with self._banner:
            self._sentence = ui.label("")
            self._command = ui.label("").classes("ow-mono")
        self._problem = ui.label("").classes("ow-banner bad").props("role=alert data-problem")
        self._note = ui.label("").classes("ow-soft")
        self._figures = Figures()

    def show(self, look: PeerLook) -> None:
        """Bring it up to date."""
        state = state_of(look)
        self._word.text = state.word
        self._sentence.text = state.sentence
        say(self._command, state.command)
        self._banner.set_visibility(bool(state.sentence))
        set_mood(self._word, state.mood)
        set_mood(self._banner, state.mood)
        say(self._problem, look.problem)
        say(self._note, look.note)
        self._figures.show(figures(look))


class LearningCharts:
    """Loss and accuracy over samples, from the first one on."""

    def __init__(self) -> None:
        self._curve: Curve | None = None
        with ui.element("div").classes("ow-grid") as self._grid:
            with card("Loss"):
                self._empty = empty("No samples yet. Give the peer something to learn from:")
                with self._empty:
                    ui.label("oneway peer run --data FILE").classes("ow-mono")
                self._loss = Chart("Loss of this peer", x=_X, y="loss per sample")
                self._late = ui.label("").classes("ow-soft")
            with ui.element("div") as self._second, card("Accuracy"):
                self._accuracy = Chart("Accuracy of this peer", x=_X, y="right, in %", most_y=100)

    def show(self, look: PeerLook) -> None:
        """Draw the curve, unless it is drawn already."""
        if look.curve == self._curve:
            return
        self._curve = look.curve
        has_samples = bool(look.curve.samples)
        has_accuracy = has_samples and look.classifies
        self._empty.set_visibility(not has_samples)
        self._loss.set_visibility(has_samples)
        self._second.set_visibility(has_accuracy)
        self._grid.classes(remove="halves", add="halves" if has_accuracy else None)
        before = look.curve.before
        self._late.text = (
            f"The curve begins after sample {before:,}; how it went before was not kept."
            if before
            else ""
        )
        self._draw()

    def _draw(self) -> None:
        if self._curve is None or not self._curve.samples:
            return
        curve = coarser(self._curve, _MOST_POINTS)
        xs = last_samples(curve)
        lately = f"the last {recent_width(curve):,} samples"
        baselines = [
            Line(name, _known_points(xs, means), *style)
            for name, sums, style in (
                (SHARED, curve.shared_sums, (AMBER, "dashed", 2.0)),
                (ALONE, curve.alone_sums, (GREEN, "dotted", 2.0)),
                (BASE_RATE, curve.base_sums, (INK, "dashed")),
            )
            if (means := known_means(sums, curve))
        ]
        for chart, factor, recent, so_far in (
            (self._loss, 1, mean_losses(curve, recent=True), mean_losses(curve)),
            (self._accuracy, 100, accuracies(curve, recent=True), accuracies(curve)),
        ):
            lines = [
                Line(lately, _points(xs, recent, factor), ORANGE, width=1.3),
                Line("all so far", _points(xs, so_far, factor), BLUE, width=2.6),
            ]
            if chart is self._loss:
                lines += baselines
            chart.show(lines)


def _points(xs: Sequence[float], ys: Sequence[float], factor: float) -> list[tuple[float, float]]:
    # More digits would only be in the way of whoever points at the chart.
    return [(x, round(factor * y, 4)) for x, y in zip(xs, ys, strict=True)]


def _known_points(xs: Sequence[float], ys: Sequence[float | None]) -> list[tuple[float, float]]:
    return [(x, round(y, 4)) for x, y in zip(xs, ys, strict=True) if y is not None]


class OwnCard:
    """The peer's card, to hand to others: as text that can be copied, and as QR code."""

    def __init__(self) -> None:
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
        say(self._problem, look.card_problem)
        self._box.set_visibility(bool(look.card))
        self._text.text = look.card
        self._code.content = qr_code(look.card) if look.card else ""


@lru_cache(8)
def qr_code(text: str) -> str:
    """A text as an SVG that scans on a dark page too: black on white, with its margin."""
    drawn = segno.make(text, error="m", micro=False).svg_inline(
        dark="#000000", light="#ffffff", omitsize=True
    )
    return drawn.replace("<svg ", '<svg role="img" aria-label="The card as a QR code" ', 1)


class PrivacyCard:
    """What the peer promises about its samples, and how many it keeps back until there are more."""

    def __init__(self) -> None:
        with card("Privacy"):
            self._sentence = ui.label("").props("data-privacy")
            self._facts = FactList(abreast=True)

    def show(self, look: PeerLook) -> None:
        """Bring it up to date."""
        said = privacy_of(look)
        self._sentence.text = said.sentence
        self._sentence.classes(remove="ow-bad", add="ow-bad" if said.is_bad else None)
        self._facts.show(said.facts)


class HealthCard:
    """Rejected messages and quarantines, in sentences; disk and traffic, in numbers."""

    def __init__(self) -> None:
        self._said: list[str] | None = None
        with card("Rejected, and quarantine"):
            self._list = ui.element("ul").classes("ow-said").props("data-complaints")
        with card("Disk and network"):
            self._problem = ui.label("").classes("ow-bad").props("role=alert")
            self._facts = FactList(abreast=True)

    def show(self, look: PeerLook) -> None:
        """Bring it up to date."""
        status = look.status
        said = [] if status is None else complaints(status)
        if said != self._said:
            self._said = said
            self._list.clear()
            with self._list:
                sentences(said or ["Nothing was rejected, and nobody is in quarantine."])
        say(self._problem, "" if status is None else status.disk_problem)
        traffic = dict.fromkeys(("commits", "received", "sent"), "none yet")
        if status is not None:
            traffic = {
                "commits": f"{status.commits:,}, {1000 * status.commit_seconds:.1f} ms each",
                "received": f"{status.frames_in:,} messages, {_size(status.bytes_in)}",
                "sent": f"{status.frames_out:,} messages, {_size(status.bytes_out)}",
            }
            if status.receipts:
                traffic["receipts of peers that left"] = f"{status.receipts:,}, kept for others"
        self._facts.show(
            [
                ("state on the disk", _size(look.store_bytes) if look.store_bytes else "none yet"),
                ("free", "not known" if look.disk_free is None else _size(look.disk_free)),
                *traffic.items(),
            ]
        )


def _size(count: int) -> str:
    return " ".join(size(count))
