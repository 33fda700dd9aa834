"""Where those who watch a lab and the lab itself meet: commands one way, frames the other.

A lab belongs to the thread that runs it. Everybody else comes to its desk, from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Literal

import msgspec

from oneway.errors import OnewayError
from oneway.records.network import Command, Finish, NetworkFrame, ReferenceCurve

OVER = "the lab takes no more commands: it is finishing or over; start another one"


@dataclass(frozen=True)
class Answer:
    """What came of a command.

    Attributes:
        outcome: Whether it was done, was refused, or came when the lab was over.
        sentence: What was done, or why not.
    """

    outcome: Literal["done", "refused", "over"]
    sentence: str


class Desk:
    """Takes commands for a lab, and shows its last frame.

    Attributes:
        finished_by_command: Whether somebody asked the lab to finish here, and not by Ctrl-C.
    """

    def __init__(self) -> None:
        self.finished_by_command = False
        self._lock = threading.Lock()
        self._open = True
        self._commands: SimpleQueue[tuple[Command, Future[Answer]]] = SimpleQueue()
        self._waiting = threading.Event()
        self._frame: tuple[int, bytes] | None = None
        self._references: bytes | None = None
        self._listeners: list[Callable[[], None]] = []

    # For those who watch.

    def submit(self, command: Command) -> Future[Answer]:
        """Leave a command; the answer comes when the lab has carried it out."""
        answer: Future[Answer] = Future()
        with self._lock:
            if self._open:
                self._commands.put((command, answer))
                self._waiting.set()
                return answer
        answer.set_result(Answer("over", OVER))
        return answer

    def frame(self, after: int = 0) -> bytes | None:
        """The last frame as JSON, if its number is above `after`; None otherwise."""
        shown = self._frame
        return shown[1] if shown is not None and shown[0] > after else None

    def references(self) -> bytes | None:
        """The curves of the simulator as JSON; None until they are computed."""
        return self._references

    def listen(self, listener: Callable[[], None]) -> None:
        """Call somebody, from the lab's thread, whenever there is a new frame."""
        self._listeners.append(listener)

    # For the lab.

    def publish(self, frame: NetworkFrame) -> None:
        """Show a frame."""
        self._frame = (frame.number, msgspec.json.encode(frame))
        for listener in list(self._listeners):
            listener()

    def publish_references(self, curves: list[ReferenceCurve]) -> None:
        """Show the curves of the simulator."""
        self._references = msgspec.json.encode(curves)

    def wait(self, seconds: float) -> None:
        """Wait for a command, so long at most."""
        self._waiting.wait(seconds)

    def serve(self, carry_out: Callable[[Command], str]) -> None:
        """Carry out what was left, and answer: with what that returns, or the error it raises."""
        self._waiting.clear()
        while True:
            try:
                command, answer = self._commands.get_nowait()
            except Empty:
                return
            if not answer.set_running_or_notify_cancel():
                continue  # nobody waits for it any more
            try:
                said = Answer("done", carry_out(command))
            except OnewayError as error:
                said = Answer("refused", str(error))
            except BaseException:
                answer.set_result(Answer("over", OVER))
                raise
            self.finished_by_command |= isinstance(command, Finish)
            answer.set_result(said)

    def close(self) -> None:
        """Take no more commands; what was left and not carried out never will be."""
        with self._lock:
            self._open = False
        while True:
            try:
                _, answer = self._commands.get_nowait()
            except Empty:
                return
            if answer.set_running_or_notify_cancel():
                answer.set_result(Answer("over", OVER))
