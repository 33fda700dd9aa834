from __future__ import annotations

import os
import shutil
import socket
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from oneway.errors import ConfigError, OnewayError, StoreError
from oneway.peer.doctor import startup
from oneway.peer.doctor.doctor import MachineFacts, diagnose, examine
from oneway.peer.doctor.findings import SpokenTime, spoken_age
from oneway.peer.doctor.startup import Startup, Stored, check_startup
from oneway.peer.home.config import PeerConfig, Receiver, Sender
from oneway.peer.home.home import Home
from oneway.peer.home.limits import Limits
from oneway.peer.home.own_privacy import OwnPrivacy
from oneway.peer.identity.card import Card
from oneway.peer.identity.keys import key_text
from oneway.peer.peer import Peer
from oneway.peer.runtime import save
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.store import Owner
from oneway.records.measures import Baselines, Measures
from oneway.records.status import PrivacyStatus, Status
from oneway.task.privacy import NO_PRIVACY
from oneway.task.task import Feature, Task
from oneway.testing.records import make_receiver, make_sender, make_status, replace

changed = msgspec.structs.replace

TASK = Task("logistic", "occupied", (Feature("light"),), ("no", "yes"))
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
    name="carol",
    key=key_text(CAROL_KEY),
    seq=17,
    last_push=NOW - 2,
    rejected={"repeated": 4},
)
ALICE = make_status(
    name="alice",
    key=key_text(ALICE_CARD.key),
    card=str(ALICE_CARD),
    task=TASK.fingerprint.hex(),
    pid=4711,
    started=NOW - 1200,
    time=NOW - 1,
    samples=300,
    average_loss=0.5,
    recent_loss=0.25,
    accuracy=0.9,
    last_sample=NOW - 1,
    mass=0.75,
    mass_units=3 << 38,
    commits=50,
    commit_seconds=0.002,
    receivers=[BOB],
    senders=[CAROL],
)


def said(
    status: Status | None = ALICE,
    config: PeerConfig = CONFIG,
    facts: MachineFacts = FACTS,
    task: Task = TASK,
) -> dict[str, list[str]]:
    """Return the sentences by severity."""
    sentences: dict[str, list[str]] = {"ok": [], "note": [], "problem": []}
    for finding in diagnose(status, config, task, facts, UTC):
        sentences[finding.severity].append(finding.sentence)
    return sentences


def said_of_bob(**changes: object) -> dict[str, list[str]]:
    return said(changed(ALICE, receivers=[changed(BOB, **changes)]))


def said_of_carol(**changes: object) -> dict[str, list[str]]:
    return said(changed(ALICE, senders=[changed(CAROL, **changes)]))


# --- all is well ---


def test_a_healthy_peer_is_told_so_in_one_sentence():
    assert said() == {
        "ok": ["all is well: 1 receiver acknowledges within 0.2 s, 1 sender pushes"],
        "note": [],
        "problem": [],
    }


def test_several_peers_are_counted_and_the_slowest_tells():
    receivers = [BOB, changed(BOB, name="dave", lag=0.0), changed(BOB, name="erin", lag=3.21)]
    senders = [CAROL, changed(CAROL, name="frank")]
    assert said(changed(ALICE, receivers=receivers, senders=senders))["ok"] == [
        "all is well: 3 receivers acknowledge within 3.3 s, 2 senders push"
    ]


def test_what_is_well_is_said_beside_what_is_not_which_comes_first():
    failing = changed(ALICE, receivers=[BOB, changed(BOB, name="dave", link="refused")])
    findings = diagnose(failing, CONFIG, TASK, FACTS, UTC)
    assert [finding.severity for finding in findings] == ["problem", "ok", "ok"]
    assert findings[1].sentence == "1 receiver acknowledges within 0.2 s"


# --- receivers ---


def test_a_receiver_that_cannot_be_reached_has_a_time_and_an_address():
    assert said_of_bob(link="connecting", link_since=AT_14_03)["problem"] == [
        "cannot reach bob at 10.0.0.2:7701 since 14:03 (12 minutes): check that bob runs and that "
        "the port is open"
    ]


def test_a_time_on_another_day_has_a_date():
    [sentence] = said_of_bob(link="connecting", link_since=YESTERDAY)["problem"]
    assert "since 2026-03-13 14:15 (1 day)" in sentence


def test_a_connection_that_is_just_being_made_is_no_problem_yet():
    sentences = said_of_bob(link="connecting", link_since=NOW - 2)
    assert sentences["note"] == ["still connecting to bob at 10.0.0.2:7701: ask again in a moment"]
    assert sentences["problem"] == []


def test_a_receiver_that_does_not_admit_one_is_to_be_handed_ones_card():
    assert said_of_bob(link="refused")["problem"] == [
        f"bob answers but does not admit you: ask bob to run `oneway peer admit '{ALICE_CARD}'`"
    ]


