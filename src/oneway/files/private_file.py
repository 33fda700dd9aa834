"""Private files: secrets that only their owner may read or write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from oneway.errors import OnewayError


def check_private(
    path: Path, status: os.stat_result, what: str, secret: str, error: type[OnewayError]
) -> None:
    """Check that a file is the user's own and closed to everybody else.

    Args:
        path: Its path, for the message.
        status: Of the open file: its path may name another one a moment later.
        what: What the file is, for the message.
        secret: What is in it, for the message.
        error: The class of what is raised.

    Raises:
        OnewayError: Of the class `error`: if it is another user's, or open to others.
    """
    if status.st_uid != os.geteuid():
        raise error(
            f"the {what} {path} belongs to user {status.st_uid} and you are user {os.geteuid()}; "
            f"a {secret} must belong to the user who runs oneway: run it as that user, or "
            f"sudo chown $(id -u) {path}"
        )
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        raise error(
            f"the {what} {path} has mode {mode:04o}, so others can get at it; only its owner may "
            f"read or write a {secret}: chmod 600 {path}"
        )
