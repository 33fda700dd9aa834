"""Status presenter: a status as one line, as facts, as rows of edges, and as what is still owed."""

from __future__ import annotations

from oneway.records.status import SenderStatus, Status
from oneway.sentences import short_age

_NAMES = 3
"""More edges than this are counted, not named, in one line."""


def status_line(status: Status) -> str:
    """One line; receivers are shown with what they acknowledged of what was sent."""
    parts = [f"{status.samples:,} samples"]
    if status.average_loss is not None:
        recent = "" if status.recent_loss is None else f" (lately {status.recent_loss:.4f})"
        parts.append(f"loss {status.average_loss:.4f}{recent}")
    if status.skipped:
        parts.append(f"{status.skipped:,} skipped")
    parts.append(f"mass {status.mass:.3g}")
    parts += _some("to", [f"{peer.name} {peer.acked:,}/{peer.seq:,}" for peer in status.receivers])
    parts += _some("from", [f"{peer.name} {peer.seq:,}" for peer in status.senders])
    if status.disk_problem:
        parts.append("THE STATE CANNOT BE SAVED")
    if status.leaving:
        parts.append("leaving")
    elif status.paused:
        parts.append("paused")
    elif status.finished:
        parts.append("no stream")
    return f"{status.name}: {', '.join(parts)}"


def status_facts(status: Status) -> dict[str, str]:
    """Names and values, without what does not apply."""
    facts = {"card": status.card, "samples": f"{status.samples:,}"}
    if status.skipped:
        facts["skipped"] = f"{status.skipped:,}, the last: {status.last_skipped or 'before'}"
    if status.average_loss is not None:
        recent = "" if status.recent_loss is None else f", lately {status.recent_loss:.4f}"
        facts["loss"] = f"{status.average_loss:.4f} on average{recent}"
    if status.accuracy is not None:
        facts["accuracy"] = f"{status.accuracy:.2%}, each predicted before it was learned from"
    facts["mass"] = f"{status.mass:.6f}" + ("" if status.minted else ", its own is not in it yet")
    if status.leaving:
        facts["leaving"] = "everything is handed over" if status.drained else "hands over"
    if status.paused:
        facts["paused"] = "neither learns nor pushes"
    if status.disk_problem:
        facts["disk"] = status.disk_problem
    if status.refused:
        facts["refused"] = f"{status.refused:,} messages from keys that are not admitted"
    if status.undecodable:
        facts["undecodable"] = f"{status.undecodable:,} messages"
    if status.api:
        facts["local API"] = status.api
    return facts


def receiver_table(status: Status) -> list[dict[str, str]]:
    """The receivers, each as the cells of a row by their headings."""
    return [
        {
            "sends to": peer.name,
            "phase": peer.phase,
            "link": peer.link,
            "weight": f"{peer.weight:g}" if peer.weight else "-",
            "sent": f"{peer.seq:,}",
            "acked": f"{peer.acked:,}",
            "lag": f"{peer.lag:.1f} s" if peer.lag < 60 else short_age(peer.lag),
            "last answer": _ago(peer.last_answer, status.time),
        }
        for peer in status.receivers
    ]


def sender_table(status: Status) -> list[dict[str, str]]:
    """The senders, each as the cells of a row by their headings."""
    return [
        {
            "hears from": peer.name,
            "state": _state(peer),
            "heard": f"{peer.seq:,}",
            "last push": _ago(peer.last_push, status.time),
            "rejected": f"{peer.num_rejected:,}",
            "clipped": f"{peer.clipped:,}",
            "strikes": f"{peer.strikes:,}",
        }
        for peer in status.senders
    ]


def what_is_owed(status: Status) -> str:
    """What a leaving peer still has, and who has to answer."""
    owing = [
        peer.name for peer in status.receivers if peer.phase != "open" or peer.seq > peer.acked
    ]
    if not status.receivers:
        return f"it holds mass {status.mass:.3g}, and nobody is left to take it over"
    if not owing:
        return f"it holds mass {status.mass:.3g}"
    has = "has" if len(owing) == 1 else "have"
    return f"{', '.join(owing)} {has} not acknowledged, and what is theirs stays here until then"


def how_it_ended(name: str, status: Status | None) -> str:
    """What a peer that has stopped did in all its lives."""
    if status is None:
        return f"{name} has stopped."
    if status.drained:
        return f"{name} has handed over everything and stopped."
    loss = "" if status.average_loss is None else f", average loss {status.average_loss:.4f}"
    skipped = f", {status.skipped:,} skipped" if status.skipped else ""
    return f"{name} has stopped: {status.samples:,} samples in all{loss}{skipped}."


def _some(word: str, edges: list[str]) -> list[str]:
    if not edges:
        return []
    more = len(edges) - _NAMES
    return [f"{word} {', '.join(edges[:_NAMES])}{f' and {more} more' if more > 0 else ''}"]


def _state(peer: SenderStatus) -> str:
    if peer.quarantined:
        return "quarantined"
    if not peer.admitted:
        return "not admitted"
    return "closed" if peer.closed else "admitted"


def _ago(moment: float, now: float) -> str:
    return f"{short_age(now - moment)} ago" if moment else "never"
