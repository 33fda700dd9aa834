"""`oneway peer`: making a peer, trusting, admitting, parting, and asking how it is."""

from __future__ import annotations

import io
import os
import socket
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from oneway.peer.home.home import Home
from oneway.peer.identity.card import Card
from oneway.peer.identity.keys import key_text
from oneway.task.task import Task

HEADER = "when,Temperature,Light,Occupancy"
ROWS = [f"day {row},{20 + row % 5},{430 * (row % 3 == 0)},{int(row % 3 == 0)}" for row in range(60)]
BOB = "oneway:zvajrjq4wqzsoqyilhjwabcefqrudj6jbiued7jpr37bxnomynkq@127.0.0.1:7709?name=bob"
BOBS_KEY = BOB[7:59]


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture(autouse=True)
def files(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONEWAY_PEER", raising=False)
    (here / "stream.csv").write_text("\n".join([HEADER, *ROWS, ""]))


@pytest.fixture
def alice(oneway: Callable, here: Path) -> Home:
    """A peer in the working directory that has never run."""
    assert oneway("peer", "task", "stream.csv", "--label", "Occupancy", "--out", "t.toml").code == 0
    made = oneway("peer", "init", "alice", "--task", "t.toml", "--listen", free_address())
    assert made.code == 0, made.err
    return Home.open(here)


@pytest.fixture
def learned(oneway: Callable, alice: Home) -> Home:
    """The same after a run over its stream."""
    result = oneway("peer", "run", "--data", "stream.csv", "--until-done")
    assert result.code == 0, result.err
    return alice


def fails(result, sentence: str) -> None:
    """One sentence on stderr, and nothing else."""
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("Error: ")
    assert result.err.count("\n") == 1
    assert sentence in result.err


# A task.


def test_a_task_is_derived_and_what_was_skipped_is_said(oneway):
    result = oneway("peer", "task", "stream.csv", "--label", "Occupancy", "--learning-rate", 0.1)
    task = Task.parse(result.out)
    assert [feature.name for feature in task.features] == ["Temperature", "Light"]
    assert (task.model, task.classes, task.learning_rate) == ("logistic", ("0", "1"), 0.1)
    assert "Skipped the column when: it holds 'day 0', which is not a number." in result.err
    assert "centers and scales are statistics of your data" in result.err


def test_a_task_can_be_written_to_a_file_once(oneway, here):
    command = ("peer", "task", "stream.csv", "--label", "Occupancy", "--out", "task.toml")
    assert oneway(*command).out == "task.toml is written.\n"
    before = (here / "task.toml").read_bytes()
    fails(oneway(*command), "task.toml exists, and a task is never overwritten")
    assert (here / "task.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("no.csv", "--label", "Occupancy"), "there is no no.csv"),
        (("stream.csv", "--label", "Ocupancy"), "did you mean 'Occupancy'?"),
        (("stream.csv", "--label", "Occupancy", "--model", "softmx"), "did you mean 'softmax'?"),
        (("stream.csv", "--label", "Occupancy", "--learning-rate", -1), "learning_rate is -1"),
        (("stream.csv", "--label", "Occupancy", "--out", "no/t.toml"), "cannot write no/t.toml"),
        ((".", "--label", "Occupancy"), "cannot be read as CSV"),
    ],
)
def test_a_task_that_cannot_be_derived_gets_a_sentence(oneway, arguments, sentence):
    fails(oneway("peer", "task", *arguments), sentence)


# A peer.


def test_a_new_peer_shows_its_card_and_what_to_do_next(oneway, here):
    oneway("peer", "task", "stream.csv", "--label", "Occupancy", "--out", "task.toml")
    result = oneway("peer", "init", "alice", "--task", "task.toml")
    assert result.code == 0
    card = oneway("peer", "card").out
    assert card.count("\n") == 1
    assert card.strip() in result.out
    assert Card.parse(card).name == "alice"
    assert "oneway peer trust 'CARD'" in result.err
    assert "Only peers on this machine can reach it" in result.err
    assert stat.S_IMODE((here / "key.secret").stat().st_mode) == 0o600


def test_a_peer_is_never_made_twice(oneway, alice):
    before = alice.key_path.read_bytes()
    fails(oneway("peer", "init", "alice", "--task", "t.toml"), "already has a peer.toml")
    assert alice.key_path.read_bytes() == before