def test_a_stranger_at_a_receivers_address_is_not_taken_for_it():
    assert said_of_bob(link="stranger")["problem"] == [
        "whoever answers at 10.0.0.2:7701 is not bob: its key differs; ask bob for a new card, "
        "then `oneway peer distrust bob` and `oneway peer trust CARD`"
    ]


def test_a_receiver_with_another_task_is_told_with_the_field():
    problem = "bob's task differs: learning_rate is 0.3 here and 0.1 there"
    assert said_of_bob(problem=problem)["problem"] == [problem]


def test_a_receiver_that_stopped_acknowledging_is_told_with_an_age():
    [sentence] = said_of_bob(lag=75.0)["problem"]
    assert sentence.startswith("bob is connected but has acknowledged nothing for 1 minute:")
    assert "ask bob to run `oneway peer doctor`" in sentence


@pytest.mark.parametrize("phase", ["none", "resync"])
def test_a_receiver_that_never_says_how_things_stand_is_told(phase):
    mute = said_of_bob(phase=phase, lag=0.0, link_since=NOW - 45, last_answer=0.0)
    assert "acknowledged nothing for 45 seconds" in mute["problem"][0]
    assert said_of_bob(phase=phase, lag=0.0, last_answer=NOW - 1)["problem"] == []


def test_a_receiver_presumed_dead_can_be_distrusted():
    [sentence] = said_of_bob(phase="dead")["problem"]
    assert "presumed dead" in sentence
    assert sentence.endswith("`oneway peer distrust bob`")


def test_a_receiver_that_left_is_not_looked_for():
    [sentence] = said_of_bob(left=True, link="connecting", link_since=YESTERDAY)["problem"]
    assert sentence.startswith("bob has left the network (it said so)")
    assert "`oneway peer distrust bob`" in sentence


def test_a_receiver_that_is_often_restored_from_a_backup_is_told():
    assert said_of_bob(claims=2)["note"] == []
    [sentence] = said_of_bob(claims=3)["note"]
    assert sentence.startswith("bob has claimed 3 times to have been restored from a backup")


def test_two_copies_are_told_in_the_words_of_the_status():
    two = "two copies of bob run: stop one of them"
    assert said_of_bob(problem=two, left=True)["problem"] == [two]


def test_an_edge_that_is_not_closed_yet_is_only_worth_a_note():
    sentences = said_of_bob(weight=0.0, phase="closing", link="connecting", link_since=AT_14_03)
    assert "bob has not yet confirmed" in sentences["note"][0]
    assert sentences["problem"] == []


# --- senders ---


def test_a_quarantined_sender_is_told_with_its_reasons():
    rejected = {"repeated": 99, "quarantined": 5, "mass": 3, "radius": 7}
    assert said_of_carol(quarantined=True, strikes=10, rejected=rejected)["problem"] == [
        "carol is quarantined after 10 rejected messages (3 mass, 7 radius): ask carol to update "
        "oneway; if you no longer trust it, remove it from the senders in peer.toml"
    ]


def test_strikes_are_told_before_they_become_a_quarantine():
    assert said_of_carol(strikes=1, rejected={"mass": 1})["note"] == [
        "1 message is held against carol (1 mass): after 10 it is quarantined for a while"
    ]


def test_what_the_network_repeats_is_not_worth_a_word():
    assert said_of_carol(rejected={"repeated": 10_000}) == said()


def test_a_sender_with_another_task_is_told_with_the_field():
    problem = "carol's task differs: learning_rate is 0.3 here and 0.1 there"
    sentences = said_of_carol(problem=problem, seq=0, last_push=0.0)
    assert [text for text in sentences["problem"] if text.startswith(problem)]
    assert len(sentences["problem"]) == 1


def test_a_peer_that_is_both_sender_and_receiver_has_its_fault_once():
    problem = "bob's task differs: l2 is 0.0 here and 0.1 there"
    sender = changed(CAROL, name="bob", problem=problem)
    both = changed(ALICE, receivers=[changed(BOB, problem=problem)], senders=[sender])
    assert len(said(both)["problem"]) == 1


def test_a_peer_nobody_has_sent_to_asks_those_who_may():
    senders = [changed(CAROL, name=name, seq=0, last_push=0.0) for name in ("carol", "dave")]
    assert said(changed(ALICE, senders=senders))["problem"] == [
        "nobody has sent to you yet, so your model is only your own: ask carol, dave to run "
        f"`oneway peer trust '{ALICE_CARD}'`"
    ]


def test_one_sender_that_never_sent_is_a_note_while_another_does():
    senders = [CAROL, changed(CAROL, name="dave", seq=0, last_push=0.0)]
    sentences = said(changed(ALICE, senders=senders))
    assert sentences["note"][0].startswith("dave may send to you but never has: ask dave to run")
    assert sentences["ok"][0].endswith("1 sender pushes")


