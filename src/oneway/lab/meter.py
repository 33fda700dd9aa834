"""How much a network talks, by what its peers say of themselves one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oneway.lab.rest import Look
from oneway.records.status import Status


@dataclass(frozen=True)
class TrafficRate:
    """What is sent per second."""

    messages: float = 0.0
    bytes: float = 0.0


class Meter:
    """What all peers send per second together; to be read again and again."""

    def __init__(self) -> None:
        self._last: dict[bytes, Status] = {}
        self._rates: dict[bytes, TrafficRate] = {}

    def read(self, looks: Sequence[Look]) -> TrafficRate:
        """As of the last status of each peer that runs."""
        for look in looks:
            status = look.status
            if status is None or look.state in ("down", "starting"):
                self._rates.pop(look.key, None)
                continue
            before = self._last.get(look.key)
            if before is not None and before.pid == status.pid and status.time > before.time:
                seconds = status.time - before.time
                self._rates[look.key] = TrafficRate(
                    (status.frames_out - before.frames_out) / seconds,
                    (status.bytes_out - before.bytes_out) / seconds,
                )
            self._last[look.key] = status
        return TrafficRate(
            sum(rate.messages for rate in self._rates.values()),
            sum(rate.bytes for rate in self._rates.values()),
        )
