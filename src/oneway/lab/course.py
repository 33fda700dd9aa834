"""The course of a lab, turn by turn: commands, kills and frames, until there is no more to do."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from oneway.lab.commands import Commands
from oneway.lab.desk import Desk
from oneway.lab.faults import Killer
from oneway.lab.frames import Frames
from oneway.lab.gauge import Gauge
from oneway.lab.lab import Lab
from oneway.lab.references import References
from oneway.records.network import Command, LabPhase, NetworkFrame

TURN_SECONDS = 0.2
FRAME_SECONDS = 0.5


@dataclass(frozen=True)
class Conditions:
    """Under what conditions the peers learn.

    Attributes:
        rate: Samples per second of each peer; 0 for as many as it can.
        loss: The share of messages that are lost.
        kill_every: Seconds between two kills; 0 for none.
        seed: Of the kills, and of what commands leave open.
    """

    rate: float = 0.0
    loss: float = 0.0
    kill_every: float = 0.0
    seed: int = 0


class Course:
    """What happens to a lab between its start and its end.

    Attributes:
        gauge: What was measured of the disagreement.
        seconds: How long there was something to learn.
    """

    def __init__(
        self,
        lab: Lab,
        conditions: Conditions,
        show: Callable[[Lab, str], None],
        stop: threading.Event,
        desk: Desk | None,
    ) -> None:
        """Prepare.

        Args:
            lab: Started already, or about to be.
            conditions: How hard the peers have it.
            show: Called a few times a second with the lab and what it is doing.
            stop: Set when somebody has had enough.
            desk: Where commands come from and frames go to; None for neither.
        """
        self.gauge = Gauge()
        self.seconds = 0.0
        self._lab = lab
        self._show = show
        self._stop = stop
        rng = random.Random(conditions.seed)
        every = conditions.kill_every
        self._killer = Killer(lab, every, rng) if every else None
        self._desk = desk
        self._commands = Commands(lab, random.Random(conditions.seed), self._hands_off)
        self._frames = Frames(lab, self.gauge) if desk else None
        self._references = References(lab.problem, desk.publish_references) if desk else None
        self._dim = lab.problem.task.dim
        self._began = time.monotonic()
        self._next_frame = 0.0
        self._last_frame: NetworkFrame | None = None
        self._has_started = False

    def learn(self, *, stay: bool) -> bool:
        """Until all samples are learned from, or somebody has had enough.

        Args:
            stay: Whether to go on with nothing left to learn, until somebody has had enough.

        Returns:
            Whether all samples are learned from that peers which run have.
        """
        while not (self._stop.is_set() or self._commands.finishing):
            is_finished = self._is_finished()
            if is_finished and self._killer is not None:
                # Those who died last have samples left.
                self._killer.finish()
                self._killer = None
            elif is_finished and not stay:
                return True
            else:
                self._turn("all samples are learned from" if is_finished else "learning")
        if self._killer is not None:
            self._killer.finish()
        return self._is_finished()

    def finish(self) -> None:
        """Let everything arrive, then stop all peers; no commands are taken any more."""
        if self._desk is not None:
            self._desk.close()
        self._show(self._lab, "waiting until everything has arrived")
        self._publish("finishing")
        self._lab.drain(meanwhile=self._meanwhile)
        self._publish("finishing")
        self._lab.stop()
        self._show(self._lab, "adding up")

    def tell(self, result: list[str], *, is_exact: bool) -> None:
        """Show the last frame: what came of it all."""
        if self._desk is not None and self._frames is not None and self._last_frame is not None:
            self._desk.publish(self._frames.last(self._last_frame, result, is_exact))

    def close(self) -> None:
        """Let nobody wait for an answer, and no thread work on."""
        if self._desk is not None:
            self._desk.close()
        if self._references is not None:
            self._references.close()

    def _turn(self, phase: LabPhase) -> None:
        if phase == "learning":
            self.seconds = time.monotonic() - self._began
            if self._killer is not None:
                self._killer.step(time.monotonic())
        self.gauge.look(self._lab.members, self._dim)
        self._show(self._lab, phase)
        if self._desk is None:
            self._stop.wait(TURN_SECONDS)
            return
        self._publish(phase, hurry=False)
        self._desk.wait(TURN_SECONDS)
        self._desk.serve(self._carry_out)

    def _meanwhile(self) -> None:
        self.gauge.look(self._lab.members, self._dim)
        self._publish("finishing", hurry=False)

    def _carry_out(self, command: Command) -> str:
        # What somebody did is to be seen at once.
        self._next_frame = 0.0
        return self._commands.carry_out(command)

    def _publish(self, phase: LabPhase, *, hurry: bool = True) -> None:
        now = time.monotonic()
        if self._desk is None or self._frames is None or (not hurry and now < self._next_frame):
            return
        self._next_frame = now + FRAME_SECONDS
        for sentence in self._references.notes() if self._references else ():
            self._lab.note(sentence)
        if not self._has_started:
            looks = self._lab.statuses()
            self._has_started = all(look.state != "starting" for look in looks)
            phase = phase if self._has_started else "starting"
        self._last_frame = self._frames.frame(phase, acts=phase != "finishing")
        self._desk.publish(self._last_frame)

    def _is_finished(self) -> bool:
        # Somebody at the desk may bring back peers that are all down.
        return self._lab.is_finished() and (self._desk is None or bool(self._lab.running()))

    def _hands_off(self, peer: int) -> None:
        if self._killer is not None:
            self._killer.forget(peer)
