"""Hostile peer: a key pair that speaks the wire format over ZeroMQ and keeps none of its rules.

For tests and soak runs against real peers: it says any message with any fields to peers that admit
it, reads what they answer, and listens as a receiver that answers anything. It has no event loop:
every wait is bounded and blocks the caller, and one thread at a time may use it.

    with HostilePeer(task) as mallory:
        line = mallory.dial(card_of_a_peer_that_admits_it)
        line.push(mallory.forge(Hello, epoch=7))
        print(line.replies(seconds=1.0))
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, TypeVar

import msgspec
import numpy as np
import zmq

from oneway.peer.identity.card import Card
from oneway.protocol.fixed_point import ONE, Fixed, fixed, zeros
from oneway.protocol.incoming import MOST_PUSHES, SPARE
from oneway.protocol.layout import Layout
from oneway.protocol.messages import (
    NO_PROGRESS,
    Ack,
    Data,
    Hello,
    Life,
    Message,
    Push,
    Reply,
    Stale,
    State,
)
from oneway.protocol.tags import NO_TAG, digest_of
from oneway.records import Vector
from oneway.task.task import Task
from oneway.transport.address import join_address, parse_address
from oneway.transport.keys import KeyPair, generate
from oneway.transport.wire import decode, encode

Socket: TypeAlias = "zmq.Socket[bytes]"
_Forged = TypeVar("_Forged", bound=Message)

HOST = "127.0.0.1"
SEND_SECONDS = 1.0
"""A peer that takes nothing more for so long is given up on; the message is lost."""

_BLANK: dict[str, Any] = {
    "ledger": 0,
    "session": 1,
    "granted": 0,
    "seq": 0,
    "tag": NO_TAG,
    "digest": NO_TAG,
    "until": 0,
    "progress": NO_PROGRESS,
}


class HostilePeer:
    """A participant without a state of its own; leave it with `close`, or use a `with` block.

    Attributes:
        keys: What other peers know it by.
        task: Whose fingerprint its messages carry.
        name: What its card says.
    """

    def __init__(self, task: Task, keys: KeyPair | None = None, name: str = "mallory") -> None:
        """Make a peer, with a new key unless one is given: that of another peer, perhaps."""
        self.keys = keys or generate()
        self.task = task
        self.name = name
        self._context: zmq.Context[Socket] = zmq.Context()
        # Held here, because a context forgets a socket that nobody else holds without closing it.
        self._sockets: list[Socket] = []

    @property
    def key(self) -> bytes:
        """Its public key."""
        return self.keys.public

    def card(self, address: str) -> Card:
        """The card by which it is trusted, with the address of an `Inbox`, or any other."""
        return Card(self.key, *parse_address(address), self.name)

    def forge(self, kind: type[_Forged], boot: int = 1, **fields: Any) -> _Forged:
        """Any message: what is not given is 0, empty, or 1 where that is the least allowed.

        Its life is `boot`, unless `life` says more. All messages of tests and soak runs are made
        here, so that a new field is added once.
        """
        life = Life(boot, over=0, leaving=False, proof=NO_TAG)
        blank = _BLANK | {"life": life, "total": zeros(self.task.layout.width)} | fields
        known = {field.name: blank[field.name] for field in msgspec.structs.fields(kind)}
        return kind(**known)

    def frame(self, message: Push | Reply) -> bytes:
        """The bytes of a message under the task."""
        return encode(message, self.task.fingerprint)

    def dial(self, card: Card) -> Line:
        """Connect to a peer that admits this one; several connections to one peer are fine."""
        dealer = self._socket(zmq.DEALER)
        dealer.set(zmq.CURVE_SERVERKEY, card.key)
        dealer.connect(f"tcp://{card.address}")
        return Line(self, dealer)

    def listen(self, address: str = join_address(HOST, 0)) -> Inbox:
        """Be a receiver; with port 0, a free one is chosen. Every key is let in."""
        router = self._socket(zmq.ROUTER)
        router.set(zmq.CURVE_SERVER, 1)
        router.bind(f"tcp://{address}")
        return Inbox(self, router)

    def close(self) -> None:
        """Hang up on everybody and free the port."""
        for socket in self._sockets:
            socket.close(linger=0)
        self._context.term()

    def __enter__(self) -> Self:
        """Nothing is connected yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up."""
        self.close()

    def _socket(self, kind: int) -> Socket:
        socket = self._context.socket(kind)
        socket.set(zmq.CURVE_PUBLICKEY, self.keys.public)
        socket.set(zmq.CURVE_SECRETKEY, self.keys.secret)
        socket.set(zmq.SNDTIMEO, round(1000 * SEND_SECONDS))
        self._sockets.append(socket)
        return socket


class Line:
    """A connection to one peer, dialled by the hostile one.

    Attributes:
        bytes_in: What the peer has answered so far, as far as it was read.
    """

    def __init__(self, peer: HostilePeer, dealer: Socket) -> None:
        self.bytes_in = 0
        self._peer = peer
        self._dealer = dealer

    def push(self, message: Push | Reply) -> bool:
        """Say something; False if the peer takes nothing at the moment."""
        return self.send(self._peer.frame(message))

    def send(self, *parts: bytes) -> bool:
        """Send bytes as they are, in one message of any number of parts; False if they are lost."""
        try:
            self._dealer.send_multipart(parts)
        except zmq.Again:
            return False
        return True

    def replies(self, seconds: float) -> Iterator[Reply]:
        """What the peer answers within so many seconds, and no longer than the caller asks."""
        deadline = time.monotonic() + seconds
        while self._dealer.poll(_milliseconds_until(deadline)):
            frame = self._dealer.recv()
            self.bytes_in += len(frame)
            _, message = decode(frame)
            if isinstance(message, Reply):
                yield message

    def edge(self, epoch: int) -> ForgedEdge:
        """An edge to this peer; nothing is said about it yet."""
        return ForgedEdge(self._peer, self, epoch)

    def close(self) -> None:
        """Hang up."""
        self._dealer.close(linger=0)


class ForgedEdge:
    """An edge over which mass is handed over that nobody ever held.

    It builds on what the receiver has confirmed, so one that refuses a total can be offered less.

    Attributes:
        heard: The last total that the receiver confirmed, the `seq`-th.
        taken: How many totals it has taken in, by its own word.
        refused: How many it has refused.
    """

    def __init__(self, peer: HostilePeer, line: Line, epoch: int) -> None:
        self.epoch = epoch
        self.heard: Fixed = zeros(peer.task.layout.width)
        self.seq = 0
        self.taken = self.refused = 0
        self._peer = peer
        self._line = line
        self._session = 1
        self._about: dict[str, int] = {}
        """What every total on this edge must name: ledger, session and grant."""

    @property
    def is_open(self) -> bool:
        """Whether it is known what the receiver has heard; if not, `open` asks."""
        return bool(self._about)

    def open(self, seconds: float) -> bool:
        """Say hello until the receiver answers; False if it does not."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._session += 1
            self._line.push(self._peer.forge(Hello, epoch=self.epoch, session=self._session))
            for reply in self._line.replies(0.5):
                if isinstance(reply, State) and reply.epoch == self.epoch:
                    self._adopt(reply)
                    return True
        return False

    def next_total(self, amount: Fixed, pushes: int = MOST_PUSHES) -> Data:
        """A total that hands over this amount, as if in so many pushes."""
        total = self.heard + amount
        return self._peer.forge(
            Data, epoch=self.epoch, seq=self.seq + pushes, total=total, **self._about
        )

    def confirm(self, total: Data) -> None:
        """Build on a total from now on, whether the receiver took it in or not."""
        self.heard, self.seq = total.total, total.seq

    def hand_over(self, total: Data, seconds: float) -> bool | None:
        """Offer a total; whether it was taken in, None if no answer came.

        After no answer the same total is to be offered again: it may have been taken in.
        """
        for _ in self._line.replies(0.0):
            pass  # answers to what was said before prove nothing
        self._line.push(total)
        for reply in self._line.replies(seconds):
            if reply.epoch != self.epoch:
                continue
            if isinstance(reply, Ack) and reply.digest == digest_of(total.total):
                self.confirm(total)
                self.taken += 1
                return True
            if isinstance(reply, Ack) and reply.seq < total.seq:
                self.refused += 1
                return False
            if isinstance(reply, Ack | Stale):
                # Another life of the receiver, or a total whose answer was lost: say hello again.
                self._about = {}
                return None
        return None

    def _adopt(self, said: State) -> None:
        # It may have heard more in an earlier life than was confirmed then.
        self.heard, self.seq = said.total, said.seq
        self._about = {
            "ledger": said.ledger,
            "session": said.session,
            "granted": said.granted,
        }


