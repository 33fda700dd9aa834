"""Peers with another task: what they are told, and how their task differs from ours."""

from __future__ import annotations

import json
import math

from oneway.peer.guard import Guard
from oneway.protocol.state import Key
from oneway.task.task import Task, differences
from oneway.transport.wire import Body, Foreign

FOREIGN_SECONDS = 10.0
"""To a peer with another task, say so this often; and read so often what it says about its own."""


class Foreigners:
    """Meets peers with another task, seldom enough that none can keep us busy."""

    def __init__(self, task: Task, guard: Guard) -> None:
        self._task = task
        self._guard = guard
        self._told: dict[Key, float] = {}
        self._read: dict[Key, float] = {}

    def meet(self, peer: Key, message: Body, now: float) -> Foreign | None:
        """Note a message under another task; return what to tell its sender, if it is time."""
        if isinstance(message, Foreign) and _is_due(self._read, peer, now):
            try:
                theirs = json.loads(message.fields)
            except (ValueError, RecursionError):
                theirs = None
            self._guard.differs(peer, "; ".join(differences(self._task.fields(), theirs)))
        self._guard.count(peer, "another task")
        if not _is_due(self._told, peer, now):
            return None
        return Foreign(json.dumps(self._task.fields()).encode())


def _is_due(last: dict[Key, float], peer: Key, now: float) -> bool:
    """Whether it is time again; if so, it is noted as done."""
    if now - last.get(peer, -math.inf) < FOREIGN_SECONDS:
        return False
    last[peer] = now
    return True
