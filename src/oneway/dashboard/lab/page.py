"""The page of a lab: the trust graph, the curves, the mass, the controls and the log."""

from __future__ import annotations

from nicegui import ui

from oneway.dashboard.components.amounts import byte_rate, short
from oneway.dashboard.components.chart import Chart
from oneway.dashboard.components.colours import loss_gradient
from oneway.dashboard.components.frame import card, page_frame
from oneway.dashboard.components.legend import legend_html, trust_legend_html
from oneway.dashboard.components.stat import Stat
from oneway.dashboard.components.trust_picture import TrustPicture
from oneway.dashboard.lab.controls import Controls
from oneway.dashboard.lab.curves import disagreement_line, loss_lines, worth_of_one_way
from oneway.dashboard.lab.log import Log
from oneway.dashboard.lab.mass import exact_mass, mass_note
from oneway.dashboard.lab.picked import Picked
from oneway.dashboard.lab.picture import arrow, circle
from oneway.dashboard.lab.watcher import LabWatcher
from oneway.records.network import NetworkFrame

REFRESH_SECONDS = 0.5
CHART_TURNS = 4
"""Charts are drawn every so many refreshes: they change slowly, and cost most."""

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


class LabPage:
    """One open page; what all pages share is in the watcher."""

    def __init__(self, watcher: LabWatcher) -> None:
        self._watcher = watcher
        self._picked: str | None = None
        self._turn = 0
        self._shown = -1
        with page_frame("oneway lab") as beside:
            with beside:
                self._phase = ui.badge("starting").props("outline").classes("text-sm")
                self._title = ui.label("").classes("ow-soft")
            self._problem = ui.label("").classes("ow-bad").props("role=alert")
            self._result = ui.element("section").classes("ow-card").props("data-result")
            self._make_stats()
            with ui.element("div").classes("ow-grid halves"):
                with ui.element("div").classes("ow-grid content-start"):
                    self._make_picture()
                    self._controls = Controls(watcher.client, self._pick)
                with ui.element("div").classes("ow-grid content-start"):
                    self._make_charts()
                    self._log = Log()
        self._result.visible = False
        self.refresh()
        ui.timer(REFRESH_SECONDS, self.refresh)

    def refresh(self) -> None:
        """Show the latest frame, if it is a new one."""
        watcher, frame = self._watcher, self._watcher.frame
        self._problem.text = watcher.problem
        self._problem.visible = bool(watcher.problem)
        if frame is None or frame.number == self._shown:
            return
        self._shown = frame.number
        self._title.text = f"{frame.title}, for {frame.seconds:.0f} s{_next_step(frame)}"
        self._phase.text = frame.phase
        self._show_stats(frame)
        self._show_picture(frame)
        self._controls.show(frame, self._picked)
        self._log.show(frame.events, frame.num_events)
        self._show_result(frame)
        if self._turn % CHART_TURNS == 0 or frame.result:
            self._show_charts()
        self._turn += 1

    # What there is to see.

    def _make_stats(self) -> None:
        with ui.element("div").classes("ow-stats"):
            self._mass = Stat("Total mass", key="mass")
            self._peers = Stat("Peers", "up", key="peers")
            self._disagreement = Stat("Disagreement", "squared distance", key="disagreement")
            self._messages = Stat("Messages", "per second", key="messages")
            self._bytes = Stat("Traffic", "B/s", key="bytes")

    def _show_stats(self, frame: NetworkFrame) -> None:
        note, mark = mass_note(frame.mass)
        brought = f"of {exact_mass(frame.mass.brought)} brought"
        self._mass.show(exact_mass(frame.mass.total), note, unit=brought, mark=mark)
        down = sum(peer.state == "down" for peer in frame.peers)
        if frame.result:
            self._peers.show(f"0 of {len(frame.peers)}", "stopped, to be counted")
        else:
            self._peers.show(
                f"{len(frame.peers) - down} of {len(frame.peers)}",
                f"{down} down" if down else "all processes run",
            )
        self._disagreement.show(short(frame.disagreement), "between the peers' models")
        self._messages.show(f"{frame.messages_per_second:,.0f}", _lost(frame.loss_rate))
        value, unit = byte_rate(frame.bytes_per_second)
        self._bytes.show(value, "sent by all peers", unit=unit)

    def _make_picture(self) -> None:
        with card("Who sends to whom"):
            self._about = Picked(self._watcher.client)
            self._picture = TrustPicture(self._pick)
            ui.html(trust_legend_html(_LEGEND), sanitize=False)
            with ui.element("div").classes("ow-legend"):
                self._worst = ui.label("recent loss per sample: worst")
                ui.element("span").classes("ow-scale").style(f"background: {loss_gradient()}")
                self._best = ui.label("best")

    def _show_picture(self, frame: NetworkFrame) -> None:
        losses, masses = self._watcher.loss_range, self._watcher.usual_mass
        circles = [circle(peer, masses[peer.name], losses) for peer in frame.peers]
        self._picture.show(circles, list(map(arrow, frame.edges)), self._picked)
        self._about.show(frame, masses, self._picked)
        if losses is not None:
            self._worst.text = f"recent loss per sample: worst {losses[1]:.2f}"
            self._best.text = f"best {losses[0]:.2f}"

    def _make_charts(self) -> None:
        with card("Average loss so far"):
            self._losses = Chart(
                "Average loss of every peer over its samples, and of five simulated methods",
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
        lines = loss_lines(self._watcher, self._picked)
        self._losses.show(lines)
        self._legend.content = legend_html(lines)
        self._worth.text = worth_of_one_way(self._watcher)
        self._distances.show([disagreement_line(self._watcher)])

    def _show_result(self, frame: NetworkFrame) -> None:
        if not frame.result or self._result.visible:
            return
        self._result.visible = True
        if self._turn:  # somebody was looking, perhaps at something further down
            ui.run_javascript(f"getHtmlElement({self._result.id}).scrollIntoView()")
        with self._result:
            ui.html("<h2>The end: everything was counted</h2>", sanitize=False)
            for number, sentence in enumerate(frame.result):
                good = "ow-good" if frame.result_is_exact else "ow-bad"
                ui.label(sentence).classes(good if number == 0 else "")

    # What one can do.

    def _pick(self, peer: str | None) -> None:
        frame = self._watcher.frame
        if frame is None or peer == self._picked:
            return
        self._picked = peer
        self._show_picture(frame)
        self._controls.show(frame, peer)
        self._show_charts()


def _lost(share: float) -> str:
    return f"{100 * share:g}% lost on purpose" if share else "none lost on purpose"


def _next_step(frame: NetworkFrame) -> str:
    if frame.phase == "all samples are learned from":
        return "; press Finish and audit to count every unit"
    return "; Ctrl-C in the shell ends the page" if frame.result else ""
