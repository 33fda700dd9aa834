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
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from oneway.audit.inference import Explanation, StepInference
from oneway.audit.observed import Observed
from oneway.errors import ConfigError, OnewayError
from oneway.lab.peer_folders import PeerFolder, make_peers
from oneway.lab.ports import Ports
from oneway.lab.problem import Problem
from oneway.methods import Method, State
from oneway.peer.peer import Peer
from oneway.protocol.fixed_point import ONE, Fixed
from oneway.protocol.layout import Layout
from oneway.protocol.messages import Ack, Data
from oneway.records import Ints, Matrix, Vector
from oneway.tables.array_source import holds_arrays, open_arrays
from oneway.transport import TRANSPORTS, Arrival, ConnectionLimits, Transport
from oneway.transport.wire import decode

NEIGHBOUR = "the only neighbour, a receiver that keeps its mail"
PATIENCE = 2.0
"""Seconds to wait for a push after a sample; one that takes longer travels with the next."""
LAST_SECONDS = 0.25
"""So long the last pushes may take."""
START_SECONDS = 20.0
_AHEAD = 6
"""Of its own totals, so many beyond the last one are tried for what the victim has taken in."""
_UNDER_WAY = 8
"""So many of the victim's pushes may have been unacknowledged at the next."""
_SAME = 16
"""Units of 2^-40: rounding of shares."""
_BEAM = 24
_DOUBTFUL = 2
_DOUBT = 0.01
_UNEXPLAINED = 1.0
_ROUNDING = 1e-8
"""What is computed from shares in whole units is off by less."""
_PATHS = 4


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
        ConfigError: There are not two nodes, or the method sends nothing.
    """
    if problem.graph.num_nodes != 2:
        raise ConfigError(
            f"a lab of the audit has {problem.graph.num_nodes} nodes; it must have 2, the victim "
            "and its neighbour: leave nodes and graph out, or audit a simulation"
        )
    method = problem.task.build_method()
    if not method.payload:
        raise ConfigError(
            f"method {method.name} sends nothing, so that nobody can read anything from it; audit "
            "a method that does, for example ops"
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
        share = victim.config.shares[receiver.key]
        bob = stack.enter_context(Peer(receiver.home.folder, transport=mail.listen))
        alice = stack.enter_context(Peer(victim.home.folder))
        _run(alice, bob, victim, receiver, mail, tick)
        learner = alice.node.learner
        start, layout = learner.start, learner.layout
    return [_observed(mail, share, method, start, layout)]


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
    time.sleep(LAST_SECONDS)


def _rows(peer: PeerFolder) -> Iterator[dict[str, Any]]:
    if holds_arrays(peer.samples_path):
        encoder, source = peer.home.task().encoder, open_arrays(peer.samples_path)
        for first, block in source.blocks():
            for row, array in enumerate(block, first):
                yield {encoder.names[0]: array, encoder.label: source.raw_label(row)}
        return
    with peer.samples_path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _wait(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.001)


def _observed(mail: Mail, share: float, method: Method, start: Vector, layout: Layout) -> Observed:
    """What the neighbour knows about the victim's steps.

    It goes through the victim's pushes: what had stayed with the victim, what it had sent there
    itself, and a step, which came before or after some of that was taken in: all are tried.
    """
    received = np.array([mail.received[seq] for seq in sorted(mail.received)])
    nothing = np.zeros_like(received[:1])
    sent = np.array([*nothing, *(mail.sent[seq] for seq in sorted(mail.sent))])
    parts = np.diff(np.vstack([nothing, received]), axis=0)
    # Of some numbers no total was sent: they went with the next.
    numbers = [mail.acked[seq] for seq in sorted(mail.received)]
    acked = np.searchsorted(sorted(mail.sent), numbers, side="right")
    news = parts[:, -1] > 0 if not layout.copied else np.ones(len(parts), np.bool_)
    received, parts, acked = received[news], parts[news], acked[news]
    chain = _explained(parts[:, -1], sent[:, -1], acked, share)
    view, inference = _View(method, layout, share), StepInference(method)
    beam, taken = [_Path(0.0, method.start(start[None, :]))], 0
    for place, (part, total, (now, mass)) in enumerate(zip(parts, received, chain, strict=True)):
        held = view.held(part, total, mass)
        found: dict[bytes, _Path] = {}
        for path in beam:
            tried: list[_Path] = []
            for learned_at, heard in view.histories(taken, now if part[-1] else None, len(sent)):
                before = view.joined(path.state, sent[learned_at] - sent[taken])
                before = view.averaged(before, sent[heard])
                later = sent[now] - sent[learned_at]
                one = inference.explain(before, view.less(held, later))
                fits = one.misfit <= _ROUNDING
                cost = path.cost + _DOUBT * abs(heard - learned_at) + (not fits) * _UNEXPLAINED
                after = view.joined(one.after, later - part)
                tried.append(_Path(cost, after, path, (before, one, place), fits))
            for new in tried:
                new.siblings = [it for it in tried if it.fits] or tried
                name = view.name(new.state)
                if name not in found or new.cost < found[name].cost:
                    found[name] = new
        beam, taken = sorted(found.values(), key=lambda one: one.cost)[:_PATHS], now
    return Observed.of(NEIGHBOUR, method, beam[0].told())


@dataclass(eq=False)
class _Path:
    """How the pushes so far may have come about; what the victim holds after them.

    Attributes:
        cost: How much of it is doubtful.
        state: What the victim holds.
        before: The path up to the last push.
        found: What that push tells.
        fits: Whether the push is explained.
        siblings: All explanations of the last push that fit, after the same path; all if none does.
    """

    cost: float
    state: State
    before: _Path | None = None
    found: tuple[State, Explanation, int] | None = None
    fits: bool = True
    siblings: list[_Path] = field(default_factory=list)

    def told(self) -> list[tuple[State, Explanation, int]]:
        """What every push tells, and what else it may, in order."""
        result: list[list[tuple[State, Explanation, int]]] = []
        path: _Path | None = self
        while path is not None and path.found is not None:
            paths = [path, *(it for it in path.siblings if it is not path)]
            result.append([it.found for it in paths if it.found is not None])
            path = path.before
        return [one for some in result[::-1] for one in some]


class _View:
    """A peer's amounts as the segments of its method, one row."""

    def __init__(self, method: Method, layout: Layout, share: float) -> None:
        self._places = dict(layout.places)
        if method.has_mass:
            self._places["mass"] = slice(-1, None)
        self._forwarded, self._copied = layout.forwarded, layout.copied
        self._share = share

    def name(self, state: State) -> bytes:
        """The same for states that differ by rounding only."""
        arrays = (*state.segments.values(), *state.memory.values())
        return b"".join(np.round(array, 7).tobytes() for array in arrays)

    def histories(self, taken: int, now: int | None, count: int) -> Iterator[tuple[int, int]]:
        """How many of the neighbour's totals may have been in when the sample was learned.

        By the push it is `now`, if that is known. The second number is the same for copies, which
        come without mass to tell it by.
        """
        doubt = _DOUBTFUL if self._copied else 0
        for learned_at in range(taken, min(count, taken + 2 * doubt if now is None else now + 1)):
            near = range(max(0, learned_at - doubt), min(count, learned_at + doubt + 1))
            yield from ((learned_at, heard) for heard in near)

    def held(self, part: Fixed, total: Fixed, mass: float) -> dict[str, Matrix]:
        """What a sender with so much mass held when it handed over this part; as far as it tells.

        The mass says which fraction went out; of what is forwarded all goes, were it the share.
        """
        fraction, seen = float(part[-1]) / mass, {}
        for name, place in self._places.items():
            if place in self._copied:
                seen[name] = total[None, place] / ONE
            elif fraction > 0.0:
                full = self._share if place in self._forwarded else 1.0
                seen[name] = part[None, place] / ONE * (full / fraction)
        return seen

    def joined(self, state: State, amount: Fixed) -> State:
        """A state with an amount more of what is in the books."""
        return State({**state.segments, **self.less(state.segments, -amount)}, state.memory)

    def less(self, segments: Mapping[str, Matrix], amount: Fixed) -> dict[str, Matrix]:
        """Segments less an amount of what is in the books."""
        return {
            name: it
            if self._places[name] in self._copied
            else it - amount[self._places[name]] / ONE
            for name, it in segments.items()
        }

    def averaged(self, state: State, heard: Fixed) -> State:
        """A state with the mean of every copied segment and what was heard of it, if it was."""
        if not heard.any():
            return state
        copies = {
            name: (state.segments[name] + heard[place] / ONE) / 2
            for name, place in self._places.items()
            if place in self._copied
        }
        return State({**state.segments, **copies}, state.memory)


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
                    fits = misfit <= _SAME or not amount
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
