"""What `doctor` finds: one sentence each, and how bad it is."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Severity: TypeAlias = Literal["ok", "note", "problem"]
"""As it should be; worth knowing; something has to be done."""


class Finding(msgspec.Struct, frozen=True):
    """One sentence about a peer; a problem names its remedy."""

    severity: Severity
    sentence: str


def ok(sentence: str) -> Finding:
    """Find that something is as it should be."""
    return Finding("ok", sentence)


def note(sentence: str) -> Finding:
    """Find something worth knowing."""
    return Finding("note", sentence)


def problem(sentence: str) -> Finding:
    """Find something that has to be done."""
    return Finding("problem", sentence)
