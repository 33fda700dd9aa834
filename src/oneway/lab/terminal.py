"""A lab in a terminal: one line per peer, one for all of them, and what happened last."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from oneway.display.terminal_table import TerminalTable
from oneway.lab.result import PeerResult, Result
from oneway.metrics.measure_rows import ALONE, BASE_RATE, SHARED, YOURS, loss_number
from oneway.records.network import NetworkFrame, PeerView

_EVENTS_SHOWN = 5
_LOSSES = (YOURS, SHARED, ALONE, BASE_RATE)
_COLOURS = {"up": "green", "paused": "yellow", "starting": "cyan", "down": "red"}


@contextmanager
def progress() -> Iterator[Callable[[NetworkFrame, str], None]]:
    """Show a lab on stderr while the block runs: live on a terminal, else a line per phase."""
    console = Console(file=sys.stderr, highlight=False)
    if not console.is_terminal:
        told: list[str] = []

        def tell(_: NetworkFrame, doing: str) -> None:
            if doing not in told:
                told.append(doing)
                console.print(Text(f"{doing.capitalize()} ...", style="dim"))

        yield tell
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield lambda frame, doing: live.update(network_table(frame, doing), refresh=True)


def network_table(frame: NetworkFrame, doing: str) -> RenderableType:
    """The peers of a lab at one moment."""
    table = _table("peer", ["state", "samples", "lately", *_LOSSES, "mass", "in", "out", "starts"])
    senders = Counter(edge.receiver for edge in frame.edges if not edge.cut)
    receivers = Counter(edge.sender for edge in frame.edges if not edge.cut)
    for peer in frame.peers:
        table.add_row(
            peer.name,
            Text(peer.state, style=_COLOURS[peer.state]),
            f"{peer.samples:,}",
            loss_number(peer.recent_loss),
            *_losses(peer),
            f"{peer.mass:.3f}",
            str(senders[peer.name]),
            str(receivers[peer.name]),
            str(peer.restarts + 1),
        )
    table.add_section()
    samples = sum(peer.samples for peer in frame.peers)
    mass = sum(peer.mass for peer in frame.peers)
    blank = [""] * (1 + len(_LOSSES))
    table.add_row("all", "", f"{samples:,}", *blank, f"{mass:.3f}", "", "", "", style="bold")
    # What is on its way is in no peer's mass: the sum is exact only when the network is quiet.
    rate = f"{frame.messages_per_second:,.0f} messages per second"
    summary = Text(f"{doing}, {rate}; privacy: {frame.privacy}", style="dim")
    recent = Text("\n".join(frame.events[-_EVENTS_SHOWN:]), style="dim")
    return Group(table, summary, recent)


def result_table(result: Result) -> TerminalTable:
    """The peers in the end."""
    table = _table("peer", ["samples", *_LOSSES, "mass", "restarts"])
    for peer in result.peers:
        table.add_row(
            peer.name,
            f"{peer.samples:,}",
            *_losses(peer),
            f"{peer.mass:.4f}",
            str(peer.restarts),
        )
    return table


def _losses(peer: PeerView | PeerResult) -> list[str]:
    losses = (peer.average_loss, peer.shared_loss, peer.alone_loss, peer.base_loss)
    return [loss_number(loss) for loss in losses]


def _table(first: str, others: Sequence[str]) -> TerminalTable:
    drop = ("starts", "restarts", "out", "in", "mass")
    return TerminalTable((first, *others), right=others, drop=drop)
