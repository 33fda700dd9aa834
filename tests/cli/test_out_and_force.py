"""What --out names is not overwritten unless that is forced; what is somebody else's never is."""

from __future__ import annotations

from pathlib import Path

import pytest

from oneway.errors import ConfigError

RUN = ("simulate", "--data", "synthetic", "--nodes", 3, "--rounds", 20)
DEMO = ("demo", "--rounds", 2)
AUDIT = (
    "audit", "privacy", "--data", "synthetic", "--nodes", 3, "--rounds", 40, "--canaries", 200,
    "--privacy", "none",
)  # fmt: skip


@pytest.fixture
def stream() -> str:
    rows = "".join(f"{n},{n % 3},{n % 2},{'ab'[n % 2]}\n" for n in range(20))
    Path("stream.csv").write_text(f"x,y,late,who\n{rows}")
    return "stream.csv"


def commands(stream: str) -> dict[str, tuple[object, ...]]:
    return {
        "simulate": (*RUN, "--out", "made"),
        "demo": (*DEMO, "--out", "made"),
        "audit": (*AUDIT, "--out", "made"),
        "task": ("peer", "task", stream, "--label", "late", "--out", "made"),
        "deal": ("data", "deal", stream, "--label", "late", "--owner", "who", "--out", "made"),
    }


@pytest.mark.parametrize("name", ["simulate", "demo", "audit", "task", "deal"])
def test_what_exists_is_overwritten_only_if_forced(name, oneway, stream):
    command = commands(stream)[name]
    first = oneway(*command)
    assert first.code == 0, first.err
    before = {path: path.stat().st_mtime_ns for path in _files(Path("made"))}
    oneway(*command).check_refused(ConfigError, "--out made", "exists", "--force")
    assert {path: path.stat().st_mtime_ns for path in _files(Path("made"))} == before
    again = oneway(*command, "--force")
    assert again.code == 0, again.err
    assert {path.name for path in _files(Path("made"))} == {path.name for path in before}


@pytest.mark.parametrize("name", ["simulate", "demo", "deal"])
def test_a_folder_of_somebody_else_is_never_overwritten(name, oneway, stream):
    Path("made").mkdir()
    Path("made/thesis.tex").write_text("years of work")
    for force in ((), ("--force",)):
        refused = oneway(*commands(stream)[name], *force)
        refused.check_refused(ConfigError, "made", "did not write")
    assert [path.name for path in Path("made").iterdir()] == ["thesis.tex"]


def test_an_empty_folder_is_as_good_as_a_new_one(oneway):
    Path("made").mkdir()
    assert oneway(*RUN, "--out", "made").code == 0


def test_the_folder_of_the_demo_is_refreshed_if_it_is_its_own(oneway):
    for _ in range(2):
        result = oneway(*DEMO)
        assert result.code == 0, result.err
    Path("oneway-demo/report.html").unlink()
    oneway(*DEMO).check_refused(ConfigError, "oneway-demo", "did not write")


def test_the_task_of_a_peer_is_not_overwritten_even_if_forced(oneway, stream):
    assert oneway("peer", "task", stream, "--label", "late", "--out", "t.toml").code == 0
    assert oneway("peer", "init", "ann", "--task", "t.toml", "--home", "ann").code == 0
    again = ("peer", "task", stream, "--label", "late", "--out", "ann/task.toml", "--force")
    oneway(*again).check_refused(ConfigError, "ann/task.toml")


def test_a_reproduction_goes_on_only_in_a_folder_of_its_own(oneway):
    Path("made").mkdir()
    Path("made/thesis.tex").write_text("years of work")
    refused = oneway("reproduce", "size", "--quick", "--out", "made")
    refused.check_refused(ConfigError, "made")


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
