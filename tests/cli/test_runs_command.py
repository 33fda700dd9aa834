from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest

HIDDEN = """
import sys
sys.modules["nicegui"] = None
from oneway.cli import main
sys.argv = ["oneway", *sys.argv[1:]]
main()
"""


@pytest.fixture
def runs(oneway, here):
    for name, algorithm in (("first", "ops"), ("more/second", "local")):
        made = oneway(
            "simulate", "--data", "synthetic", "--nodes", 4, "--rounds", 20, "--max-receivers", 2,
            "--algorithm", algorithm, "--out", here / "runs" / name,
        )  # fmt: skip
        assert made.code == 0
    return here / "runs"


def test_json_lists_runs_with_their_average_losses(oneway, runs):
    listed = oneway("runs", runs, "--json").json
    assert [entry["name"] for entry in listed["runs"]] == ["first", "more/second"]
    assert [entry["algorithm"] for entry in listed["runs"]] == ["ops", "local"]
    assert all(0 < entry["average_loss"] < 1 for entry in listed["runs"])
    assert all(entry["problem"] == "" for entry in listed["runs"])


def test_json_needs_no_nicegui_and_the_page_says_what_to_install(runs):
    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", HIDDEN, "runs", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    listed = call(runs, "--json")
    assert listed.returncode == 0
    assert len(json.loads(listed.stdout)["runs"]) == 2
    page = call(runs)
    assert page.returncode == 2
    assert "the page needs nicegui, which is not installed" in page.stderr
    assert "oneway[dashboard]" in page.stderr


def test_a_folder_that_does_not_exist_gets_one_sentence(oneway):
    for more in ([], ["--json"]):
        result = oneway("runs", "nowhere", *more)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("Error: there is no folder nowhere; name a folder")


def test_a_port_in_use_is_told_with_a_free_one(oneway, runs):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result = oneway("runs", runs, "--listen", other.getsockname()[1])
    assert result.code == 2
    assert "another program does" in result.err
    assert "is free" in result.err


def test_other_machines_need_a_token(oneway, runs):
    result = oneway("runs", runs, "--listen", "0.0.0.0:8700")
    assert result.code == 2
    assert "there is no token" in result.err
