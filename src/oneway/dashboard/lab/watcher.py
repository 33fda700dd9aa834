"""What all open pages of a lab share: its latest frame, and how its curves went so far."""

from __future__ import annotations

import asyncio

from oneway.dashboard.lab.client import LabClient
from oneway.dashboard.thinned import Thinned
from oneway.errors import OnewayError, TransportError
from oneway.records.network import NetworkFrame, ReferenceCurve

LOOK_SECONDS = 1.0
MOST_POINTS = 4000
"""Of the loss curves of all peers together: what a browser draws again every second or two."""

CURVE_POINTS = 160


class LabWatcher:
    """Asks the lab once a second, whoever looks.

    Attributes:
        client: The lab.
        frame: Its latest frame; None before the first.
        references: The simulator's curves; None until they are ready.
        problem: Why there is no news, as a sentence; empty if there is.
        losses: Average loss so far over samples, by peer.
        disagreement: Over seconds.
    """

    def __init__(self, client: LabClient) -> None:
        self.client = client
        self.frame: NetworkFrame | None = None
        self.references: list[ReferenceCurve] | None = None
        self.problem = ""
        self.losses: dict[str, Thinned] = {}
        self.disagreement = Thinned(CURVE_POINTS)

    async def watch(self) -> None:
        """Look again and again; ends when cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once; what goes wrong is told in `problem`."""
        try:
            frame = await self.client.frame()
            if self.references is None:
                self.references = await self.client.references()
        except TransportError as error:
            self.problem = str(error)
            return
        except OnewayError as error:
            self.problem = f"the lab says: {error}"
            return
        self.problem = ""
        if frame is not None and (self.frame is None or frame.number != self.frame.number):
            self._remember(frame)

    def _remember(self, frame: NetworkFrame) -> None:
        self.frame = frame
        limit = max(24, min(CURVE_POINTS, MOST_POINTS // max(1, len(frame.peers))) // 2 * 2)
        for peer in frame.peers:
            if peer.average_loss is not None:
                curve = self.losses.setdefault(peer.name, Thinned(limit))
                curve.add(peer.samples, peer.average_loss)
        if frame.disagreement is not None and frame.disagreement > 0.0:
            self.disagreement.add(frame.seconds, frame.disagreement)