def test_a_sender_that_only_repeats_itself_is_quiet():
    sentences = said_of_carol(last_push=AT_14_03, last_heard=NOW - 25)
    assert sentences["note"] == [
        "carol has not pushed since 14:03 (12 minutes): if it should have, check that carol runs "
        "and still trusts you"
    ]
    assert sentences["ok"] == ["apart from that, all is well: 1 receiver acknowledges within 0.2 s"]


def test_a_sender_that_missed_two_heartbeats_is_silent():
    assert said_of_carol(last_push=NOW - 80)["problem"] == [
        "nothing at all was heard from carol since 14:13 (1 minute): check that carol runs, still "
        "trusts you and can reach you"
    ]
    assert said_of_carol(last_push=NOW - 80)["ok"] == ["1 receiver acknowledges within 0.2 s"]
    assert said_of_carol(last_push=NOW - 70) == said()
    assert said_of_carol(last_push=NOW - 200, last_heard=NOW - 30) == said()


def test_a_sender_silent_in_this_life_is_silent_since_its_start():
    assert "since 13:55 (20 minutes)" in said_of_carol(last_push=0.0)["problem"][0]


def test_a_sender_that_left_is_not_missed():
    sentences = said_of_carol(left=True, last_push=YESTERDAY)
    assert sentences["problem"] == []
    assert sentences["note"] == [
        "carol has left the network (it said so): nothing is wrong with that; revoke its admission "
        "if you like: `oneway peer admit --revoke carol`"
    ]


def test_a_sender_whose_mass_is_not_taken_in_is_named():
    [sentence] = said_of_carol(waiting=12.5)["note"]
    assert sentence.startswith("carol offers 12.5 of mass that is not taken in")


def test_a_sender_that_is_often_clipped_is_told():
    assert "was clipped 9 times" in said_of_carol(clipped=9)["note"][0]
    assert said_of_carol(clipped=1)["note"] == []


@pytest.mark.parametrize("changes", [{"closed": True}, {"admitted": False}])
def test_former_senders_are_past(changes):
    sentences = said_of_carol(last_push=YESTERDAY, quarantined=True, strikes=10, **changes)
    assert sentences["note"] == sentences["problem"] == []


def test_who_knocks_without_being_admitted_is_counted():
    [sentence] = said(changed(ALICE, refused=12))["note"]
    assert sentence.startswith("12 messages came from peers that are not admitted: ")
    assert "`oneway peer admit CARD`" in sentence


def test_what_was_no_message_is_counted():
    [sentence] = said(changed(ALICE, undecodable=1))["note"]
    assert sentence.startswith("1 message was too large or no message at all: ")


# --- what it is told ---


def test_a_peer_that_admits_nobody_learns_alone():
    alone = said(changed(ALICE, senders=[]), replace(CONFIG, senders=()))
    assert alone["problem"] == [
        "nobody sends to you, so your model is only your own: hand out `oneway peer card` and "
        "admit those who send"
    ]


def test_who_admits_everybody_is_not_told_to_admit():
    open_to_all = replace(CONFIG, senders=(), anyone=True)
    assert said(config=open_to_all)["problem"] == []


def test_a_peer_that_sends_to_nobody_teaches_nobody():
    silent = said(changed(ALICE, receivers=[]), replace(CONFIG, receivers=()))
    assert silent["note"][0].startswith("you send to nobody, so nobody learns from you: ")
    assert "`oneway peer trust CARD`" in silent["note"][0]


def test_a_peer_on_every_interface_has_no_card_before_it_says_where_it_is():
    everywhere = replace(CONFIG, listen="0.0.0.0:7701")
    [sentence] = said(changed(ALICE, card=""), everywhere)["problem"]
    assert 'set advertise = "HOST:7701" in peer.toml' in sentence
    refused = changed(ALICE, card="", receivers=[changed(BOB, link="refused")])
    assert "`oneway peer admit CARD`" in "".join(said(refused, everywhere)["problem"])


def test_a_peer_that_only_its_own_machine_reaches_is_told():
    hidden = replace(CONFIG, listen="127.0.0.1:7701")
    [sentence] = said(config=hidden)["note"]
    assert sentence.startswith("you listen on 127.0.0.1:7701, which other machines cannot reach")
    near = Receiver(Card(BOB_CARD.key, "127.0.0.1", 7702, "bob"))
    assert said(config=replace(hidden, receivers=(near,)))["note"] == []


def test_a_paused_peer_is_told_how_to_go_on():
    [sentence] = said(changed(ALICE, paused=True), replace(CONFIG, paused=True))["note"]
    assert sentence.startswith("the peer is paused and neither learns nor sends")


