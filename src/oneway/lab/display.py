"""A lab on a screen: one line per peer, one for all of them, and what happened last."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from oneway.lab.rest import Look
from oneway.lab.result import Result

_EVENTS_SHOWN = 5
_COLOURS = {"up": "green", "paused": "yellow", "starting": "cyan", "down": "red"}


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


def _table(first: str, others: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _loss(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:.4f}"
