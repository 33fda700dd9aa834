"""What one wants to know first: whether the peer runs, and its numbers."""

from __future__ import annotations

from nicegui import ui

from oneway.dashboard.components.amounts import ago, size
from oneway.dashboard.components.stat import Stat
from oneway.dashboard.peer.source import PeerLook
from oneway.dashboard.peer.state import State, state_of
from oneway.records.status import Status


class Headline:
    """The state beside the heading, a banner if there is something to say, and the numbers."""

    def __init__(self, beside: ui.element) -> None:
        """Make it empty.

        Args:
            beside: The place beside the page's heading.
        """
        self._state: State | None = None
        with beside:
            self._word = ui.label("").classes("ow-chip").props("data-state role=status")
        self._banner = ui.element("div").classes("ow-banner").props("role=status data-banner")
        with self._banner:
            self._sentence = ui.label("")
            self._command = ui.label("").classes("ow-mono")
        self._problem = ui.label("").classes("ow-banner bad").props("role=alert data-problem")
        self._note = ui.label("").classes("ow-soft")
        with ui.element("div").classes("ow-stats"):
            self._samples = Stat("Samples", key="samples")
            self._average = Stat("Average loss", "per sample", key="average-loss")
            self._recent = Stat("Loss lately", "per sample", key="recent-loss")
            self._accuracy = Stat("Accuracy", "%", key="accuracy")
            self._mass = Stat("Mass", key="mass")
            self._rejected = Stat("Rejected", "messages", key="rejected")
            self._commit = Stat("A commit to the disk", "ms", key="commit")

    def show(self, look: PeerLook) -> None:
        """Bring it up to date."""
        self._show_state(state_of(look))
        self._problem.text = look.problem
        self._problem.set_visibility(bool(look.problem))
        self._note.text = look.note
        self._note.set_visibility(bool(look.note))
        if look.status is not None:
            self._show_numbers(look.status, look)

    def _show_state(self, state: State) -> None:
        before, self._state = self._state, state
        if state == before:
            return
        self._word.text = state.word
        self._sentence.text = state.sentence
        self._command.text = state.command
        self._command.set_visibility(bool(state.command))
        self._banner.set_visibility(bool(state.sentence))
        if before is None or before.mood != state.mood:
            for element in (self._word, self._banner):
                element.classes(remove="good bad quiet", add=state.mood)

    def _show_numbers(self, status: Status, look: PeerLook) -> None:
        last = f"the last {ago(status.last_sample, look.time)}" if status.last_sample else ""
        self._samples.show(f"{status.samples:,}", last)
        self._average.show(_loss(status.average_loss), "over all samples")
        self._recent.show(_loss(status.recent_loss), "over the last 200 or so")
        if status.accuracy is None:
            self._accuracy.show("-", "" if look.has_classes else "numbers are predicted", unit="")
        else:
            self._accuracy.show(
                f"{100 * status.accuracy:.1f}", "each predicted before it was learned", unit="%"
            )
        units = f"exactly {status.mass_units:,} units of 2\u207b\u2074\u2070"
        self._mass.show(
            f"{status.mass:.4f}", units if status.minted else f"{units}; its own 1 is not in it yet"
        )
        quarantined = sum(sender.quarantined for sender in status.senders)
        total = sum(sender.num_rejected for sender in status.senders) + status.undecodable
        self._rejected.show(
            f"{total:,}",
            f"{quarantined} in quarantine" if quarantined else "nobody in quarantine",
            mark="bad" if quarantined else "",
        )
        free = "" if look.disk_free is None else f"{size(look.disk_free)} free"
        self._commit.show(
            f"{1000 * status.commit_seconds:.1f}",
            status.disk_problem or free,
            mark="bad" if status.disk_problem else "",
        )


def _loss(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:.4f}"
