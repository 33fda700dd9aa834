"""Loss and accuracy of a peer from its first sample on, over samples or over the time of day."""

from __future__ import annotations

from collections.abc import Sequence

from nicegui import ui

from oneway.dashboard.components.chart import Chart, Line, XKind
from oneway.dashboard.components.colours import BLUE, ORANGE
from oneway.dashboard.components.frame import card, empty
from oneway.dashboard.peer.source import PeerLook
from oneway.metrics.learning_curve import (
    accuracies,
    average_losses,
    coarser,
    last_samples,
    recent_accuracies,
    recent_losses,
    recent_width,
)
from oneway.records.curve import Curve

_MOST_POINTS = 512
_SAMPLES = "over samples"
_TIME = "over time"
_X: dict[str, tuple[str, XKind]] = {
    _SAMPLES: ("samples learned from", "value"),
    _TIME: ("time of day", "time"),
}


class LearningCharts:
    """Two charts over the same x axis; `show` brings them up to date."""

    def __init__(self) -> None:
        """Make them empty."""
        self._curve: Curve | None = None
        with ui.element("div").classes("ow-grid") as self._grid:
            with card("Loss") as beside:
                with beside:
                    self._switch = ui.toggle(
                        [_SAMPLES, _TIME], value=_SAMPLES, on_change=self._draw
                    )
                    self._switch.props('no-caps unelevated padding="2px 10px"')
                    self._switch.props('aria-label="What the charts are drawn over"')
                self._empty = empty("No samples yet. Give the peer something to learn from:")
                with self._empty:
                    ui.label("oneway peer run --data FILE").classes("ow-mono")
                self._loss = Chart("Loss of this peer", x=_X[_SAMPLES][0], y="loss per sample")
                self._late = ui.label("").classes("ow-soft")
            with ui.element("div") as self._second, card("Accuracy"):
                self._accuracy = Chart(
                    "Accuracy of this peer", x=_X[_SAMPLES][0], y="right, in %", most_y=100
                )

    def show(self, look: PeerLook) -> None:
        """Draw the curve, unless it is drawn already."""
        if look.curve == self._curve:
            return
        self._curve = look.curve
        has_samples = bool(look.curve.samples)
        has_accuracy = has_samples and look.has_classes
        self._empty.set_visibility(not has_samples)
        self._loss.set_visibility(has_samples)
        self._switch.set_visibility(has_samples)
        self._second.set_visibility(has_accuracy)
        self._grid.classes(
            add="halves" if has_accuracy else None, remove=None if has_accuracy else "halves"
        )
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
        over_time = self._switch.value == _TIME
        xs = [1000 * time for time in curve.times] if over_time else last_samples(curve)
        lately = f"the last {recent_width(curve):,} samples"
        for chart, recent, so_far in (
            (self._loss, recent_losses(curve), average_losses(curve)),
            (self._accuracy, _percent(recent_accuracies(curve)), _percent(accuracies(curve))),
        ):
            chart.set_x(*_X[_TIME if over_time else _SAMPLES])
            chart.show(
                [
                    Line(lately, _points(xs, recent), ORANGE, width=1.3),
                    Line("all so far", _points(xs, so_far), BLUE, width=2.6),
                ]
            )


def _percent(shares: Sequence[float]) -> list[float]:
    return [100 * share for share in shares]


def _points(xs: Sequence[float], ys: Sequence[float]) -> list[tuple[float, float]]:
    # More digits would only be in the way of whoever points at the chart.
    return [(x, round(y, 4)) for x, y in zip(xs, ys, strict=True)]
