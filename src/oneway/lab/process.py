"""One peer's process: start it, kill it, stop it, and know how it ended."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from oneway.errors import OnewayError
from oneway.lab.setup import Member

LOG_FILE = "peer.log"
_END_OF_LOG = 4096
_NICEST = 19


def command(peers: int) -> list[str]:
    """What runs one of so many peers: `oneway peer run`, with an eye on this process."""
    child = [sys.executable, "-m", "oneway.lab.child", str(os.getpid()), str(niceness(peers))]
    return [*child, "peer", "run"]


def niceness(peers: int) -> int:
    """How nice each of so many peers is.

    They may take all there is, but against others they weigh no more than one process together, so
    that the lab, its page and the browser get their turn. Each step of niceness is a factor of 1.25
    in Linux's scheduler.
    """
    return min(_NICEST, math.ceil(math.log(peers, 1.25)))


class PeerProcess:
    """The process of one peer, if it runs; only processes started here are ever signalled.

    Attributes:
        member: The peer.
        starts: How often it was started.
        is_mourned: Whether somebody has taken note of its end.
    """

    def __init__(self, member: Member, rate: float, run: Sequence[str]) -> None:
        """Prepare; nothing is started yet.

        Args:
            member: The peer.
            rate: Samples per second; 0 for as many as it can.
            run: The command that runs a peer, without its options.
        """
        self.member = member
        self.starts = 0
        self.is_mourned = False
        self._run = [*run, "--home", str(member.home.folder), "--data", str(member.samples_path)]
        self._run += ["--rate", f"{rate:g}"] if rate else []
        self._process: subprocess.Popen[bytes] | None = None
        self._ended_by: signal.Signals | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process; None if it does not run."""
        return self._process.pid if self.is_running and self._process else None

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def was_killed(self) -> bool:
        """Whether the process was killed, and not started again since."""
        return self._ended_by is signal.SIGKILL

    @property
    def ended_by_itself(self) -> bool:
        """Whether the process ended although nobody asked it to."""
        return (
            self._process is not None
            and self._ended_by is None
            and self._process.poll() is not None
        )

    @property
    def failure(self) -> str:
        """Why the process ended although nobody asked it to, as a sentence; empty if it did not."""
        process = self._process
        if process is None or not self.ended_by_itself:
            return ""
        return (
            f"{self.member.name} ended by itself with code {process.returncode}: "
            f"{_last_line(self.log_path) or 'it said nothing'}"
        )

    @property
    def log_path(self) -> Path:
        """What the peer said."""
        return self.member.home.folder / LOG_FILE

    def start(self) -> None:
        """Start the process.

        Raises:
            OnewayError: If it runs already.
        """
        if self.is_running:
            raise OnewayError(f"{self.member.name} runs already; kill or stop it first")
        self._ended_by = None
        self.is_mourned = False
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._run,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(),
                # Ctrl-C is for the lab, which still has to drain the network.
                start_new_session=True,
            )
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


def _environment() -> dict[str, str]:
    # One sample at a time gives several threads nothing to do, and each costs memory.
    return os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def _last_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _END_OF_LOG))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip() if lines else ""