@pytest.mark.usefixtures("alice")
def test_the_advertised_address_is_on_the_card(oneway):
    result = oneway(
        *("peer", "init", "carol", "--task", "t.toml", "--home", "carol", "--json"),
        *("--listen", "0.0.0.0:7701", "--advertise", "carol.example:7701"),
    )
    assert result.json["card"].endswith("@carol.example:7701?name=carol")
    assert oneway("peer", "card", "--home", "carol").out.strip() == result.json["card"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("al ice", "--task", "t.toml"), "the name 'al ice' cannot be used"),
        (("dora", "--task", "no.toml"), "there is no no.toml"),
        (("dora", "--task", "stream.csv"), "is not valid TOML"),
        (("dora", "--task", "t.toml", "--listen", "7701"), "is not host:port"),
        (("dora", "--task", "t.toml", "--listen", "0.0.0.0:7701"), "--advertise HOST:7701"),
        (("dora", "--task", "t.toml", "--advertise", "0.0.0.0:7701"), "which nobody can dial"),
    ],
)
@pytest.mark.usefixtures("alice")
def test_a_peer_that_cannot_be_made_leaves_nothing_behind(oneway, here, arguments, sentence):
    fails(oneway("peer", "init", *arguments, "--home", "dora"), sentence)
    assert not (here / "dora").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("card",),
        ("trust", BOB),
        ("admit", BOB),
        ("distrust", "bob"),
        ("leave",),
        ("run",),
        ("status",),
        ("doctor",),
        ("predict", "Light=1"),
    ],
    ids=lambda command: command[0],
)
def test_every_command_says_that_there_is_no_peer(oneway, here, command, monkeypatch):
    fails(oneway("peer", *command), f"{here} is not a peer's folder")
    fails(oneway("peer", *command, "--home", "nowhere"), "there is no peer's folder nowhere")
    monkeypatch.setenv("ONEWAY_PEER", "elsewhere")
    fails(oneway("peer", *command), "there is no peer's folder elsewhere")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_an_unreadable_folder_gets_a_sentence(oneway, alice):
    alice.folder.chmod(0)
    try:
        fails(oneway("peer", "status", "--home", alice.folder), "cannot look into")
    finally:
        alice.folder.chmod(0o700)


def test_a_key_that_others_can_read_is_refused(oneway, alice):
    alice.key_path.chmod(0o644)
    fails(oneway("peer", "card"), "chmod 600")
    fails(oneway("peer", "run"), "chmod 600")


# Trust.


def test_trust_is_written_to_the_configuration_with_its_weight(oneway, alice):
    result = oneway("peer", "trust", BOB, "--weight", 2)
    assert result.out == "alice sends to bob with weight 2.\n"
    assert "alice is not running" in result.err
    assert oneway("peer", "card").out.strip() in result.err
    (receiver,) = alice.config().receivers
    assert (str(receiver.card), receiver.weight) == (BOB, 2.0)
    assert alice.config().senders == ()


def test_a_card_may_be_in_a_file_or_on_standard_input(oneway, here, alice, monkeypatch):
    (here / "bob.card").write_text(f"{BOB}\n")
    assert oneway("peer", "trust", "bob.card").code == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{BOB}\n"))
    assert oneway("peer", "admit", "-").code == 0
    config = alice.config()
    assert key_text(config.receivers[0].key) == key_text(config.senders[0].key) == BOBS_KEY


def test_distrust_takes_a_name_a_key_or_a_card(oneway, alice):
    for who in ("bob", BOBS_KEY, BOB):
        oneway("peer", "trust", BOB)
        result = oneway("peer", "distrust", who)
        assert result.out == "alice sends no more to bob.\n"
        assert "closes the edge to bob when it runs next" in result.err
        assert alice.config().receivers == ()


def test_nobody_is_admitted_before_it_is_said_and_admission_can_be_taken_back(oneway, alice):
    assert (alice.config().senders, alice.config().anyone) == ((), False)
    assert oneway("peer", "admit", BOB).out == "alice admits bob.\n"
    assert [peer.name for peer in alice.config().senders] == ["bob"]
    assert oneway("peer", "admit", "--revoke", "bob").out == (
        "alice takes in nothing more from bob.\n"
    )
    assert alice.config().senders == ()
    assert oneway("peer", "admit", BOBS_KEY).out == f"alice admits {BOBS_KEY[:8]}....\n"
    assert oneway("peer", "admit", "--revoke", BOB).code == 0
    assert alice.config().senders == ()


