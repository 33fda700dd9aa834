"""Neighbours that do not follow the protocol: silent, minting, lying about what they heard."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from typing import Any

import numpy as np
from builders import replace
from residents import TASK
from storm import LONGEST

from oneway.errors import WireError
from oneway.protocol.compact import packed_total
from oneway.protocol.fixed_point import ONE, Fixed, mass_of
from oneway.protocol.layout import Layout
from oneway.protocol.messages import (
    NO_PROGRESS,
    Ack,
    Close,
    Closed,
    Compact,
    Data,
    Gone,
    Hello,
    Life,
    Receipt,
    Retired,
    Stale,
    State,
    Superseded,
)
from oneway.protocol.state import Key
from oneway.protocol.tags import digest_of, sign_life
from oneway.testing.memory_network import MemoryEndpoint
from oneway.transport.base import Via
from oneway.transport.wire import Body, decode, encode

HUGE = (1 << 62) - 1
RADIUS = 1000.0


class BadNeighbour:
    """Takes part without the protocol's state: it says what it likes, under its own key."""

    is_trusted = True
    """Whether honest peers hand over mass to it."""

    def __init__(
        self, endpoint: MemoryEndpoint, victims: list[Key], layout: Layout, dim: int, seed: str
    ) -> None:
        self.endpoint = endpoint
        self.key: Key = endpoint.key
        self.victims = victims
        self.layout = layout
        self.dim = dim
        self.rng = random.Random(seed)
        self.secret = self.rng.randbytes(32)
        self.ledger = self.rng.getrandbits(61) | 1
        self.boot = 1 << 30
        self.seen: dict[Key, list[Life]] = defaultdict(list)

    @property
    def life(self) -> Life:
        return Life(self.boot, 0, False, sign_life(self.secret, self.boot, 0))

    def act(self, now: float) -> None:
        """Read what came, and do harm."""
        while (arrival := self.endpoint.receive_now()) is not None:
            try:
                _, message = decode(arrival.frame)
            except WireError:
                continue  # it made its victim say a number that is too large, on its own edge
            self.seen[arrival.peer].append(message.life)
            self.hear(arrival.peer, message, now)

    def hear(self, peer: Key, message: Body, now: float) -> None:
        raise NotImplementedError

    def send(self, peer: Key, via: Via, word: Body) -> None:
        send = self.endpoint.push if via == "push" else self.endpoint.reply
        send(peer, encode(word, TASK))

    def lie_about_lives(self, peer: Key, via: Via) -> None:
        """Tell a peer of a newer life of its own: a forged one, or one that it had."""
        forged = Life(
            HUGE,
            self.rng.choice([0, *(life.boot for life in self.seen[peer][-1:])]),
            False,
            self.rng.randbytes(16),
        )
        known = self.seen[peer]
        newer = self.rng.choice([forged, known[0], known[-1]]) if known else forged
        self.send(peer, via, Superseded(0, self.life, newer))

    def lie_about_leaving(self, peer: Key, via: Via) -> None:
        """Give a peer a receipt that nobody wrote."""
        receiver, sender = self.rng.choices(self.victims, k=2)
        tag = self.rng.randbytes(16)
        epoch = self.rng.getrandbits(40)
        self.send(peer, via, Receipt(epoch, self.life, receiver, sender, 3, tag, tag))


class SilentReceiver(BadNeighbour):
    """Says hello back, lives, and acknowledges nothing."""

    def hear(self, peer: Key, message: Body, now: float) -> None:
        if isinstance(message, Hello):
            nothing = np.zeros(self.dim + 1, dtype=np.int64)
            self.send(
                peer,
                "reply",
                State(
                    message.epoch,
                    self.life,
                    self.ledger,
                    message.session,
                    self.boot,
                    0,
                    nothing,
                    bytes(16),
                    NO_PROGRESS,
                ),
            )


