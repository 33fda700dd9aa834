"""From a problem to a verdict: start the peers, break them, drain, stop, audit, compare."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from oneway.errors import OnewayError
from oneway.lab.command_queue import CommandQueue
from oneway.lab.commands import Commands
from oneway.lab.fault_schedule import KillSchedule
from oneway.lab.lab import Lab
from oneway.lab.observer import Observer
from oneway.lab.problem import Problem
from oneway.lab.result import Result, result_of
from oneway.lab.simulations import compute_references
from oneway.records.network import Command, Kill, LabPhase, NetworkFrame, Restart
from oneway.web.interrupts import on_signals

TURN_SECONDS = 0.2
FRAME_SECONDS = 0.5
SETTLING_SECONDS = 3.0
_WAITING = "waiting until everything has arrived"

Show = Callable[[NetworkFrame, str], None]
"""Called a few times a second with the lab at this moment and what it is doing."""


@dataclass(frozen=True)
class Conditions:
    """Under what conditions the peers learn.

    Attributes:
        rate: Samples per second of each peer; 0 for as many as it can.
        loss: The share of messages that are lost.
        kill_every: Seconds between two kills; 0 for none.
        seed: Of the kills, and of what commands leave open.
        transport: How messages travel.
    """

    rate: float = 0.0
    loss: float = 0.0
    kill_every: float = 0.0
    seed: int = 0
    transport: str = "zeromq"


def run_lab(
    folder: Path,
    problem: Problem,
    conditions: Conditions,
    show: Show = lambda _frame, _doing: None,
    *,
    queue: CommandQueue | None = None,
    stay: bool = False,
) -> Result:
    """Run a lab from start to end.

    Ctrl-C once ends the learning: what was learned so far is drained, audited and compared. Twice,
    it ends everything at once.

    Args:
        folder: A new or empty folder; the peers are left in it.
        problem: What is learned, by whom.
        conditions: How hard they have it.
        show: Called a few times a second.
        queue: Where commands come from and frames go to. With one, a peer that ends by itself is
            shown as down, instead of ending the lab.
        stay: Whether to go on when all samples are learned from, until a `Finish` command or
            Ctrl-C.

    Raises:
        OnewayError: If the lab cannot be set up, or a peer ends by itself and there is no queue.
        KeyboardInterrupt: At the second Ctrl-C.
    """
    lab = Lab(
        folder,
        problem,
        rate=conditions.rate,
        forgiving=queue is not None,
        transport=conditions.transport,
    )
    try:
        if conditions.loss:
            lab.set_loss(conditions.loss)
        with (
            first_interrupt() as stop,
            # First: with all peers starting at once, nothing else gets a turn.
            closing(_MainLoop(lab, conditions, show, stop, queue)) as loop,
            lab,
        ):
            complete = loop.learn(stay=stay)
            loop.finish()
            try:
                result = result_of(
                    lab,
                    asdict(conditions),
                    loop.observer.models.points,
                    seconds=loop.seconds,
                    complete=complete,
                )
            except OnewayError as error:
                loop.publish_result([str(error)], is_exact=False)
                raise
            loop.publish_result(result.sentences, is_exact=result.audit.is_exact)
            return result
    finally:
        lab.close()


@contextmanager
def first_interrupt() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets; the second one interrupts."""
    stop = threading.Event()

    def on_signal(*_: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    is_main = threading.current_thread() is threading.main_thread()
    with on_signals(on_signal) if is_main else nullcontext():
        yield stop


class _MainLoop:
    """What happens to a lab between its start and its end, turn by turn: commands, kills, frames.

    Attributes:
        observer: Makes the frames.
        seconds: How long there was something to learn.
    """

    def __init__(
        self,
        lab: Lab,
        conditions: Conditions,
        show: Show,
        stop: threading.Event,
        queue: CommandQueue | None,
    ) -> None:
        """Prepare; `stop` is set from outside when the learning is to end."""
        self.observer = Observer(lab)
        self.seconds = 0.0
        self._lab = lab
        self._show = show
        self._stop = stop
        self._is_watched = queue is not None
        self._queue = queue or CommandQueue()
        self._over = threading.Event()
        if queue is not None:
            compute_references(lab.problem, queue.publish_references, lab.note, self._over)
        every, seed = conditions.kill_every, conditions.seed
        self._kills = KillSchedule(lab, every, random.Random(seed)) if every else None
        self._commands = Commands(lab, random.Random(seed))
        self._began = time.monotonic()
        self._next_frame = 0.0
        self._frame: NetworkFrame | None = None

    def learn(self, *, stay: bool) -> bool:
        """Until all samples are learned from, or to `stay`, until the end is asked for.

        Returns:
            Whether all samples are learned from that peers which run have.
        """
        while not (self._stop.is_set() or self._commands.finishing):
            if self._kills is not None and self._is_finished(in_any_life=True):
                # Those who died last may have samples left. Where starting takes longer than the
                # time between two kills, there is never a moment when all have started.
                self._kills.finish()
                self._kills = None
            is_finished = self._is_finished()
            if is_finished and not stay:
                return True
            self._turn("all samples are learned from" if is_finished else "learning")
        if self._kills is not None:
            self._kills.finish()
        return self._is_finished()

    def finish(self) -> None:
        """Let everything arrive, then stop all peers; no commands are taken any more."""
        self._queue.close()
        self._publish("finishing", _WAITING)
        self._lab.drain(meanwhile=lambda: self._look("finishing", _WAITING))
        # Receivers write their status up to a second after senders know that all has arrived.
        until = time.monotonic() + SETTLING_SECONDS
        while self.observer.frame("finishing").mass.in_flight and time.monotonic() < until:
            time.sleep(TURN_SECONDS)
        self._publish("finishing", "adding up")
        self._lab.stop()

    def publish_result(self, result: list[str], *, is_exact: bool) -> None:
        """Publish the last frame: what came of it all."""
        if self._frame is not None:
            self._queue.publish(self.observer.last(self._frame, result, is_exact))

    def close(self) -> None:
        """Let no thread wait for an answer or work on."""
        self._queue.close()
        self._over.set()

    def _turn(self, phase: LabPhase) -> None:
        if phase == "learning":
            self.seconds = time.monotonic() - self._began
            if self._kills is not None:
                self._kills.step(time.monotonic())
        self._look(phase, phase)
        self._queue.wait(TURN_SECONDS)
        self._queue.serve(self._carry_out)

    def _look(self, phase: LabPhase, doing: str) -> None:
        """Look at the models, and publish a frame if it is time for the next one."""
        self.observer.models.look()
        if time.monotonic() >= self._next_frame:
            self._publish(phase, doing)

    def _publish(self, phase: LabPhase, doing: str) -> None:
        self._next_frame = time.monotonic() + FRAME_SECONDS
        self._frame = self.observer.frame(phase)
        self._queue.publish(self._frame)
        self._show(self._frame, doing)

    def _carry_out(self, command: Command) -> str:
        # What was done is to be seen at once.
        self._next_frame = 0.0
        said = self._commands.carry_out(command)
        if self._kills is not None and isinstance(command, Kill | Restart):
            self._kills.forget(command.peer)
        return said

    def _is_finished(self, *, in_any_life: bool = False) -> bool:
        """Whether every peer that runs has come to the end of its samples, by its last status."""
        running = [peer for peer in self._lab.observe() if peer.state != "down"]
        # Peers that are all down may be brought back by a command.
        return (bool(running) or not self._is_watched) and all(
            peer.status is not None
            and peer.status.finished
            and (in_any_life or peer.state != "starting")
            for peer in running
        )
