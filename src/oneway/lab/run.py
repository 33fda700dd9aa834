"""From a problem to a verdict: start the peers, break them, drain, stop, audit, compare."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from oneway.lab.comparison import compare
from oneway.lab.faults import Killer
from oneway.lab.lab import Lab
from oneway.lab.problem import Problem
from oneway.lab.result import PeerResult, Result
from oneway.protocol.fixed_point import mass_of

TURN_SECONDS = 0.2


@dataclass(frozen=True)
class Conditions:
    """Under what conditions the peers learn.

    Attributes:
        rate: Samples per second of each peer; 0 for as many as it can.
        loss: The share of messages that are lost.
        kill_every: Seconds between two kills; 0 for none.
        seed: Of the kills.
    """

    rate: float = 0.0
    loss: float = 0.0
    kill_every: float = 0.0
    seed: int = 0


def run_lab(
    folder: Path,
    problem: Problem,
    conditions: Conditions,
    show: Callable[[Lab, str], None] = lambda _lab, _phase: None,
) -> Result:
    """Run a lab from start to end.

    Ctrl-C once ends the learning: what was learned so far is drained, audited and compared. Twice,
    it ends everything at once.

    Args:
        folder: A new or empty folder; the peers are left in it.
        problem: What is learned, by whom.
        conditions: How hard they have it.
        show: Called a few times a second with the lab and what it is doing.

    Raises:
        OnewayError: If the lab cannot be set up, or a peer ends by itself.
        KeyboardInterrupt: At the second Ctrl-C.
    """
    lab = Lab(folder, problem, rate=conditions.rate)
    try:
        if conditions.loss:
            lab.set_loss(conditions.loss)
        began = time.monotonic()
        with first_interrupt() as stop, lab:
            _learn(lab, conditions, stop, show)
            seconds = time.monotonic() - began
            show(lab, "waiting until everything has arrived")
            lab.drain()
            lab.stop()
            show(lab, "adding up")
            return _result(lab, conditions, seconds, complete=not stop.is_set())
    finally:
        lab.close()


@contextmanager
def first_interrupt() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; the second one interrupts as usual."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    usual = signal.getsignal(signal.SIGINT)

    def on_interrupt(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, usual)


def _learn(
    lab: Lab, conditions: Conditions, stop: threading.Event, show: Callable[[Lab, str], None]
) -> None:
    """Until all samples are learned from, or somebody has had enough."""
    every = conditions.kill_every
    killer = Killer(lab, every, random.Random(conditions.seed)) if every else None
    while not (stop.is_set() or lab.is_finished()):
        if killer is not None:
            killer.step(time.monotonic())
        show(lab, "learning")
        stop.wait(TURN_SECONDS)
    if killer is not None:
        killer.finish()
    # Those who died last have samples left.
    while not (stop.is_set() or lab.is_finished()):
        show(lab, "learning")
        stop.wait(TURN_SECONDS)


def _result(lab: Lab, conditions: Conditions, seconds: float, *, complete: bool) -> Result:
    journals, snapshots, looks = lab.journals(), lab.snapshots(), lab.statuses()
    held = {key: mass_of(snapshot.state.holding) for key, snapshot in snapshots.items()}
    peers = [
        PeerResult(
            name=member.name,
            samples=journal.samples,
            average_loss=journal.loss_sum / journal.samples if journal.samples else None,
            mass_units=held.get(member.key, 0),
            restarts=look.restarts,
        )
        for member, journal, look in zip(lab.members, journals, looks, strict=True)
    ]
    return Result(
        peers=peers,
        audit=lab.audit(),
        comparison=compare(lab.problem, journals),
        seconds=seconds,
        complete=complete,
        events=list(lab.events),
        config={
            "rate": conditions.rate,
            "loss": conditions.loss,
            "kill_every": conditions.kill_every,
            "seed": conditions.seed,
            "task": lab.problem.task.fields(),
            "stream": lab.problem.stream.description,
            "graph": dict(lab.problem.graph.origin),
        },
    )
