"""HTTP client of a lab's local API."""

from __future__ import annotations

from typing import Any, TypeVar

import httpx
import msgspec

from oneway.errors import OnewayError, TransportError
from oneway.records.network import Command, NetworkFrame, ReferenceCurve

_SECONDS = 5.0
_COMMAND_SECONDS = 65.0
"""Longer than a lab takes at most: it does one thing at a time."""

_Answer = TypeVar("_Answer")


class LabClient:
    """A lab's API.

    Every request raises `TransportError` if the lab does not answer, and `OnewayError` with the
    lab's own sentence if it refuses.
    """

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            timeout=_SECONDS,
            trust_env=False,  # never use a proxy for loopback
        )

    async def frame(self, after: int = 0) -> NetworkFrame | None:
        """The next frame of the lab: at once if there is one, else as soon as there is.

        Args:
            after: The number of the last one seen; 0 if none was.

        Returns:
            None if there is no news for a second or two.
        """
        return await self._asked("GET", f"/frame?after={after}", NetworkFrame)

    async def references(self) -> list[ReferenceCurve] | None:
        """What the simulator makes of the same samples; None while it is at it."""
        return await self._asked("GET", "/references", list[ReferenceCurve])

    async def do(self, command: Command) -> str:
        """Do something to the lab, and return what it says."""
        body = msgspec.json.encode(command)
        answer = await self._asked("POST", "/commands", dict[str, str], body, _COMMAND_SECONDS)
        return (answer or {}).get("said", "")

    async def aclose(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def _asked(
        self,
        method: str,
        path: str,
        type_: type[_Answer],
        body: bytes | None = None,
        seconds: float | None = None,
    ) -> _Answer | None:
        """The answer, decoded; None if it has no content."""
        try:
            answer = await self._http.request(
                method, path, content=body, timeout=seconds or _SECONDS
            )
        except httpx.HTTPError as error:
            raise TransportError(
                f"the lab does not answer ({type(error).__name__}); if it has ended, start another "
                "one with oneway lab --dashboard"
            ) from error
        if answer.status_code == 204:
            return None
        if answer.is_success:
            return msgspec.json.decode(answer.content, type=type_)
        raise OnewayError(_sentence(answer))


def _sentence(answer: httpx.Response) -> str:
    try:
        said: Any = msgspec.json.decode(answer.content)
        return str(said["error"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return f"the lab answered with status {answer.status_code}; see what it printed"
