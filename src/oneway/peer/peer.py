"""A peer as a library: open its folder, predict and learn, while it exchanges models."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from threadpoolctl import threadpool_limits

from oneway.errors import ConfigError, OnewayError, TaskError
from oneway.files.paths import as_path
from oneway.methods.base import UNFINISHED
from oneway.peer.home.home import Home
from oneway.peer.identity.keys import signing_secret
from oneway.peer.late_labels import Ticket
from oneway.peer.learner import Learner
from oneway.peer.measuring import measures_in
from oneway.peer.membership import Membership
from oneway.peer.node import Node
from oneway.peer.predictions import Predictions
from oneway.peer.runtime import TICK_SECONDS, Runtime, save
from oneway.peer.sample_rows import Samples, learn_rows
from oneway.peer.store.new_life import begin_life, new_stamp
from oneway.peer.store.store import Owner
from oneway.peer.stream_progress import UNUSED_SECONDS
from oneway.peer.views import peer_html
from oneway.records import Vector
from oneway.records.curve import Curve
from oneway.records.measures import Measures
from oneway.records.status import Status
from oneway.sentences import listed
from oneway.tables.rows import BadRow, Position, Row
from oneway.task.task import Task
from oneway.transport import TRANSPORTS, ConnectionLimits, Listen

START_SECONDS = 30.0

_log = logging.getLogger("oneway.peer")


class Peer(Membership, Predictions):
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
        """Open a peer that `Peer.create`, or `oneway peer init`, made.

        Args:
            folder: Where it lives.
            transport: What to reach others with, instead of the one that peer.toml names.

        Raises:
            ConfigError: There is no peer in the folder, it runs already, or its files are wrong.
            KeyFileError: The key file is missing, malformed or open to others.
            StoreError: The store is damaged or belongs to another peer or task.
        """
        remedy = "name the folder that Peer.create, or oneway peer init, made"
        self.home = Home.open(as_path(folder, "the peer's folder", ConfigError, remedy))
        self._listen = transport
        self._open = ExitStack()
        try:
            self._open.enter_context(self.home.lock())
            self._keys = self.home.keys()
            self.task: Task = self.home.task(_log.warning)
            config = self.home.config()
            # Before anything is written: a peer that may not take part leaves no trace.
            self._layout = Learner(self.task, own=config.privacy).layout
            config.limits.check_dim(self._layout.width)
            for doubt in config.doubtful_names(self._keys.public):
                _log.warning("%s", doubt)
            owner = Owner(self._keys.public, self.task.fingerprint, self._layout.width)
            self._store = begin_life(self.home.store_path, owner, self._layout)
            self._open.callback(self._store.close)
            self.node = Node(
                self.task,
                signing_secret(self._keys),
                config,
                self._store.load(),
                key=self._keys.public,
                clock=time.monotonic,
                wall_clock=time.time,
                new_epoch=new_stamp,
            )
            self._open.callback(save, self.node, self._store)
        except BaseException:
            self._open.close()
            raise
        self._runtime: Runtime | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def __deepcopy__(self, memo: object) -> Peer:
        """The same peer: there is one, whoever copies what holds it (a cloned estimator, say)."""
        return self

    @classmethod
    def create(
        cls,
        folder: str | Path,
        task: Task | str | Path,
        *,
        name: str | None = None,
        listen: str | None = None,
        advertise: str = "",
        transport: str = "zeromq",
    ) -> Peer:
        """Make a peer in a folder, as `oneway peer init` does, and open it.

        Args:
            folder: Where it shall live, with its keys and all it learns.
            task: What all peers learn, or the path of their task.toml.
            name: What others shall call it; that of the folder if it is not given.
            listen: `host:port`; by default a free port that only this machine can reach.
            advertise: Where others reach it, if not there.
            transport: How messages travel, by name; all peers alike.

        Raises:
            ConfigError: There is a peer already, or the name, the task or an address breaks a rule.
        """
        place = as_path(folder, "the peer's folder", ConfigError, "name a new folder")
        if not isinstance(task, Task):
            remedy = "name a task.toml, or make a task with Task.of(table)"
            task = as_path(task, "the task", TaskError, remedy)
        called = place.absolute().name if name is None else name
        Home.create(place, called, task, listen, advertise=advertise, transport=transport)
        return cls(place)

    def _repr_html_(self) -> str:
        runtime = self._runtime
        status = None if runtime is None else runtime.status()
        samples = self.node.snapshot.journal.samples
        return peer_html(self.node.config, self.task, status, samples)

    @property
    def position(self) -> Position:
        """Where to go on in the stream."""
        return self.node.snapshot.journal.position

    def learn_one(self, x: Mapping[str, object], y: object) -> float:
        """Learn from a sample at once, and push soon; return the loss suffered before.

        Raises:
            DataError: The sample cannot be used; nothing has changed.
            OnewayError: The peer has failed meanwhile, say because its store cannot be written; or
                it does not know yet where its stream goes on.
        """
        self.require_progress()
        loss = self.node.learn(x, y)
        if (runtime := self._runtime) is not None:
            runtime.wake()
        return loss

    def predict_later(self, x: Mapping[str, object]) -> Ticket:
        """Predict a sample whose label comes later: `tell` it; the ticket is durable on return.

        The sample stays in the peer's own store, as long as [limits] in peer.toml says.

        Raises:
            DataError: As `predict_one`.
            TicketError: Too many predictions wait already.
            StoreError: It cannot be made durable.
        """
        self._raise_failure()
        ticket = self.node.late.predict(x)
        self._until_durable()
        return ticket

    def tell(self, ticket: Ticket | str, y: object) -> float:
        """Learn from the label of a prediction, once; return the loss of that prediction.

        The gradient is that of the model of this moment. All is on the disk on return.

        Raises:
            TicketError: The label was told before, or the ticket is unknown or too old.
            DataError: The label cannot be used; it may be told again.
            StoreError: It is learned, but cannot be made durable yet.
            OnewayError: As `learn_one`.
        """
        self.require_progress()
        loss = self.node.late.tell(ticket.id if isinstance(ticket, Ticket) else ticket, y)
        self._until_durable()
        return loss

    async def durable(self) -> None:
        """Wait until all is on the disk, within the loop of `run`; StoreError if it cannot be."""
        if self._runtime is not None:
            await self._runtime.durable()

    @property
    def measures(self) -> Measures | None:
        """How good its predictions were, beside two baselines; None before the first sample."""
        with self.node.lock:
            known = self.node.snapshot
        return measures_in(known.measures, self.task, known.history.curve())

    def learn_many(self, samples: Samples) -> Vector:
        """Learn from samples one after the other; return the loss suffered before each.

        Those that fill a batch (`samples_per_push`) together are predicted at once: a mini-batch.

        Args:
            samples: A frame (polars or pandas) or a `Table` with the columns of the task, or an
                iterable of rows with their label among the cells, or of pairs of a row and its
                label.

        Raises:
            DataError: A sample cannot be used; those before it were learned, and it says how many.
            OnewayError: As `learn_one`.
        """
        return learn_rows(self.node, self.learn_one, samples, self.task.label)

    def wait_until_quiet(self, seconds: float = 10.0) -> bool:
        """Wait until all is pushed and acknowledged; False if it is not, after so many seconds.

        Raises:
            OnewayError: The peer is not running, or has failed meanwhile.
        """
        deadline = time.monotonic() + seconds
        while True:
            self._raise_failure()
            waits = any(edge.seq > edge.acked for edge in self.status().receivers)
            if not waits and not self.node.is_restless:
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(TICK_SECONDS)

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
        late_labels: str = "",
        api: str = "",
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Exchange models, and learn from a stream, until `stop`.

        A stream that ends is no reason to return, nor is one of which every sample was skipped:
        `status` counts what was learned from and what was skipped.

        Args:
            samples: What to learn from, if it does not come through `learn_one`.
            strict: Whether a sample that cannot be used stops the peer.
            late_labels: As in `SampleStream`.
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
            self.home,
            self.node,
            self._store,
            transport,
            samples=samples,
            strict=strict,
            late_labels=late_labels,
            api=api,
        )
        try:
            with threadpool_limits(1, user_api="blas"):  # two would mostly wait for each other
                await self._runtime.run(ready)
        finally:
            self._runtime = None

    def stop(self) -> None:
        """End `run` soon, with everything durable; from any thread."""
        runtime = self._runtime
        if runtime is not None:
            runtime.stop()

    def close(self) -> None:
        """Stop, make everything durable, and let another process run this peer.

        Raises:
            StoreError: What is known cannot be made durable.
        """
        self.stop()
        if self._thread is not None:
            self._thread.join()
        self._open.close()

    def start(self) -> Peer:
        """Exchange models in a thread of its own, until `close`; what `with` does.

        Raises:
            OnewayError: It cannot be started, say because its address is taken.
        """
        if self._thread is not None and self._thread.is_alive():
            return self
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

    def __enter__(self) -> Peer:
        """Start exchanging models."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Make everything durable and stop."""
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

    def _until_durable(self) -> None:
        runtime = self._runtime
        if runtime is None:
            save(self.node, self._store)
        else:
            runtime.flush()

    def require_progress(self) -> None:
        """Raise if the peer has failed, or does not know yet where its stream goes on."""
        self._raise_failure()
        runtime = self._runtime  # once: its own thread may end it between two looks
        if runtime is not None and runtime.awaited:
            # A sample more would hide that a restored backup counts fewer than its receivers heard.
            raise OnewayError(
                f"the peer waits for {listed(runtime.awaited, 3)} to tell how far its stream had "
                "come; try again in a moment"
            )

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self.close()
            raise failure
