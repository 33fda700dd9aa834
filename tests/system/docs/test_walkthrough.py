"""The README's network of two, followed to the letter: two folders, real processes, one model."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oneway.peer.store.store import read_curve

README = Path(__file__).parents[3] / "README.md"
BLOCK = re.compile(r"^```sh\n# (?P<who>[\w ]+)\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)
STEPS = [
    (match["who"], line)
    for match in BLOCK.finditer(README.read_text("utf-8"))
    for line in match["lines"].splitlines()
]
DEADLINE = 240.0


class Shells:
    """One shell per person; what runs in it goes on while the others type."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders = {"for both": root, "alice": root, "bob": root}
        self.running: dict[str, subprocess.Popen[str]] = {}

    def oneway(self, who: str, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "oneway", *arguments],
            cwd=self.folders[who],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def type(self, who: str, line: str) -> None:
        for name in ("ALICE", "BOB"):
            if f"CARD OF {name}" in line:
                card = self.oneway(name.lower(), "peer", "card").strip()
                line = line.replace(f"CARD OF {name}", card)
        command = shlex.split(line)
        if command[0] == "mkdir":
            folder = self.folders[who] / command[1]
            folder.mkdir()
            self.folders[who] = folder
        elif command[:3] == ["oneway", "peer", "run"]:
            self.running[who] = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=self.folders[who],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        else:
            assert command[0] == "oneway"
            self.oneway(who, *command[1:])

    def status(self, who: str) -> dict[str, object]:
        path = self.folders[who] / "status.json"
        return json.loads(path.read_text()) if path.exists() else {"samples": 0}

    def until(self, true: object, what: str) -> None:
        until = time.monotonic() + DEADLINE
        while not true():
            assert time.monotonic() < until, what
            assert all(process.poll() is None for process in self.running.values())
            time.sleep(0.2)

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()
            process.stderr.close()


@pytest.fixture
def shells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shells]:
    for name in list(os.environ):
        if name.startswith("ONEWAY"):
            monkeypatch.delenv(name)
    shells = Shells(tmp_path)
    yield shells
    shells.end()


def acknowledged(status: dict) -> int:
    return sum(receiver["acked"] for receiver in status.get("receivers", []))


def heard(status: dict) -> int:
    return sum(sender["seq"] for sender in status.get("senders", []))


def losses(store: Path) -> tuple[float, float]:
    """With all digits, as only the owner can read them."""
    curve = read_curve(store)
    return sum(curve.loss_sums), sum(curve.alone_sums)


def test_two_people_who_follow_the_readme_are_both_better_off(shells):
    for who, line in STEPS:
        if who in shells.folders:
            shells.type(who, line)
    for who in ("alice", "bob"):
        shells.until(
            lambda who=who: acknowledged(shells.status(who)) > 20 < heard(shells.status(who)),
            f"{who} shares no model",
        )
        assert "sends to" in shells.oneway(who, "peer", "status")
        shells.oneway(who, "peer", "doctor")
    for who in ("alice", "bob"):
        store = shells.folders[who] / "peer.sqlite"
        shells.until(lambda store=store: read_curve(store).samples == 1000, f"{who} stops early")
        yours, alone = losses(store)
        assert yours < alone

    shells.running["bob"].kill()
    shells.running["bob"].wait()
    before = acknowledged(shells.status("bob"))
    restart = next(line for who, line in STEPS if who == "bob" and "peer run" in line)
    shells.running.pop("bob").stderr.close()
    shells.type("bob", restart)
    shells.until(lambda: acknowledged(shells.status("bob")) >= before, "bob does not go on")

    assert (
        "closed"
        in subprocess.run(
            [sys.executable, "-m", "oneway", "peer", "distrust", "bob"],
            cwd=shells.folders["alice"],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=True,
        ).stderr
    )
    shells.oneway("bob", "peer", "leave")
    bob = shells.running.pop("bob")
    assert bob.wait(DEADLINE) == 0
    bob.stderr.close()
