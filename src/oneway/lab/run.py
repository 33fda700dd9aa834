"""From a problem to a verdict: start the peers, break them, drain, stop, audit, compare."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from oneway.errors import LabOverError, OnewayError
from oneway.lab.fault_schedule import KillSchedule
from oneway.lab.lab import Lab
from oneway.lab.observer import Observer
from oneway.lab.problem import Problem
from oneway.lab.result import Result, result_of
from oneway.lab.simulations import References
from oneway.records.network import (
    Command,
    Finish,
    Kill,
    LabPhase,
    NetworkFrame,
    ReferenceCurve,
    Restart,
)
from oneway.web.interrupts import on_signals

TURN_SECONDS = 0.2
FRAME_SECONDS = 0.5
SETTLING_SECONDS = 3.0
_WAITING = "waiting until everything has arrived"

OVER = "the lab takes no more commands: it is finishing or over; start another one"

Show = Callable[[NetworkFrame, str], None]
"""Called a few times a second with the lab at this moment and what it is doing."""


class CommandQueue:
    """Thread-safe queue of commands to a lab, and what it publishes: frames and curves.

    A lab belongs to the thread that runs it. All other threads submit commands here, and see the
    last frame here.

    Attributes:
        finished_by_command: Whether the lab was asked to finish by a command, and not by Ctrl-C.
        references: The curves of the simulator as JSON; None until they are computed.
    """

    def __init__(self) -> None:
        self.finished_by_command = False
        self.references: bytes | None = None
        self._changed = threading.Condition()
        self._takes_commands = True
        self._shows_news = True
        self._commands: deque[tuple[Command, Future[str]]] = deque()
        self._frame: tuple[int, bytes] | None = None

    # For other threads.

    def submit(self, command: Command) -> Future[str]:
        """Queue a command; the answer is what was done, or an error that says why not."""
        answer: Future[str] = Future()
        with self._changed:
            if self._takes_commands:
                self._commands.append((command, answer))
                self._changed.notify_all()
                return answer
        answer.set_exception(LabOverError(OVER))
        return answer

    def frame(self, after: int = 0, seconds: float = 0.0) -> bytes | None:
        """The last frame as JSON, if its number is above `after`; None otherwise.

        Args:
            after: The number of the last frame that is known.
            seconds: How long to wait for a newer one.
        """

        def newer() -> bytes | None:
            return self._frame[1] if self._frame is not None and self._frame[0] > after else None

        with self._changed:
            self._changed.wait_for(lambda: newer() is not None or not self._shows_news, seconds)
            return newer()

    def end_waiting(self) -> None:
        """From now on, answer requests for a newer frame at once."""
        with self._changed:
            self._shows_news = False
            self._changed.notify_all()

    # For the lab's thread.

    def publish(self, frame: NetworkFrame) -> None:
        """Show a frame."""
        with self._changed:
            self._frame = (frame.number, msgspec.json.encode(frame))
            self._changed.notify_all()

    def publish_references(self, curves: list[ReferenceCurve]) -> None:
        """Show the curves of the simulator."""
        self.references = msgspec.json.encode(curves)

    def wait(self, seconds: float) -> None:
        """Wait for a command, at most this long."""
        with self._changed:
            self._changed.wait_for(lambda: self._commands, seconds)

    def serve(self, carry_out: Callable[[Command], str]) -> None:
        """Carry out queued commands; each is answered with the result, or the error raised."""
        for command, answer in self._queued():
            try:
                said = carry_out(command)
            except OnewayError as error:
                answer.set_exception(error)
                continue
            except BaseException:
                answer.set_exception(LabOverError(OVER))
                raise
            self.finished_by_command |= isinstance(command, Finish)
            answer.set_result(said)

    def close(self) -> None:
        """Take no more commands; queued ones are not carried out."""
        with self._changed:
            self._takes_commands = False
        for _, answer in self._queued():
            answer.set_exception(LabOverError(OVER))

    def _queued(self) -> Iterator[tuple[Command, Future[str]]]:
        """Take out the queued commands whose answer is still waited for."""
        while self._commands:
            command, answer = self._commands.popleft()
            if answer.set_running_or_notify_cancel():
                yield command, answer


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
        conditions: Sample rate, message loss and kill schedule.
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
        seed=conditions.seed,
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
                    loop.references,
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
        references: The simulations of the same samples.
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
        self._queue = queue or CommandQueue()
        self.references = References(lab.problem, lab.note)
        if queue is not None:
            self.references.start(queue.publish_references)
        every, seed = conditions.kill_every, conditions.seed
        self._kills = KillSchedule(lab, every, random.Random(seed)) if every else None
        self._began = time.monotonic()
        self._next_frame = 0.0
        self._frame: NetworkFrame | None = None

    def learn(self, *, stay: bool) -> bool:
        """Until all samples are learned from, or to `stay`, until the end is asked for.

        Returns:
            Whether all samples are learned from that peers which run have.
        """
        while not (self._stop.is_set() or self._lab.finishing):
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
        """Let no thread wait for an answer."""
        self._queue.close()

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
        said = self._lab.carry_out(command)
        if self._kills is not None and isinstance(command, Kill | Restart):
            self._kills.forget(command.peer)
        return said

    def _is_finished(self, *, in_any_life: bool = False) -> bool:
        """Whether every peer has come to the end of its samples, by its last status.

        A peer that is down counts only if the kill schedule will restart it. With none left to
        count nothing is finished: a command may restart them.
        """
        victims = self._kills.victims if self._kills is not None else ()
        counted = [
            peer for peer in self._lab.observe() if peer.state != "down" or peer.name in victims
        ]
        return bool(counted) and all(
            peer.status is not None
            and peer.status.finished
            and (in_any_life or peer.state not in ("starting", "down"))
            for peer in counted
        )