class ByzantineReceiver(BadNeighbour):
    """Replays its senders' own tagged totals, and claims, closes and retires what it likes."""

    def __init__(
        self, endpoint: MemoryEndpoint, victims: list[Key], layout: Layout, dim: int, seed: str
    ) -> None:
        super().__init__(endpoint, victims, layout, dim, seed)
        self.heard: dict[tuple[Key, int], list[Data | Close]] = defaultdict(list)
        self.is_honest = False
        self.silent_until = 0.0

    def hear(self, peer: Key, message: Body, now: float) -> None:
        edge_id, rng = (peer, message.epoch), self.rng
        if not isinstance(message, Hello | Data | Close) or now < self.silent_until:
            return
        if not self.is_honest and rng.random() < 0.003:
            self.silent_until = now + rng.choice([20.0, 150.0])
        if isinstance(message, Data | Close) and message.seq:
            self.heard[edge_id].append(message)
        if isinstance(message, Hello):
            self._claim(peer, message)
        elif self.is_honest or rng.random() < 0.6:
            digest = digest_of(message.total)
            self.send(
                peer, "reply", Ack(message.epoch, self.life, message.seq, digest, message.tag)
            )
        else:
            self._lie(peer, message)

    def _claim(self, peer: Key, hello: Hello) -> None:
        seq, total, tag = self._replayed(peer, hello.epoch)
        answer = State(
            hello.epoch,
            self.life,
            self.ledger,
            hello.session,
            self.boot,
            seq,
            total,
            tag,
            NO_PROGRESS,
        )
        self.send(peer, "reply", answer)

    def _replayed(self, peer: Key, epoch: int) -> tuple[int, Fixed, bytes]:
        """One of the sender's own totals: the oldest, the newest, any, or none."""
        known = self.heard[peer, epoch]
        if not known:
            return 0, np.zeros(self.dim + 1, dtype=np.int64), bytes(16)
        newest = max(known, key=lambda data: data.seq)
        most = max(known, key=lambda data: mass_of(data.total))
        any_other = self.rng.choice([known[0], most, self.rng.choice(known)])
        chosen = newest if self.is_honest else any_other
        return chosen.seq, chosen.total, chosen.tag

    def _lie(self, peer: Key, message: Data | Close) -> None:
        epoch, life, rng = message.epoch, self.life, self.rng
        seq, total, tag = self._replayed(peer, epoch)
        more = total + np.int64(5 * ONE)
        words: list[Body] = [
            *[Stale(epoch, life)] * 6,
            Closed(epoch, life, seq, total, tag, NO_PROGRESS),
            Closed(epoch, life, seq + 1, more, tag, NO_PROGRESS),
            Gone(epoch, life, self.ledger, NO_PROGRESS),
            Retired(epoch, life, rng.choice([epoch, HUGE]), NO_PROGRESS),
            Ack(epoch, life, message.seq + 3, digest_of(more), tag),
            State(epoch, life, self.ledger, HUGE, self.boot, seq, more, tag, NO_PROGRESS),
        ]
        self.send(peer, "reply", rng.choice(words))
        if rng.random() < 0.1:
            self.lie_about_lives(peer, "reply")
            self.lie_about_leaving(peer, "reply")
        if rng.random() < 0.05:
            self.boot += 1 << 21


class Drain(ByzantineReceiver):
    """Acknowledges all that it hears, and returns nothing."""

    def __init__(self, *details: Any) -> None:
        super().__init__(*details)
        self.is_honest = True