def test_a_model_too_large_for_its_messages_is_told_with_the_limit():
    task = replace(TASK, features=tuple(Feature(f"f{number}") for number in range(200)))
    small = replace(CONFIG, limits=Limits(max_message_bytes=1024))
    sentences = said(changed(ALICE, task=task.fingerprint.hex()), small, task=task)
    assert "max_message_bytes is 1,024; raise it" in sentences["problem"][0]


def test_not_the_model_but_what_is_sent_of_it_must_fit_into_a_message():
    features = tuple(Feature(f"f{number}") for number in range(200))
    alone = replace(TASK, features=features, method="local")
    small = replace(CONFIG, limits=Limits(max_message_bytes=1024 + 8))
    assert said(changed(ALICE, task=alone.fingerprint.hex()), small, task=alone)["problem"] == []


# --- the running peer ---


def test_a_few_skipped_samples_are_a_note_and_many_a_problem():
    bad = changed(ALICE, skipped=1, last_skipped="line 8: feature 'light' is 'dark'")
    assert said(bad)["note"] == [
        "1 sample was skipped, the last because of line 8: feature 'light' is 'dark': correct "
        "where they come from, nothing was learned from them"
    ]
    assert said(changed(bad, skipped=37))["problem"][0].startswith("37 samples were skipped, the")


def test_samples_skipped_in_an_earlier_life_are_counted_without_a_reason():
    assert said(changed(ALICE, skipped=2))["note"][0].startswith("2 samples were skipped: correct")


def test_a_peer_that_gave_everything_away_is_told_why_it_no_longer_pushes():
    quiet = [changed(sender, last_push=NOW - 60) for sender in ALICE.senders]
    poor = changed(ALICE, mass=0.0078, senders=quiet)
    assert any("nearly all your mass (0.0078 is left)" in line for line in said(poor)["problem"])
    assert not said(changed(ALICE, mass=0.0078))["problem"]


def test_a_stream_that_dried_up_is_told_with_a_time():
    dry = changed(ALICE, last_sample=NOW - 900)
    assert said(dry)["note"][0].startswith("no sample has arrived since 14:00 (15 minutes)")


def test_a_stream_that_never_began_is_told_with_a_time():
    waiting = changed(ALICE, samples=0, average_loss=None, last_sample=0.0)
    assert said(waiting)["note"] == [
        "no sample has arrived since 13:55 (20 minutes): if some should have, check where they "
        "come from"
    ]
    assert said(changed(waiting, finished=True))["note"] == []
    assert said(changed(waiting, started=NOW - 60))["note"] == []


def test_a_state_that_cannot_be_saved_is_told_in_the_words_of_the_store():
    full = changed(ALICE, disk_problem="the disk of alice/peer.sqlite is full")
    [sentence] = said(full)["problem"]
    assert "nothing is sent: the disk of alice/peer.sqlite is full" in sentence


def test_a_task_that_was_changed_under_a_running_peer_is_told():
    other = replace(TASK, learning_rate=0.7)
    [sentence] = said(task=other)["problem"]
    assert sentence.startswith("task.toml was changed since the peer started")
    assert "put the old one back" in sentence
    refused = replace(FACTS, startup=Startup(store_problem="it belongs to another task"))
    assert said(task=other, facts=refused)["problem"] == ["it belongs to another task"]


def test_a_leaving_peer_is_to_be_left_running_until_all_is_handed_over():
    leaving = changed(ALICE, leaving=True)
    assert said(leaving)["note"] == [
        "the peer is leaving and hands over what it has: let it run until bob acknowledged it"
    ]
    assert "has left" in said(changed(leaving, drained=True))["note"][0]


def test_who_does_not_know_that_a_peer_leaves_is_named():
    unheard = changed(ALICE, leaving=True, unheard=["carol"])
    assert said(unheard)["note"][0].endswith("; carol has not heard that you leave")
    drained = changed(unheard, drained=True, unheard=["carol", "dave"])
    assert "carol, dave have not heard that you leave" in said(drained)["note"][0]
    leaving = replace(CONFIG, leaving=True)
    gone = said(drained, leaving, replace(FACTS, process=None, port="free"))
    assert gone["problem"] == []
    assert any("carol, dave have not heard" in sentence for sentence in gone["note"])


def test_a_leave_that_nobody_takes_over_can_be_undone_or_given_up():
    for receivers in ([], [changed(BOB, left=True)]):
        stuck = changed(ALICE, leaving=True, receivers=receivers)
        [sentence] = [text for text in said(stuck)["problem"] if "cannot leave" in text]
        assert "mass 0.75" in sentence
        assert "`oneway peer leave --undo`" in sentence
        assert "`oneway peer leave --discard`" in sentence


def test_a_leave_that_was_interrupted_is_to_be_gone_on_with():
    leaving, stopped = replace(CONFIG, leaving=True), replace(FACTS, process=None, port="free")
    [sentence] = said(changed(ALICE, leaving=True), leaving, stopped)["problem"]
    assert "bob has not acknowledged" in sentence
    assert sentence.endswith("go on with `oneway peer leave`")


