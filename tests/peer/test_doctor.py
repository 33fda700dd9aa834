"""What the doctor finds: a table from a change of a healthy peer to its findings."""

from __future__ import annotations

import os
import re
import shlex
import socket
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import make_receiver, make_sender, make_status, replace
from rewritten import rewrite

from oneway.cli.main import command_line
from oneway.errors import ConfigError, OnewayError, StoreError
from oneway.peer import machine
from oneway.peer.doctor import Finding, diagnose
from oneway.peer.home.config import PeerConfig, Receiver, Sender
from oneway.peer.home.home import Home
from oneway.peer.home.own_privacy import OwnPrivacy
from oneway.peer.identity.card import Card
from oneway.peer.identity.keys import key_text
from oneway.peer.machine import MachineFacts, Startup, Stored, check_startup, examine
from oneway.peer.peer import Peer
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import Owner
from oneway.records.measures import Baselines, Measures
from oneway.records.status import PrivacyStatus
from oneway.tables import Number
from oneway.task.privacy import NO_PRIVACY
from oneway.task.task import Task

changed = msgspec.structs.replace

TASK = Task("logistic", "occupied", (Number("light"),), ("no", "yes"))
FIXED_RATE = replace(TASK, learning_rate=0.1)
PUBLIC = replace(TASK, privacy=NO_PRIVACY)
NOW = datetime(2026, 3, 14, 14, 15, tzinfo=UTC).timestamp()
AT_14_03 = NOW - 12 * 60
YESTERDAY = NOW - 86400

ALICE_CARD = Card(bytes([9]) * 32, "10.0.0.1", 7701, "alice")
BOB_CARD = Card(bytes([1]) * 32, "10.0.0.2", 7701, "bob")
CAROL_KEY = bytes([2]) * 32
CONFIG = PeerConfig(
    "alice", "10.0.0.1:7701", receivers=(Receiver(BOB_CARD),), senders=(Sender(CAROL_KEY, "carol"),)
)
FACTS = MachineFacts(
    now=NOW,
    process=4711,
    newest_file=NOW - 1.0,
    disk_free=10**10,
    folder=Path("alice"),
    folder_writable=True,
    key_path=Path("alice/key.secret"),
    key_mode=0o600,
    port="taken",
)
BOB = make_receiver(
    name="bob",
    key=key_text(BOB_CARD.key),
    address="10.0.0.2:7701",
    link_since=NOW - 600,
    seq=41,
    acked=40,
    lag=0.13,
    last_answer=NOW - 0.5,
)
CAROL = make_sender(
    name="carol", key=key_text(CAROL_KEY), seq=17, last_push=NOW - 2, rejected={"repeated": 4}
)
ALICE = make_status(
    name="alice",
    key=key_text(ALICE_CARD.key),
    card=str(ALICE_CARD),
    pid=4711,
    started=NOW - 1200,
    time=NOW - 1,
    samples=300,
    average_loss=0.5,
    last_sample=NOW - 1,
    mass=0.75,
    mass_units=3 << 38,
    receivers=[BOB],
    senders=[CAROL],
)
PRIVACY = PrivacyStatus(
    brief="b", sentence="s", epsilon=8.0, delta=1e-5, floor="b", samples_per_push=16
)


def bob(**changes: object) -> dict[str, object]:
    return {"receivers": [changed(BOB, **changes)]}


def carol(**changes: object) -> dict[str, object]:
    return {"senders": [changed(CAROL, **changes)]}


def measures(loss: float, base: float, alone: float | None, error: float = 0.01, **more: object):
    compared = Baselines(
        samples=1000,
        loss=loss,
        base_loss=base,
        alone_loss=alone,
        base_error=error,
        alone_error=None if alone is None else error,
    )
    answer = {"answer": "no", "answer_share": 0.63} | more
    return {"measures": Measures(so_far=compared, lately=compared, **answer)}


def found(
    status: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    facts: dict[str, Any] | None = None,
    task: Task = TASK,
    speaks: bool = True,
) -> list[Finding]:
    """The findings about the healthy peer with some changes."""
    said = changed(ALICE, **{"task": task.fingerprint.hex()} | (status or {})) if speaks else None
    mine, here = replace(CONFIG, **config or {}), replace(FACTS, **facts or {})
    return diagnose(said, mine, task, here, UTC)


