"""The page of one's own peer, put together, and brought up to date once a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from nicegui import ui

from oneway.dashboard.components.elements import page_frame
from oneway.dashboard.components.measures_card import MeasuresCard
from oneway.dashboard.peer.cards import (
    Headline,
    HealthCard,
    LearningCharts,
    OwnCard,
    PrivacyCard,
)
from oneway.dashboard.peer.predict import PredictCard
from oneway.dashboard.peer.trust import RECEIVERS, SENDERS, EdgesCard
from oneway.web.peer_page import PeerLook, PeerSource

FRESH_SECONDS = 0.8
"""A look is shared by all requests within this time."""

_CSS = (Path(__file__).parent / "peer.css").read_text(encoding="utf-8")
_SECONDS = 1.0


class PeerWatcher:
    """Shared reads of a peer: one look at a time, for all open pages.

    Attributes:
        source: Whom it asks.
        last: What it saw last.
    """

    def __init__(self, source: PeerSource, clock: Callable[[], float] = time.monotonic) -> None:
        """Look for the first time, here and now."""
        self.source = source
        self.last = source.look()
        self._clock = clock
        self._due = clock() + FRESH_SECONDS
        self._looking = asyncio.Lock()

    async def look(self) -> PeerLook:
        """Return what is to be seen now; files are read in a thread."""
        async with self._looking:
            if self._clock() >= self._due:
                self.last = await asyncio.to_thread(self.source.look)
                self._due = self._clock() + FRESH_SECONDS
        return self.last

    def forget(self) -> None:
        """Invalidate the last look: something was changed."""
        self._due = self._clock()


def register_peer_page(source: PeerSource) -> None:
    """Declare the page; all who open it share the source."""
    watcher = PeerWatcher(source)

    @ui.page("/")
    def index() -> None:
        _build(watcher)


def _build(watcher: PeerWatcher) -> None:
    client = ui.context.client

    def show(look: PeerLook) -> None:
        for part in parts:
            part.show(look)
        measures.show(None if look.status is None else look.status.measures)

    async def refresh() -> None:
        look = await watcher.look()
        if not client.is_deleted:
            show(look)

    def changed() -> None:
        watcher.forget()
        ui.timer(0, refresh, once=True)

    ui.add_css(_CSS)
    with page_frame(f"{watcher.last.name}, a peer") as beside:
        headline = Headline(beside)
        charts = LearningCharts()
        measures = MeasuresCard()
        privacy = PrivacyCard()
        with ui.element("div").classes("ow-grid halves"):
            receivers = EdgesCard(RECEIVERS, watcher.source, changed)
            senders = EdgesCard(SENDERS, watcher.source, changed)
            predict = PredictCard(watcher.source)
            own_card = OwnCard()
            health = HealthCard()
    parts = (headline, charts, privacy, receivers, senders, predict, own_card, health)
    show(watcher.last)
    ui.timer(_SECONDS, refresh)
