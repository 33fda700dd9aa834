"""Where a page is served and for whom, as the flags of `peer dashboard` and `runs` say it."""

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
PAGES = {"the page of alice": ("peer", "dashboard"), "the page of runs": ("runs", ".")}


@pytest.fixture(autouse=True)
def alice(here: Path, oneway) -> None:
    """A peer in the current folder."""
    (here / "elsewhere.toml").write_text(TASK)
    made = oneway("peer", "init", "alice", "--task", "elsewhere.toml")
    assert made.code == 0, made.err


def write_token(content: str, mode: int = 0o600) -> None:
    Path("token").write_text(content)
    Path("token").chmod(mode)


@pytest.mark.parametrize("what", PAGES)
def test_a_port_in_use_is_reported_with_one_that_is_free(oneway, what):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = oneway(*PAGES[what], "--listen", port)
    done.check_refused(TransportError, what, f"127.0.0.1:{port}")
    assert re.search(r"\d+ is free", done.err)


@pytest.mark.parametrize("what", PAGES)
def test_other_machines_need_a_token(oneway, what):
    done = oneway(*PAGES[what], "--listen", "0.0.0.0:0")
    done.check_refused(ConfigError, what, "'0.0.0.0'")
    write_token("short\n")
    done = oneway(*PAGES[what], "--listen", "0.0.0.0:0", "--token-file", "token")
    done.check_refused(ConfigError, what, "5 characters")
    assert "short" not in done.err


def test_without_the_extra_its_name_is_reported_but_a_list_needs_none(oneway, monkeypatch):
    import oneway.dashboard as installed

    monkeypatch.setitem(sys.modules, "nicegui", None)
    # An import also sets the attribute, which later tests would find instead of the module.
    monkeypatch.setattr("oneway.dashboard", installed)
    for name in [name for name in sys.modules if name.startswith("oneway.dashboard")]:
        monkeypatch.delitem(sys.modules, name)
    for page in PAGES.values():
        done = oneway(*page, "--listen", 0)
        done.check_refused(MissingExtraError, "nicegui", ".[dashboard]")
    assert oneway("runs", ".", "--json").json["runs"] == []


def test_json_lists_runs_with_their_average_losses(oneway, here):
    for name, method in (("first", "ops"), ("more/second", "local")):
        run = ("simulate", "--data", "synthetic", "--nodes", 4, "--rounds", 20)
        assert oneway(*run, "--method", method, "--out", here / "runs" / name).code == 0
    listed = oneway("runs", "runs", "--json").json["runs"]
    assert [entry["name"] for entry in listed] == ["first", "more/second"]
    assert all(0 < entry["average_loss"] < 1 for entry in listed)
    missing = oneway("runs", "nowhere", "--json")
    assert (missing.code, missing.out) == (2, "")
    assert "nowhere" in missing.err


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
