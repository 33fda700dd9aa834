"""Virtual time: a queue of all that happens, and an event loop of asyncio for every peer.

The loop of a peer has a clock of its own, which stands still while the peer sleeps, as that of a
laptop does. What its tasks do takes no time; what a thread would do takes as long as a commit.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from asyncio import events
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from itertools import count
from typing import Any

_LATE = 1e-6
"""Seconds by which a timer is late, as those of real loops are: what is due then, is due."""


class World:
    """What happens when; nothing waits.

    Args:
        commit: Seconds that a thread takes, whatever it does.

    Attributes:
        now: Virtual time, in seconds.
        done: How many events were carried out.
        failures: What went wrong in the loops of peers.
    """

    def __init__(self, commit: float = 0.0) -> None:
        self.now, self.done, self.commit = 0.0, 0, commit
        self.failures: list[BaseException] = []
        self._heap: list[tuple[float, int, int, Callable[[], None]]] = []
        self._numbers = count()

    def at(self, moment: float, owner: int, action: Callable[[], None]) -> None:
        """Let something happen; of the same moment, by owner, and then in the order of calls."""
        heapq.heappush(self._heap, (max(moment, self.now), owner, next(self._numbers), action))

    def run_until(self, moment: float) -> None:
        """Carry out all that happens up to a moment, which is the time then.

        Raises:
            BaseException: The first thing that went wrong in the loop of a peer.
        """
        heap = self._heap
        while heap and heap[0][0] <= moment:
            self.now, _, _, action = heapq.heappop(heap)
            self.done += 1
            action()
            if self.failures:
                raise self.failures[0]
        self.now = max(self.now, moment)


class PeerLoop(asyncio.AbstractEventLoop):
    """The event loop of one life of a peer.

    Args:
        world: Where its callbacks wait for their time.
        owner: Which peer it is, for the order of ties.
        clock: What its clock says now.

    Attributes:
        is_still: Whether nothing happens, and the clock stands.
    """

    def __init__(self, world: World, owner: int, clock: float) -> None:
        self._world, self._owner = world, owner
        self._offset = world.now - clock
        self._still_at = 0.0
        self._held: list[events.Handle] = []
        self.is_still = False

    def time(self) -> float:
        """What the clock of this peer says."""
        return (self._still_at if self.is_still else self._world.now) - self._offset

    def stand_still(self) -> None:
        """Do nothing until `go_on`."""
        self.is_still, self._still_at = True, self._world.now

    def go_on(self) -> None:
        """Do what was to be done meanwhile, and all else later by as long as this stood still."""
        self._offset += self._world.now - self._still_at
        self.is_still = False
        held, self._held = self._held, []
        for handle in held:
            self._put(handle)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let this be the running loop for a moment."""
        outer = events._get_running_loop()
        events._set_running_loop(self)
        try:
            yield
        finally:
            events._set_running_loop(outer)

    # What asyncio asks of a loop.

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> events.Handle:
        """Call something now, after all that is to be called now already."""
        handle = events.Handle(callback, args, self, context)
        self._put(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> events.Handle:
        """The same: there are no threads."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> events.TimerHandle:
        """Call something after a while."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> events.TimerHandle:
        """Call something at a time of this clock."""
        handle = events.TimerHandle(when, callback, args, self, context)
        self._put(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Any = None
    ) -> asyncio.Task[Any]:
        """A task of this loop."""
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def run_in_executor(
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Do at once, later, what a thread would do."""
        future = self.create_future()

        def do() -> None:
            if future.cancelled():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:
                future.set_exception(error)

        self.call_later(self._world.commit, do)
        return future

    def get_debug(self) -> bool:
        """Never."""
        return False

    def is_running(self) -> bool:
        """As long as the world goes on."""
        return True

    def is_closed(self) -> bool:
        """Never: there is nothing to close."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Let a failed callback end the run; a task has an owner who looks at it."""
        if "handle" in context and "exception" in context:
            self._world.failures.append(context["exception"])

    def _timer_handle_cancelled(self, handle: events.TimerHandle) -> None:
        """It is passed over when its time has come."""

    def _put(self, handle: events.Handle) -> None:
        moment = self._world.now
        if isinstance(handle, events.TimerHandle):
            moment = handle.when() + self._offset + _LATE
            if math.isinf(moment):
                return
        self._world.at(moment, self._owner, partial(self._fire, handle))

    def _fire(self, handle: events.Handle) -> None:
        if handle.cancelled():
            return
        if self.is_still:
            self._held.append(handle)
        elif isinstance(handle, events.TimerHandle) and handle.when() > self.time():
            self._put(handle)  # the clock stood still since it was set
        else:
            outer = events._get_running_loop()
            events._set_running_loop(self)
            handle._run()
            events._set_running_loop(outer)


def peer_loop(world: World, owner: int, clock: float) -> PeerLoop:
    """A loop for one life of a peer, whose clock says this now."""
    return PeerLoop(world, owner, clock)