def test_anyone_can_be_admitted_and_shut_out_again(oneway, alice):
    result = oneway("peer", "admit", "--anyone")
    assert result.out == "alice admits anyone.\n"
    assert "a crowd of liars" in result.err
    assert alice.config().anyone
    assert oneway("peer", "admit", "--anyone", "--revoke").code == 0
    assert not alice.config().anyone


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("trust", "bob.card"), "'bob.card' is not a card"),
        (("trust", BOB[:-9]), "does not end with ?name="),
        (("trust", BOBS_KEY), "does not begin with oneway:"),
        (("trust", BOB, "--weight", 0), "the weight of bob"),
        (("trust", "x" * 5000), "cannot read a card"),
        (("trust", "junk.bin"), "junk.bin is not a text file"),
        (("trust", BOB.replace("bob", "alice")), "the name alice is taken by yourself"),
        (("admit", "bob"), "is neither a card nor a key"),
        (("admit",), "by a card or a key, or --anyone"),
        (("admit", BOB, "--anyone"), "by a card or a key, or --anyone"),
        (("admit", "--revoke", "bob"), "there is no sender 'bob'; there is no sender at all"),
        (("distrust", "bob"), "there is no receiver 'bob'; there is no receiver at all"),
        (("run", "--data", "no.csv"), "no.csv does not exist"),
        (("run", "--follow"), "--follow is about a stream, and there is none; add --data FILE"),
        (("run", "--until-done"), "--until-done is about a stream"),
        (("run", "--data", "stream.csv", "--follow", "--until-done"), "has no end"),
        (("run", "--data", "stream.csv", "--rate", 0), "--rate is 0; it must be"),
        (("run", "--data", "stream.csv", "--rate", "nan"), "--rate is nan; it must be"),
        (("run", "--data", ".", "--until-done"), ". is a folder"),
        (("run", "--serve", "port"), "'port' is not a number from 1 to 65535"),
        (("run", "--serve", "99999"), "99999 is not a number from 1 to 65535"),
        (("run", "--serve", "0.0.0.0:8701"), "could be used by other machines"),
        (("run", "--serve", "0", "--token-file", "no.txt"), "there is no no.txt"),
        (("run", "--serve", "0", "--token-file", "empty.txt"), "empty.txt is empty"),
        (("run", "--token-file", "empty.txt"), "add --serve PORT"),
        (("predict", "Light"), "'Light' is not FEATURE=VALUE"),
    ],
    ids=str,
)
def test_bad_input_gets_one_sentence_and_changes_nothing(oneway, here, alice, arguments, sentence):
    (here / "junk.bin").write_bytes(b"\xff\xfe\x00")
    (here / "empty.txt").write_text("\n")
    before = alice.config_path.read_bytes()
    result = oneway("peer", *arguments)
    assert result.code == 2
    assert sentence in result.err
    assert result.err.splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in result.err
    assert alice.config_path.read_bytes() == before


def test_a_wrong_configuration_is_named_by_every_command(oneway, alice):
    alice.config_path.write_text('name = "alice"\nlisten = "127.0.0.1:7701"\nadvertize = ""\n')
    for command in ("card", "run", "status", "doctor", "leave"):
        fails(oneway("peer", command), "did you mean 'advertise'?")


# Running.


def test_a_run_ends_with_its_stream_and_says_what_it_did(oneway, alice):
    result = oneway("peer", "run", "--data", "stream.csv", "--until-done")
    assert result.code == 0
    listens, stopped = result.out.splitlines()
    assert listens == f"alice listens on {alice.config().listen}"
    assert stopped.startswith("alice has stopped: 60 samples in all, average loss 0.")
    assert "alice sends to nobody yet" in result.err
    assert "nobody may send to alice yet" in result.err


@pytest.mark.usefixtures("learned")
def test_a_run_goes_on_in_its_file_where_it_stopped(oneway, here):
    again = oneway("peer", "run", "--data", "stream.csv", "--until-done")
    assert "stream.csv has nothing new" in again.err
    assert "60 samples in all" in again.out
    with (here / "stream.csv").open("a") as file:
        file.write(f"{ROWS[0]}\n{ROWS[1]}\n")
    more = oneway("peer", "run", "--data", "stream.csv", "--until-done")
    assert "going on in stream.csv at line 62, after 60 rows that were read before" in more.err
    assert "62 samples in all" in more.out


@pytest.mark.usefixtures("learned")
def test_another_file_is_read_from_its_start(oneway, here):
    (here / "other.csv").write_text("\n".join([HEADER, *ROWS[::-1], ""]))
    result = oneway("peer", "run", "--data", "other.csv", "--until-done")
    assert "other.csv is not the file that was read before" in result.err
    assert "going on" not in result.err
    assert "120 samples in all" in result.out


@pytest.mark.usefixtures("alice")
def test_a_bad_sample_is_skipped_and_told_unless_strict(oneway, here):
    (here / "bad.csv").write_text("\n".join([HEADER, ROWS[0], "day 1,warm,0,0", ROWS[2], ""]))
    strict = oneway("peer", "run", "--data", "bad.csv", "--until-done", "--strict")
    assert strict.code == 2
    assert "line 3: feature 'Temperature' is 'warm'" in strict.err
    assert "without --strict it would be skipped" in strict.err
    loose = oneway("peer", "run", "--data", "bad.csv", "--until-done")
    assert loose.code == 0
    assert "Warning: skipped a sample: line 3: feature 'Temperature' is 'warm'" in loose.err
    assert "2 samples in all" in loose.out
    assert "1 skipped" in loose.out


