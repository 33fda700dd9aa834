"""Answers as JSON: a value, or one sentence that says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def as_json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value, or what is JSON already, as an answer that nobody keeps."""
    return Response(
        value if isinstance(value, bytes) else msgspec.json.encode(value),
        status,
        headers=HEADERS | {"Content-Type": "application/json"} | dict(headers or {}),
    )


def as_error(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a sentence as an answer that says no."""
    return as_json({"error": sentence}, status, headers)
