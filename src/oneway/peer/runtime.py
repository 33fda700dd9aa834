"""A running peer: frames in, samples in, commits, frames out; every task has an owner.

Nothing here computes. A commit takes in whatever happened while the one before was written, so
that a busy peer makes few commits and an idle one answers at once.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from oneway.errors import ConfigError, CopyError, DataError, StoreError
from oneway.peer.disclosure import disclosed, unchanged
from oneway.peer.home.config import PeerConfig
from oneway.peer.home.home import Home
from oneway.peer.node import Frame, Node
from oneway.peer.store.file import failure
from oneway.peer.store.large import is_large
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.telemetry import Activity, status_of
from oneway.records.status import REST_SECONDS, Status
from oneway.tables.cells import is_missing
from oneway.tables.rows import BadRow, Row
from oneway.transport.base import Transport
from oneway.transport.faults import with_faults

TICK_SECONDS = 0.05
STATUS_SECONDS = 1.0
WATCH_SECONDS = 0.3
JOIN_SECONDS = 3.0
"""How long a newcomer waits for the model of others before it starts from its own."""
LINGER_SECONDS = 3.0
"""How long a peer that has left still answers."""
REMIND_SECONDS = 3600.0
"""How long after a start former receivers are still dialled, to be reminded of the end."""
DISK_RETRY_SECONDS = 1.0
FRAMES_PER_TURN = 64

WAIT_SECONDS = 0.1
"""How long samples of a large model wait after the last commit."""

_log = logging.getLogger("oneway.peer")


class Store(Protocol):
    """Where a peer makes durable what it knows."""

    def commit(self, snapshot: Snapshot) -> None:
        """Write a snapshot.

        Raises:
            StoreError: It cannot be written.
        """


class CommitPace:
    """Counts the commits of a runtime, and tells whether the next one can wait.

    A commit of a large model writes an array of it, however little is new. Samples that no message
    has told of yet can share it with the next push: nothing is said before it is durable, and after
    a crash they are read again from the stream.

    Attributes:
        begun: How many commits were begun.
        ended: How many of these are over.
    """

    def __init__(self, node: Node) -> None:
        self.begun = self.ended = 0
        self._node = node
        self._last = node.clock()

    def begin(self) -> None:
        """A commit begins."""
        self.begun += 1
        self._last = self._node.clock()

    @property
    def wait(self) -> float:
        """How many seconds a commit can wait; 0 if it cannot."""
        node, now = self._node, self._node.clock()
        state, durable = node.snapshot.state, node.durable.state
        if not is_large(state.dim) or node.inbox.has_answers:
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


class Runtime:
    """The tasks of one peer, over its node, its store and its transport."""

    def __init__(
        self,
        home: Home | None,
        node: Node,
        store: Store,
        transport: Transport,
        *,
        samples: AsyncGenerator[Row | BadRow, None] | None = None,
        api: str = "",
        exact: bool = False,
    ) -> None:
        """Put the parts together; `run` starts them, and closes the transport; see `Peer.run`.

        Without a `home` there is no file to follow and none to write a status into: whoever runs
        this calls `follow`.
        """
        self._home = home
        self._exact = exact
        self._node = node
        self._store = store
        self._transport = transport
        self._samples = samples
        self._work = asyncio.Event()
        self._stir = asyncio.Event()
        self._stop = asyncio.Event()
        self._durable = asyncio.Condition()
        self._loop = asyncio.get_running_loop()
        # Not what it is now: it may have changed since `node` was told.
        self._seen_config: object = None
        self._warned_config: object = None
        self._activity = Activity(api, finished=samples is None)
        self._writing: asyncio.Future[None] | None = None
        self._pace = CommitPace(node)
        self._last_status: tuple[object, ...] = ()
        self._disclosed = None if home is None else home.status()
        self._disclosing = threading.Lock()
        self._status_due = 0.0
        self._unwritten: tuple[str, float] | None = None

    def wake(self) -> None:
        """Something happened that may have to be committed; from any thread."""
        self._call_soon(self._work.set)

    def stop(self) -> None:
        """End `run` soon, with everything durable; from any thread."""
        self._call_soon(self._stop.set)

    @property
    def awaited(self) -> list[str]:
        """Who must tell how far the stream had come, before any sample is learned from."""
        if self._samples is None:
            return []
        return [self._node.name_of(key) for key in self._node.unanswered]

    def status(self) -> Status:
        """One moment of this peer."""
        status = status_of(self._node, self._transport, self._activity)
        if self._unwritten is None or status.disk_problem:
            return status
        problem, since = self._unwritten
        return replace(status, disk_problem=problem, disk_problem_since=since)

    def disclosed(self, *, write: bool = False) -> Status:
        """The same as `disclosure` lets anybody read it; from any thread."""
        with self._disclosing:
            before = self._disclosed
            status = self.status()
            if not self._exact:
                status = disclosed(status, before, len(self._node.recent_losses))
            if self._home is None:
                return status
            if write or status.measured_samples != (before.measured_samples if before else 0):
                # On the disk first: a crash must not lead to a shorter window.
                try:
                    self._home.write_status(status)
                except OSError as error:
                    self._note_unwritten(self._home.status_path, error)
                    return unchanged(self.status(), before)
                self._disclosed, self._unwritten = status, None
            return status

    def _note_unwritten(self, path: Path, error: OSError) -> None:
        """Remember that the status cannot be written, which commits into the log may survive."""
        problem = str(failure(path, error))
        if self._unwritten is None:
            _log.warning("%s; until then `oneway peer status` is out of date", problem)
        since = self._unwritten[1] if self._unwritten else self._node.wall_clock()
        self._unwritten = problem, since

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Run until `stop`, or until a peer that leaves has handed over everything.

        Raises:
            DataError: The stream cannot be read.
            StoreError: What is known at the end cannot be made durable.
            CopyError: Another copy of this peer runs with the same key.
        """
        try:
            self.follow(self._node.config)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._receive(), name="receive"),
                    group.create_task(self._commit(), name="commit"),
                    group.create_task(self._tick(), name="tick"),
                    group.create_task(self._learn(), name="learn"),
                ]
                if self._home is not None:
                    watch = self._watch(self._home)
                    tasks.append(group.create_task(watch, name="watch the configuration"))
                ready()
                await self._stop.wait()
                for task in tasks:
                    task.cancel()
        except* (CopyError, DataError, StoreError) as group_of_one:
            raise group_of_one.exceptions[0] from None
        finally:
            await self._transport.close()
            if self._writing is not None:
                await asyncio.wait([self._writing])
            save(self._node, self._store)
            if self._home is not None:
                self.disclosed(write=True)

    async def _receive(self) -> None:
        while True:
            arrival = await self._transport.receive()
            for _ in range(FRAMES_PER_TURN):
                self._activity.frames_in += 1
                self._activity.bytes_in += len(arrival.frame)
                self._node.take(arrival)
                if self._node.has_words:
                    # At once: two copies of a peer have one key, and this came from one of them.
                    self._send(self._node.words())
                following = self._transport.receive_now()
                if following is None:
                    break
                arrival = following
            self._work.set()
            await asyncio.sleep(0)

    async def _commit(self) -> None:
        """Make durable what is known, then speak of it, again and again."""
        while True:
            await self._work.wait()
            self._work.clear()
            if wait := self._pace.wait:
                self._loop.call_later(wait, self._work.set)
                continue
            commit = self._node.begin()
            if commit is None:
                continue
            self._pace.begin()
            if not self._node.is_durable(commit):
                began = self._loop.time()
                try:
                    # Not to be abandoned half-way: the last commit of this life waits for it.
                    self._writing = asyncio.ensure_future(
                        asyncio.to_thread(self._store.commit, commit.snapshot)
                    )
                    if commit.is_large:
                        await asyncio.to_thread(commit.prepare)
                    await asyncio.shield(self._writing)
                except StoreError as error:
                    if not self._node.disk_problem:
                        _log.error("%s; nothing is pushed until then, the rest goes on", error)
                    self._node.failed(commit, str(error))
                    await asyncio.sleep(DISK_RETRY_SECONDS)
                    self._work.set()
                    continue
                if self._node.disk_problem:
                    _log.warning("the state can be made durable again")
                self._activity.note_commit(self._loop.time() - began)
            self._send(self._node.committed(commit))
            self._stir.set()
            self._pace.ended = self._pace.begun
            async with self._durable:
                self._durable.notify_all()

    async def _learn(self) -> None:
        """Learn from the stream, at most one step per commit: none runs far ahead of the disk."""
        await self._join()
        if self._samples is None:
            return
        await self._hear_how_far_it_had_come()
        async with aclosing(self._samples) as items:
            async for item in items:
                place = self._node.snapshot.journal.position
                while self._node.config.paused:
                    await asyncio.sleep(TICK_SECONDS)
                if self._node.snapshot.journal.position != place:
                    continue  # a receiver told that the stream had come further: it goes on there
                self._learn_from(item)
                if self._pace.wait and not self._pace.has_stepped:
                    self._work.set()
                    await asyncio.sleep(0)
                    continue
                async with self._durable:
                    self._work.set()
                    await self._durable.wait()
        self._activity.finished = True
        _log.info("the stream has ended; the peer goes on exchanging models")

    def _learn_from(self, item: Row | BadRow) -> None:
        try:
            if isinstance(item, BadRow):
                raise DataError(item.reason)
            label = item.values.get(self._node.task.label)
            if is_missing(label):
                raise DataError("it has no label")
            self._node.learn(item.values, label, item.position)
        except DataError as error:
            self._node.skip(f"line {item.line}: {error}", item.position)

    async def _hear_how_far_it_had_come(self) -> None:
        """Wait until no receiver can tell any more that rows were learned in a forgotten life."""
        while self._node.unanswered and not self._stop.is_set():
            self._activity.waits_for = self.awaited
            await asyncio.sleep(TICK_SECONDS)
        self._activity.waits_for = []

    async def _join(self) -> None:
        """Wait a little for the model of others: what is minted there causes no bump."""
        config = self._node.config
        deadline = self._loop.time() + JOIN_SECONDS
        while (
            (config.senders or config.anyone)
            and not self._node.snapshot.state.has_minted
            and self._loop.time() < deadline
        ):
            await asyncio.sleep(TICK_SECONDS)
        self._node.ensure_minted()
        self._work.set()

    async def _tick(self) -> None:
        next_status = 0.0
        drained_at: float | None = None
        while True:
            self._stir.clear()
            self._greet()
            if self._node.stopped:
                raise CopyError(self._node.stopped)
            self._node.tick()
            if self._node.has_work:
                self._work.set()
            self._send(self._node.overdue())
            now = self._loop.time()
            if now >= next_status:
                next_status = now + STATUS_SECONDS
                self._write_status_if_new(now)
            if self._node.is_drained:
                drained_at = now if drained_at is None else drained_at
                if now - drained_at >= LINGER_SECONDS:
                    _log.info("everything is handed over")
                    self._stop.set()
            else:
                drained_at = None
            await self._nap(next_status)

    async def _nap(self, longest: float) -> None:
        """Wait for a moment; where nothing is under way, until something happens."""
        await asyncio.sleep(TICK_SECONDS)
        if self._stir.is_set() or self._node.is_restless:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout_at(longest):
                await self._stir.wait()

    def _greet(self) -> None:
        """Tell the node of receivers whose connection has just come up."""
        links = self._transport.links
        connected = frozenset(key for key, link in links.items() if link.state == "connected")
        for key in connected - (self._node.connected or frozenset()):
            self._node.reached(key)
        self._node.connected = connected

    async def _watch(self, home: Home) -> None:
        """Follow peer.toml and peers.toml while running."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            found = _config_files(home)
            if found != self._seen_config:
                try:
                    before = self._node.config
                    self.follow(home.config())
                    self._seen_config = found
                    for change in self._node.config.unfollowed(before, self._node.learner.own):
                        _log.warning("%s; start %s again", change, self._node.config.name)
                except ConfigError as error:
                    # It is read again and again: the fault may lie in the machine, not in the file.
                    if found != self._warned_config:
                        _log.warning("%s; going on as before", error)
                    self._warned_config = found

    def follow(self, config: PeerConfig) -> None:
        """Do as a configuration says from now on."""
        self._node.follow(config)
        self._transport.admit(None if config.anyone else frozenset(s.key for s in config.senders))
        self._dial()
        keys = {sender.name: sender.key for sender in config.senders}
        keys |= {receiver.name: receiver.key for receiver in config.receivers}
        self._transport = with_faults(self._transport, config.faults, keys)
        self._work.set()
        self._stir.set()

    def _dial(self) -> None:
        snapshot = self._node.snapshot
        wanted = {receiver.key for receiver in self._node.config.receivers}
        wanted |= {edge.receiver for edge in snapshot.state.out.values()}
        if self._node.clock() - self._node.started < REMIND_SECONDS:
            wanted |= {end.receiver for end in snapshot.state.settled.values()}
        for key in self._transport.links.keys() - wanted:
            self._transport.hang_up(key)
        for key in wanted & snapshot.contacts.keys():
            self._transport.dial(key, snapshot.contacts[key].address)

    def _send(self, frames: Iterable[Frame]) -> None:
        for frame in frames:
            self._activity.frames_out += 1
            self._activity.bytes_out += len(frame.content)
            if frame.via == "push":
                self._transport.push(frame.peer, frame.content)
            else:
                self._transport.reply(frame.peer, frame.content)

    def _call_soon(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop was closed just now: there is nothing left to do
            self._loop.call_soon_threadsafe(what)

    def _write_status_if_new(self, now: float) -> None:
        """Write what has changed; a peer at rest only says now and then that it is there."""
        if self._home is None:
            return
        node, activity = self._node, self._activity
        known = (
            node.snapshot,
            node.config,
            node.disk_problem,
            [(key, link.state) for key, link in self._transport.links.items()],
            activity.frames_in,
            activity.frames_out,
            activity.finished,
            activity.waits_for,
        )
        if known != self._last_status or node.config.paused or now >= self._status_due:
            self._last_status, self._status_due = known, now + REST_SECONDS
            self.disclosed(write=True)


def _config_files(home: Home) -> object:
    """What the files of a configuration are like: another value when they have changed."""
    try:
        facts = [path.stat() for path in (home.config_path, home.peers_path)]
    except OSError:
        return None
    return [(each.st_mtime_ns, each.st_size, each.st_ino) for each in facts]


def save(node: Node, store: Store) -> None:
    """Make durable what is not yet; nothing is said of it.

    Raises:
        StoreError: It cannot be written.
    """
    commit = node.begin()
    if commit is not None and not node.is_durable(commit):
        store.commit(commit.snapshot)
        node.committed(commit)
