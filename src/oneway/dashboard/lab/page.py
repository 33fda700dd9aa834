"""The page of a lab, and the process beside the lab that serves it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial

from nicegui import ui

from oneway.dashboard.components.chart import Chart, Line, legend_html
from oneway.dashboard.components.colours import BLUE, loss_gradient
from oneway.dashboard.components.elements import Figures, card, page_frame, say, sentences
from oneway.dashboard.components.trust_picture import TrustPicture, trust_legend_html
from oneway.dashboard.lab import frame_text
from oneway.dashboard.lab.client import LabClient
from oneway.dashboard.lab.controls import Controls, Do, PickedPeer, carry_out
from oneway.dashboard.lab.watcher import LabWatcher
from oneway.dashboard.server import serve
from oneway.records.network import NetworkFrame

REFRESH_SECONDS = 0.5
CHART_TURNS = 4
"""Charts are drawn every so many refreshes: they change slowly, and cost most."""
MOST_LINES = 60

_LEGEND = """<span><svg viewBox="0 0 40 14" aria-hidden="true"><circle cx="9" cy="7" r="3.5"
fill="var(--ow-soft)"/><circle cx="26" cy="7" r="6.5" fill="var(--ow-soft)"/></svg>area: mass
lately</span>
<span><svg viewBox="0 0 40 14" aria-hidden="true"><circle cx="20" cy="7" r="6.5"
fill="var(--ow-dead)"/><path d="M17 4l6 6m0-6l-6 6" stroke="var(--ow-paper)"
stroke-width="1.5"/></svg>down</span>
<span><svg viewBox="0 0 40 14" aria-hidden="true"><path d="M2 7h36" stroke="var(--ow-soft)"
stroke-width="2" stroke-dasharray="5 4"/><path d="M16 3l8 8m0-8l-8 8" stroke="var(--ow-bad)"
stroke-width="2"/></svg>cut</span>
<span><svg viewBox="0 0 40 14" aria-hidden="true"><circle cx="20" cy="7" r="4"
fill="var(--ow-ink)"/></svg>a push arriving</span>"""


def serve_lab(
    listener: socket.socket,
    host: str,
    token: str,
    lab_url: str,
    lab_token: str,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve the page of a lab, in a process of its own beside the lab's; see `serve`.

    `lab_url` is the lab's API, and `lab_token` what it wants to be shown.
    """
    watcher = LabWatcher(LabClient(lab_url, lab_token))

    def register() -> None:
        @ui.page("/")
        def lab() -> None:
            LabPage(watcher)

    serve(register, listener, host, token=token, ready=ready, beside=watcher.watch)


