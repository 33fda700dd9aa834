"""The bad company of `soak.py`: a sender that does all it can, a receiver that never answers."""

from __future__ import annotations

import random
import sys
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from oneway.errors import WireError
from oneway.peer.identity.card import Card
from oneway.protocol.fixed_point import Fixed
from oneway.protocol.messages import Hello
from oneway.task.task import Task

sys.path.append(str(Path(__file__).parents[1] / "worlds"))
from hostile import ForgedEdge, HostilePeer, Line, amount_of, parcel_of

PAUSE_SECONDS = 0.2
"""Between two attacks: the peers share two cores with whoever attacks them."""

LARGEST_AMOUNT, SMALLEST_AMOUNT = 1000.0, 1e-6
CAREFUL_EDGES = 40
"""So many edges an honest sender could have after as many changes of mind."""


class Hostile:
    """A sender that mints, lies, floods, replays and babbles, in an order that a seed repeats.

    To its first victim it is careful: it does only what earns no strikes, so that it is never
    quarantined. To the others it does everything.

    Attributes:
        did: How often it did what.
        stop: Ends `attack`.
    """

    def __init__(self, task: Task, lie: np.ndarray, rng: random.Random) -> None:
        """Prepare; `lie` is the model that it hands over."""
        self.peer = HostilePeer(task)
        self.did: Counter[str] = Counter()
        self.stop = threading.Event()
        self._lie = lie
        self._rng = rng
        self._amounts: dict[int, float] = {}
        # By edge, and so by victim: what was said to one means nothing to the other.
        self._said: dict[int, deque[bytes]] = defaultdict(lambda: deque(maxlen=2000))

    def attack(self, victims: Sequence[Card]) -> None:
        """Attack one victim after the other, until `stop` is set; in a thread of its own."""
        with self.peer:
            lines = [self.peer.dial(card) for card in victims]
            edges = [line.edge(self._rng.getrandbits(60)) for line in lines]
            careful = [self._mint, self._forge, self._replay, self._greet]
            careless = [
                self._mint,
                self._forge,
                self._replay,
                self._flood,
                self._babble,
                self._send_parts,
            ]
            while not self.stop.is_set():
                for line, edge in zip(lines, edges, strict=True):
                    acts = careful if line is lines[0] else careless
                    try:
                        self._rng.choice(acts)(line, edge)
                        self.did["answers"] += sum(1 for _ in line.replies(0.05))
                    except WireError:
                        self.did["answers that are no message"] += 1
                self.stop.wait(PAUSE_SECONDS)

    def _mint(self, _: Line, edge: ForgedEdge) -> None:
        """As much as is taken: more after a success, less after a refusal."""
        for _ in range(20):
            amount = self._amounts.get(edge.epoch, 1.0)
            taken = self._offer(edge, amount_of(amount, self._lie, self.peer.task.layout))
            if taken is None:
                return
            after = 2.0 * amount if taken else amount / 4.0
            self._amounts[edge.epoch] = min(max(after, SMALLEST_AMOUNT), LARGEST_AMOUNT)

    def _forge(self, _: Line, edge: ForgedEdge) -> None:
        """Steps that nobody took, towards the lie, one at a time and many at once."""
        for steps in (0.1, 1.0, 100.0) * 5:
            if self._offer(edge, parcel_of(self.peer.task, steps, self._lie)) is None:
                return

    def _offer(self, edge: ForgedEdge, amount: Fixed) -> bool | None:
        """Hand over an amount that nobody held; as `ForgedEdge.hand_over`."""
        if not edge.is_open and not edge.open(1.0):
            self.did["hellos without an answer"] += 1
            return None
        total = edge.next_total(amount)
        self._said[edge.epoch].append(self.peer.frame(total))
        taken = edge.hand_over(total, 0.5)
        answer = {None: "without an answer", True: "taken", False: "refused"}[taken]
        self.did[f"totals {answer}"] += 1
        return taken

    def _greet(self, line: Line, _: ForgedEdge) -> None:
        """Hellos about a few edges, in new sessions."""
        for _ in range(100):
            epoch, session = self._rng.randrange(CAREFUL_EDGES), self._rng.getrandbits(60)
            hello = self.peer.forge(Hello, epoch=epoch, session=session)
            self.did["hellos"] += line.push(hello)

    def _flood(self, line: Line, edge: ForgedEdge) -> None:
        """Hellos about edges that never were."""
        for _ in range(100):
            hello = self.peer.forge(Hello, epoch=self._rng.getrandbits(60))
            self._said[edge.epoch].append(self.peer.frame(hello))
            self.did["new edges"] += line.push(hello)

    def _replay(self, line: Line, edge: ForgedEdge) -> None:
        for frame in self._some_said(edge, 100):
            self.did["replays"] += line.send(frame)

    def _babble(self, line: Line, edge: ForgedEdge) -> None:
        """Bytes that are no message, and bytes that nearly are."""
        for frame in self._some_said(edge, 10):
            at = self._rng.randrange(len(frame))
            damaged = frame[:at] + self._rng.randbytes(3) + frame[at + 2 :]
            self.did["rubbish"] += line.send(damaged) + line.send(self._rng.randbytes(200))

    def _send_parts(self, line: Line, _: ForgedEdge) -> None:
        if self._rng.random() < 0.2:
            self.did["messages of 10,000 parts"] += line.send(*[b"part"] * 10_000)

    def _some_said(self, edge: ForgedEdge, most: int) -> list[bytes]:
        said = self._said[edge.epoch]
        return self._rng.sample(said, min(most, len(said)))


class Silent:
    """A receiver that shakes hands and never says another word, or acknowledges and keeps it all.

    Attributes:
        stop: Ends `listen`.
    """

    def __init__(self, task: Task, *, acknowledges: bool = False) -> None:
        """Listen; nothing is answered yet."""
        self.peer = HostilePeer(task, name="hole" if acknowledges else "silent")
        self._answers = acknowledges
        self.inbox = self.peer.listen()
        self.stop = threading.Event()

    def listen(self) -> None:
        """Until `stop` is set; in a thread of its own."""
        with self.peer:
            while not self.stop.is_set():
                (self.inbox.swallow if self._answers else self.inbox.be_silent)(PAUSE_SECONDS)