@pytest.mark.parametrize(("mass", "limit"), [(-8.2e6, 0.0), (-0.5, 256.0), (300.0, 256.0)])
def test_a_mass_that_cannot_be_is_told_with_its_repair(mass, limit):
    impossible = changed(ALICE, mass=mass, mass_limit=limit)
    stopped = replace(FACTS, process=None, port="free")
    stored = replace(stopped, startup=Startup(stored=Stored(mass, limit, 300, 0)))
    for sentences in (
        said(impossible),
        said(impossible, facts=stopped),
        said(None, facts=stored),
    ):
        [sentence] = [text for text in sentences["problem"] if "which cannot be" in text]
        assert f"the mass is {mass:,.6g}" in sentence
        assert "`oneway peer repair`" in sentence
    assert said(changed(ALICE, mass=255.0, mass_limit=256.0)) == said()


def test_a_debt_of_a_forgotten_life_is_a_note():
    sentences = said(changed(ALICE, owed=0.375))
    assert sentences["note"][0].startswith("0.375 of mass had been handed over in a life")
    assert sentences["problem"] == []


def test_a_running_peer_that_does_not_listen_is_told():
    [sentence] = said(facts=replace(FACTS, port="free"))["problem"]
    assert "does not listen where peer.toml says" in sentence


# --- a peer that does not run ---


def test_a_peer_that_does_not_run_is_to_be_started():
    stopped = replace(FACTS, process=None, port="free")
    assert said(changed(ALICE, time=AT_14_03), facts=stopped)["problem"] == [
        "alice is not running; it last did at 14:03: start it with `oneway peer run`"
    ]
    assert said(None, facts=stopped)["problem"] == [
        "alice is not running: start it with `oneway peer run`"
    ]


def test_a_peer_that_stopped_itself_says_why():
    why = "another copy of alice runs with the same key: keep one of them"
    stopped = replace(FACTS, process=None, port="free")
    assert said(changed(ALICE, stopped=why), facts=stopped)["problem"] == [why]


def test_what_a_stopped_peer_skipped_is_told():
    stopped = replace(FACTS, process=None, port="free")
    why = "line 8: feature 'light' is 'dark'"
    bad = changed(ALICE, skipped=300, last_skipped=why, finished=True)
    stored = replace(stopped, startup=Startup(stored=Stored(1.0, 256.0, 300, 300)))
    for sentences in (said(bad, facts=stopped), said(bad, facts=stored), said(None, facts=stored)):
        assert any(text.startswith("300 samples were skipped") for text in sentences["problem"])
    assert any(why in text for text in said(bad, facts=stored)["problem"])


def test_what_a_start_would_refuse_comes_in_its_words():
    refused = Startup("key.secret is not a key file", "peer.sqlite is damaged")
    sentences = said(facts=replace(FACTS, process=None, port="free", startup=refused))
    assert sentences["problem"] == [refused.key_problem, refused.store_problem]
    assert any("is not running" in sentence for sentence in sentences["note"])


def test_what_a_stopped_peer_last_said_of_others_is_not_repeated():
    old = changed(ALICE, receivers=[changed(BOB, link="refused")])
    assert len(said(old, facts=replace(FACTS, process=None, port="free"))["problem"]) == 1


def test_a_process_that_says_nothing_is_named():
    [sentence] = said(changed(ALICE, time=AT_14_03))["problem"]
    assert sentence.startswith(
        "process 4711 runs alice but has said nothing since 14:03 (12 minutes): "
    )
    assert "kill 4711" in sentence
    assert "has said nothing yet" in said(None)["problem"][0]


@pytest.mark.parametrize(
    ("port", "beginning"),
    [
        ("taken", "another program listens on 10.0.0.1:7701, where alice should: stop it, or"),
        ("elsewhere", "10.0.0.1:7701 is not an address of this machine: correct listen"),
        ("forbidden", "you may not listen on 10.0.0.1:7701: choose a port from 1024 on"),
    ],
)
def test_what_keeps_a_peer_from_starting_is_told_beforehand(port, beginning):
    sentences = said(None, facts=replace(FACTS, process=None, port=port))["problem"]
    assert sentences[1].startswith(beginning)


# --- the machine ---


def test_a_disk_that_is_almost_full_is_told_in_megabytes():
    [sentence] = said(facts=replace(FACTS, disk_free=12_345_678))["problem"]
    assert sentence.startswith("the disk has 12 MB left: make room in alice")
    assert said(facts=replace(FACTS, disk_free=None))["problem"] == []


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o602])
def test_a_key_file_open_to_others_is_to_be_closed(mode):
    assert said(facts=replace(FACTS, key_mode=mode))["problem"] == [
        f"the key file can be read by others (mode {mode:04o}): chmod 600 alice/key.secret"
    ]


