"""A peer's process: the command `oneway`, which ends when the lab that started it is gone."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

WATCH_SECONDS = 0.5
GRACE_SECONDS = 10.0


def main(lab: int, niceness: int, arguments: list[str]) -> None:
    """Run `oneway` with these arguments, in this process.

    Args:
        lab: The id of the process that started this one.
        niceness: How far this process stands back for others: 0 to 19.
        arguments: As they are typed after `oneway`.
    """
    _be_nice(niceness)
    threading.Thread(target=_outlive_nobody, args=(lab,), name="watch the lab", daemon=True).start()
    sys.argv = ["oneway", *arguments]
    # The command line is above the lab: to start it is fine, to import it is not.
    runpy.run_module("oneway", run_name="__main__")


def _be_nice(niceness: int) -> None:
    os.nice(niceness)
    # Linux shares the processor between sessions first, and a peer is one of its own: to be nice
    # within it alone would be nothing.
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(niceness))


def _outlive_nobody(lab: int) -> None:
    # Also if the lab was killed, which it cannot tell anybody.
    while os.getppid() == lab:
        time.sleep(WATCH_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
