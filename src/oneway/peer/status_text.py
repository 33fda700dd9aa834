"""Status presenter: a status as one line, as facts, as rows of edges, and as what is still owed."""

from __future__ import annotations

from datetime import datetime

from oneway.metrics.measure_rows import (
    ALONE,
    BASE_RATE,
    SHARED,
    YOURS,
    baseline_rows,
    beside,
    class_table,
    in_words,
    measure_rows,
)
from oneway.peer.stream_progress import rows_forgotten
from oneway.records.status import ReceiverStatus, SenderStatus, Status
from oneway.sentences import listed, short_age, shown

_CLASSES = 8
"""More classes than this are left to pages and programs."""
_NAMES = 3
"""More edges than this are counted, not named, in one line."""


def status_line(status: Status) -> str:
    """One line; receivers are shown with what they acknowledged of what was sent."""
    parts = [f"{status.samples:,} samples"]
    if status.average_loss is not None:
        recent = "" if status.recent_loss is None else f" (lately {status.recent_loss:.4f})"
        parts.append(f"{_loss_name(status)} {status.average_loss:.4f}{recent}")
        parts += filter(None, [beside(status.measures)])
    if status.skipped:
        parts.append(f"{status.skipped:,} skipped")
    parts.append(f"mass {status.mass:.3g}" + ("" if status.has_possible_mass else " IS IMPOSSIBLE"))
    parts += _some("to", [f"{peer.name} {peer.acked:,}/{peer.seq:,}" for peer in status.receivers])
    parts += _some("from", [f"{peer.name} {peer.seq:,}" for peer in status.senders])
    if status.disk_problem:
        parts.append("CANNOT WRITE TO ITS DISK")
    if status.leaving:
        parts.append("leaving")
    elif status.paused:
        parts.append("paused")
    elif status.waits_for:
        parts.append(whom_it_waits_for(status))
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
        facts[_loss_name(status)] = f"{status.average_loss:.4f} on average{recent}"
    facts |= _baseline_facts(status)
    facts |= in_words(status.measures)
    if status.personal:
        facts["personal"] = status.personal
    if status.accuracy is not None:
        facts["accuracy"] = f"{status.accuracy:.2%}, each predicted before it was learned from"
    facts |= _measure_facts(status)
    if status.restarts:
        last = f"the last after about {status.restarts[-1]:,} samples"
        facts["restarts"] = f"{len(status.restarts)} of the learning rate, {last}"
    facts |= _privacy_facts(status)
    facts["mass"] = f"{status.mass:.6f}" + ("" if status.minted else ", its own is not in it yet")
    if not status.has_possible_mass:
        facts["mass"] += ", which is impossible; see oneway peer doctor"
    if status.owed:
        facts["owed"] = f"{status.owed:.6f}, of a life it forgot; paid back from what comes in"
    if status.forgotten:
        facts["forgotten"] = rows_forgotten(status.forgotten)
    if status.waits_for:
        facts["waits"] = whom_it_waits_for(status)
    if status.stopped:
        facts["stopped"] = status.stopped
    if status.copies:
        facts["copies"] = status.copies
    if status.leaving:
        facts["leaving"] = "everything is handed over" if status.drained else "hands over"
        if status.unheard:
            facts["leaving"] += f"; {who_has_not_heard(status)}"
    if status.paused:
        facts["paused"] = "neither learns nor pushes"
    if status.disk_problem:
        facts["disk"] = _disk_fact(status)
    if status.refused:
        facts["refused"] = f"{status.refused:,} messages from keys that are not admitted"
    if status.undecodable:
        facts["undecodable"] = f"{status.undecodable:,} messages"
    if status.receipts:
        facts["receipts"] = f"{status.receipts:,} of peers that left, kept for others"
    if status.api:
        facts["local API"] = status.api
    return facts


def _disk_fact(status: Status) -> str:
    if not status.disk_problem_since:
        return status.disk_problem
    since = datetime.fromtimestamp(status.disk_problem_since).strftime("%Y-%m-%d %H:%M")
    return f"since {since} {status.disk_problem}; the peer goes on by itself then"


def _loss_name(status: Status) -> str:
    """What the average loss is of: personal predictions, or the model if there are none."""
    return YOURS if status.measures and status.measures.weights else "loss"


def _baseline_facts(status: Status) -> dict[str, str]:
    measures = status.measures
    if measures is None:
        return {}
    share = measures.answer_share
    often = "" if share is None else f" as sure as it is frequent, {share:.0%}"
    said = f"the mean so far, {measures.answer}" if share is None else shown(measures.answer)
    known = {row.key: row.text for row in baseline_rows(measures)}
    facts = {}
    if "shared_loss" in known:
        facts[SHARED] = f"{known['shared_loss']} of the network's model"
    if "alone_loss" in known:
        facts[ALONE] = f"{known['alone_loss']} of the same samples without the others"
    return {**facts, BASE_RATE: f"{known['base_loss']} of always answering {said}{often}"}


