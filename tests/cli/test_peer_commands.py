"""`oneway peer`: making a peer, trusting, admitting, parting, and asking how it is."""

from __future__ import annotations

import dataclasses
import re
import socket
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from rewritten import rewrite

from oneway.errors import (
    CardError,
    ConfigError,
    DataError,
    MissingDataError,
    OnewayError,
    StoreError,
    TaskError,
)
from oneway.peer.home.home import Home
from oneway.peer.home.own_privacy import OwnPrivacy
from oneway.peer.identity.card import Card
from oneway.task.privacy import NO_PRIVACY

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


def fails(result, kind: type[OnewayError], *culprits: str) -> None:
    """One sentence on stderr, and nothing else."""
    result.check_refused(kind, *culprits)
    assert result.out == ""
    assert result.err.count("\n") == 1


# A task.


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


@pytest.mark.parametrize(
    ("arguments", "kind", "culprit"),
    [
        (("al ice", "--task", "t.toml"), ConfigError, "'al ice'"),
        (("dora", "--task", "no.toml"), TaskError, "no.toml"),
        (("dora", "--task", "stream.csv"), TaskError, "stream.csv"),
        (("dora", "--task", "t.toml", "--listen", "7701"), ConfigError, "'7701'"),
        (("dora", "--task", "t.toml", "--listen", "0.0.0.0:7701"), ConfigError, "HOST:7701"),
        (("dora", "--task", "t.toml", "--advertise", "[::]:7701"), ConfigError, "[::]:7701"),
    ],
)
@pytest.mark.usefixtures("alice")
def test_a_peer_that_cannot_be_made_leaves_nothing_behind(oneway, here, arguments, kind, culprit):
    fails(oneway("peer", "init", *arguments, "--home", "dora"), kind, culprit)
    assert not (here / "dora").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("card",),
        ("trust", BOB),
        ("admit", BOB),
        ("distrust", "bob"),
        ("leave",),
        ("leave", "--undo"),
        ("run",),
        ("status",),
        ("doctor",),
        ("predict", "Light=1"),
        ("export",),
    ],
    ids=lambda command: command[0],
)
def test_every_command_says_that_there_is_no_peer(oneway, here, command, monkeypatch):
    fails(oneway("peer", *command), ConfigError, f"{here} ")
    fails(oneway("peer", *command, "--home", "nowhere"), ConfigError, "nowhere")
    monkeypatch.setenv("ONEWAY_PEER", "elsewhere")
    fails(oneway("peer", *command), ConfigError, "elsewhere")


# Trust.


def test_trust_is_written_to_the_configuration_with_its_weight(oneway, alice):
    result = oneway("peer", "trust", BOB, "--weight", 2)
    assert result.out == "alice sends to bob with weight 2.\n"
    assert "alice is not running" in result.err
    assert oneway("peer", "card").out.strip() in result.err
    (receiver,) = alice.config().receivers
    assert (str(receiver.card), receiver.weight) == (BOB, 2.0)
    assert alice.config().senders == ()


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


@pytest.mark.parametrize(
    ("arguments", "kind", "culprit"),
    [
        (("trust", "bob.card"), CardError, "'bob.card'"),
        (("trust", BOB[:-9]), CardError, "?name="),
        (("trust", BOBS_KEY), CardError, "oneway:"),
        (("trust", BOB, "--weight", 0), ConfigError, "bob"),
        (("trust", "x" * 5000), CardError, "xxx"),
        (("trust", "junk.bin"), CardError, "junk.bin"),
        (("trust", BOB.replace("bob", "alice")), CardError, "alice"),
        (("admit", "bob"), CardError, "bob"),
        (("admit",), ConfigError, "--anyone"),
        (("admit", BOB, "--anyone"), ConfigError, "--anyone"),
        (("admit", "--revoke", "bob"), ConfigError, "'bob'"),
        (("distrust", "bob"), ConfigError, "'bob'"),
        (("run", "--data", "no.csv"), MissingDataError, "no.csv"),
        (("run", "--follow"), ConfigError, "--follow"),
        (("run", "--until-done"), ConfigError, "--until-done"),
        (("run", "--data", "stream.csv", "--follow", "--until-done"), ConfigError, "--until-done"),
        (("run", "--data", "stream.csv", "--rate", 0), ConfigError, "rate is 0"),
        (("run", "--data", "stream.csv", "--rate", "nan"), ConfigError, "rate is nan"),
        (("run", "--data", ".", "--until-done"), DataError, ". is a folder"),
        (("run", "--serve", "port"), None, "port"),
        (("run", "--serve", "99999"), None, "99999"),
        (("run", "--serve", "0.0.0.0:8701"), ConfigError, "'0.0.0.0'"),
        (("run", "--serve", "0", "--token-file", "no.txt"), ConfigError, "no.txt"),
        (("run", "--serve", "0", "--token-file", "empty.txt"), ConfigError, "empty.txt"),
        (("run", "--token-file", "empty.txt"), ConfigError, "--serve PORT"),
        (("predict", "Light"), DataError, "'Light'"),
        (("export", "--format", "onx"), ConfigError, "'onnx'"),
        (("export", "--out", "model.xyz"), ConfigError, "model.xyz"),
        (("export", "--out", "empty.txt", "--format", "json"), ConfigError, "empty.txt"),
        (("export", "--out", "new.json"), StoreError, "never run"),
        (("export", "nowhere"), ConfigError, "nowhere"),
    ],
    ids=str,
)
def test_bad_input_gets_one_sentence_and_changes_nothing(
    oneway, here, alice, arguments, kind, culprit
):
    (here / "junk.bin").write_bytes(b"\xff\xfe\x00")
    (here / "empty.txt").write_text("\n")
    (here / "empty.txt").chmod(0o600)
    before = alice.peers_path.read_bytes()
    result = oneway("peer", *arguments)
    fails(result, kind or type(result.error), culprit)
    assert not alice.store_path.exists()
    assert alice.peers_path.read_bytes() == before


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


