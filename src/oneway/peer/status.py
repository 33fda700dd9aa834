"""A peer's status on disk, written once a second, so that nobody has to ask the peer for it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from oneway.records.status import Status


def write_status(status: Status, path: Path) -> None:
    """Replace the file in one step, so that a reader never sees half of it."""
    beside = path.with_suffix(".new")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(status), indent=2))
    beside.replace(path)


def read_status(path: Path) -> Status | None:
    """The last status that was written; None if there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Status)
    except (OSError, msgspec.MsgspecError):
        return None