class ByzantineSender(BadNeighbour):
    """Mints as much as it can, under ever new epochs, and lies about its model."""

    is_trusted = False

    def __init__(
        self, endpoint: MemoryEndpoint, victims: list[Key], layout: Layout, dim: int, seed: str
    ) -> None:
        super().__init__(endpoint, victims, layout, dim, seed)
        self.granted: dict[Key, State] = {}
        self.epochs: dict[Key, int] = {}
        self.said: dict[Key, list[Body]] = defaultdict(list)
        self.sessions = 1 << 30

    def hear(self, peer: Key, message: Body, now: float) -> None:
        if isinstance(message, State):
            self.granted[peer] = message
        elif isinstance(message, Ack) and peer in self.granted:
            for said in self.said[peer]:
                if isinstance(said, Data) and (said.epoch, said.seq) == (
                    message.epoch,
                    message.seq,
                ):
                    known = self.granted[peer]
                    self.granted[peer] = State(
                        said.epoch,
                        known.life,
                        known.ledger,
                        said.session,
                        said.granted,
                        said.seq,
                        said.total,
                        said.tag,
                        NO_PROGRESS,
                    )

    def act(self, now: float) -> None:
        super().act(now)
        for peer in self.victims:
            self._attack(peer, now)

    def _attack(self, peer: Key, now: float) -> None:
        rng, known = self.rng, self.granted.get(peer)
        if known is None or rng.random() < 0.1:
            self.sessions += 1
            self.epochs[peer] = rng.choice(
                [(int(now) + 1) << 30, rng.getrandbits(40), HUGE - rng.getrandbits(30)]
            )
            self._say(peer, Hello(self.epochs[peer], self.life, 0, self.sessions))
        elif rng.random() < 0.2:
            if self.said[peer]:
                self.send(peer, "push", rng.choice(self.said[peer]))  # a replay
        elif rng.random() < 0.1:
            self.lie_about_lives(peer, "push")
            self.lie_about_leaving(peer, "push")
        elif rng.random() < 0.05:
            self.boot += 1 << 21
        else:
            self._mint(peer, known)

    def _mint(self, peer: Key, known: State) -> None:
        rng = self.rng
        jump = rng.choice([1, 1, 1000, 1 << 20, 1 << 50])
        delta = self.made_up()
        seq, total, tag = min(known.seq + jump, HUGE), known.total + delta, rng.randbytes(16)
        if rng.random() < 0.1:
            self._say(
                peer, Close(known.epoch, self.life, known.ledger, seq, total, tag, NO_PROGRESS)
            )
            return
        about = (known.epoch, self.life, known.ledger, known.session, known.granted, seq)
        if rng.random() < 0.1:
            packed = packed_total(Layout(), delta, known.seq, known.total, RADIUS * 2)[0]
            packed = replace(packed, exact=rng.choice([packed.exact, delta[:2], delta]))
            packed = replace(packed, codes=packed.codes + bytes(rng.choice([0, 0, 1, 1000])))
            digest = rng.choice([tag, digest_of(total)])
            self._say(peer, Compact(*about, packed, digest, tag, NO_PROGRESS))
            return
        self._say(peer, Data(*about, total, tag, NO_PROGRESS))

    def made_up(self) -> Fixed:
        """What it says to hand over."""
        mass = int(self.rng.choice([0.5, 4.0, 15.0, 1e3, 2.0**22, -1.0]) * ONE)
        reach = self.rng.choice([0.0, 1.0, RADIUS * 0.99, RADIUS * 2])
        delta = np.zeros(self.dim + 1, dtype=np.int64)
        delta[:-1] = int(max(-(2.0**61), min(2.0**61, mass * reach)))
        delta[-1] = mass
        return delta

    def _say(self, peer: Key, word: Body) -> None:
        self.said[peer] = [*self.said[peer][-20:], word]
        self.send(peer, "push", word)


class PatientLiar(ByzantineSender):
    """Says what it makes up, tick by tick, and gives nobody another reason to ignore it."""

    def hear(self, peer: Key, message: Body, now: float) -> None:
        if isinstance(message, State):
            self.granted[peer] = message
        elif isinstance(message, Stale):
            self.granted.pop(peer, None)

    def _attack(self, peer: Key, now: float) -> None:
        known = self.granted.get(peer)
        if known is None:
            self.sessions += 1
            epoch = self.epochs.setdefault(peer, int(now) << 30)
            self._say(peer, Hello(epoch, self.life, 0, self.sessions))
            return
        about = (known.epoch, self.life, known.ledger, known.session, known.granted)
        known = replace(known, seq=known.seq + 1, total=known.total + self.made_up())
        self._say(peer, Data(*about, known.seq, known.total, self.rng.randbytes(16), NO_PROGRESS))
        self.granted[peer] = known


class ForgingSender(PatientLiar):
    """Hands over long steps with almost no mass, always in one direction."""

    def made_up(self) -> Fixed:
        parcel = self.layout.parcel
        if parcel is None:
            return super().made_up()
        steps, count = parcel
        delta = np.zeros(self.dim + 1)
        many = self.rng.choice([1e-3, 0.1, 1.0, 30.0])
        delta[count] = self.rng.choice([1.0, 1.0, 1e-3]) * many
        delta[steps] = -1.9 * many * LONGEST / math.sqrt(steps.stop - steps.start)
        delta[-1] = 1e-6
        return np.rint(delta * ONE).astype(np.int64)


class MintingSender(PatientLiar):
    """Mints mass at a model that is not far, and always to the same side."""

    def made_up(self) -> Fixed:
        mass = self.rng.choice([0.5, 4.0, 16.0])
        delta = np.zeros(self.dim + 1)
        delta[self.layout.model] = mass * self.rng.choice([1.0, 10.0])
        delta[-1] = mass
        return np.rint(delta * ONE).astype(np.int64)
