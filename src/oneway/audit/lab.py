"""The attacker among real peers: a victim and a receiver that keeps what it is handed.

Both are peers as anybody runs them, over encrypted TCP on loopback. The receiver does all that the
protocol asks for; it only looks at its own mail. Being the victim's only neighbour, it is a
coalition of all of them as well.
"""

from __future__ import annotations

import csv
import logging
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oneway.audit.observed import Observed
from oneway.errors import ConfigError, OnewayError
from oneway.lab.peer_folders import PeerFolder, make_peers
from oneway.lab.ports import Ports
from oneway.lab.problem import Problem
from oneway.peer.peer import Peer
from oneway.privacy.reconstruction import Steps, steps_between
from oneway.protocol.fixed_point import ONE, Fixed
from oneway.protocol.messages import Ack, Data
from oneway.records import Ints, Vector
from oneway.transport import TRANSPORTS, Arrival, ConnectionLimits, Transport
from oneway.transport.wire import decode

NEIGHBOUR = "the only neighbour, a receiver that keeps its mail"
PATIENCE = 0.25
"""Seconds to wait for a push after a sample; one that takes longer travels with the next."""
START_SECONDS = 20.0
_AHEAD = 6
"""Of its own totals, so many beyond the last one are tried for what the victim has taken in."""
_UNDER_WAY = 8
"""So many of the victim's pushes may have been unacknowledged at the next."""
_SAME = 16
"""Units of 2^-40: rounding of shares."""
_BEAM = 24
_DOUBT = 0.01
_UNEXPLAINED = 1.0


class Mail:
    """The running totals that went over one edge in each direction, in order, each once."""

    def __init__(self) -> None:
        self.received: dict[int, Fixed] = {}
        self.sent: dict[int, Fixed] = {}
        self.acked: dict[int, int] = {}
        """By the number of a received total, the last of its own that was acknowledged by then."""
        self._last_acked = 0

    def note_received(self, frame: bytes) -> None:
        """Keep what a frame from the victim says."""
        message = _decoded(frame)
        if isinstance(message, Data) and message.seq not in self.received:
            self.acked[message.seq] = self._last_acked
            self.received[message.seq] = message.total
        elif isinstance(message, Ack):
            self._last_acked = max(self._last_acked, message.seq)

    def note_sent(self, frame: bytes) -> None:
        """Keep what a frame to the victim says."""
        message = _decoded(frame)
        if isinstance(message, Data):
            self.sent.setdefault(message.seq, message.total)

    def listen(
        self,
        secret_key: bytes,
        address: str,
        *,
        limits: ConnectionLimits,
        clock: Callable[[], float],
    ) -> Transport:
        """The usual transport; what goes through it is kept here."""
        transport = TRANSPORTS["zeromq"](secret_key, address, limits=limits, clock=clock)
        take, send = transport.receive_now, transport.send_push

        def receive_now() -> Arrival | None:
            arrival = take()
            if arrival is not None:
                self.note_received(arrival.frame)
            return arrival

        def send_push(receiver: bytes, frame: bytes) -> bool:
            self.note_sent(frame)
            return send(receiver, frame)

        transport.receive_now = receive_now  # type: ignore[method-assign]
        transport.send_push = send_push  # type: ignore[method-assign]
        return transport


def _decoded(frame: bytes) -> object:
    try:
        return decode(frame)[1]
    except (OnewayError, ValueError):
        return None


def watch_peers(problem: Problem, tick: Callable[[int], None] = lambda _: None) -> list[Observed]:
    """Run a lab of two peers; what the second knows about the steps of the first.

    Raises:
        ConfigError: There are not two nodes, or the method is not Online Push-Sum.
    """
    if problem.graph.num_nodes != 2:
        raise ConfigError(
            f"a lab of the audit has {problem.graph.num_nodes} nodes; it must have 2, the victim "
            "and its neighbour: leave nodes and graph out, or audit a simulation"
        )
    method = problem.task.build_method()
    if method.name != "ops":
        raise ConfigError(
            f"method {method.name} cannot be audited against a lab; it must be ops: audit a "
            "simulation of it"
        )
    mail = Mail()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="oneway-audit-")))
        ports = stack.enter_context(Ports())
        quiet = logging.NullHandler()  # what the peers warn each other of is no news here
        log = logging.getLogger("oneway.peer")
        log.addHandler(quiet)
        stack.callback(log.removeHandler, quiet)
        victim, receiver = make_peers(folder / "lab", problem, ports.reserve)
        shares = victim.config.shares[receiver.key]
        bob = stack.enter_context(Peer(receiver.home.folder, transport=mail.listen))
        alice = stack.enter_context(Peer(victim.home.folder))
        _run(alice, bob, victim, receiver, mail, tick)
        start = alice.node.learner.start
    return [_observed(mail, shares, start)]


