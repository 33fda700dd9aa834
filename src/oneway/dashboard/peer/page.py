"""The page of one's own peer, put together, and brought up to date once a second."""

from __future__ import annotations

from pathlib import Path

from nicegui import ui

from oneway.dashboard.components.frame import page_frame
from oneway.dashboard.peer.card import CardCard
from oneway.dashboard.peer.charts import LearningCharts
from oneway.dashboard.peer.headline import Headline
from oneway.dashboard.peer.health import HealthCard
from oneway.dashboard.peer.predict import PredictCard
from oneway.dashboard.peer.source import PeerSource
from oneway.dashboard.peer.trust import ReceiversCard, SendersCard
from oneway.dashboard.peer.watcher import PeerWatcher

_CSS = (Path(__file__).parent / "peer.css").read_text(encoding="utf-8")
_SECONDS = 1.0


def register_peer_page(source: PeerSource) -> None:
    """Declare the page.

    Args:
        source: Where everything comes from; one for all who open the page.
    """
    watcher = PeerWatcher(source)

    @ui.page("/")
    def index() -> None:
        _build(watcher)


def _build(watcher: PeerWatcher) -> None:
    client = ui.context.client

    async def refresh() -> None:
        look = await watcher.look()
        if client.is_deleted:
            return
        for part in parts:
            part.show(look)

    def changed() -> None:
        watcher.forget()
        ui.timer(0, refresh, once=True)

    ui.add_css(_CSS)
    with page_frame(f"{watcher.last.name}, a peer") as beside:
        headline = Headline(beside)
        charts = LearningCharts()
        with ui.element("div").classes("ow-grid halves"):
            receivers = ReceiversCard(watcher.source, changed)
            senders = SendersCard(watcher.source, changed)
        with ui.element("div").classes("ow-grid halves"):
            predict = PredictCard(watcher.source)
            card = CardCard()
        with ui.element("div").classes("ow-grid halves"):
            health = HealthCard()
    parts = (headline, charts, receivers, senders, predict, card, health)
    for part in parts:
        part.show(watcher.last)
    ui.timer(_SECONDS, refresh)