STOPPED = {"process": None, "port": "free"}
STARTED = {"link_since": NOW - 2}
DEAF = {"lag": 0.0, "link_since": NOW - 45, "last_answer": 0.0}
DRAINED = {"leaving": True, "drained": True}
REFUSED = Startup("key.secret is not a key file", "peer.sqlite is damaged")
FEW = {"samples": 7, "privacy": changed(PRIVACY, waiting=7)}
NEAR = (Receiver(Card(BOB_CARD.key, "127.0.0.1", 7702, "bob")),)

P, N = "problem", "note"
TABLE: list[tuple[dict[str, Any], dict[str, str]]] = [
    # Receivers.
    ({"status": bob(link="connecting", link_since=AT_14_03)}, {P: "since 14:03 (12 minutes)"}),
    ({"status": bob(link="connecting", link_since=YESTERDAY)}, {P: "2026-03-13 14:15 (1 day)"}),
    ({"status": bob(link="connecting", **STARTED)}, {N: "still connecting to bob"}),
    ({"status": bob(link="refused")}, {P: f"`oneway peer admit '{ALICE_CARD}'`"}),
    ({"status": bob(link="stranger")}, {P: "its key differs"}),
    ({"status": bob(link="unresponsive", link_since=AT_14_03)}, {P: "but bob has not answered"}),
    ({"status": bob(problem="bob's task differs", left=True)}, {P: "bob's task differs"}),
    ({"status": bob(lag=75.0)}, {P: "bob is connected but has acknowledged nothing for 1 minute"}),
    ({"status": bob(phase="none", **DEAF)}, {P: "acknowledged nothing for 45 seconds"}),
    ({"status": bob(phase="resync", **DEAF)}, {P: "acknowledged nothing for 45 seconds"}),
    ({"status": bob(phase="resync", lag=0.0, last_answer=NOW - 1)}, {}),
    ({"status": bob(phase="dead")}, {P: "`oneway peer distrust bob`"}),
    ({"status": bob(left=True, link="connecting")}, {P: "bob has left the network"}),
    ({"status": bob(claims=2)}, {}),
    ({"status": bob(claims=3)}, {N: "bob has claimed 3 times"}),
    ({"status": bob(weight=0.0, phase="closing", link="connecting")}, {N: "bob has not"}),
    # Senders.
    (
        {"status": carol(quarantined=True, strikes=10, rejected={"repeated": 9, "mass": 3})},
        {P: "carol is quarantined after 10 rejected messages (3 mass)"},
    ),
    ({"status": carol(strikes=1, rejected={"mass": 1})}, {N: "carol (1 mass): after 10"}),
    ({"status": carol(rejected={"repeated": 10_000})}, {}),
    ({"status": carol(problem="carol's task differs", seq=0)}, {P: "carol's task differs"}),
    ({"status": carol(seq=0, last_push=0.0)}, {P: "nobody has sent to you yet"}),
    (
        {"status": {"senders": [CAROL, changed(CAROL, name="dave", seq=0, last_push=0.0)]}},
        {N: f"dave to run `oneway peer trust '{ALICE_CARD}'`"},
    ),
    ({"status": carol(last_push=AT_14_03, last_heard=NOW - 25)}, {N: "carol has not pushed"}),
    ({"status": carol(last_push=NOW - 80)}, {P: "nothing at all was heard from carol since 14:13"}),
    ({"status": carol(last_push=NOW - 70)}, {}),
    ({"status": carol(last_push=NOW - 200, last_heard=NOW - 30)}, {}),
    ({"status": carol(last_push=0.0)}, {P: "since 13:55 (20 minutes)"}),
    ({"status": carol(left=True)}, {N: "`oneway peer admit --revoke carol`"}),
    ({"status": carol(clipped=9)}, {N: "was clipped 9 times"}),
    ({"status": carol(clipped=1)}, {}),
    ({"status": carol(quarantined=True, closed=True)}, {}),
    ({"status": carol(quarantined=True, admitted=False)}, {}),
    ({"status": {"refused": 12}}, {N: "12 messages came from peers that are not admitted"}),
    ({"status": {"undecodable": 1}}, {N: "1 message was too large or no message at all"}),
    # What it is told.
    ({"status": {"senders": []}, "config": {"senders": ()}}, {P: "nobody sends to you"}),
    ({"config": {"senders": (), "anyone": True}}, {}),
    ({"status": {"receivers": []}, "config": {"receivers": ()}}, {N: "you send to nobody"}),
    ({"status": {"card": ""}, "config": {"listen": "0.0.0.0:7701"}}, {P: 'advertise = "HOST'}),
    ({"config": {"listen": "127.0.0.1:7701"}}, {N: "which other machines cannot reach"}),
    ({"config": {"listen": "127.0.0.1:7701", "receivers": NEAR}}, {}),
    ({"status": {"paused": True}, "config": {"paused": True}}, {N: "the peer is paused"}),
    # The running peer.
    ({"status": {"skipped": 1, "last_skipped": "line 8"}}, {N: "1 sample was skipped, the last"}),
    ({"status": {"skipped": 37}}, {P: "37 samples were skipped: "}),
    ({"status": {"replenished": 2.5}}, {N: "mints what is missing (2.5 so far)"}),
    ({"status": {"mass": 1e-5}}, {}),
    ({"status": {"last_sample": NOW - 900}}, {N: "no sample has arrived since 14:00"}),
    ({"status": {"last_sample": 0.0}}, {N: "no sample has arrived since 13:55 (20 minutes)"}),
    ({"status": {"last_sample": 0.0, "finished": True}}, {}),
    ({"status": {"last_sample": 0.0, "started": NOW - 60}}, {}),
    ({"status": {"disk_problem": "the disk is full"}}, {P: "the disk is full"}),
    ({"status": {"task": "00"}}, {P: "task.toml was changed since the peer started"}),
    ({"status": {"owed": 0.375}}, {N: "0.375 of mass"}),
    ({"status": {"mass": -0.5}}, {P: "the mass is -0.5"}),
    ({"status": {"mass": 300.0, "mass_limit": 256.0}}, {P: "the mass is 300"}),
    ({"status": {"mass": 255.0, "mass_limit": 256.0}}, {}),
    ({"facts": {"port": "free"}}, {P: "does not listen where peer.toml says"}),
    ({"status": {"copies": "another life spoke"}}, {P: "another life spoke"}),
    # Leaving.
    ({"status": {"leaving": True}}, {N: "let it run until bob acknowledged it"}),
    ({"status": {"leaving": True, "unheard": ["carol"]}}, {N: "carol has not heard"}),
    ({"status": DRAINED}, {N: "has left"}),
    ({"status": DRAINED | {"unheard": ["carol", "dave"]}}, {N: "carol, dave have not heard"}),
    ({"status": {"leaving": True, "receivers": []}}, {P: "`oneway peer leave --undo`"}),
    (
        {"status": {"leaving": True}, "config": {"leaving": True}, "facts": STOPPED},
        {P: "go on with `oneway peer leave`"},
    ),
    ({"status": DRAINED, "config": {"leaving": True}, "facts": STOPPED}, {N: "alice has left"}),
    # A peer that does not run.
    ({"status": {"time": AT_14_03}, "facts": STOPPED}, {P: "it last did at 14:03"}),
    ({"facts": STOPPED, "speaks": False}, {P: "start it with `oneway peer run`"}),
    ({"status": {"stopped": "another copy runs"}, "facts": STOPPED}, {P: "another copy runs"}),
    ({"status": bob(link="refused"), "facts": STOPPED}, {P: "alice is not running"}),
    ({"status": {"time": AT_14_03}}, {P: "process 4711 runs alice but has said nothing since"}),
    ({"speaks": False}, {P: "has said nothing yet"}),
    # The machine.
    ({"facts": {"disk_free": 12_345_678}}, {P: "the disk has 12 MB left"}),
    ({"facts": {"disk_free": None}}, {}),
    ({"facts": {"key_mode": 0o640}}, {P: "(mode 0640): chmod 600 alice/key.secret"}),
    ({"facts": {"key_mode": None}}, {P: "put it back from your backup"}),
    ({"facts": {"folder_writable": False}}, {P: "chmod u+rwx alice"}),
    ({"facts": {"newest_file": NOW + 3600}}, {P: "it says 14:15, and the peer wrote its files at"}),
    ({"facts": {"newest_file": NOW + 2}}, {}),
    # Privacy.
    ({"task": PUBLIC}, {N: "privacy: none"}),
    ({"task": PUBLIC, "config": {"privacy": OwnPrivacy(epsilon=1.0)}}, {}),
    ({"task": replace(PUBLIC, method="local")}, {}),
    ({"status": {"samples": 100_000}}, {}),
    ({"status": {"samples": 100_001}}, {N: "100,001 samples"}),
    ({"status": FEW}, {}),
    ({"status": FEW | {"finished": True}}, {N: "only 7 of 16 samples for the next push"}),
    ({"status": FEW | {"finished": True, "samples": 16}}, {}),
    ({"status": {"privacy": changed(PRIVACY, needs_restart=True)}}, {P: "start it again"}),
    # Whether it learns.
    ({"status": measures(0.9, 0.66, None), "task": FIXED_RATE}, {P: "learning rate to 0.03"}),
    ({"status": measures(0.9, 0.66, 0.8)}, {P: "worse than always answering 'no'"}),
    ({"status": measures(0.9, 0.66, 0.5)}, {P: "alone, without noise, it would be 0.5000"}),
    ({"status": measures(9.0, 6.0, None, answer="12.5", answer_share=None)}, {P: "mean so far"}),
    ({"status": measures(0.64, 0.66, None, 0.001)}, {}),
    ({"status": measures(0.70, 0.66, None, 0.02)}, {}),
    ({"status": measures(0.661, 0.66, None, 1e-6)}, {}),
    ({"status": measures(0.5, 0.66, 0.4)}, {N: "0.5000 per sample against 0.4000"}),
]


