from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import CardError, ConfigError
from oneway.peer.home.config import PeerConfig, Receiver, Sender
from oneway.peer.home.config_file import (
    config_toml,
    parse_config,
    peers_toml,
    read_config,
    write_config,
    write_peers,
)
from oneway.peer.home.limits import Limits
from oneway.peer.identity.card import Card
from oneway.peer.identity.keys import key_text
from oneway.transport import Faults

OWN = bytes([9]) * 32
BOB = Card(bytes([1]) * 32, "127.0.0.1", 7702, "bob")
CAROL = Card(bytes([2]) * 32, "2001:db8::7", 7703, "carol")
ALICE = PeerConfig("alice", "127.0.0.1:7701")
TOP = 'name = "alice"\nlisten = "127.0.0.1:7701"\n'

# --- the file ---

keys = st.binary(min_size=32, max_size=32)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,20}", fullmatch=True)
positive = st.floats(1e-6, 1e6)
shares = st.floats(0.0, 1.0)


@st.composite
def configs(draw: st.DrawFn) -> PeerConfig:
    peers = st.lists(st.tuples(keys, names), max_size=4, unique_by=(lambda p: p[0], lambda p: p[1]))
    return PeerConfig(
        draw(names),
        "0.0.0.0:7701",
        draw(st.sampled_from(["", "alice.example.org:7701", "[2001:db8::7]:80"])),
        keep=draw(st.floats(0.0, 1.0, exclude_min=True, exclude_max=True)),
        receivers=tuple(
            Receiver(Card(key, "host", 7, name), draw(positive)) for key, name in draw(peers)
        ),
        senders=tuple(Sender(key, draw(st.sampled_from(["", name]))) for key, name in draw(peers)),
        anyone=draw(st.booleans()),
        leaving=draw(st.booleans()),
        limits=Limits(
            window=draw(st.just("auto") | st.integers(1, 64)),
            max_strikes=draw(st.integers(1, 1000)),
            clip=draw(st.just("off") | positive),
            pushes_per_second=draw(positive),
            presume_dead_after=draw(positive),
        ),
        faults=Faults(
            loss=draw(shares),
            delay=draw(positive),
            cut=tuple(draw(st.lists(names))),
        ),
    )


@given(configs())
def test_a_written_configuration_reads_back_equal(config):
    text, peers = config_toml(config), peers_toml(config)
    assert parse_config(text, peers) == config
    assert config_toml(parse_config(text)) == text


def test_a_configuration_can_be_written_by_hand():
    config = parse_config(
        f"""{TOP}
        [limits]
        clip = "off"
        window = 3
        """,
        f"""
        [[receivers]]
        card = "{BOB}"
        [[receivers]]
        card = "{CAROL}"
        weight = 2
        [[senders]]
        key = "{key_text(BOB.key)}"
        """,
    )
    assert config.receivers == (Receiver(BOB, 1.0), Receiver(CAROL, 2.0))
    assert config.senders == (Sender(BOB.key, ""),)
    assert (config.limits.clip, config.limits.window) == ("off", 3)
    assert config.receivers[1].address == "[2001:db8::7]:7703"


def test_nothing_secret_and_every_setting_is_in_the_file():
    lines = [*config_toml(ALICE).splitlines(), *peers_toml(ALICE).splitlines()]
    assert all("#" in line for line in lines if "=" in line and not line.startswith("name"))


BAD_FILES = {
    "a syntax error": ("name = ", r"line 1"),
    "no name": ('listen = "host:1"', "has no name"),
    "no address": ('name = "a"', "has no listen"),
    "a misspelt key": (f"{TOP}advertize = ''", "'advertize', did you mean 'advertise'"),
    "a misspelt limit": (
        f"{TOP}[limits]\nwindows = 1",
        r"'limits\.windows', did you mean 'window'",
    ),
    "trust in the wrong file": (f"{TOP}[[receivers]]", "'receivers', which belongs in peers.toml"),
    "a bad name": ('name = "a b"\nlisten = "host:1"', "the name 'a b' cannot be used"),
    "an address without a port": ('name = "a"\nlisten = "host"', "listen .* 'host': .* host:port"),
    "an address that is no text": ('name = "a"\nlisten = 7701', "listen .* is 7701; .* quotes"),
    "a bad advertised address": (f"{TOP}advertise = '0.0.0.0:1'", "advertise .* nobody can dial"),
    "keeping everything": (f"{TOP}keep = 1.0", "keep .* is 1.0; .* above 0 and below 1"),
    "keeping no number": (f"{TOP}keep = nan", "keep .* is nan;"),
    "a window of zero": (f"{TOP}[limits]\nwindow = 0", 'window .* is 0; .* 1 to 64 or "auto"'),
    "half a strike": (f"{TOP}[limits]\nmax_strikes = 0.5", "max_strikes .* is 0.5; .* at least 1"),
    "a negative clip": (f"{TOP}[limits]\nclip = -1", 'clip .* is -1; .* "off"'),
    "a clip of zero": (f"{TOP}[limits]\nclip = 0", 'clip .* is 0; .* above 0 or "off"'),
    "no pushes": (f"{TOP}[limits]\npushes_per_second = 0", "pushes_per_second .* is 0; .* above 0"),
    "no end": (f"{TOP}[limits]\npresume_dead_after = inf", "presume_dead_after is inf;"),
    "an unknown transport": (f"{TOP}transport = 'pigeon'", "transport is 'pigeon'"),
}
BAD_PEERS = {
    "a misspelt list": ("recievers = []", "'recievers', did you mean 'receivers'"),
    "a misspelt fault": ("[faults]\nlost = 1", r"'faults\.lost', did you mean 'loss'"),
    "a misspelt receiver": ("[[receivers]]\nkard = 1", r"'receivers\[0\]\.kard', .* 'card'"),
    "a misspelt sender": ("[[senders]]\nkeys = 1", r"'senders\[0\]\.keys', .* 'key'"),
    "receivers that are no list": ("[receivers]", "receivers in .* a table of 0; .* a list"),
    "a receiver that is no table": ("receivers = [1]", r"receivers\[0\] .* is 1; .* a table"),
    "a bad card": ("[[receivers]]\ncard = 'x'", "'x' is not a card: .* looks like"),
    "a card that is no text": (
        "[[receivers]]\ncard = 1",
        r"receivers\[0\]\.card .* is 1; .* a card",
    ),
    "a sender without a key": ("[[senders]]\nname = 'a'", r"senders\[0\] in .* has no key"),
    "a bad key": ("[[senders]]\nkey = 'a'", "the key 'a' is 1 long"),
    "a bad sender's name": (
        f"[[senders]]\nkey = '{key_text(BOB.key)}'\nname = 'a b'",
        "the name 'a b' cannot be used",
    ),
    "the same receiver twice": (
        f"[[receivers]]\ncard = '{BOB}'\n[[receivers]]\ncard = '{BOB}'",
        "two receivers have the key",
    ),
    "the weight of the second": (
        f"[[receivers]]\ncard = '{BOB}'\n[[receivers]]\ncard = '{CAROL}'\nweight = 0",
        r"receivers\[1\]\.weight .* is 0;",
    ),
    "a truth value as text": ("anyone = 'no'", "anyone .* is 'no'; .* true or false"),
    "too much loss": ("[faults]\nloss = 20", r"faults\.loss .* is 20; .* 0 to 1"),
    "a cut that is no list": ("[faults]\ncut = 'bob'", "cut .* is 'bob'; .* list"),
    "a cut of no name": ("[faults]\ncut = [1]", r"cut\[0\] .* is 1; .* quotes"),
}


