"""How a peer is doing, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oneway.records.status import Status

_NAMES = 3
"""More edges than this are counted, not named."""


def status_line(status: Status) -> str:
    """The line; receivers are shown with what they acknowledged of what was sent."""
    parts = [f"{status.samples:,} samples"]
    if status.average_loss is not None:
        recent = "" if status.recent_loss is None else f" (lately {status.recent_loss:.4f})"
        parts.append(f"loss {status.average_loss:.4f}{recent}")
    if status.skipped:
        parts.append(f"{status.skipped:,} skipped")
    parts.append(f"mass {status.mass:.3g}")
    receivers = [f"{peer.name} {peer.acked:,}/{peer.seq:,}" for peer in status.receivers]
    senders = [f"{peer.name} {peer.seq:,}" for peer in status.senders]
    parts += _some("to", receivers) + _some("from", senders)
    if status.disk_problem:
        parts.append("THE STATE CANNOT BE SAVED")
    if status.leaving:
        parts.append("leaving")
    elif status.paused:
        parts.append("paused")
    elif status.finished:
        parts.append("no stream")
    return f"{status.name}: {', '.join(parts)}"


def _some(word: str, edges: list[str]) -> list[str]:
    if not edges:
        return []
    more = len(edges) - _NAMES
    return [f"{word} {', '.join(edges[:_NAMES])}{f' and {more} more' if more > 0 else ''}"]