@pytest.mark.parametrize(("changes", "expected"), TABLE, ids=[str(n) for n in range(len(TABLE))])
def test_a_change_of_a_healthy_peer_has_this_finding_and_no_other(changes, expected):
    worse = [it for it in found(**changes) if it.severity != "ok"]
    assert {it.severity for it in worse} == expected.keys(), worse
    assert len(worse) == len(expected), worse
    assert all(expected[it.severity] in it.sentence for it in worse), worse


def test_several_findings_come_worst_first():
    both = found(measures(0.5, 0.66, 0.4) | bob(link="refused"), task=PUBLIC)
    assert [it.severity for it in both] == [P, N, N, "ok"]
    assert "`oneway peer admit --revoke NAME`" in both[2].sentence
    gone = found(DRAINED | {"unheard": ["carol"]}, {"leaving": True}, STOPPED)
    assert [it.severity for it in gone] == [N, N, "ok"]


def test_every_command_that_a_finding_advises_can_be_typed():
    both = {"status": measures(0.5, 0.66, 0.4), "task": PUBLIC}
    advised = {
        command
        for changes in (both, *(changes for changes, _ in TABLE))
        for finding in found(**changes)
        for command in re.findall(r"`(oneway [^`]*)`", finding.sentence)
    }
    assert len(advised) >= 10
    for command in advised:
        parse(command)
    with pytest.raises(AssertionError, match="revoke"):
        parse("oneway peer revoke bob")


