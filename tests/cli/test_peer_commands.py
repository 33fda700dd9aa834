"""`oneway peer`: making a peer, trusting, admitting, parting, and asking how it is."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import socket
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from oneway.errors import (
    CardError,
    ConfigError,
    DataError,
    KeyFileError,
    MissingDataError,
    OnewayError,
    StoreError,
    TaskError,
)
from oneway.export.formats import FORMATS
from oneway.export.json_format import from_json
from oneway.peer import departure
from oneway.peer.home.home import Home
from oneway.peer.home.own_privacy import OwnPrivacy
from oneway.peer.identity.card import Card
from oneway.peer.identity.keys import key_text
from oneway.task.privacy import NO_PRIVACY
from oneway.task.task import Task
from oneway.testing.records import make_status

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


def test_a_task_is_derived_and_what_was_skipped_is_said(oneway):
    result = oneway("peer", "task", "stream.csv", "--label", "Occupancy", "--learning-rate", 0.1)
    task = Task.parse(result.out)
    assert [feature.name for feature in task.features] == ["Temperature", "Light"]
    assert (task.model, task.classes, task.learning_rate) == ("logistic", ("0", "1"), 0.1)
    assert "when left out text" in " ".join(result.err.split())
    assert "statistics of your data" in result.err


def test_a_task_can_be_written_to_a_file_once(oneway, here):
    command = ("peer", "task", "stream.csv", "--label", "Occupancy", "--out", "task.toml")
    assert oneway(*command).out == "task.toml is written.\n"
    before = (here / "task.toml").read_bytes()
    fails(oneway(*command), ConfigError, "task.toml")
    assert (here / "task.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "kind", "culprit"),
    [
        (("no.csv", "--label", "Occupancy"), MissingDataError, "no.csv"),
        (("stream.csv", "--label", "Ocupancy"), DataError, "'Occupancy'"),
        (("stream.csv", "--label", "Occupancy", "--model", "softmx"), ConfigError, "'softmax'"),
        (("stream.csv", "--label", "Occupancy", "--learning-rate", -1), ConfigError, "-1"),
        (("stream.csv", "--label", "Occupancy", "--out", "no/t.toml"), ConfigError, "no/t.toml"),
        ((".", "--label", "Occupancy"), DataError, "."),
    ],
)
def test_a_task_that_cannot_be_derived_gets_a_sentence(oneway, arguments, kind, culprit):
    fails(oneway("peer", "task", *arguments), kind, culprit)


TASK = ("peer", "task", "stream.csv", "--label", "Occupancy")
RANGES = ("--range", "Temperature=-20..50", "--range", "Light=0..2000")


def test_the_privacy_of_a_task_is_told_by_flags(oneway):
    flags = ("--epsilon", 1, "--delta", 1e-6, "--clip", 2, "--samples-per-push", 32)
    task = Task.parse(oneway(*TASK, *flags).out)
    assert (task.privacy.epsilon, task.privacy.delta, task.privacy.clip) == (1.0, 1e-6, 2.0)
    assert task.samples_per_push == 32
    assert not Task.parse(oneway(*TASK, "--privacy", "none").out).privacy


def test_the_group_of_a_task_is_a_column_and_no_feature(oneway):
    flags = ("--unit", "group", "--group", "Temperature", "--records-per-group", 3)
    result = oneway(*TASK, *flags)
    task = Task.parse(result.out)
    assert [feature.name for feature in task.features] == ["Light"]
    assert (task.privacy.group, task.privacy.records_per_group) == ("Temperature", 3)
    assert "Temperature left out it says whose a row is" in " ".join(result.err.split())


def test_scales_of_a_task_may_be_public_knowledge(oneway):
    result = oneway(*TASK, *RANGES)
    comment = "Centers and scales are of ranges that are public knowledge; no data was used."
    assert result.out.startswith(f"# {comment}\n")
    [temperature, light] = Task.parse(result.out).features
    assert (temperature.center, light.center) == (15.0, 1000.0)
    assert "Careful" not in result.err


def test_scales_of_a_task_may_have_noise_which_differs_from_time_to_time(oneway):
    results = [oneway(*TASK, *RANGES, "--private-scales", "--epsilon", 2) for _ in range(2)]
    for result in results:
        assert "with noise: epsilon 2, delta 1e-05 per sample." in result.out.splitlines()[0]
        assert "both together have epsilon 2.9" in result.err
        assert "Careful" not in result.err
    one, other = (Task.parse(result.out) for result in results)
    assert one.features != other.features


@pytest.mark.parametrize(
    ("flags", "kind", "culprits"),
    [
        (("--private-scales",), ConfigError, ("'Temperature', 'Light'", "--range")),
        ((*RANGES[:2], "--private-scales"), ConfigError, ("'Light'", "--range")),
        ((*RANGES, "--private-scales", "--privacy", "none"), ConfigError, ('"none"',)),
        (("--range", "Light"), ConfigError, ("'Light'", "COLUMN=LOW..HIGH")),
        (("--range", "Light=5..1"), ConfigError, ("'Light'", "5", "1")),
        (("--range", "Ligt=0..1"), ConfigError, ("'Light'",)),
        (("--epsilon", 0), ConfigError, ("epsilon", "0")),
        (("--delta", 1), ConfigError, ("delta", "1")),
        (("--delta", 0.9), ConfigError, ("delta is 0.9",)),
        (("--clip", 0), ConfigError, ("clip", "0")),
        (("--unit", "group"), ConfigError, ("group",)),
        (("--unit", "group", "--group", "patient"), DataError, ("'patient'",)),
        (("--records-per-group", 2), ConfigError, ("records_per_group",)),
        (("--samples-per-push", 0), ConfigError, ("samples_per_push", "0")),
        (("--privacy", "some"), ConfigError, ("'some'",)),
    ],
)
def test_privacy_that_cannot_be_gets_a_sentence_and_no_task(oneway, here, flags, kind, culprits):
    fails(oneway(*TASK, "--out", "t.toml", *flags), kind, *culprits)
    assert not (here / "t.toml").exists()


def test_a_stream_without_the_group_column_starts_nothing(oneway, here):
    """A sentence, nothing learned, nothing sent: the peer does not even listen."""
    flags = ("--unit", "group", "--group", "when", "--out", "t.toml")
    assert oneway(*TASK, *flags).code == 0
    assert oneway("peer", "init", "alice", "--task", "t.toml", "--listen", free_address()).code == 0
    text = (here / "stream.csv").read_text()
    (here / "other.csv").write_text(text.replace("when", "whom", 1))
    result = oneway("peer", "run", "--data", "other.csv", "--until-done")
    fails(result, DataError, "'when'", "other.csv")
    assert not Home.open(here).status_path.exists()
    assert oneway("peer", "run", "--data", "stream.csv", "--until-done").code == 0


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
    fails(oneway("peer", "init", "alice", "--task", "t.toml"), ConfigError, "peer.toml")
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
        ("leave", "--discard"),
        ("repair",),
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


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_an_unreadable_folder_gets_a_sentence(oneway, alice):
    alice.folder.chmod(0)
    try:
        fails(oneway("peer", "status", "--home", alice.folder), ConfigError, str(alice.folder))
    finally:
        alice.folder.chmod(0o700)


def test_a_key_that_others_can_read_is_refused(oneway, alice):
    alice.key_path.chmod(0o644)
    fails(oneway("peer", "card"), KeyFileError, "chmod 600")
    fails(oneway("peer", "run"), KeyFileError, "chmod 600")


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
        (("export", "--out", "empty.txt", "--format", "npz"), ConfigError, "empty.txt"),
        (("export", "--out", "new.npz"), StoreError, "never run"),
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
    before = alice.config_path.read_bytes()
    result = oneway("peer", *arguments)
    fails(result, kind or type(result.error), culprit)
    assert not alice.store_path.exists()
    assert alice.config_path.read_bytes() == before


def test_a_wrong_configuration_is_named_by_every_command(oneway, alice):
    alice.config_path.write_text('name = "alice"\nlisten = "127.0.0.1:7701"\nadvertize = ""\n')
    for command in ("card", "run", "status", "doctor", "leave"):
        fails(oneway("peer", command), ConfigError, "'advertise'")


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
    assert re.search(r"^samples +60$", result.out, re.MULTILINE)
    assert re.search(r"^base rate +0\.\d{4} of always answering", result.out, re.MULTILINE)
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
@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"state-dict"}))
def test_a_model_is_exported_once_in_every_format(oneway, here, name):
    done = oneway("peer", "export", "--format", name)
    suffix = FORMATS[name].suffix
    assert done.out.startswith(f"alice{suffix} is written.")
    assert "settled" in done.out
    assert "epsilon" in done.out
    assert FORMATS[name].about.split()[0] in done.err
    fails(oneway("peer", "export", here, "--format", name), ConfigError, f"alice{suffix}")
    before = (here / f"alice{suffix}").read_bytes()
    told = oneway("peer", "export", "--format", name, "--force", "--momentary", "--json").json
    assert (told["format"], told["samples"], told["estimate"]) == (name, 60, "momentary")
    assert (here / f"alice{suffix}").read_bytes() != before


@pytest.mark.usefixtures("learned")
def test_a_model_that_is_no_module_has_no_state_dict(oneway, here):
    fails(oneway("peer", "export", "--format", "state-dict"), ConfigError, "logistic")
    assert not (here / "alice.pt").exists()


@pytest.mark.usefixtures("learned")
def test_an_exported_model_predicts_what_the_peer_predicts(oneway, here):
    assert oneway("peer", "export", "--out", "m.json").code == 0
    taken = from_json((here / "m.json").read_bytes())
    said = oneway("peer", "predict", "Temperature=20", "Light=200", "--json").json
    assert taken.predict_proba_one({"Temperature": 20, "Light": 200}) == said["probabilities"]
    moment = oneway("peer", "predict", "Temperature=20", "Light=200", "--json", "--momentary").json
    assert moment["probabilities"] != said["probabilities"]


def test_a_peer_that_never_ran_has_no_model_and_nothing_to_hand_over(oneway, alice):
    result = oneway("peer", "predict", "Temperature=20", "Light=430")
    assert result.code == 2
    assert "peer.sqlite" in result.err
    oneway("peer", "trust", BOB)
    assert oneway("peer", "leave").out == ("alice has never run, so it has nothing to hand over.\n")
    assert not alice.config().leaving


def test_leaving_needs_somebody_who_takes_over(oneway, learned):
    fails(oneway("peer", "leave"), ConfigError, "alice")
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


def test_a_leave_can_be_undone_or_finished_at_a_price(oneway, alice, monkeypatch):
    asked: list[tuple[str, Path]] = []
    for name in ("stay", "discard"):

        def answer(home: Home, name: str = name) -> str:
            asked.append((name, home.folder))
            return f"alice: {name}."

        monkeypatch.setattr(departure, name, answer, raising=False)
    assert oneway("peer", "leave", "--undo").out == "alice: stay.\n"
    assert oneway("peer", "leave", "--discard").out == "alice: discard.\n"
    assert asked == [("stay", alice.folder), ("discard", alice.folder)]
    for both in (("--undo", "--discard"), ("--undo", "--wait", 1), ("--discard", "--wait", 1)):
        fails(oneway("peer", "leave", *both), ConfigError, "exclude each other")
    assert len(asked) == 2


def test_a_repair_says_what_it_costs_before_it_is_done(oneway, learned, flood):
    fails(oneway("peer", "repair"), ConfigError, "nothing to repair")
    fails(oneway("peer", "repair", "--yes"), ConfigError, "nothing to repair")
    flood(learned, -40.0)
    doctor = oneway("peer", "doctor")
    assert "problem  the mass is -39, which cannot be" in doctor.out
    assert "`oneway peer repair`" in doctor.out
    cost = oneway("peer", "repair")
    assert cost.code == 1
    assert "-40 of mass is written off" in cost.out
    assert "oneway peer repair --yes" in cost.err
    done = oneway("peer", "repair", "--yes")
    assert done.code == 0
    assert "alice held a mass of -39, which cannot be, and now has one unit" in done.out
    assert "which cannot be" not in oneway("peer", "doctor").out
    assert oneway("peer", "run", "--data", "stream.csv", "--until-done").code == 0


@pytest.mark.usefixtures("learned")
def test_a_peer_that_stopped_itself_is_no_success(oneway, monkeypatch):
    why = "another copy of alice runs with the same key"
    for process, code in ((os.getpid(), 2), (7, 0)):
        last = make_status(name="alice", samples=60, stopped=why, pid=process)
        monkeypatch.setattr(Home, "status", lambda _, last=last: last)
        result = oneway("peer", "run", "--data", "stream.csv", "--until-done")
        assert result.code == code
        assert (why in result.err) == (code == 2)


# Privacy.


def test_the_guarantee_is_said_when_a_task_or_a_peer_is_made_and_beside_its_card(oneway):
    brief = "epsilon 8, delta 1e-05 per sample"
    made = oneway("peer", "task", "stream.csv", "--label", "Occupancy", "--out", "task.toml")
    assert "privacy: epsilon 8, delta 1e-05 for each sample: with or without" in made.err
    assert brief in oneway("peer", "init", "alice", "--task", "task.toml").out
    shown = oneway("peer", "card")
    assert shown.err == f"privacy: {brief}\n"
    assert str(Card.parse(shown.out)) == shown.out.strip()
    bob = oneway("peer", "init", "bob", "--task", "task.toml", "--home", "bob", "--json")
    assert (bob.json["privacy"]["epsilon"], bob.json["privacy"]["delta"]) == (8.0, 1e-5)


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


@pytest.mark.usefixtures("learned")
def test_status_says_the_guarantee_in_force(oneway):
    shown = oneway("peer", "status").out
    assert "epsilon 8, delta 1e-05 per sample\n" in shown
    assert "12 of 16 samples for the next push\n" in shown


@pytest.mark.parametrize(
    "command", [("run",), ("trust", BOB), ("admit", BOB), ("admit", "--anyone")]
)
def test_a_task_that_promises_less_than_is_required_is_refused(oneway, alice, command):
    own = OwnPrivacy(require_epsilon=1.0)
    alice.change(lambda config: dataclasses.replace(config, privacy=own))
    before = alice.config()
    fails(oneway("peer", *command), ConfigError, "epsilon 8", "at most 1", "require_epsilon")
    assert alice.config() == before
    assert not alice.store_path.exists()
    assert "It cannot take part: the task has privacy epsilon 8" in oneway("peer", "card").err
