"""Real peers that leave while others are away: who knows, what is said, and exact books."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from os import kill
from pathlib import Path

import pytest
from real_peers import (
    Town,
    befriend,
    types,
    until,
    until_learned,
)


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with Town(tmp_path / "town") as made:
        yield made


def test_a_receiver_that_is_stopped_is_called_unresponsive_and_no_impostor(town: Town):
    """The kernel accepts connections for a process that SIGSTOP has stopped."""
    alice, bob = town.peer("alice"), town.peer("bob", 10_000)
    befriend(alice, bob)
    for peer in (alice, bob):
        peer.start()
    until_learned(alice, 50)
    assert bob.pid is not None
    kill(bob.pid, signal.SIGSTOP)
    links: set[str] = set()

    def is_unresponsive() -> bool:
        links.update(receiver.link for receiver in alice.status().receivers)
        return "unresponsive" in links

    until(is_unresponsive, "alice finds bob unresponsive")
    assert "stranger" not in links
    doctor = types(alice, "doctor", code=1)
    assert "bob has not answered" in doctor
    assert "distrust" not in doctor
    kill(bob.pid, signal.SIGCONT)
    until(lambda: alice.status().receivers[0].link == "connected", "bob is back")
