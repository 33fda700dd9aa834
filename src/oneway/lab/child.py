"""A peer's process: the command `oneway`, which ends when the lab that started it is gone."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

WATCH_SECONDS = 0.5
GRACE_SECONDS = 10.0


def main(lab: int, arguments: list[str]) -> None:
    """Run `oneway` with these arguments, in this process.

    Args:
        lab: The id of the process that started this one.
        arguments: As they are typed after `oneway`.
    """
    threading.Thread(target=_outlive_nobody, args=(lab,), name="watch the lab", daemon=True).start()
    sys.argv = ["oneway", *arguments]
    # The command line is above the lab: to start it is fine, to import it is not.
    runpy.run_module("oneway", run_name="__main__")


def _outlive_nobody(lab: int) -> None:
    # Also if the lab was killed, which it cannot tell anybody.
    while os.getppid() == lab:
        time.sleep(WATCH_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
