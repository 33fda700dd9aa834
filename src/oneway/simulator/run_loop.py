"""The loop over the rounds of a run: pace, progress, polite stop, checkpoints, lost parts."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from oneway.display.progress import progress_bar
from oneway.errors import ClusterError
from oneway.records import NetworkState
from oneway.simulator.checkpoint import Checkpoint, Stored
from oneway.simulator.engine_choice import Engine
from oneway.simulator.measurements import Measurements
from oneway.simulator.network import Network
from oneway.simulator.snapshots import LostPartError

_MOST_LOST = 3
"""Parts may be lost so often in a row before a round is done that was not done before."""


@dataclass
class _Stop:
    """Whether somebody asked the run to end."""

    requested: bool = False


class RunLoop:
    """Carries the rounds of a run out.

    Args:
        runner: The engine.
        network: Which shares it has in which round.
        measurements: What it fills.
        num_rounds: How many rounds there are.
        checkpoint: Where to write what is needed to go on, and to look for it; None for nowhere.

    Attributes:
        state: What all nodes hold in the end; None until then.
        done: How many rounds were carried out.
        seconds: How long they took, those before a resumption included.
        restarts: How often parts were lost and made again.
    """

    def __init__(
        self,
        runner: Engine,
        network: Network,
        measurements: Measurements,
        num_rounds: int,
        checkpoint: Checkpoint | None,
    ) -> None:
        self._runner, self._network, self._measurements = runner, network, measurements
        self._num_rounds, self._checkpoint = num_rounds, checkpoint
        self._fresh = measurements.snapshot(0)
        self._before = 0.0
        self.state: NetworkState | None = None
        self.done, self.seconds, self.restarts = 0, 0.0, 0

    def run(self, what: str, progress: bool | None) -> None:
        """Run all rounds, or those until Ctrl-C; what is there of a checkpoint is not run again.

        Raises:
            StoreError: The checkpoint is damaged, or that of another run.
            ClusterError: Parts are lost again and again.
        """
        self._resume()
        began = time.perf_counter()
        lost, farthest, broken = 0, self.done, False
        with stoppable() as stop, progress_bar(what, self._num_rounds, progress) as bar:
            while self.state is None:
                try:
                    if broken:
                        self._runner.begin_again()
                        self._resume()
                        broken = False
                    for done in self._rounds(stop):
                        self.seconds = self._before + time.perf_counter() - began
                        bar.update(done)
                    if self.done:
                        self._runner.finish(self.done)
                    self.state = self._runner.state
                except LostPartError as error:
                    lost = 1 if self.done > farthest else lost + 1
                    farthest = max(farthest, self.done)
                    if lost > _MOST_LOST:
                        raise ClusterError(
                            f"{error} after round {self.done}, {lost} times in a row; see that its "
                            "machine has memory and stays up, or use more parts"
                        ) from error
                    self.restarts, broken = self.restarts + 1, True
            self.seconds = self._before + time.perf_counter() - began
            if stop.requested:
                self._save()

    def _rounds(self, stop: _Stop) -> Iterator[int]:
        """Run stretch by stretch; after each how many rounds were done."""
        for last in _paced(self.done, self._num_rounds, stop, self._runner.pace):
            for begin, end, mixing in self._network.stretches(self.done, last):
                self._runner.advance(begin, end, mixing)
            self.done = last
            yield last
            if self._checkpoint is not None and self._checkpoint.is_due:
                self._save()

    def _save(self) -> None:
        if self._checkpoint is not None:
            stored = Stored(self.done, self.seconds)
            measured = self._measurements.snapshot(self.done)
            self._checkpoint.save(stored, measured, self._runner)

    def _resume(self) -> None:
        """Go on from the checkpoint, or start from the first round if there is none."""
        found = None if self._checkpoint is None else self._checkpoint.load()
        if found is None:
            self._measurements.restore(self._fresh, 0)
            self.done = 0
            return
        stored, read = found
        self._measurements.restore(read("measurements"), stored.num_rounds)
        self._runner.restore_from(read)
        self.done = stored.num_rounds
        self._before = self.seconds = stored.seconds


@contextmanager
def stoppable() -> Iterator[_Stop]:
    """Turn the first Ctrl-C into a request; a second one interrupts as usual."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    usual = signal.getsignal(signal.SIGINT)

    def request(_signal: int, _frame: FrameType | None) -> None:
        stop.requested = True
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, request)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, usual)


def _paced(done: int, num_rounds: int, stop: _Stop, pace: float) -> Iterator[int]:
    """Ends of stretches that take about `pace` seconds each, until the last round or a stop."""
    stretch = 1
    while done < num_rounds and not stop.requested:
        began = time.perf_counter()
        done = min(done + stretch, num_rounds)
        yield done
        took = time.perf_counter() - began
        stretch = 2 * stretch if took < pace / 2 else max(1, round(stretch * pace / took))