def test_a_missing_key_file_is_to_be_restored():
    [sentence] = said(facts=replace(FACTS, key_mode=None))["problem"]
    assert "alice/key.secret is missing or cannot be seen: put it back from your backup" in sentence


def test_a_folder_that_cannot_be_written_is_told():
    [sentence] = said(facts=replace(FACTS, folder_writable=False))["problem"]
    assert sentence.startswith("the folder alice cannot be written: chmod u+rwx alice")


def test_a_clock_that_was_set_back_is_told_with_both_times():
    assert said(facts=replace(FACTS, newest_file=NOW + 3600))["problem"] == [
        "the clock was set back: it says 14:15, and the peer wrote its files at 15:15; set the "
        "clock right"
    ]
    assert said(facts=replace(FACTS, newest_file=NOW + 2))["problem"] == []


# --- looking at a real folder ---


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "task.toml").write_text(TASK.to_toml())
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    return Home.create(tmp_path / "alice", "alice", tmp_path / "task.toml", f"127.0.0.1:{port}")


def test_a_new_peer_is_examined_without_changing_anything(home):
    before = {path: path.stat().st_mtime_ns for path in home.folder.rglob("*")}
    facts = examine(home, NOW)
    assert facts.now == NOW
    assert facts.process is None
    assert facts.newest_file == 0.0
    assert facts.disk_free is not None
    assert facts.disk_free > 0
    assert facts.folder_writable
    assert facts.key_mode == 0o600
    assert facts.port == "free"
    assert {path: path.stat().st_mtime_ns for path in home.folder.rglob("*")} == before


def test_the_process_that_runs_the_peer_is_seen(home):
    with home.lock():
        assert examine(home, NOW).process == os.getpid()


def test_a_port_that_somebody_listens_on_is_seen(home):
    host, port = home.config().listen.split(":")
    with socket.create_server((host, int(port))):
        assert examine(home, NOW).port == "taken"


def test_an_address_of_another_machine_is_seen(home):
    home.change(lambda mine: replace(mine, listen="192.0.2.1:7701"))
    assert examine(home, NOW).port == "elsewhere"


def test_the_newest_of_status_and_store_tells_the_last_time(home):
    home.write_status(ALICE)
    os.utime(home.status_path, (NOW, NOW))
    assert examine(home, NOW).newest_file == NOW
    log = home.store_path.with_name("peer.sqlite-wal")
    log.touch()
    os.utime(log, (NOW + 60, NOW + 60))
    assert examine(home, NOW).newest_file == NOW + 60


def test_a_loose_or_missing_key_file_is_seen(home):
    home.key_path.chmod(0o644)
    assert examine(home, NOW).key_mode == 0o644
    home.key_path.unlink()
    assert examine(home, NOW).key_mode is None


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


def test_a_peer_that_never_ran_has_nothing_stored_and_may_start(home):
    assert check_startup(home) == Startup()


def test_a_start_is_tried_without_changing_anything(learned):
    before = {path: path.read_bytes() for path in learned.folder.iterdir()}
    assert check_startup(learned) == Startup("", "", Stored(1.0, TASK.impossible_mass, 1, 0))
    assert {path: path.read_bytes() for path in learned.folder.iterdir()} == before


@pytest.mark.parametrize("place", [0, 4096], ids=["no database", "a damaged page"])
def test_a_damaged_store_is_told_as_run_tells_it(learned, place):
    content = bytearray(learned.store_path.read_bytes())
    content[place : place + 3000] = b"x" * 3000
    learned.store_path.write_bytes(content)
    problem = check_startup(learned).store_problem
    assert "peer.sqlite is damaged" in problem
    assert problem == said_by_run(learned)
    assert learned.store_path.read_bytes() == content


def test_a_store_of_another_task_is_told_as_run_tells_it(learned):
    learned.task_path.write_text(replace(TASK, learning_rate=0.7).to_toml())
    problem = check_startup(learned).store_problem
    assert "another task" in problem
    assert problem == said_by_run(learned)


def test_a_store_of_another_peer_and_a_damaged_key_are_told_as_run_tells_it(learned, tmp_path):
    own = learned.key_path.read_bytes()
    other = Home.create(tmp_path / "bob", "bob", tmp_path / "task.toml")
    learned.key_path.write_bytes(other.key_path.read_bytes())
    assert check_startup(learned).store_problem == said_by_run(learned)
    learned.key_path.write_bytes(own[:-9])
    found = check_startup(learned)
    assert found.key_problem == said_by_run(learned)
    assert found.store_problem == ""


def test_half_a_store_is_told_as_run_tells_it(learned):
    log = learned.store_path.with_name("peer.sqlite-wal")
    log.write_bytes(b"half of it")
    learned.store_path.unlink()
    problem = check_startup(learned).store_problem
    assert "the other half of a store" in problem
    assert problem == said_by_run(learned)


