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
from plain import PLAIN_TOML

from oneway import dashboard as oneway_dashboard
from oneway.errors import ConfigError, MissingExtraError, TransportError

TASK = f"""
{PLAIN_TOML}model = "logistic"
label = "occupied"
classes = ["no", "yes"]

[features]
light = {{}}
"""
TOKEN = "0123456789abcdef"
LIMIT_SECONDS = 240.0


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
    done.check_refused(TransportError, "the page of alice", f"127.0.0.1:{port}")
    assert re.search(r"\d+ is free", done.err)


def test_other_machines_need_a_token(oneway, here: Path):
    done = oneway("peer", "dashboard", "--listen", "0.0.0.0:0")
    done.check_refused(ConfigError, "the page of alice", "'0.0.0.0'")
    (here / "token").write_text("short\n")
    (here / "token").chmod(0o600)
    done = oneway("peer", "dashboard", "--listen", "0.0.0.0:0", "--token-file", "token")
    done.check_refused(ConfigError, "the page of alice", "5 characters")
    assert "short" not in done.err


@pytest.mark.parametrize(
    ("address", "culprit"),
    [
        ("abc", "abc"),
        ("127.0.0.1", "127.0.0.1"),
        ("70000", "70000"),
        ("0" * 5000 + "1", "00000"),
        ("a b:80", "a b"),
    ],
)
def test_an_address_that_is_none_is_told(oneway, address, culprit):
    done = oneway("peer", "dashboard", "--listen", address)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: ")
    assert culprit in done.err


@pytest.mark.parametrize("flag", ["--token-file", "--api-token-file"])
@pytest.mark.parametrize("content", [None, ""])
def test_a_token_that_cannot_be_read_is_told(oneway, here: Path, flag, content):
    if content is not None:
        (here / "token").write_text(content)
        (here / "token").chmod(0o600)
    done = oneway("peer", "dashboard", "--listen", 0, flag, "token")
    done.check_refused(ConfigError, "token")


@pytest.mark.parametrize("flag", ["--token-file", "--api-token-file"])
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620], ids=oct)
def test_a_token_that_others_can_get_at_is_refused(oneway, here: Path, flag, mode):
    (here / "token").write_text("secret\n")
    (here / "token").chmod(mode)
    # On every interface, so that what is wrong with the page's token ends the command if not this.
    done = oneway("peer", "dashboard", "--listen", "0.0.0.0:0", flag, "token")
    done.check_refused(ConfigError, f"the token file token has mode {mode:04o}", "chmod 600 token")
    assert "secret" not in done.err


def test_a_folder_without_a_peer_is_told(oneway, tmp_path: Path):
    done = oneway("peer", "dashboard", "--home", tmp_path)
    done.check_refused(ConfigError, str(tmp_path))


def test_without_the_extra_its_name_is_told(oneway, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "nicegui", None)
    # An import also sets the attribute, which later tests would find instead of the module.
    monkeypatch.setattr("oneway.dashboard", oneway_dashboard)
    for name in [name for name in sys.modules if name.startswith("oneway.dashboard")]:
        monkeypatch.delitem(sys.modules, name)
    done = oneway("peer", "dashboard", "--listen", 0)
    done.check_refused(MissingExtraError, "nicegui", "pip install 'oneway[dashboard]'")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_page_with_a_token_opens_for_those_who_know_it_until_a_signal(
    here: Path, spawn, read_until, number
):
    (here / "token").write_text(f"{TOKEN}\n")
    (here / "token").chmod(0o600)
    command = [sys.executable, "-m", "oneway", "peer", "dashboard", "--listen", "0"]
    with (here / "complaints").open("w+") as complaints:
        process = spawn(
            [*command, "--token-file", "token"], stdout=subprocess.PIPE, stderr=complaints
        )
        line = read_until(process.stdout.fileno(), b"\n").decode()
        assert TOKEN not in line
        said = re.fullmatch(
            r"Open (\S+) in a browser with the token in token; Ctrl-C ends it\.\n", line
        )
        assert said is not None
        with httpx.Client(base_url=said[1], trust_env=False, timeout=LIMIT_SECONDS) as client:
            assert client.get("/").status_code == 401
            assert client.get("/", params={"token": TOKEN}).status_code == 303
            page = client.get("/")
            assert (page.status_code, "alice, a peer" in page.text) == (200, True)
        process.send_signal(number)
        assert process.wait(LIMIT_SECONDS) == 0
        complaints.seek(0)
        assert complaints.read() == ""