@pytest.mark.parametrize(("text", "culprit"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file_gets_a_sentence_that_names_it(text, culprit):
    with pytest.raises(ConfigError, match=culprit) as caught:
        parse_config(text)
    assert "peer.toml" in str(caught.value)


@pytest.mark.parametrize(("peers", "culprit"), BAD_PEERS.values(), ids=BAD_PEERS.keys())
def test_a_bad_file_of_peers_gets_a_sentence_that_names_it(peers, culprit):
    with pytest.raises(ConfigError, match=culprit) as caught:
        parse_config(TOP, peers)
    assert "peers.toml" in str(caught.value)


# --- changes ---


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "peer.toml"
    write_config(ALICE, path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match=r"cannot write .*: No space left on device"):
        write_peers(replace(ALICE, anyone=True), tmp_path / "peers.toml")
    assert read_config(path) == ALICE
    assert sorted(item.name for item in tmp_path.iterdir()) == ["peer.toml", "peers.toml"]


# --- the card of this peer ---


@pytest.mark.parametrize("listen", ["0.0.0.0:7701", "[::]:7701", "[::0]:7701"])
def test_a_peer_that_listens_everywhere_must_say_where_it_is_reached(listen):
    with pytest.raises(ConfigError, match='set advertise = "HOST:7701"'):
        replace(ALICE, listen=listen).card(OWN)


# --- trust ---


def test_trust_and_distrust():
    config = ALICE.with_receiver(BOB, own_key=OWN).with_receiver(CAROL, 2.0, own_key=OWN)
    assert config.receivers == (Receiver(BOB, 1.0), Receiver(CAROL, 2.0))
    assert config.without_receiver("bob").receivers == (Receiver(CAROL, 2.0),)
    assert config.without_receiver(key_text(BOB.key)).receivers == (Receiver(CAROL, 2.0),)
    assert ALICE.receivers == ()


def test_admit_by_card_or_by_key_and_withdraw():
    config = ALICE.with_sender(BOB, own_key=OWN).with_sender(CAROL.key, own_key=OWN)
    assert config.senders == (Sender(BOB.key, "bob"), Sender(CAROL.key, ""))
    assert config.with_sender(CAROL, own_key=OWN).senders[1] == Sender(CAROL.key, "carol")
    assert config.with_sender(BOB.key, own_key=OWN) == config
    assert config.without_sender("bob").senders == (Sender(CAROL.key, ""),)
    assert config.without_sender(key_text(CAROL.key)).senders == (Sender(BOB.key, "bob"),)


def test_peers_are_called_by_name_or_by_the_beginning_of_their_key():
    config = ALICE.with_receiver(BOB, own_key=OWN).with_sender(CAROL.key, own_key=OWN)
    assert config.name_of(BOB.key) == "bob"
    assert config.name_of(CAROL.key) == f"{key_text(CAROL.key)[:8]}..."


def test_a_name_belongs_to_one_key():
    other = replace(CAROL, name="bob")
    config = ALICE.with_receiver(BOB, own_key=OWN)
    for trust in (config.with_receiver, config.with_sender):
        with pytest.raises(CardError, match=r"the name bob is taken by the key .*\?name=bob2"):
            trust(other, own_key=OWN)
        with pytest.raises(CardError, match="the name Bob is taken"):
            trust(replace(CAROL, name="Bob"), own_key=OWN)
        with pytest.raises(CardError, match="the name alice is taken by yourself"):
            trust(replace(CAROL, name="alice"), own_key=OWN)
