"""Files that are replaced whole: a reader, or a crash, finds the old text or the new one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace the file's content, durably; the file keeps its mode, and a link stays a link.

    Raises:
        OSError: If it cannot be written; what was there stays.
    """
    try:
        target = path.resolve()
    except RuntimeError:  # a link to itself, which is replaced
        target = path
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    # Not tempfile.mkstemp, whose files only the owner may read, whatever the umask says.
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(number, "wb") as file:
            if target.exists():
                os.fchmod(number, target.stat().st_mode & 0o7777)
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(number)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable.

    Raises:
        OSError: If the folder cannot be opened.
    """
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
