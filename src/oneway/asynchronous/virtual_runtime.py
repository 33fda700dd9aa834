"""Runtime of a peer in virtual time: what `peer.runtime` does with tasks, done by events.

One life of one peer. The same node, the same commits before words, the same naps; the disk takes
as long as it is said to, computing takes no time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from oneway.asynchronous.virtual_links import EventQueue
from oneway.peer.node import Commit, Frame, Node
from oneway.peer.runtime import (
    JOIN_SECONDS,
    LINGER_SECONDS,
    STATUS_SECONDS,
    TICK_SECONDS,
    CommitPace,
)
from oneway.protocol.state import Key
from oneway.testing.memory_network import MemoryEndpoint


class VirtualRuntime:
    """The tasks of one life, as events.

    Args:
        node: The peer.
        endpoint: Where its frames arrive.
        queue: Of all events.
        owner: Which peer's events these are, for the order of ties.
        send: Puts frames on their way.
        learn: Learns from the next sample that is due; False if there is none.
        commit: How long it takes to make something durable.

    Attributes:
        asleep: Whether nothing happens here until `wake`.
        over: Whether this life has ended.
        drained: Whether a peer that leaves has handed over all, and lingered.
        connected: The receivers whose connection is up.
        commits: How many there were.
    """

    def __init__(
        self,
        node: Node,
        endpoint: MemoryEndpoint,
        queue: EventQueue,
        owner: int,
        send: Callable[[list[Frame]], None],
        learn: Callable[[], bool],
        commit: float,
    ) -> None:
        self.node, self.endpoint = node, endpoint
        self.asleep = self.over = self.drained = False
        self.connected: set[Key] = set()
        self.commits = 0
        self._queue, self._owner = queue, owner
        self._send, self._learn, self._commit_seconds = send, learn, commit
        self._pace = CommitPace(node)
        self._held: list[Callable[[], None]] = []
        self._writing = self._work_again = self._work_later = False
        self._ready = self._waits_for_disk = False
        self._stirred = self._idle = False
        self._naps = 0
        self._next_status = queue.now
        self._drained_at: float | None = None
        self._join_until = queue.now

    def start(self, *, founder: bool, after: float) -> None:
        """Begin; founders have waited for each other's models before, in vain.

        Ticks of different peers are not in step: the first comes `after` this many seconds.
        """
        self._join_until = self._queue.now + (0.0 if founder else JOIN_SECONDS)
        self._join()
        self._later(after, self._tick)

    def arrived(self) -> None:
        """Take in what is there, and make it durable."""
        node = self.node
        while (arrival := self.endpoint.receive_now()) is not None:
            node.take(arrival)
            if node.has_words:
                self._send(node.words())
        self.work()

    def work(self) -> None:
        """Something happened that may have to be committed."""
        if self._writing:
            self._work_again = True
            return
        if wait := self._pace.wait:
            if not self._work_later:
                self._work_later = True
                self._later(wait, self._work_now)
            return
        commit = self.node.begin()
        if commit is None:
            return
        self._pace.begin()
        if self.node.is_durable(commit):
            self._committed(commit)
            return
        self._writing = True
        self._later(self._commit_seconds, partial(self._written, commit))

    def learn(self) -> None:
        """Learn from what is due, at most one step per commit."""
        while self._ready and not self._waits_for_disk and self._learn():
            self._waits_for_disk = self._pace.has_stepped or not self._pace.wait
            self.work()

    def follow(self) -> None:
        """Something was changed from outside: the configuration, or a connection."""
        self.work()
        self._stir()

    def sleep(self) -> None:
        """Nothing happens any more."""
        self.asleep = True

    def wake(self) -> None:
        """What should have happened meanwhile happens now."""
        self.asleep = False
        held, self._held = self._held, []
        for action in held:
            self._now(action)

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self._queue.at(self._queue.now + seconds, self._owner, partial(self._now, action))

    def _now(self, action: Callable[[], None]) -> None:
        if self.asleep:
            self._held.append(action)
        elif not self.over:
            action()

    def _work_now(self) -> None:
        self._work_later = False
        self.work()

    def _written(self, commit: Commit) -> None:
        self._writing = False
        self.commits += 1
        self._committed(commit)

    def _committed(self, commit: Commit) -> None:
        self._send(self.node.committed(commit))
        self._pace.ended = self._pace.begun
        self._waits_for_disk = False
        self._stir()
        if self._work_again:
            self._work_again = False
            self.work()
        self.learn()

    def _join(self) -> None:
        """Wait a little for the model of others, as a newcomer does."""
        node, config = self.node, self.node.config
        waits = (config.senders or config.anyone) and not node.snapshot.state.has_minted
        if waits and self._queue.now < self._join_until:
            self._later(TICK_SECONDS, self._join)
            return
        node.ensure_minted()
        self.work()
        self._hear_how_far_it_had_come()

    def _hear_how_far_it_had_come(self) -> None:
        if self.node.unanswered:
            self._later(TICK_SECONDS, self._hear_how_far_it_had_come)
            return
        self._ready = True
        self.learn()

    def _stir(self) -> None:
        self._stirred = True
        if self._idle:
            self._idle = False
            self._tick()

    def _tick(self) -> None:
        node, now = self.node, self._queue.now
        self._stirred = False
        self._greet()
        node.tick()
        if node.has_work:
            self.work()
        self._send(node.overdue())
        if now >= self._next_status:
            self._next_status = now + STATUS_SECONDS
        if not node.is_drained:
            self._drained_at = None
        elif self._drained_at is None:
            self._drained_at = now
        elif now - self._drained_at >= LINGER_SECONDS:
            self.drained = self.over = True
            self.endpoint.crash()
            return
        # A hair longer, as real naps are: what is due after as long is due then, however rounded.
        self._later(TICK_SECONDS + 1e-9, self._nap)

    def _nap(self) -> None:
        """Where nothing is under way, wait until something happens."""
        if self._stirred or self.node.is_restless:
            self._tick()
            return
        self._idle = True
        self._naps += 1
        self._later(max(0.0, self._next_status - self._queue.now), partial(self._rise, self._naps))

    def _rise(self, nap: int) -> None:
        if self._idle and nap == self._naps:
            self._idle = False
            self._tick()

    def _greet(self) -> None:
        """Tell the node of receivers whose connection has just come up."""
        known: frozenset[Key] = self.node.connected or frozenset()
        if self.node.connected is not None and known == self.connected:
            return
        for key in sorted(self.connected - known):
            self.node.reached(key)
        self.node.connected = frozenset(self.connected)
