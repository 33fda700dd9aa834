"""A peer as a library: open its folder, predict and learn, while it exchanges models."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from oneway.display.html import Html, card, facts, grid
from oneway.errors import OnewayError
from oneway.export import FittedModel, PersonalModel
from oneway.methods.base import UNFINISHED
from oneway.peer import trust
from oneway.peer.disclosure import disclosed_curve
from oneway.peer.home.config import PeerConfig
from oneway.peer.home.home import Home
from oneway.peer.home.limits import Limits
from oneway.peer.identity.card import Card, parse_card_or_key
from oneway.peer.identity.keys import signing_secret
from oneway.peer.learner import Learner
from oneway.peer.measuring import measures_in
from oneway.peer.node import Node
from oneway.peer.offline import PERSONAL, is_shared, origin_of, personal_origin
from oneway.peer.runtime import TICK_SECONDS, Runtime, save
from oneway.peer.sample_rows import Samples, learn_rows
from oneway.peer.status_text import receiver_table, sender_table, status_facts
from oneway.peer.store.store import Owner, begin_life, new_stamp
from oneway.peer.stream_progress import UNUSED_SECONDS
from oneway.records import Vector
from oneway.records.curve import Curve
from oneway.records.measures import Measures
from oneway.records.status import Status
from oneway.sentences import listed
from oneway.tables.encoder import ClassName
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

    def __init__(
        self,
        folder: str | Path,
        *,
        transport: Listen | None = None,
        exact_status: bool = False,
    ) -> None:
        """Open a peer that `Peer.create`, or `oneway peer init`, made.

        Args:
            folder: Where it lives.
            transport: What to reach others with, instead of the one that peer.toml names.
            exact_status: Whether status.json and the local API have losses and measures of every
                sample and with all digits, from which labels follow: for samples that are no
                secret.

        Raises:
            ConfigError: There is no peer in the folder, it runs already, or its files are wrong.
            KeyFileError: The key file is missing, malformed or open to others.
            StoreError: The store is damaged or belongs to another peer or task.
        """
        self.home = Home.open(Path(folder))
        self._listen = transport
        self._exact = exact_status
        self._open = ExitStack()
        try:
            self._open.enter_context(self.home.lock())
            self._keys = self.home.keys()
            self.task: Task = self.home.task()
            config = self.home.config()
            # Before anything is written: a peer that may not take part leaves no trace.
            self._layout = Learner(self.task, own=config.privacy).layout
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
        self._is_closed = False
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
        allow: Iterable[str] = (),
    ) -> Peer:
        """Make a peer in a folder, as `oneway peer init` does, and open it.

        Args:
            folder: Where it shall live, with its keys and all it learns.
            task: What all peers learn, or the path of their task.toml.
            name: What others shall call it; that of the folder if it is not given.
            listen: `host:port`; by default a free port that only this machine can reach.
            advertise: Where others reach it, if not there.
            transport: How messages travel, by name; all peers alike.
            allow: Names of code, `package.module:function`, that the task.toml may name.

        Raises:
            ConfigError: There is a peer already, or the name, the task or an address breaks a rule.
        """
        place = Path(folder)
        if not isinstance(task, Task):
            task = Path(task)
        called = place.absolute().name if name is None else name
        Home.create(
            place, called, task, listen, advertise=advertise, transport=transport, allow=allow
        )
        return cls(place)

    def _repr_html_(self) -> str:
        runtime = self._runtime
        status = None if runtime is None else runtime.status()
        samples = self.node.snapshot.journal.samples
        return _peer_html(self.node.config, self.task, status, samples)

    @property
    def name(self) -> str:
        """What others call it."""
        return self.node.config.name

    @property
    def card(self) -> str:
        """The line to hand to others: who this peer is and where it listens; no secret."""
        return str(self.node.config.card(self._keys.public))

    def trust(self, card: str | Peer, weight: float = 1.0) -> None:
        """Send to a peer from now on, given its card; one that runs follows in half a second.

        Args:
            card: The other's `card`, or the other itself, if it lives in this process.
            weight: How much it gets, compared with the other receivers.

        Raises:
            CardError: It is no card.
            ConfigError: The card is this peer's own, or the weight is not positive.
        """
        trust.send_to(self.home, Card.parse(_card_of(card)), weight)
        self._follow()

    def distrust(self, who: str) -> None:
        """Send no more to a receiver, by its name; a `ConfigError` if it is none."""
        trust.send_no_more_to(self.home, who)
        self._follow()

    def admit(self, card: str | Peer) -> None:
        """Let a peer send to this one, given its card or its key; without this nobody may.

        Raises:
            CardError: It is no card, this peer's own, or its name belongs to another key.
        """
        trust.admit_one(self.home, parse_card_or_key(_card_of(card)))
        self._follow()

    def _follow(self) -> None:
        """Do as peer.toml says now; a runtime looks at it by itself."""
        if self._runtime is None:
            self.node.follow(self.home.config())

    def personal_model(self) -> PersonalModel | FittedModel:
        """The model that answers this peer's owner: it predicts raw rows, and can be saved.

        The peer's own mixture of the shared model and of models that never leave it, made of its
        raw samples without noise. The shared model if the task's model has no personal predictions.
        """
        node = self.node
        with node.lock:
            origin = personal_origin(node.config.name, node.snapshot.journal.samples)
            return node.personal_model(**origin) or self.model()

    def model(self, *, momentary: bool = False, durable: bool = False) -> FittedModel:
        """The shared model to take home: it predicts raw rows, says its coefficients, can be saved.

        The settled one, the average of the last estimates: a live peer's estimate jumps.

        Args:
            momentary: Whether the estimate of this moment is wanted instead.
            durable: Whether it is to be handed out, so that only what is on the disk may be in it:
                the noise of a batch that a crash undoes is drawn again.
        """
        node = self.node
        with node.lock:
            params = node.estimate if momentary else node.settled
            samples = node.snapshot.journal.learned
            if durable:
                params, samples = node.durable_model(momentary=momentary)
        return self.node.learner.fitted(
            params, **origin_of(self.node.config.name, samples, momentary=momentary)
        )

    @property
    def coefficients(self) -> dict[str, float] | dict[ClassName, dict[str, float]]:
        """The settled model in the units of the data, by feature; see `FittedModel.coefficients`.

        Raises:
            ConfigError: The task's model has no coefficients.
        """
        return self.model().coefficients

    def answering(self, model: str = PERSONAL) -> PersonalModel | FittedModel:
        """The model of a name: "personal", see `personal_model`, or "shared", see `model`.

        Raises:
            ConfigError: There is no model of that name.
        """
        return self.model() if is_shared(model) else self.personal_model()

    def predict_one(self, x: Mapping[str, object], *, model: str = PERSONAL) -> ClassName | float:
        """The label expected for a sample: a class, True or False, or a number.

        Args:
            x: The cells of the sample by column.
            model: "personal" or "shared", see `answering`.

        Raises:
            DataError: The sample lacks a feature or has one that is no number.
            ConfigError: There is no model of that name.
        """
        return self.answering(model).predict_one(x)

    def predict_proba_one(
        self, x: Mapping[str, object], *, model: str = PERSONAL
    ) -> dict[ClassName, float]:
        """How probable each class is.

        Args:
            x: The cells of the sample by column.
            model: "personal" or "shared", see `answering`.

        Raises:
            DataError: As `predict_one`.
            ConfigError: As `predict_one`, or the task's model has no probabilities.
        """
        return self.answering(model).predict_proba_one(x)

    @property
    def position(self) -> Position:
        """Where to go on in the stream."""
        return self.node.snapshot.journal.position

    def learn_one(self, x: Mapping[str, object], y: object) -> float:
        """Learn from a sample at once, and push soon; return the loss of what it predicted before.

        That of the personal prediction, without the l2 term.

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

    @property
    def measures(self) -> Measures | None:
        """How good its predictions were, beside others; None before the first sample."""
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
                One without a label is skipped, and counted as skipped.
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
        return self._running().status()

    def disclosed_status(self) -> Status:
        """The same with losses and measures rounded, so that they tell of no single sample.

        Raises:
            OnewayError: The peer is not running.
        """
        return self._running().disclosed()

    def _running(self) -> Runtime:
        runtime = self._runtime
        if runtime is None:
            raise OnewayError("the peer is not running; use it in a with block")
        return runtime

    def curve(self) -> Curve:
        """How the loss went until now, bounded however many samples there were."""
        return self.node.snapshot.history.curve()

    def disclosed_curve(self) -> Curve:
        """The same in groups of at least 16 samples, rounded, as `disclosed_status` is."""
        return self.curve() if self._exact else disclosed_curve(self.curve())

    async def run(
        self,
        samples: AsyncGenerator[Row | BadRow, None] | None = None,
        *,
        api: str = "",
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Exchange models, and learn from a stream, until `stop`.

        A stream that ends is no reason to return, nor is one of which every sample was skipped:
        `status` counts what was learned from and what was skipped.

        Args:
            samples: What to learn from, if it does not come through `learn_one`.
            api: Where the local API is, for the status.
            ready: Called once the peer listens.

        Raises:
            TransportError: The address cannot be listened on.
            DataError: The stream cannot be read.
            StoreError: The state cannot be made durable.
        """
        self._require_open()
        config = self.node.config
        limits = ConnectionLimits.for_frames(Limits.frame_for(self._layout.width))
        listen = self._listen or TRANSPORTS[config.transport]
        transport = listen(self._keys.secret, config.listen, limits=limits, clock=time.monotonic)
        self._runtime = Runtime(
            self.home,
            self.node,
            self._store,
            transport,
            samples=samples,
            api=api,
            exact=self._exact,
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
        """Stop, make everything durable, and let another process run this peer.

        Raises:
            StoreError: What is known cannot be made durable.
        """
        self._is_closed = True
        self.stop()
        if self._thread is not None:
            self._thread.join()
        self._open.close()

    def start(self) -> Peer:
        """Exchange models in a thread of its own, until `close`; what `with` does.

        Raises:
            OnewayError: It cannot be started, say because its address is taken, or is closed.
        """
        self._require_open()
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

    def require_progress(self) -> None:
        """Raise if the peer has failed or is closed, or does not know where its stream goes on."""
        self._raise_failure()
        self._require_open()
        runtime = self._runtime  # once: its own thread may end it between two looks
        if runtime is not None and runtime.awaited:
            # A sample more would hide that a restored backup counts fewer than its receivers heard.
            raise OnewayError(
                f"the peer waits for {listed(runtime.awaited, 3)} to tell how far its stream had "
                "come; try again in a moment"
            )

    def _require_open(self) -> None:
        if self._is_closed:
            folder = str(self.home.folder)
            raise OnewayError(f"the peer is closed; open it again with Peer({folder!r})")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self.close()
            raise failure


def _card_of(card: str | Peer) -> str:
    return card.card if isinstance(card, Peer) else str(card)


def _peer_html(config: PeerConfig, task: Task, status: Status | None, samples: int) -> Html:
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
