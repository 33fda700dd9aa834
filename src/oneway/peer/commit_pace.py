"""Commit pacing: whether what is not durable yet can wait for a commit that has more in it.

A commit of a large model writes an array of it, however little is new. Samples that nobody is told
of yet can share it with the next push: nothing is said before it is durable, and a crash costs that
they are read again from the stream, from which they then come for the first time.
"""

from __future__ import annotations

from oneway.peer.node import Node
from oneway.peer.store.large import is_large

WAIT_SECONDS = 0.1
"""How long samples of a large model wait after the last commit."""


class CommitPace:
    """Counts the commits of a runtime, and tells whether the next one can wait.

    Attributes:
        begun: How many commits were begun.
        ended: How many of these are over.
    """

    def __init__(self, node: Node) -> None:
        self.begun = self.ended = self._wanted = 0
        self._node = node
        self._last = node.clock()

    def begin(self) -> None:
        """A commit begins."""
        self.begun += 1
        self._last = self._node.clock()

    def want(self) -> int:
        """Have a commit soon that begins from now on; return its number."""
        self._wanted = self.begun + 1
        return self._wanted

    @property
    def wait(self) -> float:
        """How many seconds a commit can wait; 0 if it cannot."""
        node, now = self._node, self._node.clock()
        state, durable = node.snapshot.state, node.durable.state
        if not is_large(state.dim) or self._wanted > self.begun or node.inbox.has_answers:
            return 0.0
        if state.out is not durable.out or (self.has_stepped and not self._hears_soon(now)):
            return 0.0
        return max(0.0, self._last + WAIT_SECONDS - now)

    @property
    def has_stepped(self) -> bool:
        """Whether a step is not durable yet; what an unfinished batch takes in is none."""
        return self._node.snapshot.state is not self._node.durable.state

    def _hears_soon(self, now: float) -> bool:
        """Whether an answer is under way, after which there is something to say."""
        node = self._node
        return any(
            edge.in_flight and not node.schedule.is_overdue(edge.receiver, now)
            for edge in node.snapshot.state.out.values()
        )
