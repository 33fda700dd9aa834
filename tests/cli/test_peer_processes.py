"""`oneway peer` as people use it: two folders, two processes, cards handed over by hand."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
import urllib.request
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

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the script is not installed")


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

    def types(self, *arguments: object, code: int = 0, stdin: str | None = None) -> str:
        """Run `oneway peer ...` in a shell to its end; what it printed."""
        done = subprocess.run(
            [SCRIPT, "peer", *map(str, arguments)],
            cwd=self.folder,
            env=PLAIN,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def does(self, *arguments: object, code: int = 0) -> str:
        """The same without a process of its own, which is quicker."""
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

    def receiver(self, name: str) -> dict[str, Any]:
        found = [peer for peer in self.status().get("receivers", []) if peer["name"] == name]
        return found[0] if found else {}

    def sender(self, name: str) -> dict[str, Any]:
        found = [peer for peer in self.status().get("senders", []) if peer["name"] == name]
        return found[0] if found else {}


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


def test_two_people_learn_together(people, start):
    alice, bob = people
    alice.types("task", "stream.csv", "--label", "Occupancy", "--out", "task.toml")
    alice.types("init", "alice", "--task", "task.toml", "--listen", unused_address())
    bob.types("init", "bob", "--task", "../alice/task.toml", "--listen", unused_address())
    hers, his = alice.card(), bob.card()
    alice.types("trust", his)
    alice.types("admit", his)
    bob.types("trust", hers)
    bob.types("admit", hers)
    first = start(alice, "--data", "stream.csv").listens()
    second = start(bob, "--data", "stream.csv").listens()
    for person, other in ((alice, "bob"), (bob, "alice")):
        eventually(lambda who=person: who.status().get("samples") == 400, "all samples learned")
        eventually(
            lambda who=person, whom=other: (
                who.receiver(whom).get("acked", 0) > 10
                and who.receiver(whom)["acked"] == who.receiver(whom)["seq"]
            ),
            "all pushes acknowledged",
        )
        eventually(lambda who=person, whom=other: who.sender(whom).get("seq", 0) > 10, "heard")
        assert person.status()["average_loss"] < 0.3
    shown = alice.types("status")
    assert f"alice runs as process {first.process.pid}" in shown
    assert any(line.split()[:3] == ["bob", "open", "connected"] for line in shown.splitlines())
    assert alice.types("predict", "Temperature=21", "Light=430").startswith("1 ")
    assert "problem" not in bob.types("doctor")
    assert first.stops(signal.SIGINT) == second.stops(signal.SIGTERM) == 0
    assert "alice sends to 1 peer: bob" in first.said
    assert "alice has stopped: 400 samples in all" in first.said
    assert "alice is not running" in alice.types("status")


def test_trust_changes_while_the_peers_run(alice, bob, start):
    first = start(alice, "--data", "stream.csv").listens()
    start(bob).listens()
    hers, his = alice.card(), bob.card()
    assert "follows within half a second" in bob.does("admit", hers)
    said = alice.does("trust", his, "--weight", 3)
    assert f"alice is running (process {first.process.pid}) and follows" in said
    eventually(lambda: alice.receiver("bob").get("acked", 0) > 0, "a push is acknowledged")
    assert alice.receiver("bob")["weight"] == 3
    said = alice.does("distrust", "bob", "--wait", LIMIT_SECONDS)
    assert "The edge is closed, and what had not arrived at bob is back." in said
    assert alice.receiver("bob") == {}
    assert first.stops() == 0


def test_distrust_says_that_nobody_answers_and_the_peer_goes_on_asking(friends, start):
    alice, bob = friends
    start(alice, "--data", "stream.csv").listens()
    second = start(bob).listens()
    eventually(lambda: alice.receiver("bob").get("acked", 0) > 0, "a push is acknowledged")
    second.stops()
    said = alice.does("distrust", "bob", "--wait", 1)
    assert "bob has not answered yet" in said
    eventually(lambda: alice.receiver("bob").get("phase") == "closing", "alice asks bob to close")
    start(bob).listens()
    eventually(lambda: alice.receiver("bob") == {}, "the edge is closed")


def test_a_killed_peer_goes_on_where_it_was(friends, start):
    alice, bob = friends
    start(bob, "--data", "stream.csv").listens()
    first = start(alice, "--data", "stream.csv", "--rate", 100).listens()
    eventually(lambda: alice.status().get("samples", 0) > 20, "some samples learned")
    first.process.kill()
    first.process.wait(LIMIT_SECONDS)
    assert "alice is not running" in alice.does("status")
    again = start(alice, "--data", "stream.csv").listens()
    eventually(lambda: alice.status().get("samples") == 400, "every sample learned once")
    eventually(
        lambda: (
            alice.receiver("bob").get("phase") == "open"
            and alice.receiver("bob")["acked"] == alice.receiver("bob")["seq"]
        ),
        "all pushes acknowledged",
    )
    assert "going on in stream.csv at line" in again.said
    assert again.stops() == 0


def test_a_leaving_peer_hands_everything_over_and_stops(friends, start):
    alice, bob = friends
    start(bob, "--data", "stream.csv").listens()
    first = start(alice, "--data", "stream.csv").listens()
    # The first total of an edge is nothing: a push is acknowledged from the second on.
    eventually(lambda: alice.receiver("bob").get("acked", 0) > 1, "a push is acknowledged")
    said = alice.does("leave", "--wait", LIMIT_SECONDS)
    assert "alice has handed over everything and stopped." in said
    assert first.ends() == 0
    assert alice.status()["mass_units"] == 0
    eventually(lambda: bob.status()["mass_units"] == 2 * 2**40, "bob has the mass of both")
    assert "already" in alice.does("leave")


def test_a_peer_that_does_not_run_is_run_to_leave(friends, start):
    alice, bob = friends
    alice.does("run", "--data", alice.folder / "stream.csv", "--until-done")
    assert "bob has not acknowledged" in alice.does("leave", "--wait", 1, code=1)
    start(bob).listens()
    assert "handed over everything" in alice.types("leave", "--wait", LIMIT_SECONDS)
    assert alice.status()["mass_units"] == 0


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


def test_a_second_run_of_the_same_folder_names_the_first(alice, start):
    first = start(alice).listens()
    said = alice.types("run", code=2)
    assert f"is already running as process {first.process.pid}; stop it first" in said
    assert said.count("\n") == 1
    assert first.process.poll() is None


def test_samples_come_through_a_pipe_as_they_are_written(alice, start):
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
    eventually(lambda: alice.status()["finished"], "the end of the pipe is the end of the stream")
    assert running.stops() == 0


def test_a_peer_that_waits_for_its_pipe_can_be_stopped(alice, start):
    reader, writer = os.pipe()
    with os.fdopen(writer, "w"):
        running = start(alice, "--data", "-", stdin=reader).listens()
        os.close(reader)
        assert running.stops(signal.SIGINT) == 0


def test_json_lines_are_samples_too(alice):
    lines = [{"Temperature": 20, "Light": 430 * (n % 2), "Occupancy": n % 2} for n in range(6)]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    said = alice.types("run", "--data", "-", "--until-done", stdin=text)
    assert "6 samples in all" in said


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


def test_the_local_api_answers_while_the_peer_runs(alice, start):
    (alice.folder / "token.txt").write_text("0123456789abcdef\n")
    (alice.folder / "token.txt").chmod(0o600)
    running = start(
        alice, "--data", "stream.csv", "--serve", 0, "--token-file", "token.txt"
    ).listens()
    address = eventually(lambda: alice.status().get("api"), "the API is served")
    eventually(lambda: alice.status()["finished"], "all samples learned")
    request = urllib.request.Request(
        f"{address}/predict",
        json.dumps({"x": {"Temperature": 20, "Light": 430}}).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer 0123456789abcdef"},
    )
    with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
        assert json.load(answer)["prediction"] == "1"
    alice.types("export", "--out", "live.json", "--api-token-file", "token.txt")
    alice.types("export", "--out", "disk.json")  # without the token, from its store
    assert (alice.folder / "live.json").read_text() == (alice.folder / "disk.json").read_text()
    assert running.stops() == 0
    assert f"the local API is {address}" in running.said


def test_an_unadmitted_sender_gets_nothing_in_and_the_doctor_says_why(alice, bob, start):
    alice.does("trust", bob.card())
    start(bob).listens()
    start(alice, "--data", "stream.csv").listens()
    eventually(lambda: alice.receiver("bob").get("link") == "refused", "bob refuses alice")
    assert "admit" in alice.does("doctor", code=1)
    assert bob.status()["mass_units"] in (0, 2**40)
    assert bob.status()["senders"] == []


def test_a_peer_goes_on_when_nobody_reads_what_it_says(alice, spawn):
    process = spawn(
        [SCRIPT, "peer", "run", "--data", "stream.csv", "--rate", "200"],
        cwd=alice.folder,
        env=PLAIN,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    process.stdout.close()
    eventually(lambda: alice.status().get("samples") == 400, "all samples learned")
    process.send_signal(signal.SIGTERM)
    assert process.wait(LIMIT_SECONDS) == 0


def test_a_terminal_shows_one_line_that_is_always_up_to_date(alice, spawn, read_until):
    terminal, its_end = pty.openpty()
    try:
        process = spawn(
            [SCRIPT, "peer", "run", "--data", "stream.csv"],
            cwd=alice.folder,
            env=PLAIN | {"TERM": "xterm", "COLUMNS": "120"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=its_end,
        )
        os.close(its_end)
        seen = read_until(terminal, b"alice: 400 samples, loss 0.")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=LIMIT_SECONDS)
    finally:
        os.close(terminal)
    assert process.returncode == 0
    assert b"alice has stopped: 400 samples in all" in out
    assert b"Traceback" not in seen
