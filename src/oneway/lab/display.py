"""A lab on a screen: one line per peer, one for all of them, and what happened last."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from oneway.lab.rest import Look
from oneway.lab.result import Result
from oneway.records.status import Status

_EVENTS_SHOWN = 5
_COLOURS = {"up": "green", "paused": "yellow", "starting": "cyan", "down": "red"}


class Meter:
    """What all peers send per second together, by what they say one after another.

    Attributes:
        bytes_per_second: As of the last reading.
    """

    def __init__(self) -> None:
        self.bytes_per_second = 0.0
        self._last: dict[bytes, Status] = {}
        self._rates: dict[bytes, tuple[float, float]] = {}

    def read(self, looks: Sequence[Look]) -> float:
        """Messages per second, as of the last status of each peer that runs."""
        for look in looks:
            status = look.status
            if status is None or look.state in ("down", "starting"):
                self._rates.pop(look.key, None)
                continue
            before = self._last.get(look.key)
            if before is not None and before.pid == status.pid and status.time > before.time:
                seconds = status.time - before.time
                self._rates[look.key] = (
                    (status.frames_out - before.frames_out) / seconds,
                    (status.bytes_out - before.bytes_out) / seconds,
                )
            self._last[look.key] = status
        self.bytes_per_second = sum(of_bytes for _, of_bytes in self._rates.values())
        return sum(messages for messages, _ in self._rates.values())


def network_table(
    looks: Sequence[Look], events: Sequence[str], phase: str, messages_per_second: float
) -> RenderableType:
    """The peers of a lab at one moment."""
    table = _table("peer", ["state", "samples", "loss", "mass", "in", "out", "starts"])
    mass, samples = 0.0, 0
    for look in looks:
        status = look.status
        state = Text(look.state, style=_COLOURS[look.state])
        if status is None:
            table.add_row(look.name, state, *["-"] * 5, str(look.restarts + 1))
            continue
        mass, samples = mass + status.mass, samples + status.samples
        table.add_row(
            look.name,
            state,
            f"{status.samples:,}",
            _loss(status.recent_loss),
            f"{status.mass:.3f}",
            str(sum(not sender.closed and sender.seq > 0 for sender in status.senders)),
            str(sum(receiver.phase == "open" for receiver in status.receivers)),
            str(look.restarts + 1),
        )
    table.add_section()
    table.add_row("all", "", f"{samples:,}", "", f"{mass:.3f}", "", "", "", style="bold")
    # What is on its way is in nobody's mass: the sum is exact only when the network is quiet.
    summary = Text(f"{phase}, {messages_per_second:,.0f} messages per second", style="dim")
    recent = Text("\n".join(events[-_EVENTS_SHOWN:]), style="dim")
    return Group(table, summary, recent)


def result_table(result: Result) -> Table:
    """The peers in the end."""
    table = _table("peer", ["samples", "loss", "mass", "restarts"])
    for peer in result.peers:
        table.add_row(
            peer.name,
            f"{peer.samples:,}",
            _loss(peer.average_loss),
            f"{peer.mass:.4f}",
            str(peer.restarts),
        )
    return table


def result_sentences(result: Result) -> list[str]:
    """The audit and the comparison."""
    said = list(result.audit.sentences)
    losses = result.comparison
    if losses is not None:
        more = losses.together / losses.simulated - 1.0 if losses.simulated else 0.0
        said.append(
            f"average loss {losses.together:.4f}; in the simulator, same graph, samples and "
            f"order, {losses.simulated:.4f} ({more:+.1%}); each alone {losses.alone:.4f}"
        )
    return said


def _table(first: str, others: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _loss(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:.4f}"
