"""Files of JSON that should hold a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from oneway.store.layout import MOST_BYTES

_LONGEST = 300


def read_table(file: Path) -> dict[str, Any]:
    """Read a table; its texts can be sent to anybody.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is too long, no JSON, or holds something else.
        RecursionError: If there are too many tables within tables.
    """
    if file.stat().st_size > MOST_BYTES:
        raise ValueError(f"{file.name} has more than {MOST_BYTES:,} bytes")
    text = file.read_text(encoding="utf-8")
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{file.name} holds no table")
    table: dict[str, Any] = found
    if "\\ud" in text.lower():
        # JSON may name halves of letters, which UTF-8 cannot hold.
        whole = json.dumps(table, ensure_ascii=False).encode("utf-8", "replace")
        table = json.loads(whole)
    return table


def in_short(error: BaseException) -> str:
    """What an error says, in one short line; its name if it says nothing."""
    said = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
    text = said.encode("utf-8", "replace").decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
