"""Who gets in: answers ZeroMQ's question, asked once per connection before anything else is read.

The question and its answer are ZAP, https://rfc.zeromq.org/spec/27/.
"""

from __future__ import annotations

import asyncio

import zmq

from oneway.transport.base import Key
from oneway.transport.losses import LossCounter
from oneway.transport.sockets import DONT_WAIT, Context, Watched

_ADDRESS = "inproc://zeromq.zap.01"


class Doorkeeper:
    """Admits by public key, and gives every connection that key as its user id.

    Must exist before the first listener of its context: without one, ZeroMQ admits everybody.
    """

    def __init__(
        self, context: Context, loop: asyncio.AbstractEventLoop, losses: LossCounter
    ) -> None:
        self.admitted: frozenset[Key] | None = frozenset()
        self._losses = losses
        socket = context.socket(zmq.REP)
        socket.set(zmq.LINGER, 0)
        socket.bind(_ADDRESS)
        self._watched = Watched(socket, loop, self._answer_all)

    def admits(self, key: Key) -> bool:
        """Return whether a sender is admitted at this moment; counts the refusal if not."""
        if self.admitted is None or key in self.admitted:
            return True
        self._losses.refuse(key)
        return False

    def close(self) -> None:
        """Stop answering."""
        self._watched.close()

    def _answer_all(self) -> None:
        socket = self._watched.socket
        while True:
            try:
                question = socket.recv_multipart(DONT_WAIT)
            except zmq.Again:
                return
            socket.send_multipart(self._answer(question), DONT_WAIT)

    def _answer(self, question: list[bytes]) -> list[bytes]:
        version, request_id, _domain, _address, _routing_id, _mechanism, key = question
        if self.admits(key):
            # In hexadecimal, since a user id ends at its first zero byte.
            return [version, request_id, b"200", b"admitted", key.hex().encode(), b""]
        return [version, request_id, b"400", b"not admitted", b"", b""]