@pytest.mark.usefixtures("alice")
def test_bad_samples_and_rows_without_a_label_are_skipped_and_told(oneway, here):
    rows = [ROWS[0], "day 1,warm,0,0", ROWS[2], "day 3,20,0,"]
    (here / "bad.csv").write_text("\n".join([HEADER, *rows, ""]))
    result = oneway("peer", "run", "--data", "bad.csv", "--until-done")
    assert result.code == 0
    assert "2 samples in all" in result.out
    assert "2 skipped" in result.out
    assert "line 5: it has no label" in oneway("peer", "status").out


def test_a_stream_of_which_nothing_could_be_used_is_no_success(oneway, here, alice):
    (here / "bad.csv").write_text(f"{HEADER}\nday 1,warm,0,0\nday 2,cold,0,0\n")
    result = oneway("peer", "run", "--data", "bad.csv", "--until-done")
    result.check_refused(DataError, "bad.csv", "(2)", "line 3: feature 'Temperature' is 'cold'")
    assert "alice has stopped: 0 samples in all, 2 skipped" in result.out
    doctor = oneway("peer", "doctor")
    assert doctor.code == 1
    assert "problem  2 samples were skipped, the last because of line 3" in doctor.out
    again = oneway("peer", "run", "--data", "bad.csv", "--until-done")
    assert again.code == 0, "it was told before, and nothing new was skipped"
    (here / "bad.csv").write_text(f"{HEADER}\nday 1,warm,0,0\n{ROWS[0]}\n")
    assert oneway("peer", "run", "--data", "bad.csv", "--until-done").code == 0
    assert alice.status().samples == 1


def test_a_taken_port_gets_a_sentence(oneway, alice):
    host, port = alice.config().listen.split(":")
    with socket.socket() as other:
        other.bind((host, int(port)))
        other.listen()
        result = oneway("peer", "run")
    assert result.code == 2
    assert "the port is in use by another program" in result.err.splitlines()[-1]
    assert "listens" not in result.out


# Asking.


@pytest.mark.usefixtures("learned")
def test_the_status_of_a_stopped_peer_says_how_old_it_is(oneway):
    result = oneway("peer", "status")
    assert "alice is not running; these numbers are" in result.out
    assert re.search(r"^samples +60$", result.out, re.MULTILINE)
    assert re.search(r"^base rate +0\.\d{4} of always answering", result.out, re.MULTILINE)
    answer = oneway("peer", "status", "--json").json
    assert (answer["running"], answer["status"]["samples"]) == (False, 60)
    assert answer["age"] >= 0


def test_the_doctor_says_what_run_would_say(oneway, learned):
    text = learned.task_path.read_text()
    learned.task_path.write_text(text.replace('learning_rate = "auto"', "learning_rate = 0.1"))
    refused = oneway("peer", "run")
    refused.check_refused(StoreError, "another task")
    sentence = refused.err.splitlines()[-1].removeprefix("Error: ")
    assert sentence in oneway("peer", "doctor").out
    learned.task_path.write_text(text)
    learned.store_path.write_bytes(b"not a store any more" * 1000)
    refused = oneway("peer", "run")
    refused.check_refused(StoreError, "peer.sqlite")
    assert refused.err.splitlines()[-1].removeprefix("Error: ") in oneway("peer", "doctor").out