def parse(command: str) -> None:
    """Parse a command without running it."""
    _, *words = shlex.split(command)
    known: Any = command_line()
    while hasattr(known, "get_command"):
        name = words.pop(0)
        known = known.get_command(None, name)
        assert known is not None, name
    known.make_context(known.name, words)


def test_a_healthy_peer_is_told_so_in_one_sentence():
    [only] = found()
    assert only == Finding(
        "ok", "all is well: 1 receiver acknowledges within 0.2 s, 1 sender pushes"
    )
    receivers = [BOB, changed(BOB, name="dave", lag=0.0), changed(BOB, name="erin", lag=3.21)]
    [only] = found({"receivers": receivers, "senders": [CAROL, changed(CAROL, name="frank")]})
    assert only.sentence.endswith("3 receivers acknowledge within 3.3 s, 2 senders push")


def test_a_peer_that_is_both_sender_and_receiver_has_its_fault_once():
    fault = {"problem": "bob's task differs"}
    both = found(bob(**fault) | {"senders": [changed(CAROL, name="bob", **fault)]})
    assert [it.severity for it in both] == [P]


@pytest.mark.parametrize("port", ["taken", "elsewhere", "forbidden"])
def test_what_keeps_a_peer_from_listening_is_told_beforehand(port):
    problems = found(facts={"process": None, "port": port}, speaks=False)
    assert ["10.0.0.1:7701" in it.sentence for it in problems] == [False, True]


def test_what_a_start_would_refuse_comes_in_its_words():
    problems = found(facts={**STOPPED, "startup": REFUSED})
    assert [it.sentence for it in problems[:2]] == [REFUSED.key_problem, REFUSED.store_problem]
    assert "is not running" in problems[2].sentence
    # What is stored counts where the peer does not run.
    stored = {**STOPPED, "startup": Startup(stored=Stored(-7.5, 256.0, 300, 300))}
    sentences = " ".join(it.sentence for it in found(facts=stored, speaks=False))
    assert "the mass is -7.5" in sentences
    assert "300 samples were skipped" in sentences


