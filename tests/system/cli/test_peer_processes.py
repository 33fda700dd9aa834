"""`oneway peer` as people use it: two folders, two processes, cards handed over by hand."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from unused_address import unused_address

SCRIPT = Path(sys.executable).with_name("oneway")
LIMIT_SECONDS = 240.0
POLL_SECONDS = 0.05
HEADER = "Temperature,Light,Occupancy"
PLAIN = {
    name: value
    for name, value in os.environ.items()
    if name not in ("FORCE_COLOR", "ONEWAY_PEER", "TTY_COMPATIBLE")
} | {"OPENBLAS_NUM_THREADS": "1"}


def rows(first: int, count: int) -> str:
    """Samples whose label is plain from the light."""
    numbers = range(first, first + count)
    return "".join(f"{20 + n % 5},{430 * (n % 3 == 0)},{int(n % 3 == 0)}\n" for n in numbers)


def eventually(holds: Callable[[], Any], what: str) -> Any:
    """Wait until something holds; return it."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not (found := holds()):
        assert time.monotonic() < deadline, f"it never came to this: {what}"
        time.sleep(POLL_SECONDS)
    return found


class Person:
    """Somebody at a shell, in a folder."""

    def __init__(self, folder: Path, oneway: Callable[..., Any]) -> None:
        self.folder = folder
        self._oneway = oneway
        folder.mkdir()

    def does(self, *arguments: object, code: int = 0) -> str:
        """Run `oneway peer ...` in this process; what it printed."""
        done = self._oneway("peer", *arguments, "--home", self.folder)
        assert done.code == code, done.err
        return done.out + done.err

    def card(self) -> str:
        """What this peer hands to others; what is promised is said beside it, on stderr."""
        shown = self._oneway("peer", "card", "--home", self.folder)
        assert shown.err.startswith("privacy: ")
        return shown.out.strip()

    def status(self) -> dict[str, Any]:
        """What the peer last said about itself."""
        try:
            return json.loads((self.folder / "status.json").read_bytes())
        except FileNotFoundError:
            return {}


class Running:
    """A peer that was started with `oneway peer run`."""

    def __init__(
        self,
        spawn: Callable[..., subprocess.Popen[Any]],
        person: Person,
        *arguments: object,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self.folder = person.folder
        # Files, not pipes: nobody has to read them for the peer to go on.
        self._log = (self.folder / f"log-{time.monotonic_ns()}").open("w+b")
        self.process = spawn(
            [SCRIPT, "peer", "run", *arguments],
            cwd=self.folder,
            env=PLAIN,
            stdin=stdin,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    @property
    def said(self) -> str:
        return Path(self._log.name).read_text()

    def listens(self) -> Running:
        eventually(lambda: "listens on" in self.said or self.process.poll() is not None, "listens")
        assert self.process.poll() is None, self.said
        return self

    def ends(self) -> int:
        code = self.process.wait(LIMIT_SECONDS)
        assert "Traceback" not in self.said, self.said
        return code

    def stops(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.ends()

    def close(self) -> None:
        self._log.close()


@pytest.fixture
def start(spawn: Callable[..., subprocess.Popen[Any]]) -> Iterator[Callable[..., Running]]:
    """Starts peers, which end with the test."""
    with ExitStack() as running:
        yield lambda *arguments, **more: running.enter_context(
            closing(Running(spawn, *arguments, **more))
        )


@pytest.fixture
def people(here: Path, oneway: Callable[..., Any]) -> tuple[Person, Person]:
    """Two folders with a stream each."""
    alice, bob = Person(here / "alice", oneway), Person(here / "bob", oneway)
    (alice.folder / "stream.csv").write_text(f"{HEADER}\n{rows(0, 400)}")
    (bob.folder / "stream.csv").write_text(f"{HEADER}\n{rows(1000, 400)}")
    return alice, bob


@pytest.fixture
def strangers(
    here: Path, oneway: Callable[..., Any], people: tuple[Person, Person]
) -> tuple[Person, Person]:
    """Each has made a peer, for the same task."""
    alice, bob = people
    stream, task = alice.folder / "stream.csv", here / "task.toml"
    assert oneway("peer", "task", stream, "--label", "Occupancy", "--out", task).code == 0
    alice.does("init", "alice", "--task", task, "--listen", unused_address())
    bob.does("init", "bob", "--task", task, "--listen", unused_address())
    return alice, bob


@pytest.fixture
def alice(strangers: tuple[Person, Person]) -> Person:
    return strangers[0]


@pytest.fixture
def bob(strangers: tuple[Person, Person]) -> Person:
    return strangers[1]


@pytest.fixture
def friends(strangers: tuple[Person, Person]) -> tuple[Person, Person]:
    """Both send to each other."""
    alice, bob = strangers
    for person, other in ((alice, bob), (bob, alice)):
        card = other.card()
        person.does("trust", card)
        person.does("admit", card)
    return strangers


def test_ctrl_c_ends_only_the_waiting(friends, start, spawn):
    alice, _ = friends
    first = start(alice, "--data", "stream.csv").listens()
    waiting = spawn(
        [SCRIPT, "peer", "leave"],
        cwd=alice.folder,
        env=PLAIN,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: alice.status().get("leaving"), "alice is leaving")
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=LIMIT_SECONDS)
    assert waiting.returncode == 130
    assert "No longer waiting; the peer goes on." in err
    assert first.process.poll() is None
    assert first.stops() == 0


def test_samples_come_through_a_pipe_as_they_are_written_and_it_holds_no_peer_up(alice, start):
    reader, writer = os.pipe()
    running = start(alice, "--data", "-", stdin=reader).listens()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        pipe.write(f"{HEADER}\n{rows(0, 3)}")
        pipe.flush()
        eventually(lambda: alice.status().get("samples") == 3, "three samples learned")
        pipe.write(rows(3, 2))
        pipe.flush()
        eventually(lambda: alice.status().get("samples") == 5, "five samples learned")
        assert not alice.status()["finished"]
        # The pipe stays open: the thread that reads it must not hold the process.
        assert running.stops() == 0


def test_a_growing_file_is_followed(alice, start):
    growing = alice.folder / "growing.csv"
    growing.write_text(f"{HEADER}\n{rows(0, 4)}")
    running = start(alice, "--data", "growing.csv", "--follow").listens()
    eventually(lambda: alice.status().get("samples") == 4, "what is there is learned")
    with growing.open("a") as file:
        file.write(rows(4, 6))
    eventually(lambda: alice.status().get("samples") == 10, "what was added is learned")
    assert not alice.status()["finished"]
    assert running.stops() == 0


def test_a_terminal_shows_a_live_status_line_and_the_peer_outlives_it(alice, spawn, read_until):
    terminal, its_end = pty.openpty()
    try:
        process = spawn(
            [SCRIPT, "peer", "run", "--data", "stream.csv"],
            cwd=alice.folder,
            env=PLAIN | {"TERM": "xterm", "COLUMNS": "120"},
            stdin=subprocess.DEVNULL,
            stdout=its_end,
            stderr=its_end,
        )
        os.close(its_end)
        seen = read_until(terminal, b"alice: 400 samples, yours 0.")
    finally:
        os.close(terminal)
    assert b"alice listens on" in seen
    assert b"Traceback" not in seen
    last_seen = alice.status()["time"]
    eventually(lambda: alice.status()["time"] > last_seen + 1, "the peer goes on without it")
    process.send_signal(signal.SIGINT)
    assert process.wait(LIMIT_SECONDS) == 0
    assert "alice is not running" in alice.does("status")
