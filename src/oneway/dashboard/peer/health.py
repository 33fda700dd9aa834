"""What was not taken in, how the disk does, and what went over the wire."""

from __future__ import annotations

from nicegui import ui

from oneway.dashboard.components.amounts import size
from oneway.dashboard.components.facts import FactList
from oneway.dashboard.components.frame import card
from oneway.dashboard.peer.source import PeerLook
from oneway.dashboard.peer.state import complaints
from oneway.records.status import Status


class HealthCard:
    """Rejected messages and quarantines, in sentences; disk and traffic, in numbers."""

    def __init__(self) -> None:
        """Make it empty."""
        self._said: list[str] | None = None
        with card("Rejected, and quarantine"):
            self._list = ui.element("ul").classes("ow-said").props("data-complaints")
        with card("Disk and network"):
            self._problem = ui.label("").classes("ow-bad").props("role=alert")
            self._facts = FactList(abreast=True)

    def show(self, look: PeerLook) -> None:
        """Bring it up to date."""
        self._show_complaints(look.status)
        problem = "" if look.status is None else look.status.disk_problem
        self._problem.text = problem
        self._problem.set_visibility(bool(problem))
        self._facts.show(
            [
                ("state on the disk", size(look.store_bytes) if look.store_bytes else "none yet"),
                ("free", "not known" if look.disk_free is None else size(look.disk_free)),
                *_traffic(look.status).items(),
            ]
        )

    def _show_complaints(self, status: Status | None) -> None:
        said = [] if status is None else complaints(status)
        if said == self._said:
            return
        self._said = said
        self._list.clear()
        with self._list:
            for sentence in said or ["Nothing was rejected, and nobody is in quarantine."]:
                with ui.element("li"):
                    ui.label(sentence)


def _traffic(status: Status | None) -> dict[str, str]:
    if status is None:
        return dict.fromkeys(("commits", "received", "sent"), "none yet")
    return {
        "commits": f"{status.commits:,}, {1000 * status.commit_seconds:.1f} ms each",
        "received": f"{status.frames_in:,} messages, {size(status.bytes_in)}",
        "sent": f"{status.frames_out:,} messages, {size(status.bytes_out)}",
    }