@pytest.mark.usefixtures("learned")
def test_a_prediction_comes_from_the_model_on_the_disk(oneway):
    assert oneway("peer", "predict", "Temperature=20", "Light=430").out.startswith("1  (prob")
    answer = oneway("peer", "predict", "Temperature=20", "Light=0", "--json").json
    assert answer["prediction"] == "0"
    assert sum(answer["probabilities"].values()) == pytest.approx(1.0, abs=1e-12)
    fails(oneway("peer", "predict", "Light=430"), DataError, "'Temperature'")
    fails(oneway("peer", "predict", "Light=dark", "Temperature=1"), DataError, "'dark'")


@pytest.mark.usefixtures("learned")
def test_a_file_of_rows_comes_back_with_predictions(oneway, here):
    (here / "rows.csv").write_text("when,Temperature,Light\n1,20,430\n2,20,dark\n3,20,0\n")
    result = oneway("peer", "predict", "rows.csv")
    header, first, second, third = result.out.splitlines()
    assert header.startswith("when,Temperature,Light,predicted Occupancy,probability 0,probability")
    assert first.startswith("1,20,430,1,")
    assert second == "2,20,dark,,,"
    assert third.startswith("3,20,0,0,")
    assert "no prediction: line 3: feature 'Light' is 'dark'" in result.err
    oneway("peer", "predict", "rows.csv", "--out", "predicted.csv", "--model", "personal")
    assert (here / "predicted.csv").read_text().splitlines() == result.out.splitlines()
    answers = oneway("peer", "predict", "rows.csv", "--json").json["results"]
    one = oneway("peer", "predict", "Temperature=20", "Light=430", "--json").json
    assert answers[0] == one
    assert "line 3" in answers[1]["error"]
    fails(oneway("peer", "predict", "predicted.csv"), DataError, "'predicted Occupancy'")
    fails(oneway("peer", "predict", "none.csv"), DataError, "none.csv")
    (here / "other.csv").write_text("Temperature\n20\n")
    fails(oneway("peer", "predict", "other.csv"), DataError, "'Light'")


def test_a_peer_that_never_ran_has_no_model_and_nothing_to_hand_over(oneway, alice):
    result = oneway("peer", "predict", "Temperature=20", "Light=430")
    assert result.code == 2
    assert "peer.sqlite" in result.err
    oneway("peer", "trust", BOB)
    assert oneway("peer", "leave").out == ("alice has never run, so it has nothing to hand over.\n")
    assert not alice.config().leaving


def test_leaving_says_who_has_not_acknowledged(oneway, learned):
    oneway("peer", "trust", BOB)
    result = oneway("peer", "leave", "--wait", 0.5)
    assert result.code == 1
    assert "alice has not left yet: bob has not acknowledged" in result.out
    assert "stays here until then" in result.out
    assert learned.config().leaving
    assert tomllib.loads(learned.peers_path.read_text())["leaving"] is True


# Privacy.


def test_that_there_is_no_privacy_is_said_everywhere(oneway, alice):
    none = "none: samples can be read from what is sent"
    task = dataclasses.replace(alice.task(), privacy=NO_PRIVACY)
    (alice.folder / "open.toml").write_text(task.to_toml())
    made = oneway("peer", "init", "bob", "--task", "open.toml", "--home", "bob")
    assert none in made.out
    assert oneway("peer", "card", "--home", "bob").err == f"privacy: {none}\n"
    run = oneway("peer", "run", "--data", "stream.csv", "--until-done", "--home", "bob")
    assert f"Warning: privacy: {none}\n" in run.err
    said = oneway("peer", "status", "--home", "bob").out
    assert re.search(rf"^privacy +{re.escape(none)}$", said, re.MULTILINE)
    known = oneway("peer", "status", "--home", "bob", "--json").json["status"]["privacy"]
    assert (known["brief"], known["epsilon"], known["waiting"]) == (none, None, 60 % 16)
    assert f"privacy: {none}: set epsilon" in oneway("peer", "doctor", "--home", "bob").out


@pytest.mark.parametrize(
    "command", [("run",), ("trust", BOB), ("admit", BOB), ("admit", "--anyone")]
)
def test_a_task_that_promises_less_than_is_required_is_refused(oneway, alice, command):
    rewrite(alice, privacy=OwnPrivacy(require_epsilon=1.0))
    before = alice.config()
    fails(oneway("peer", *command), ConfigError, "epsilon 8", "at most 1", "require_epsilon")
    assert alice.config() == before
    assert not alice.store_path.exists()
    assert "It cannot take part: the task has privacy epsilon 8" in oneway("peer", "card").err
