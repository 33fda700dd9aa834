"""What the page asks of a lab, over the lab's local HTTP API."""

from __future__ import annotations

from types import TracebackType

import httpx
import msgspec

from oneway.errors import OnewayError, TransportError
from oneway.records.network import Command, NetworkFrame, ReferenceCurve

_SECONDS = 5.0
_COMMAND_SECONDS = 65.0
"""Longer than a lab takes at most: it does one thing at a time."""


class LabClient:
    """A lab's API; use it in an `async with` block."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=_SECONDS,
            trust_env=False,  # a proxy has no business on loopback
        )

    async def frame(self, after: int = 0) -> NetworkFrame | None:
        """The next frame of the lab: at once if there is one, else as soon as there is.

        Args:
            after: The number of the last one seen; 0 if none was.

        Returns:
            None if there is no news for a second or two.

        Raises:
            TransportError: The lab does not answer.
        """
        answer = await self._ask("GET", f"/frame?after={after}")
        if answer.status_code == 204:
            return None
        return msgspec.json.decode(answer.content, type=NetworkFrame)

    async def references(self) -> list[ReferenceCurve] | None:
        """What the simulator makes of the same samples; None while it is at it.

        Raises:
            TransportError: The lab does not answer.
        """
        answer = await self._ask("GET", "/references")
        if answer.status_code == 204:
            return None
        return msgspec.json.decode(answer.content, type=list[ReferenceCurve])

    async def do(self, command: Command) -> str:
        """Do something to the lab, and return what it says.

        Raises:
            OnewayError: The lab says no; the message says why.
            TransportError: The lab does not answer.
        """
        answer = await self._ask("POST", "/commands", msgspec.json.encode(command))
        return str(msgspec.json.decode(answer.content)["said"])

    async def __aenter__(self) -> LabClient:
        """Open the connection when it is needed."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def _ask(self, method: str, path: str, body: bytes | None = None) -> httpx.Response:
        headers = {} if body is None else {"Content-Type": "application/json"}
        seconds = _SECONDS if body is None else _COMMAND_SECONDS
        try:
            answer = await self._http.request(
                method, path, content=body, headers=headers, timeout=seconds
            )
        except httpx.HTTPError as error:
            raise TransportError(
                f"the lab does not answer ({type(error).__name__}); if it has ended, start another "
                "one with oneway lab --dashboard"
            ) from error
        if answer.is_success:
            return answer
        raise OnewayError(_sentence(answer))


def _sentence(answer: httpx.Response) -> str:
    try:
        return str(msgspec.json.decode(answer.content)["error"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return f"the lab answered with status {answer.status_code}; see what it printed"