class LabPage:
    """One open page: graph, curves, mass, controls, log; what all pages share is in the watcher."""

    def __init__(self, watcher: LabWatcher) -> None:
        self._watcher = watcher
        do = partial(carry_out, watcher.client)
        self._picked: str | None = None
        self._turn = 0
        self._shown = -1
        self._num_events = 0
        with page_frame("oneway lab") as beside:
            with beside:
                self._phase = ui.badge("starting").props("outline").classes("text-sm")
                self._title = ui.label("").classes("ow-soft")
            self._problem = ui.label("").classes("ow-bad").props("role=alert")
            self._result = ui.element("section").classes("ow-card").props("data-result")
            self._figures = Figures()
            with ui.element("div").classes("ow-grid halves"):
                with ui.element("div").classes("ow-grid content-start"):
                    self._make_picture(do)
                    self._controls = Controls(do, self._pick)
                with ui.element("div").classes("ow-grid content-start"):
                    self._make_charts()
                    with card("What happened"):
                        self._log = ui.element("ul").classes("ow-log")
                        self._log.props("role=log aria-live=polite tabindex=0 aria-label=Events")
        self._result.visible = False
        self.refresh()
        ui.timer(REFRESH_SECONDS, self.refresh)

    def refresh(self) -> None:
        """Show the latest frame, if it is a new one."""
        frame = self._watcher.frame
        say(self._problem, self._watcher.problem)
        if frame is None or frame.number == self._shown:
            return
        self._shown = frame.number
        self._title.text = frame_text.headline(frame)
        self._phase.text = frame.phase
        self._figures.show(frame_text.figures(frame))
        self._show_picture(frame)
        self._controls.show(frame, self._picked)
        self._show_events(frame)
        self._show_result(frame)
        if self._turn % CHART_TURNS == 0 or frame.result:
            self._show_charts()
        self._turn += 1

    def _make_picture(self, do: Do) -> None:
        with card("Who sends to whom"):
            self._about = PickedPeer(do)
            self._picture = TrustPicture(self._pick)
            ui.html(trust_legend_html(_LEGEND), sanitize=False)
            with ui.element("div").classes("ow-legend"):
                self._worst = ui.label("recent loss per sample: worst")
                ui.element("span").classes("ow-scale").style(f"background: {loss_gradient()}")
                self._best = ui.label("best")

    def _show_picture(self, frame: NetworkFrame) -> None:
        losses, masses = self._watcher.loss_range, self._watcher.usual_mass
        circles = [frame_text.circle(peer, masses[peer.name], losses) for peer in frame.peers]
        self._picture.show(circles, list(map(frame_text.arrow, frame.edges)), self._picked)
        self._about.show(frame, masses, self._picked)
        if losses is not None:
            self._worst.text = f"recent loss per sample: worst {losses[1]:.2f}"
            self._best.text = f"best {losses[0]:.2f}"

    def _make_charts(self) -> None:
        with card("Average loss so far"):
            self._losses = Chart(
                "Average loss of every peer over its samples, and of the simulated methods",
                x="samples of each peer",
                y="loss per sample",
                legend=False,
            ).style("height: 380px")
            self._legend = ui.html("", sanitize=False)
            ui.label(
                "Thick: what the simulator makes of the same samples in the same order."
            ).classes("ow-soft")
            self._worth = ui.label("").props("data-worth")
        with card("Disagreement"):
            self._distances = Chart(
                "Disagreement of the peers' models over time",
                x="seconds since the start",
                y="mean squared distance from the mean model (logarithmic)",
                log_y=True,
                legend=False,
            ).style("height: 190px")

    def _show_charts(self) -> None:
        lines = frame_text.loss_lines(self._watcher, self._picked)
        self._losses.show(lines)
        self._legend.content = legend_html(lines)
        self._worth.text = frame_text.worth_of_one_way(self._watcher)
        distances = self._watcher.disagreement.points
        self._distances.show([Line("disagreement", distances, BLUE, width=2)])

    def _show_events(self, frame: NetworkFrame) -> None:
        """Put the events that are new on top of the log."""
        new = min(frame.num_events - self._num_events, len(frame.events))
        self._num_events = frame.num_events
        for event in frame.events[len(frame.events) - new :]:
            with self._log:
                sentences([event])
            list(self._log)[-1].move(target_index=0)
        for old in list(self._log)[MOST_LINES:]:
            old.delete()

    def _show_result(self, frame: NetworkFrame) -> None:
        if not frame.result or self._result.visible:
            return
        self._result.visible = True
        if self._turn:  # somebody was looking, perhaps at something further down
            ui.run_javascript(f"getHtmlElement({self._result.id}).scrollIntoView()")
        verdict, *more = frame.result
        with self._result:
            ui.html("<h2>The end: everything was counted</h2>", sanitize=False)
            ui.label(verdict).classes("ow-good" if frame.result_is_exact else "ow-bad")
            for sentence in more:
                ui.label(sentence)

    def _pick(self, peer: str | None) -> None:
        frame = self._watcher.frame
        if frame is None or peer == self._picked:
            return
        self._picked = peer
        self._show_picture(frame)
        self._controls.show(frame, peer)
        self._show_charts()
