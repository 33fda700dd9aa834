"""HTTP client of a running peer's local API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import httpx
import msgspec

from oneway.errors import DataError, OnewayError, TransportError
from oneway.export import FittedModel
from oneway.export.json_format import from_json
from oneway.records.curve import Curve
from oneway.records.status import Status
from oneway.web.peer_page import Prediction

_SECONDS = 2.0
"""A peer that is well answers in a few milliseconds."""

_Answer = TypeVar("_Answer")


class _Error(msgspec.Struct):
    error: str


class _Predicted(msgspec.Struct):
    prediction: str | bool | float
    probabilities: dict[str, float] = {}


class PeerClient:
    """Asks a peer; a request takes two seconds at most.

    Every request raises `TransportError` if the peer does not answer, or with something else.
    """

    def __init__(self, url: str, token: str = "") -> None:
        """Make a client of the peer that serves at a URL; it is shown the token, if any."""
        self.url = url
        self._client = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=_SECONDS,
            # The peer is on this machine: no proxy that the environment names has a part in it.
            trust_env=False,
        )

    def close(self) -> None:
        """Let connections go."""
        self._client.close()

    def status(self) -> Status:
        """Return what the peer says about itself."""
        return self._asked("GET", "/status", Status)

    def curve(self) -> Curve:
        """Return how its loss went."""
        return self._asked("GET", "/curve", Curve)

    def predict(self, sample: Mapping[str, str]) -> Prediction:
        """Return what it expects for a sample.

        Raises:
            DataError: If the sample is not one of the peer's task.
        """
        answer = self._asked("POST", "/predict", _Predicted, {"x": dict(sample)})
        return Prediction.of(answer.prediction, answer.probabilities, is_live=True)

    def model(self, momentary: bool = False) -> FittedModel:
        """Return its settled model, or that of this moment, to predict with here."""
        content = self._asked("GET", f"/model?momentary={str(momentary).lower()}", msgspec.Raw)
        try:
            return from_json(bytes(content), f"the answer of {self.url}")
        except OnewayError as error:
            raise TransportError(str(error)) from error

    def _asked(self, method: str, path: str, type_: type[_Answer], body: object = None) -> _Answer:
        try:
            response = self._client.request(method, path, json=body)
            if response.status_code == 200:
                return msgspec.json.decode(response.content, type=type_)
            sentence = msgspec.json.decode(response.content, type=_Error).error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = str(error) or type(error).__name__
            raise TransportError(f"the local API {self.url} does not answer: {why}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise TransportError(
                f"what answers at {self.url} is no local API of a peer: {error}"
            ) from error
        if response.status_code == 422:
            raise DataError(sentence)
        if response.status_code == 401:
            raise TransportError(
                f"the local API {self.url} wants a token; start the page with --api-token-file FILE"
            )
        raise TransportError(f"the local API {self.url} refuses: {sentence}")