@dataclass(frozen=True, eq=False)
class Asked:
    """What somebody who dialled said, and the way back to it."""

    route: bytes
    message: Push


class Inbox:
    """A receiver that takes nothing in, and answers what the test wants.

    Attributes:
        address: Where it listens.
        ledger: What it calls its ledger.
    """

    def __init__(self, peer: HostilePeer, router: Socket, ledger: int = 1) -> None:
        self.address = router.get_string(zmq.LAST_ENDPOINT).removeprefix("tcp://")
        self.ledger = ledger
        self._peer = peer
        self._router = router
        self._greeted: set[tuple[int, int]] = set()

    @property
    def card(self) -> Card:
        """By which others trust it."""
        return self._peer.card(self.address)

    def asked(self, seconds: float) -> Iterator[Asked]:
        """What is said to it within so many seconds, and no longer than the caller asks."""
        deadline = time.monotonic() + seconds
        while self._router.poll(_milliseconds_until(deadline)):
            route, frame = self._router.recv_multipart()
            _, message = decode(frame)
            if isinstance(message, Push):
                yield Asked(route, message)

    def reply(self, to: Asked, message: Reply) -> bool:
        """Answer anything; False if the sender takes nothing at the moment."""
        try:
            self._router.send_multipart([to.route, self._peer.frame(message)])
        except zmq.Again:
            return False
        return True

    def grant(self, to: Asked, **claims: Any) -> None:
        """Answer a hello as if nothing had been heard so far, or whatever is claimed instead."""
        asked = to.message
        assert isinstance(asked, Hello)
        about = {"epoch": asked.epoch, "session": asked.session, "ledger": self.ledger}
        self.reply(to, self._peer.forge(State, **about | {"granted": 1} | claims))

    def swallow(self, seconds: float) -> int:
        """Grant every session and acknowledge every total; how many these were."""
        swallowed = 0
        for asked in self.asked(seconds):
            said = asked.message
            if isinstance(said, Hello):
                self.grant(asked)
            elif isinstance(said, Data):
                about = {"epoch": said.epoch, "seq": said.seq, "tag": said.tag}
                self.reply(asked, self._peer.forge(Ack, digest=digest_of(said.total), **about))
                swallowed += 1
        return swallowed

    def be_silent(self, seconds: float) -> None:
        """Answer the first hello of every session, so that pushes come, and nothing else at all."""
        for asked in self.asked(seconds):
            hello = asked.message
            if isinstance(hello, Hello) and (hello.epoch, hello.session) not in self._greeted:
                self._greeted.add((hello.epoch, hello.session))
                self.grant(asked)


def amount_of(mass: float, model: Vector, layout: Layout | None = None) -> Fixed:
    """So much mass at a model, in units, and nothing beside it.

    Raises:
        OverflowError: If a number does not fit.
    """
    numerator = mass * np.asarray(model, dtype=float)
    if layout is None or not layout.places:
        return fixed(numerator, mass)
    return fixed(layout.start(numerator, layout.width), mass)


def parcel_of(task: Task, steps: float, direction: Vector) -> Fixed:
    """So many steps against a direction, as long as no strike is earned by; and hardly any mass."""
    layout = task.layout
    assert layout.parcel is not None
    amount, (parcel, count) = zeros(layout.width), layout.parcel
    longest = 0.99 * SPARE * steps * task.longest_step
    amount[parcel] = np.rint(-longest * ONE * direction / np.linalg.norm(direction))
    amount[count], amount[-1] = round(steps * ONE), 1
    return amount


def _milliseconds_until(deadline: float) -> int:
    return max(0, round(1000 * (deadline - time.monotonic())))
