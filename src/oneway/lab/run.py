"""From a problem to a verdict: start the peers, break them, drain, stop, audit, compare."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from oneway.errors import OnewayError
from oneway.lab.comparison import compare, samples_of
from oneway.lab.course import Conditions, Course
from oneway.lab.desk import Desk
from oneway.lab.lab import Lab
from oneway.lab.problem import Problem
from oneway.lab.record import peers_record
from oneway.lab.references import simulate_all
from oneway.lab.result import PeerResult, Result
from oneway.peer.store.snapshot import Journal, Snapshot
from oneway.peer.store.store import read_curve
from oneway.protocol.fixed_point import mass_of
from oneway.records import RunRecord
from oneway.records.curve import Curve
from oneway.simulator import Run

__all__ = ["Conditions", "first_interrupt", "run_lab"]

_ENDINGS = (signal.SIGINT, signal.SIGTERM)


def run_lab(
    folder: Path,
    problem: Problem,
    conditions: Conditions,
    show: Callable[[Lab, str], None] = lambda _lab, _phase: None,
    *,
    desk: Desk | None = None,
    stay: bool = False,
) -> Result:
    """Run a lab from start to end.

    Ctrl-C once ends the learning: what was learned so far is drained, audited and compared. Twice,
    it ends everything at once.

    Args:
        folder: A new or empty folder; the peers are left in it.
        problem: What is learned, by whom.
        conditions: How hard they have it.
        show: Called a few times a second with the lab and what it is doing.
        desk: Where commands come from and frames go to. With one, a peer that ends by itself is
            shown as down, instead of ending the lab.
        stay: Whether to go on when all samples are learned from, until a `Finish` command or
            Ctrl-C.

    Raises:
        OnewayError: If the lab cannot be set up, or a peer ends by itself and there is no desk.
        KeyboardInterrupt: At the second Ctrl-C.
    """
    lab = Lab(folder, problem, rate=conditions.rate, forgiving=desk is not None)
    try:
        if conditions.loss:
            lab.set_loss(conditions.loss)
        with (
            first_interrupt() as stop,
            # First: with all peers starting at once, nothing else gets a turn.
            closing(Course(lab, conditions, show, stop, desk)) as course,
            lab,
        ):
            complete = course.learn(stay=stay)
            course.finish()
            try:
                result = _result(lab, conditions, course, complete=complete)
            except OnewayError as error:
                course.tell([str(error)], is_exact=False)
                raise
            course.tell(result.sentences, is_exact=result.audit.is_exact)
            return result
    finally:
        lab.close()


@contextmanager
def first_interrupt() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets; the second one interrupts."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    usual = {number: signal.signal(number, on_signal) for number in _ENDINGS}
    try:
        yield stop
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


def _result(lab: Lab, conditions: Conditions, course: Course, *, complete: bool) -> Result:
    snapshots, looks = lab.snapshots(), lab.statuses()
    found = [snapshots.get(member.key) for member in lab.members]
    journals = [snapshot.journal if snapshot else Journal() for snapshot in found]
    peers = [
        PeerResult(
            name=member.name,
            samples=journal.samples,
            average_loss=journal.loss_sum / journal.samples if journal.samples else None,
            mass_units=mass_of(snapshot.state.holding) if snapshot else 0,
            restarts=look.restarts,
        )
        for member, snapshot, journal, look in zip(lab.members, found, journals, looks, strict=True)
    ]
    problem = lab.problem
    config = {
        "rate": conditions.rate,
        "loss": conditions.loss,
        "kill_every": conditions.kill_every,
        "seed": conditions.seed,
        "task": problem.task.fields(),
        "stream": problem.stream.description,
        "graph": problem.graph.description,
    }
    stream = samples_of(problem, journals)
    runs = {} if stream is None else simulate_all(problem, stream, lab.note)
    return Result(
        peers=peers,
        audit=lab.audit(),
        comparison=compare(problem, journals, runs) if {"ops", "local"} <= runs.keys() else None,
        seconds=course.seconds,
        complete=complete,
        events=list(lab.events),
        config=config,
        records=_records(lab, course, runs, snapshots, config, complete=complete),
        is_rewired=lab.is_rewired,
    )


def _records(
    lab: Lab,
    course: Course,
    runs: Mapping[str, Run],
    snapshots: Mapping[bytes, Snapshot],
    config: Mapping[str, Any],
    *,
    complete: bool,
) -> dict[str, RunRecord]:
    """The real peers and the simulations beside them; nothing if nothing was learned from."""
    records = {name: run.record for name, run in runs.items()}
    if not records:
        return {}
    problem, like = lab.problem, next(iter(records.values()))
    founders = lab.members[: problem.graph.num_nodes]
    curves = [
        read_curve(member.home.store_path) if member.key in snapshots else Curve()
        for member in founders
    ]
    edges = np.stack(problem.graph.edges(), axis=1).tolist()
    peers = peers_record(
        curves,
        [snapshots[member.key] for member in lab.members if member.key in snapshots],
        course.gauge.points,
        classifies=like.correct_counts is not None,
        complete=complete,
        seconds=course.seconds,
        config={
            **config,
            "model": like.config["model"],
            "stream": like.config["stream"],
            "peers": [member.name for member in lab.members],
            "edges": edges,
            "events": list(lab.events),
        },
        versions=like.versions,
    )
    return {"peers": peers, **records}
