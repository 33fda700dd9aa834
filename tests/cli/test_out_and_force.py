"""--force replaces only what the same command made, and never deletes a file of the user."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from pathlib import Path

import pytest

from oneway.cli.out_path import check_out_file
from oneway.errors import ConfigError, StoreError
from oneway.files.output_folder import MARKER, clear, mark, part_of, unknown_files
from oneway.lab.peer_folders import _PEER_FILES
from oneway.report.demo import flights_demo

RUN = ("simulate", "--data", "synthetic", "--nodes", 3, "--rounds", 20)
DEMO = ("demo", "--rounds", 2)
AUDIT = (
    "audit", "privacy", "--data", "synthetic", "--nodes", 3, "--rounds", 40, "--canaries", 200,
    "--privacy", "none",
)  # fmt: skip


one_demo = cache(flights_demo)
"""The work of the demo, which takes seconds, once for all tests."""


@pytest.fixture(autouse=True)
def quick_demo(monkeypatch) -> None:
    monkeypatch.setattr("oneway.report.demo.flights_demo", lambda *told: one_demo(*told[:2]))


@pytest.fixture
def stream() -> str:
    rows = "".join(f"{n},{n % 3},{n % 2},{'ab'[n % 2]}\n" for n in range(20))
    Path("stream.csv").write_text(f"x,y,late,who\n{rows}")
    return "stream.csv"


def commands_for(stream: str) -> dict[str, tuple[object, ...]]:
    return {
        "simulate": (*RUN, "--out", "made"),
        "demo": (*DEMO, "--out", "made"),
        "audit": (*AUDIT, "--out", "made"),
        "task": ("peer", "task", stream, "--label", "late", "--out", "made"),
        "deal": ("data", "deal", stream, "--label", "late", "--owner", "who", "--out", "made"),
    }


@pytest.mark.parametrize("name", ["simulate", "demo", "audit", "task", "deal"])
def test_existing_output_is_replaced_only_with_force(name, oneway, stream):
    command = commands_for(stream)[name]
    first = oneway(*command)
    assert first.code == 0, first.err
    before = {path: path.stat().st_mtime_ns for path in _files(Path("made"))}
    oneway(*command).check_refused(ConfigError, "--out made", "exists", "--force")
    assert {path: path.stat().st_mtime_ns for path in _files(Path("made"))} == before
    again = oneway(*command, "--force")
    assert again.code == 0, again.err
    assert {path.name for path in _files(Path("made"))} == {path.name for path in before}


@pytest.mark.parametrize(
    ("name", "made_by"), [("simulate", "simulate"), ("demo", "demo"), ("deal", "data deal")]
)
def test_a_folder_says_what_made_it_and_files_of_the_user_in_it_survive(
    name, made_by, oneway, stream
):
    command = commands_for(stream)[name]
    assert oneway(*command).code == 0
    marker = json.loads(Path("made", MARKER).read_text())
    assert marker["made_by"] == made_by
    assert datetime.fromisoformat(marker["when"]).tzinfo is not None
    mine = Path("made", "notes.txt")
    mine.write_text("years of work")
    oneway(*command, "--force").check_refused(ConfigError, "notes.txt")
    assert mine.read_text() == "years of work"


@pytest.mark.parametrize("name", ["simulate", "demo", "deal", "lab"])
def test_a_folder_of_the_user_is_never_overwritten(name, oneway, stream):
    lab = ("lab", "--data", "synthetic", "--nodes", 2, "--out", "made")
    command = commands_for(stream).get(name, lab)
    Path("made").mkdir()
    Path("made/thesis.tex").write_text("years of work")
    for force in ((), ("--force",)):
        oneway(*command, *force).check_refused(ConfigError, "made", "was not made by")
    assert [path.name for path in Path("made").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("name", "flag"),
    [("task", "--out"), ("audit", "--out"), ("tune", "--out"), ("tune", "--chart")],
)
def test_a_file_of_the_user_is_never_overwritten(name, flag, oneway, stream):
    command = {
        "task": ("peer", "task", stream, "--label", "late"),
        "audit": AUDIT,
        "tune": ("tune", "--data", stream, "--label", "late", "--nodes", 2, "--rates", 0.1),
    }[name]
    before = Path(stream).read_bytes()
    refused = oneway(*command, flag, stream, "--force")
    refused.check_refused(ConfigError, f"{flag} {stream}", "--force never overwrites")
    assert Path(stream).read_bytes() == before


def test_dealing_into_the_folder_of_the_data_does_not_delete_the_data(oneway, stream):
    Path("data").mkdir()
    data = Path(stream).rename("data/my.csv")
    assert oneway("peer", "task", data, "--label", "late", "--out", "data/task.toml").code == 0
    deal = ("data", "deal", data, "--label", "late", "--owner", "who", "--out", "data", "--force")
    oneway(*deal).check_refused(ConfigError, "data")
    assert data.exists()


def test_dealing_a_file_of_the_output_folder_is_refused(oneway, stream):
    assert oneway(*commands_for(stream)["deal"]).code == 0
    deal = ("data", "deal", "made/a.csv", "--label", "late", "--owner", "x", "--out", "made")
    oneway(*deal, "--force").check_refused(ConfigError, "made/a.csv")
    assert Path("made/a.csv").exists()


def test_a_lab_never_deletes_real_peers(oneway, stream):
    task = Path("network/task.toml")
    task.parent.mkdir()
    assert oneway("peer", "task", stream, "--label", "late", "--out", task).code == 0
    assert oneway("peer", "init", "ann", "--task", task, "--home", "network/ann").code == 0
    lab = ("lab", "--data", "synthetic", "--nodes", 2, "--out", "network", "--force")
    oneway(*lab).check_refused(ConfigError, "network")
    # Not in a lab's own folder either.
    mark(Path("network"), "lab", ["task.toml"])
    oneway(*lab).check_refused(ConfigError, "network", "ann")
    assert Path("network/ann/key.secret").exists()


def test_clearing_deletes_known_files_only(tmp_path):
    mark(tmp_path, "lab", ["task.toml", "runs/*/run.json"])
    part, other = tmp_path / "peer0", tmp_path / "real"
    for folder, made_by in ((part, part_of("lab")), (other, "peer init")):
        folder.mkdir()
        mark(folder, made_by, ["key.secret"])
        (folder / "key.secret").write_text("secret")
    (tmp_path / "runs" / "one").mkdir(parents=True)
    known = [part / "key.secret", tmp_path / "task.toml", tmp_path / "runs" / "one" / "run.json"]
    mine = [tmp_path / "runs" / "run.json", tmp_path / "runs" / "one" / "notes.txt"]
    for path in (*known, *mine):
        path.write_text("")
    kept = {*mine, other / "key.secret", other / MARKER}
    assert set(unknown_files(tmp_path, "lab")) == kept
    clear(tmp_path, "lab")
    assert set(_files(tmp_path)) == kept
    assert not part.exists()


def test_a_file_in_a_folder_that_is_missing_is_refused_before_the_work(tmp_path):
    with pytest.raises(ConfigError, match="there is no folder"):
        check_out_file(tmp_path / "missing" / "task.toml", b"", force=False)


def test_copies_that_a_user_makes_in_the_folder_of_a_labs_peer_are_not_the_labs(tmp_path):
    mark(tmp_path, part_of("lab"), _PEER_FILES)
    own = ["samples.csv", "samples.npy", "samples.labels.npy", "peer.sqlite", "peer.sqlite-wal"]
    mine = ["samples-2.csv", "samples2.npy", "peer.sqlite.bak"]
    for name in (*own, *mine):
        (tmp_path / name).touch()
    assert {path.name for path in unknown_files(tmp_path, part_of("lab"))} == set(mine)


def test_the_default_folder_of_the_demo_is_refreshed_without_force(oneway):
    for _ in range(2):
        result = oneway(*DEMO)
        assert result.code == 0, result.err
    Path("oneway-demo", MARKER).unlink()
    oneway(*DEMO).check_refused(ConfigError, "oneway-demo", "was not made by")


def test_the_task_of_a_peer_is_not_overwritten_even_if_forced(oneway, stream):
    assert oneway("peer", "task", stream, "--label", "late", "--out", "t.toml").code == 0
    assert oneway("peer", "init", "ann", "--task", "t.toml", "--home", "ann").code == 0
    again = ("peer", "task", stream, "--label", "late", "--out", "ann/task.toml", "--force")
    oneway(*again).check_refused(ConfigError, "ann/task.toml")


def test_the_flag_that_names_an_unwritable_place_is_named(oneway):
    Path("taken").write_text("mine")
    tune = ("tune", "--data", "synthetic", "--rounds", 10, "--chart", "taken/chart.png")
    oneway(*tune).check_refused(StoreError, "--chart")


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