def _measure_facts(status: Status) -> dict[str, str]:
    measures = status.measures
    if measures is None:
        return {}
    facts = {}
    for row in measure_rows(measures):
        if row.key != "accuracy":
            facts[row.name] = f"{row.text}, {row.meaning}"
    for cells in class_table(measures)[:_CLASSES]:
        name, samples, recall, precision = cells.values()
        facts[f"class {name}"] = f"recall {recall}, precision {precision}, {samples} samples"
    return facts


def _privacy_facts(status: Status) -> dict[str, str]:
    privacy = status.privacy
    if privacy is None:
        return {}
    floor = "" if privacy.floor == privacy.brief else f"; all peers of the task: {privacy.floor}"
    facts = {"privacy": f"{privacy.brief}{floor}"}
    if privacy.needs_restart:
        facts["privacy"] += "; peer.toml asks for another: start the peer again"
    if privacy.progress:
        facts["batch"] = privacy.progress
    return facts


def receiver_table(status: Status) -> list[dict[str, str]]:
    """The receivers, each as the cells of a row by their headings."""
    return [
        {
            "sends to": peer.name,
            "phase": peer.phase,
            "link": "left" if peer.left else peer.link,
            "weight": f"{peer.weight:g}" if peer.weight else "-",
            "sent": f"{peer.seq:,}",
            "in flight": _in_flight(peer),
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
            "state": _state(peer, status),
            "heard": f"{peer.seq:,}",
            "last push": _ago(peer.last_push, status.time),
            "rejected": f"{peer.num_rejected:,}",
            "clipped": f"{peer.clipped:,}",
            "strikes": f"{peer.strikes:,}",
        }
        for peer in status.senders
    ]


def edge_notes(status: Status) -> list[str]:
    """What is to be said about edges besides their row in a table, in sentences."""
    notes = [peer.problem for peer in status.receivers] + [peer.problem for peer in status.senders]
    notes += [
        f"Nothing is handed over to {peer.name} at the moment: {peer.held_back}."
        for peer in status.receivers
        if peer.held_back and not peer.left
    ]
    # A peer that is both receiver and sender has its fault once.
    return list(dict.fromkeys(filter(None, notes)))


def what_is_owed(status: Status) -> str:
    """What a leaving peer still has, who has to answer, and who does not know."""
    owing = [
        peer.name
        for peer in status.receivers
        if peer.phase != "open" or peer.seq > peer.acked or peer.held_back
    ]
    unheard = f"; {who_has_not_heard(status)}" if status.unheard else ""
    if status.drained and unheard:
        return f"everything is handed over{unheard}"
    if nobody_takes_over(status):
        return (
            f"it holds mass {status.mass:.6g}, and nobody is left to take it over: `oneway peer "
            f"leave --undo` stays; to give it up, just stop the peer{unheard}"
        )
    if not owing:
        return f"it holds mass {status.mass:.3g}{unheard}"
    return (
        f"{', '.join(owing)} {_has(owing)} not acknowledged, and what is theirs stays here until "
        f"then{unheard}"
    )


def nobody_takes_over(status: Status) -> bool:
    """Whether all that a leaving peer could hand over to have left themselves."""
    return all(peer.left for peer in status.receivers)


def who_has_not_heard(status: Status) -> str:
    """Which senders have not confirmed that they know that the peer leaves; empty if all have."""
    names = status.unheard
    return f"{listed(names)} {_has(names)} not heard that you leave" if names else ""


def whom_it_waits_for(status: Status) -> str:
    """Whose answers a peer waits for before it learns from its stream."""
    names = status.waits_for
    return f"learns no row before {listed(names)} {_has(names)} told how far its stream had come"


def how_it_ended(name: str, status: Status | None) -> str:
    """What a peer that has stopped did in all its lives."""
    if status is None:
        return f"{name} has stopped."
    if status.drained:
        unheard = f"; {who_has_not_heard(status)}" if status.unheard else ""
        return f"{name} has handed over everything and stopped{unheard}."
    loss = "" if status.average_loss is None else f", average loss {status.average_loss:.4f}"
    skipped = f", {status.skipped:,} skipped" if status.skipped else ""
    return f"{name} has stopped: {status.samples:,} samples in all{loss}{skipped}."


def _some(word: str, edges: list[str]) -> list[str]:
    if not edges:
        return []
    more = len(edges) - _NAMES
    return [f"{word} {', '.join(edges[:_NAMES])}{f' and {more} more' if more > 0 else ''}"]


def _has(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _in_flight(peer: ReceiverStatus) -> str:
    """How many pushes are not acknowledged, and their mass."""
    mass = f" ({peer.in_flight_mass:.2g})" if peer.in_flight_mass else ""
    return f"{peer.seq - peer.acked:,}{mass}"


def _state(peer: SenderStatus, status: Status) -> str:
    if peer.quarantined:
        return "quarantined"
    if not peer.admitted:
        return "not admitted"
    if peer.left:
        return "left"
    if peer.closed:
        return "closed"
    return "admitted" if status.silent_since(peer) is None else "silent"


def _ago(moment: float, now: float) -> str:
    return f"{short_age(now - moment)} ago" if moment else "never"
