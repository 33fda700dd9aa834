"""Process control of one peer: start it, kill it, stop it, and know how it ended."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from oneway.errors import OnewayError
from oneway.lab.peer_folders import PeerFolder
from oneway.peer.home.home import Home
from oneway.protocol.state import Key
from oneway.records.network import PeerLife
from oneway.records.status import Status

_NICEST = 19


def peer_command() -> list[str]:
    """The command that runs a peer, in a process that ends with this one."""
    return [sys.executable, "-m", "oneway.lab.child_peer", str(os.getpid())]


def niceness(num_peers: int) -> int:
    """Return the niceness to give each of `num_peers` processes.

    Together they weigh no more than one process against others, so that the lab, its page and the
    browser get their turn. Each step of niceness is a factor of 1.25 in Linux's scheduler.
    """
    return min(_NICEST, math.ceil(math.log(num_peers, 1.25)))


@dataclass(frozen=True)
class Observation:
    """One peer at one moment, seen from outside.

    Attributes:
        state: "starting" until its process has said something about itself.
        status: What it last said, perhaps in an earlier life; None if nothing yet.
        restarts: How often it was started again.
    """

    name: str
    key: Key
    state: PeerLife
    status: Status | None
    restarts: int


class PeerProcess(PeerFolder):
    """One peer and its process, if it runs; only processes started here are ever signalled.

    Attributes:
        starts: How often it was started.
        end_was_noted: Whether it is among the events that the process ended by itself.
    """

    def __init__(self, home: Home, rate: float, run: Sequence[str], niceness: int) -> None:
        """Prepare; nothing is started yet.

        Args:
            home: Its folder.
            rate: Samples per second; 0 for as many as it can.
            run: `peer_command()`; the folder, the samples and the rate are added.
            niceness: How far the process stands back for others: 0 to 19.
        """
        super().__init__(home)
        self.starts = 0
        self.end_was_noted = False
        self._run = [*run, str(home.folder), str(self.samples_path), f"{rate:g}"]
        self._niceness = niceness
        self._process: subprocess.Popen[bytes] | None = None
        self._ended_by: signal.Signals | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process; None if it does not run."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self.pid is not None

    @property
    def was_killed(self) -> bool:
        """Whether the process was killed, and not started again since."""
        return self._ended_by is signal.SIGKILL

    @property
    def ended_by_itself(self) -> bool:
        """Whether the process ended without having been asked to."""
        return self._process is not None and self._ended_by is None and not self.is_running

    @property
    def failure(self) -> str:
        """Why the process ended by itself, as a sentence; empty if it did not."""
        if self._process is None or not self.ended_by_itself:
            return ""
        lines = self.log_path.read_text(errors="replace").strip().splitlines()
        said = lines[-1].strip() if lines else "it said nothing"
        code = self._process.returncode
        return f"{self.name} ended by itself with code {code}: {said}"

    def observe(self) -> Observation:
        """The peer at this moment."""
        pid, status = self.pid, self.status()
        state: PeerLife
        if pid is None:
            state = "down"
        elif status is None or status.pid != pid:
            state = "starting"  # what is there was said in an earlier life
        else:
            state = "paused" if status.paused else "up"
        return Observation(self.name, self.key, state, status, max(0, self.starts - 1))

    def start(self) -> None:
        """Start the process.

        Raises:
            OnewayError: If it runs already.
        """
        if self.is_running:
            raise OnewayError(f"{self.name} runs already; kill or stop it first")
        self._ended_by = None
        self.end_was_noted = False
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._run,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # One sample at a time gives several threads nothing to do, and each costs memory.
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                # Ctrl-C is for the lab, which still has to drain the network.
                start_new_session=True,
            )
        _be_nice(self._process.pid, self._niceness)
        self.starts += 1

    def kill(self) -> None:
        """End the process at once, in the middle of whatever it does."""
        self._end(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def ask_to_stop(self) -> None:
        """Let the process make everything durable and end; `wait` for it."""
        self._end(signal.SIGTERM)

    def wait(self, seconds: float) -> bool:
        """Wait for the end; whether it came within so many seconds."""
        try:
            if self._process is not None:
                self._process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None and self.is_running:
            self._ended_by = how
            self._process.send_signal(how)


def _be_nice(pid: int, niceness: int) -> None:
    with suppress(OSError):  # it has ended already
        own = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, pid, min(_NICEST, own + niceness))
        # Linux shares the processor between sessions first, and a peer is one of its own: to be
        # nice within it alone would be nothing.
        Path(f"/proc/{pid}/autogroup").write_text(str(niceness))