def test_a_peer_that_may_not_take_part_is_told_why_before_it_is_started():
    for own in (OwnPrivacy(epsilon=9.0), OwnPrivacy(require_epsilon=1.0)):
        with pytest.raises(ConfigError) as refused:
            own.applied(TASK)
        problems = found(config={"privacy": own}, facts=STOPPED, speaks=False)
        assert str(refused.value) in [it.sentence for it in problems]


# --- looking at a real folder ---


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.create(tmp_path / "alice", "alice", TASK)


def test_a_new_peer_is_examined_without_changing_anything(home):
    before = {path: path.stat().st_mtime_ns for path in home.folder.rglob("*")}
    facts = examine(home, NOW)
    assert (facts.now, facts.process, facts.newest_file) == (NOW, None, 0.0)
    assert facts.disk_free
    assert (facts.folder_writable, facts.key_mode, facts.port) == (True, 0o600, "free")
    assert {path: path.stat().st_mtime_ns for path in home.folder.rglob("*")} == before


def test_process_port_key_and_newest_file_are_seen(home):
    host, port = home.config().listen.split(":")
    home.key_path.chmod(0o644)
    home.write_status(ALICE)
    os.utime(home.status_path, (NOW, NOW))
    with home.lock(), socket.create_server((host, int(port))):
        facts = examine(home, NOW)
    assert (facts.process, facts.port) == (os.getpid(), "taken")
    assert (facts.key_mode, facts.newest_file) == (0o644, NOW)
    rewrite(home, listen="192.0.2.1:7701")
    home.key_path.unlink()
    facts = examine(home, NOW)
    assert (facts.port, facts.key_mode) == ("elsewhere", None)


# --- what a start would come upon ---


@pytest.fixture
def learned(home: Home) -> Home:
    """The same after a life, in which it learned from one sample."""
    with closing(Peer(home.folder)) as peer:
        peer.learn_one({"light": 1.0}, "yes")
    return home


def said_by_run(home: Home) -> str:
    with pytest.raises(OnewayError) as refused:
        Peer(home.folder)
    return str(refused.value)


def test_a_start_is_tried_without_changing_anything(home):
    assert check_startup(home) == Startup()
    with closing(Peer(home.folder)) as peer:
        peer.learn_one({"light": 1.0}, "yes")
    before = {path: path.read_bytes() for path in home.folder.iterdir()}
    assert check_startup(home) == Startup("", "", Stored(1.0, TASK.impossible_mass, 1, 0))
    assert {path: path.read_bytes() for path in home.folder.iterdir()} == before


@pytest.mark.parametrize("damage", ["no database", "a damaged page", "half", "task", "key"])
def test_a_store_that_run_refuses_is_told_as_run_tells_it(learned, tmp_path, damage):
    store = learned.store_path
    if damage == "half":
        store.with_name("peer.sqlite-wal").write_bytes(b"half of it")
        store.unlink()
    elif damage == "task":
        learned.task_path.write_text(FIXED_RATE.to_toml())
    elif damage == "key":
        other = Home.create(tmp_path / "bob", "bob", TASK)
        learned.key_path.write_bytes(other.key_path.read_bytes())
    else:
        place, content = 4096 * (damage == "a damaged page"), bytearray(store.read_bytes())
        content[place : place + 3000] = b"x" * 3000
        store.write_bytes(content)
    before = {path: path.read_bytes() for path in learned.folder.iterdir()}
    problem = check_startup(learned).store_problem
    assert {path: path.read_bytes() for path in learned.folder.iterdir()} == before
    assert problem == said_by_run(learned)


def test_a_damaged_key_is_told_as_run_tells_it(learned):
    learned.key_path.write_bytes(learned.key_path.read_bytes()[:-9])
    found_there = check_startup(learned)
    assert found_there.key_problem == said_by_run(learned)
    assert found_there.store_problem == ""


def test_a_peer_that_starts_at_this_moment_is_not_called_damaged(learned, monkeypatch):
    processes = iter([None, 4711])
    monkeypatch.setattr(Home, "running_process", lambda _: next(processes))

    def read(path: Path, *, alone: bool) -> tuple[Owner, Snapshot]:
        if alone:
            raise StoreError("half of a commit")
        return really(path, alone=alone)

    really = machine.read_owned
    monkeypatch.setattr(machine, "read_owned", read)
    assert check_startup(learned).store_problem == ""
