"""Thread-safe queue of commands to a lab, with what is published in return: frames and curves.

A lab belongs to the thread that runs it. All other threads submit commands here, and see the last
frame here.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import msgspec

from oneway.errors import LabOverError, OnewayError
from oneway.records.network import Command, Finish, NetworkFrame, ReferenceCurve

OVER = "the lab takes no more commands: it is finishing or over; start another one"


class CommandQueue:
    """Takes commands to a lab, and holds its last frame.

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
        """Answer at once, from now on, who waits for a newer frame."""
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
        """Wait for a command, so long at most."""
        with self._changed:
            self._changed.wait_for(lambda: self._commands, seconds)

    def serve(self, carry_out: Callable[[Command], str]) -> None:
        """Carry out what is queued, and answer: with what that returns, or the error it raises."""
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
        """Take no more commands; what is queued will not be carried out."""
        with self._changed:
            self._takes_commands = False
        for _, answer in self._queued():
            answer.set_exception(LabOverError(OVER))

    def _queued(self) -> Iterator[tuple[Command, Future[str]]]:
        """Take out what is queued, but for those whose answer is not waited for any more."""
        while self._commands:
            command, answer = self._commands.popleft()
            if answer.set_running_or_notify_cancel():
                yield command, answer
