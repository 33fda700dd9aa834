"""Where a page is served and for whom, as the flags of `oneway peer dashboard` say it."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

TASK = """
model = "logistic"
label = "occupied"
classes = ["no", "yes"]

[features]
light = {}
"""
TOKEN = "0123456789abcdef"
LIMIT_SECONDS = 60.0


@pytest.fixture(autouse=True)
def alice(here: Path, oneway) -> None:
    """A peer in the current folder."""
    (here / "elsewhere.toml").write_text(TASK)
    made = oneway("peer", "init", "alice", "--task", "elsewhere.toml")
    assert made.code == 0, made.err


def test_a_port_in_use_is_told_with_one_that_is_free(oneway):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = oneway("peer", "dashboard", "--listen", port)
    assert done.code == 2
    said = rf"the page of alice cannot listen on 127.0.0.1:{port}: .* (\d+) is free"
    assert re.search(said, done.err)


def test_other_machines_need_a_token(oneway, here: Path):
    done = oneway("peer", "dashboard", "--listen", "0.0.0.0:8790")
    assert done.code == 2
    assert "the page of alice on '0.0.0.0' could be used by other machines" in done.err
    (here / "token").write_text("short\n")
    done = oneway("peer", "dashboard", "--listen", "0.0.0.0:8790", "--token-file", "token")
    assert done.code == 2
    assert "the token of the page of alice has 5 characters" in done.err


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("abc", "the port 'abc' is not a number from 1 to 65535"),
        ("127.0.0.1", "the port '127.0.0.1' is not a number from 1 to 65535"),
        ("70000", "the port 70000 is not a number from 1 to 65535"),
        ("0" * 5000 + "1", "is not a number from 1 to 65535"),
        ("a b:80", "the host 'a b' is neither a host name nor an IP address"),
    ],
)
def test_an_address_that_is_none_is_told(oneway, address, said):
    done = oneway("peer", "dashboard", "--listen", address)
    assert done.code == 2
    assert done.err.startswith("Error: ")
    assert said in done.err


@pytest.mark.parametrize("flag", ["--token-file", "--api-token-file"])
@pytest.mark.parametrize("content", [None, ""])
def test_a_token_that_cannot_be_read_is_told(oneway, here: Path, flag, content):
    if content is not None:
        (here / "token").write_text(content)
    done = oneway("peer", "dashboard", "--listen", 0, flag, "token")
    assert done.code == 2
    assert "token" in done.err


def test_a_folder_without_a_peer_is_told(oneway, tmp_path: Path):
    done = oneway("peer", "dashboard", "--home", tmp_path)
    assert done.code == 2
    assert "is not a peer's folder" in done.err


def test_without_the_extra_its_name_is_told(oneway, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "nicegui", None)
    for name in [name for name in sys.modules if name.startswith("oneway.dashboard")]:
        monkeypatch.delitem(sys.modules, name)
    done = oneway("peer", "dashboard", "--listen", 0)
    assert done.code == 2
    assert "the page needs nicegui, which is not installed" in done.err
    assert "pip install 'oneway[dashboard]'" in done.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_page_with_a_token_opens_for_those_who_know_it_until_a_signal(here: Path, number):
    (here / "token").write_text(f"{TOKEN}\n")
    command = [sys.executable, "-m", "oneway", "peer", "dashboard", "--listen", "0"]
    with subprocess.Popen(
        [*command, "--token-file", "token"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = process.stdout.readline()
            assert TOKEN not in line
            said = re.fullmatch(
                r"Open (\S+) in a browser with the token in token; Ctrl-C ends it\.\n", line
            )
            assert said is not None, process.stderr.read()
            with httpx.Client(base_url=said[1], trust_env=False, timeout=LIMIT_SECONDS) as client:
                assert client.get("/").status_code == 401
                assert client.get("/", params={"token": TOKEN}).status_code == 303
                page = client.get("/")
                assert (page.status_code, "alice, a peer" in page.text) == (200, True)
            process.send_signal(number)
            assert process.wait(LIMIT_SECONDS) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()