def _run(
    alice: Peer,
    bob: Peer,
    victim: PeerFolder,
    receiver: PeerFolder,
    mail: Mail,
    tick: Callable[[int], None],
) -> None:
    """Let both learn row by row, the next when the last one's push has come through."""
    bob.node.ensure_minted()
    alice.node.ensure_minted()
    _wait(lambda: bool(alice.node.connected and bob.node.connected), START_SECONDS)
    others = _rows(receiver)
    for count, row in enumerate(_rows(victim), 1):
        other = next(others, None)
        if other is not None:
            bob.learn_one(other, other[bob.task.label])
        seen = len(mail.received)
        alice.learn_one(row, row[alice.task.label])
        if count % alice.task.samples_per_push == 0:
            _wait(lambda seen=seen: len(mail.received) > seen, PATIENCE)  # type: ignore[misc]
        tick(count)
    time.sleep(PATIENCE)


def _rows(peer: PeerFolder) -> Iterator[dict[str, str]]:
    with peer.samples_path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _wait(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.001)


def _observed(mail: Mail, share: float, start: Vector) -> Observed:
    """What the neighbour knows about the victim's steps."""
    received = [mail.received[seq] for seq in sorted(mail.received)]
    sent = [np.zeros(len(start) + 1, np.int64), *(mail.sent[seq] for seq in sorted(mail.sent))]
    parts = np.diff(np.array([np.zeros_like(sent[0]), *received]), axis=0)
    acked = np.array([mail.acked[seq] for seq in sorted(mail.received)])[parts[:, -1] > 0]
    parts = parts[parts[:, -1] > 0]
    chain = _explained(parts[:, -1], np.array([total[-1] for total in sent]), acked, share)
    models, masses, inflows, means, taken = [start], [1.0], [0.0], [start], 0
    for part, (now, mass) in zip(parts, chain, strict=True):
        inflow = sent[now] - sent[taken]
        models.append(part[:-1] / part[-1])
        masses.append(mass / ONE)
        inflows.append(inflow[-1] / ONE)
        means.append(inflow[:-1] / inflow[-1] if inflow[-1] else models[-2])
        taken = now
    steps = steps_between(np.array(models), np.array(masses), np.array(inflows), np.array(means))
    # The sample was learned before the inflow or after it, which l2 tells apart: try both.
    both = Steps(
        np.vstack([steps.values, steps.values]), np.vstack([steps.estimates, np.array(models[:-1])])
    )
    weights = np.array(masses[1:])
    weights = np.concatenate([weights, weights - np.array(inflows[1:])])
    return Observed(NEIGHBOUR, both, weights, np.tile(np.arange(len(steps.values)), 2))


@dataclass(frozen=True)
class _Explanation:
    """How the pushes so far came about: the neighbour's total that was taken in last, the mass."""

    cost: float
    taken: int
    mass: float
    left: float
    before: _Explanation | None = None


def _explained(given: Ints, sent: Ints, acked: Ints, share: float) -> list[tuple[int, float]]:
    """For each push, how many of the neighbour's totals were in by then, and the mass held.

    Mass is conserved to the last unit and gradients carry none, so that the masses of the pushes
    fit hardly any history but the true one: a push hands over `share` of what is held and of what
    is under way to the receiver, less what is under way. Of those that fit, the one that agrees
    best with the victim's acknowledgements is taken (a beam search).
    """
    beam = [_Explanation(0.0, 0, 0.0, float(ONE))]
    for place, amount in enumerate(given.tolist()):
        recent = given[max(0, place - _UNDER_WAY) : place][::-1]
        found: dict[tuple[int, int], _Explanation] = {}
        for old in beam:
            for now in range(old.taken, min(old.taken + _AHEAD, len(sent))):
                mass = old.left + float(sent[now] - sent[old.taken])
                doubt = old.cost + _DOUBT * abs(now - int(acked[place]))
                for count, under_way in enumerate([0.0, *np.cumsum(recent).tolist()]):
                    misfit = abs(share * mass - (1.0 - share) * under_way - amount)
                    fits = misfit <= _SAME
                    cost = doubt + _DOUBT * count + (0.0 if fits else _UNEXPLAINED)
                    held = mass if fits else amount / share
                    new = _Explanation(cost, now, held, held - amount, old)
                    name = (now, round(held / _SAME))
                    if name not in found or cost < found[name].cost:
                        found[name] = new
        beam = sorted(found.values(), key=lambda one: one.cost)[:_BEAM]
    chain: list[tuple[int, float]] = []
    last: _Explanation | None = beam[0]
    while last is not None and last.before is not None:
        chain.append((last.taken, last.mass))
        last = last.before
    return chain[::-1]