def test_a_running_peer_is_not_held_up_by_who_looks_at_its_store(learned):
    with closing(Peer(learned.folder)) as peer:
        for count in range(2, 5):
            peer.learn_one({"light": 1.0}, "yes")
            save(peer.node, peer._store)
            stored = check_startup(learned).stored
            assert stored is not None
            assert stored.samples == count
        learned.task_path.write_text(replace(TASK, learning_rate=0.7).to_toml())
        assert "another task" in check_startup(learned).store_problem


def test_the_store_of_a_peer_that_was_killed_is_read_with_its_log_and_left_as_it_is(
    learned, tmp_path
):
    killed = Home(tmp_path / "killed")
    with closing(Peer(learned.folder)) as peer:
        peer.learn_one({"light": 1.0}, "yes")
        save(peer.node, peer._store)
        shutil.copytree(learned.folder, killed.folder)
    files = [killed.store_path, killed.store_path.with_name("peer.sqlite-wal")]
    before = [path.read_bytes() for path in files]
    assert before[1]
    killed.lock_path.write_text("")
    stored = check_startup(killed).stored
    assert stored is not None
    assert stored.samples == 2
    assert [path.read_bytes() for path in files] == before


def test_a_peer_that_starts_at_this_moment_is_not_called_damaged(learned, monkeypatch):
    processes = iter([None, 4711])
    monkeypatch.setattr(Home, "running_process", lambda _: next(processes))

    def read(path: Path, *, alone: bool) -> tuple[Owner, Snapshot]:
        if alone:
            raise StoreError("half of a commit")
        return really(path, alone=alone)

    really = startup.read_owned
    monkeypatch.setattr(startup, "read_owned", read)
    assert check_startup(learned).store_problem == ""


def test_impossible_mass_is_seen_in_the_store(learned, flood):
    flood(learned, -8.5)
    stored = check_startup(learned).stored
    assert stored is not None
    assert stored.mass == -7.5


# --- saying times ---


@pytest.mark.parametrize(
    ("seconds", "spoken"),
    [
        (-5.0, "0 seconds"),
        (0.9, "0 seconds"),
        (1.0, "1 second"),
        (59.9, "59 seconds"),
        (60.0, "1 minute"),
        (3599.0, "59 minutes"),
        (3600.0, "1 hour"),
        (200_000.0, "2 days"),
    ],
)
def test_an_age_is_said_in_its_largest_unit(seconds, spoken):
    assert spoken_age(seconds) == spoken


def test_without_a_zone_times_are_those_of_this_machine():
    expected = datetime.fromtimestamp(NOW).strftime("%H:%M")
    assert SpokenTime(NOW).at(NOW) == expected


# --- privacy ---


PRIVACY = PrivacyStatus(
    brief=TASK.privacy_in_words,
    sentence=TASK.privacy_sentence,
    epsilon=8.0,
    delta=1e-5,
    floor=TASK.privacy_in_words,
    floor_epsilon=8.0,
    samples_per_push=16,
)
NOT_PRIVATE = replace(TASK, privacy=NO_PRIVACY)


@pytest.mark.parametrize("runs", [True, False])
def test_that_samples_can_be_read_from_what_is_sent_is_noted_with_the_remedy(runs):
    status = changed(ALICE, task=NOT_PRIVATE.fingerprint.hex()) if runs else None
    facts = FACTS if runs else replace(FACTS, process=None, port="free")
    (noted,) = said(status, task=NOT_PRIVATE, facts=facts)["note"]
    assert noted.startswith("privacy: none: samples can be read from what is sent: set epsilon")
    own = replace(CONFIG, privacy=OwnPrivacy(epsilon=1.0))
    assert said(status, config=own, task=NOT_PRIVATE, facts=facts)["note"] == []
    alone = replace(NOT_PRIVATE, method="local")
    status = changed(ALICE, task=alone.fingerprint.hex()) if runs else None
    assert said(status, task=alone, facts=facts)["note"] == []


def test_a_delta_too_large_for_the_samples_learned_is_noted():
    assert said(changed(ALICE, samples=100_000))["note"] == []
    (noted,) = said(changed(ALICE, samples=100_001))["note"]
    assert "delta is 1e-05 and 100,001 samples" in noted
    assert "new task" in noted
    stopped = replace(
        FACTS, process=None, port="free", startup=Startup(stored=Stored(1.0, 0.0, 100_001, 0))
    )
    (noted,) = said(facts=stopped)["note"]
    assert "100,001 samples" in noted


def test_a_peer_that_may_not_take_part_is_told_why_before_it_is_started():
    for own, culprit in ((OwnPrivacy(epsilon=9.0), "9"), (OwnPrivacy(require_epsilon=1.0), "1")):
        config = replace(CONFIG, privacy=own)
        with pytest.raises(ConfigError) as caught:
            own.applied(TASK)
        facts = replace(FACTS, process=None, port="free")
        assert str(caught.value) in said(None, config=config, facts=facts)["problem"]
        assert culprit in str(caught.value)


