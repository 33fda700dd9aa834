"""A peer as a library: open its folder, predict and learn, while it exchanges models."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from msgspec.structs import replace

from oneway.errors import OnewayError
from oneway.methods.base import UNFINISHED
from oneway.peer.home.home import Home
from oneway.peer.identity.keys import signing_secret
from oneway.peer.learner import Learner
from oneway.peer.node import Node
from oneway.peer.runtime import TICK_SECONDS, Runtime, save
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import Owner, PeerStore
from oneway.peer.stream_progress import UNUSED_SECONDS
from oneway.protocol.stamps import RANDOM_BITS, first_stamp
from oneway.protocol.state import PeerState
from oneway.protocol.transitions import restart
from oneway.records.curve import Curve
from oneway.records.status import Status
from oneway.sentences import listed
from oneway.tables.rows import BadRow, Position, Row
from oneway.task.task import Task
from oneway.transport import TRANSPORTS, ConnectionLimits, Listen

START_SECONDS = 30.0

_log = logging.getLogger("oneway.peer")


class Peer:
    """One participant, one process.

    With `with`, the peer exchanges models in a thread of its own until the block ends; `learn_one`
    and `predict_one` never wait for the network or the disk:

        with ow.Peer("alice") as peer:
            peer.predict_one({"temperature": 21.5})
            peer.learn_one({"temperature": 21.5}, "occupied")

    Attributes:
        home: The peer's folder.
        task: What all peers learn.
    """

    def __init__(self, folder: str | Path, *, transport: Listen | None = None) -> None:
        """Open a peer that `oneway peer init` made.

        Args:
            folder: Where it lives.
            transport: What to reach others with, instead of the registered one that peer.toml
                names.

        Raises:
            ConfigError: There is no peer in the folder, it runs already, or its files are wrong.
            KeyFileError: The key file is missing, malformed or open to others.
            StoreError: The store is damaged or belongs to another peer or task.
        """
        self.home = Home.open(Path(folder))
        self._listen = transport
        self._open = ExitStack()
        try:
            self._open.enter_context(self.home.lock())
            self._keys = self.home.keys()
            self.task: Task = self.home.task()
            config = self.home.config()
            # Before anything is written: a peer that may not take part leaves no trace.
            self._layout = Learner(self.task, own=config.privacy).layout
            config.limits.check_dim(self._layout.width)
            for doubt in config.doubtful_names(self._keys.public):
                _log.warning("%s", doubt)
            self._store = self._open_store()
            self._open.callback(self._store.close)
            self.node = Node(
                self.task,
                signing_secret(self._keys),
                config,
                self._store.load(),
                key=self._keys.public,
                clock=time.monotonic,
                wall_clock=time.time,
                new_epoch=_new_stamp,
            )
            self._open.callback(save, self.node, self._store)
        except BaseException:
            self._open.close()
            raise
        self._runtime: Runtime | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def position(self) -> Position:
        """Where to go on in the stream."""
        return self.node.snapshot.journal.position

    def predict_one(self, x: Mapping[str, object]) -> str | float:
        """The label expected for a sample.

        Raises:
            DataError: The sample lacks a feature or has one that is no number.
        """
        return self.node.learner.predict(self.node.estimate, x)

    def predict_proba_one(self, x: Mapping[str, object]) -> dict[str, float]:
        """How probable each class is.

        Raises:
            DataError: As `predict_one`.
            ConfigError: The task's model does not say how probable a class is.
        """
        return self.node.learner.probabilities(self.node.estimate, x)

    def learn_one(self, x: Mapping[str, object], y: object) -> float:
        """Learn from a sample at once, and push soon; return the loss suffered before.

        Raises:
            DataError: The sample cannot be used; nothing has changed.
            OnewayError: The peer has failed meanwhile, say because its store cannot be written; or
                it does not know yet where its stream goes on.
        """
        self._raise_failure()
        runtime = self._runtime  # once: its own thread may end it between two looks
        if runtime is not None and runtime.awaited:
            # A sample more would hide that a restored backup counts fewer than its receivers heard.
            raise OnewayError(
                f"the peer waits for {listed(runtime.awaited, 3)} to tell how far its stream had "
                "come; try again in a moment"
            )
        loss = self.node.learn(x, y)
        if runtime is not None:
            runtime.wake()
        return loss

    def status(self) -> Status:
        """One moment of this peer.

        Raises:
            OnewayError: The peer is not running.
        """
        runtime = self._runtime
        if runtime is None:
            raise OnewayError("the peer is not running; use it in a with block")
        return runtime.status()

    def curve(self) -> Curve:
        """How the loss went until now, bounded however many samples there were."""
        return self.node.snapshot.history.curve()

    async def run(
        self,
        samples: AsyncGenerator[Row | BadRow, None] | None = None,
        *,
        strict: bool = False,
        api: str = "",
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Exchange models, and learn from a stream, until `stop`.

        A stream that ends is no reason to return, nor is one of which every sample was skipped:
        `status` counts what was learned from and what was skipped.

        Args:
            samples: What to learn from, if it does not come through `learn_one`.
            strict: Whether a sample that cannot be used stops the peer.
            api: Where the local API is, for the status.
            ready: Called once the peer listens.

        Raises:
            TransportError: The address cannot be listened on.
            DataError: The stream cannot be read, or a sample is bad and the peer is strict.
            StoreError: The state cannot be made durable.
        """
        config = self.node.config
        limits = ConnectionLimits.for_frames(config.limits.frame_for(self._layout.width))
        listen = self._listen or TRANSPORTS[config.transport]
        transport = listen(self._keys.secret, config.listen, limits=limits, clock=time.monotonic)
        self._runtime = Runtime(
            self.home, self.node, self._store, transport, samples=samples, strict=strict, api=api
        )
        try:
            await self._runtime.run(ready)
        finally:
            self._runtime = None

    def stop(self) -> None:
        """End `run` soon, with everything durable; from any thread."""
        runtime = self._runtime
        if runtime is not None:
            runtime.stop()

    def close(self) -> None:
        """Make everything durable, close the store and let another process run this peer.

        Raises:
            StoreError: What is known cannot be made durable.
        """
        self._open.close()

    def __enter__(self) -> Peer:
        """Start exchanging models in a thread of its own."""
        listening = threading.Event()

        def live() -> None:
            try:
                asyncio.run(self.run(ready=listening.set))
            except BaseException as error:
                self._failure = error
            finally:
                listening.set()

        self._thread = threading.Thread(target=live, name="oneway peer", daemon=True)
        self._thread.start()
        if not listening.wait(START_SECONDS):
            self.stop()
            raise OnewayError(f"the peer did not start within {START_SECONDS:g} seconds; try again")
        self._raise_failure()
        self._hear_about_batch()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Make everything durable and stop."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
        self.close()
        if error is None:
            self._raise_failure()

    def _hear_about_batch(self) -> None:
        """Wait a little for receivers to tell that the batch begun in a former life is not theirs.

        A sample that comes before they have would make the peer drop it.
        """
        deadline = time.monotonic() + UNUSED_SECONDS
        while (
            UNFINISHED[0] in self.node.snapshot.memory
            and self.node.unanswered
            and time.monotonic() < deadline
        ):
            time.sleep(TICK_SECONDS)

    def _open_store(self) -> PeerStore:
        """The durable state, in a new life."""
        path = self.home.store_path
        owner = Owner(self._keys.public, self.task.fingerprint, self._layout.width)
        boot = _new_stamp()
        if not path.exists():
            ledger = 1 + secrets.randbelow(1 << 61)
            state = PeerState.new(self._layout.width, ledger, boot, self._layout)
            return PeerStore.create(path, owner, Snapshot(state))
        store = PeerStore.open(path, owner)
        saved = store.load()
        # Durable before the first word: this life must never be mistaken for another.
        history = saved.history.up_to(saved.journal.samples)
        store.commit(replace(saved, state=restart(saved.state, boot), history=history))
        return store

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self.close()
            raise failure


def _new_stamp() -> int:
    return first_stamp(time.time_ns(), secrets.randbits(RANDOM_BITS))
