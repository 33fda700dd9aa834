"""What happened, in sentences, the newest first."""

from __future__ import annotations

from collections.abc import Sequence

from nicegui import ui

from oneway.dashboard.components.frame import card

MOST_LINES = 60


class Log:
    """The last events of a lab."""

    def __init__(self) -> None:
        with card("What happened"):
            self._list = ui.element("ul").classes("ow-log").props("role=log aria-live=polite")
            self._list.props("tabindex=0 aria-label=Events")
        self._known = 0

    def show(self, events: Sequence[str], num_events: int) -> None:
        """Show the events that are new.

        Args:
            events: The last ones, oldest first.
            num_events: How many there were in all.
        """
        new = min(num_events - self._known, len(events))
        self._known = num_events
        if new <= 0:
            return
        for event in events[-new:]:
            with self._list, ui.element("li") as item:
                ui.label(event)
            item.move(target_index=0)
        for old in list(self._list)[MOST_LINES:]:
            old.delete()