def test_a_batch_that_never_fills_is_noted_once_nothing_more_comes():
    few = changed(ALICE, samples=7, privacy=changed(PRIVACY, waiting=7))
    assert said(few)["note"] == []
    for quiet in (changed(few, finished=True), changed(few, last_sample=NOW - 1000)):
        (noted,) = (note for note in said(quiet)["note"] if "next push" in note)
        assert noted.startswith("only 7 of 16 samples for the next push are there")
    for other in (
        changed(few, finished=True, samples=16),
        changed(few, finished=True, samples=0),
        changed(few, finished=True, receivers=[]),
    ):
        assert not [note for note in said(other)["note"] if "next push" in note]


def test_a_privacy_that_waits_for_a_restart_is_a_problem():
    waits = changed(ALICE, privacy=changed(PRIVACY, needs_restart=True))
    (told,) = said(waits)["problem"]
    assert "[privacy] in peer.toml was changed" in told
    assert "start it again" in told


# --- whether it learns ---


def measures(loss: float, base: float, alone: float | None, error: float = 0.01, **more: object):
    compared = Baselines(
        samples=1000,
        loss=loss,
        base_loss=base,
        alone_loss=alone,
        base_error=error,
        alone_error=None if alone is None else error,
    )
    usual = {"answer": "no", "answer_share": 0.63}
    return Measures(so_far=compared, lately=compared, **usual | more)


FIXED_RATE = replace(TASK, learning_rate=0.1)
AT_FIXED_RATE = changed(ALICE, task=FIXED_RATE.fingerprint.hex())


def test_a_loss_worse_than_the_base_rate_is_a_problem_with_a_lower_rate_as_remedy():
    worse = changed(AT_FIXED_RATE, measures=measures(0.9, 0.66, None))
    [sentence] = said(worse, task=FIXED_RATE)["problem"]
    assert sentence.startswith("your loss is worse than always answering 'no'")
    assert "63%" in sentence
    assert "0.9000 per sample against 0.6600 (31% to 42% more)" in sentence
    assert "lower the learning rate to 0.03" in sentence
    # Alone it is worse, too: there is nothing more to be said about the others.
    both = changed(AT_FIXED_RATE, measures=measures(0.9, 0.66, 0.8))
    assert said(both, task=FIXED_RATE)["problem"] == [sentence]


def test_where_the_rate_is_chosen_the_remedy_is_one_of_your_own():
    [sentence] = said(changed(ALICE, measures=measures(0.9, 0.66, None)))["problem"]
    assert "set a learning rate of your own" in sentence


def test_a_peer_that_does_well_alone_without_noise_hears_that_the_noise_is_too_much():
    noisy = changed(AT_FIXED_RATE, measures=measures(0.9, 0.66, 0.5))
    [sentence] = said(noisy, task=FIXED_RATE)["problem"]
    assert "alone, without noise, it would be 0.5000" in sentence
    assert "larger epsilon" in sentence
    assert "lower the learning rate to 0.03" in sentence


def test_a_number_is_compared_with_the_mean_so_far():
    worse = measures(9.0, 6.0, None, answer="12.5", answer_share=None)
    [sentence] = said(changed(ALICE, measures=worse))["problem"]
    assert "always answering the mean so far, 12.5" in sentence


@pytest.mark.parametrize(
    ("loss", "error"),
    [
        pytest.param(0.64, 0.001, id="better"),
        pytest.param(0.70, 0.02, id="by chance"),
        pytest.param(0.661, 1e-6, id="by a hair"),
    ],
)
def test_a_loss_that_is_not_worse_beyond_doubt_is_no_finding(loss, error):
    fine = changed(ALICE, measures=measures(loss, 0.66, None, error))
    assert said(fine) == said(ALICE)


def test_a_peer_that_would_do_better_alone_is_told_so():
    alone = changed(ALICE, measures=measures(0.5, 0.66, 0.4))
    [sentence] = [it for it in said(alone)["note"] if "alone" in it]
    assert "0.5000 per sample against 0.4000" in sentence
    assert "samples_per_push" in sentence
    plain = replace(TASK, privacy=NO_PRIVACY)
    told = changed(alone, task=plain.fingerprint.hex())
    notes = [it.sentence for it in diagnose(told, CONFIG, plain, FACTS, UTC)]
    assert any("oneway peer revoke" in it for it in notes)


def test_a_peer_that_has_stopped_is_told_how_it_did():
    stopped = replace(FACTS, process=None)
    worse = changed(ALICE, measures=measures(0.9, 0.66, None))
    found = [it.sentence for it in diagnose(worse, CONFIG, TASK, stopped, UTC)]
    assert any("worse than always answering" in it for it in found)
