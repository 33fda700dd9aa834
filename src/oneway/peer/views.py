"""Views of a peer: its HTML in a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from oneway.display.html import Html, card, facts, grid
from oneway.peer.home.config import PeerConfig
from oneway.peer.status_text import receiver_table, sender_table, status_facts
from oneway.records.status import Status
from oneway.sentences import listed
from oneway.task.task import Task


def peer_html(config: PeerConfig, task: Task, status: Status | None, samples: int) -> Html:
    """What a peer learns and how it is doing; edges as tables while it runs."""
    about: dict[str, object] = {
        "learns": f"{task.label}, by {task.model} and {task.method}, from "
        f"{listed(task.encoder.names, 8)}"
    }
    if status is None:
        about |= {
            "samples": f"{samples:,}",
            "sends to": listed([it.name for it in config.receivers], 8) or "nobody",
            "hears from": _senders(config),
        }
        return card(config.name, facts(about), quiet="a peer that is not running")
    edges = [_edges(receiver_table(status)), _edges(sender_table(status))]
    inside = facts({**about, **status_facts(status)})
    return card(config.name, inside, *edges, quiet="a peer that runs in this process")


def _senders(config: PeerConfig) -> str:
    if config.anyone:
        return "anyone"
    return listed([config.name_of(it.key) for it in config.senders], 8) or "nobody"


def _edges(rows: Sequence[dict[str, str]]) -> Html:
    return grid(list(rows[0]), [list(row.values()) for row in rows]) if rows else Html("")