def test_a_taken_port_gets_a_sentence(oneway, alice):
    host, port = alice.config().listen.split(":")
    with socket.socket() as other:
        other.bind((host, int(port)))
        other.listen()
        result = oneway("peer", "run")
    assert result.code == 2
    assert "the port is in use by another program" in result.err.splitlines()[-1]
    assert "listens" not in result.out


@pytest.mark.usefixtures("alice")
def test_a_taken_port_of_the_api_gets_a_sentence(oneway):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result = oneway("peer", "run", "--serve", other.getsockname()[1])
    assert result.code == 2
    assert "the local API cannot listen on" in result.err.splitlines()[-1]


# Asking.


@pytest.mark.usefixtures("alice")
def test_the_status_of_a_peer_that_never_ran_says_so(oneway):
    assert oneway("peer", "status").out.startswith("alice is not running and never was")
    answer = oneway("peer", "status", "--json").json
    assert answer == {
        "name": "alice",
        "running": False,
        "process": None,
        "age": None,
        "status": None,
    }


@pytest.mark.usefixtures("learned")
def test_the_status_of_a_stopped_peer_says_how_old_it_is(oneway):
    result = oneway("peer", "status")
    assert "alice is not running; these numbers are" in result.out
    assert "samples   60" in result.out
    answer = oneway("peer", "status", "--json").json
    assert (answer["running"], answer["status"]["samples"]) == (False, 60)
    assert answer["age"] >= 0


def test_the_status_fits_a_narrow_terminal(oneway, learned, monkeypatch):
    oneway("peer", "trust", BOB)
    oneway("peer", "admit", BOB)
    (learned.folder / "stream.csv").write_text("\n".join([HEADER, *ROWS[::-1], ""]))
    assert oneway("peer", "run", "--data", "stream.csv", "--until-done").code == 0
    monkeypatch.setenv("COLUMNS", "80")
    out = oneway("peer", "status").out
    row = next(line for line in out.splitlines() if line.split()[:2] == ["bob", "resync"])
    assert "never" in row
    assert any(line.split()[:2] == ["bob", "admitted"] for line in out.splitlines())
    assert "…" not in out


@pytest.mark.usefixtures("alice")
def test_the_doctor_names_the_problem_and_exits_with_1(oneway):
    result = oneway("peer", "doctor")
    assert result.code == 1
    assert "problem  alice is not running" in result.out
    found = oneway("peer", "doctor", "--json")
    assert found.code == 1
    assert {"severity", "sentence"} == found.json[0].keys()
    assert found.json[0]["severity"] == "problem"


@pytest.mark.usefixtures("learned")
def test_a_prediction_comes_from_the_model_on_the_disk(oneway):
    assert oneway("peer", "predict", "Temperature=20", "Light=430").out.startswith("1  (prob")
    answer = oneway("peer", "predict", "Temperature=20", "Light=0", "--json").json
    assert answer["prediction"] == "0"
    assert sum(answer["probabilities"].values()) == pytest.approx(1.0, abs=1e-12)
    fails(oneway("peer", "predict", "Light=430"), "no feature 'Temperature'")
    fails(oneway("peer", "predict", "Light=dark", "Temperature=1"), "must be a finite number")


def test_a_peer_that_never_ran_has_no_model_and_nothing_to_hand_over(oneway, alice):
    result = oneway("peer", "predict", "Temperature=20", "Light=430")
    assert result.code == 2
    assert "peer.sqlite" in result.err
    oneway("peer", "trust", BOB)
    assert oneway("peer", "leave").out == ("alice has never run, so it has nothing to hand over.\n")
    assert not alice.config().leaving


def test_leaving_needs_somebody_who_takes_over(oneway, learned):
    fails(oneway("peer", "leave"), "alice sends to nobody, so nobody can take over what it has")
    assert not learned.config().leaving


def test_leaving_says_who_has_not_acknowledged(oneway, learned):
    oneway("peer", "trust", BOB)
    result = oneway("peer", "leave", "--wait", 0.5)
    assert result.code == 1
    assert "alice has not left yet: bob has not acknowledged" in result.out
    assert "stays here until then" in result.out
    assert learned.config().leaving
    assert "leaving = true" in learned.config_path.read_text()
    assert tomllib.loads(learned.config_path.read_text())["leaving"] is True
