"""Names that look like others: new ones are refused, those of before are kept with a warning."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import CardError, ConfigError
from oneway.lab.problem import _names
from oneway.peer.home.config import PeerConfig
from oneway.peer.home.free_address import free_address
from oneway.peer.home.home import Home
from oneway.peer.identity.card import Card, check_name
from oneway.peer.identity.names import appearance, check_new_name

CYRILLIC = "\N{CYRILLIC SMALL LETTER A}lice"
OWN, FIRST, SECOND = bytes([9] * 32), bytes([1] * 32), bytes([2] * 32)
BOB = PeerConfig("bob", "127.0.0.1:7701")
TASK = 'model = "ridge"\nlabel = "price"\n[features]\nsize = {}\n'

FOREIGN = [
    CYRILLIC,
    "\N{CYRILLIC SMALL LETTER ES}\N{CYRILLIC SMALL LETTER O}" * 2,  # all of one script: coco
    "\N{GREEK SMALL LETTER ALPHA}lice",
    "\N{FULLWIDTH LATIN SMALL LETTER A}lice",
    "\N{MATHEMATICAL BOLD SMALL A}lice",
    "al\N{LATIN SMALL LETTER DOTLESS I}ce",
    "\N{KELVIN SIGN}arl",
    "bob\N{ARABIC-INDIC DIGIT ONE}",
]


def card(name: str, key: bytes) -> Card:
    return Card(key, "host", 7701, name)


@pytest.mark.parametrize("name", FOREIGN)
def test_a_new_card_with_a_letter_that_can_be_taken_for_another_is_refused(name):
    assert check_name(name) == name
    culprit = next(letter for letter in name if not letter.isascii())
    for trust in (BOB.with_receiver, BOB.with_sender):
        with pytest.raises(CardError, match=unicodedata.name(culprit)) as caught:
            trust(card(name, FIRST), own_key=OWN)
        assert "?name=" in str(caught.value)


@pytest.mark.parametrize("name", ["alice", "zoë", "José-2", "Nguyễn", "7", "a.b_c"])
def test_names_of_latin_letters_may_have_accents(name):
    assert check_new_name(name) == name
    assert BOB.with_receiver(card(name, FIRST), own_key=OWN).receivers[0].name == name


@pytest.mark.parametrize("name", ["aIice", "a1ice", "Alice", "ALICE", "alicé", "alice.", "alice_-"])
def test_a_new_card_that_looks_like_a_known_peer_is_refused(name):
    for known in (
        BOB.with_receiver(card("alice", FIRST), own_key=OWN),
        BOB.with_sender(card("alice", FIRST), own_key=OWN),
        replace(BOB, name="alice"),
    ):
        for trust in (known.with_receiver, known.with_sender):
            with pytest.raises(CardError, match=f"the name {name} looks like alice, which is tak"):
                trust(card(name, SECOND), own_key=OWN)
        assert known.with_receiver(card("alan", SECOND), own_key=OWN)


def test_the_same_key_may_change_to_a_name_that_looks_like_its_own():
    config = BOB.with_receiver(card("alice", FIRST), own_key=OWN)
    assert config.with_receiver(card("Alice", FIRST), own_key=OWN).receivers[0].name == "Alice"


@given(st.text(st.sampled_from("IlLi1oO0rnmvw._-aé"), min_size=1, max_size=6))
def test_capitals_accents_and_marks_at_the_end_make_no_other_name(name):
    assert appearance(name.upper().lower()) == appearance(name.lower())
    assert appearance(f"{name}.") == appearance(name)
    assert appearance(name.replace("é", "e")) == appearance(name)


def test_a_peer_known_before_keeps_its_name_and_may_be_trusted_anew():
    config = BOB.with_receiver(card("x", FIRST), own_key=OWN)
    (receiver,) = config.receivers
    old = replace(config, receivers=(replace(receiver, card=card(CYRILLIC, FIRST)),))
    again = old.with_receiver(card(CYRILLIC, FIRST), 2.0, own_key=OWN)
    assert again.receivers[0].weight == 2.0
    assert again.with_sender(card(CYRILLIC, FIRST), own_key=OWN).senders[0].name == CYRILLIC


def test_a_new_peer_does_not_get_such_a_name(tmp_path):
    (tmp_path / "task.toml").write_text(TASK)
    with pytest.raises(ConfigError, match="CYRILLIC SMALL LETTER A"):
        Home.create(tmp_path / "new", CYRILLIC, tmp_path / "task.toml")
    assert not (tmp_path / "new").exists()


def test_a_peer_made_before_starts_with_a_warning(tmp_path, caplog):
    (tmp_path / "task.toml").write_text(TASK)
    address = free_address(tmp_path)
    home = Home.create(tmp_path / "alice", "alice", tmp_path / "task.toml", address)
    text = home.config_path.read_text().replace('"alice"', f'"{CYRILLIC}"')
    text += f'\n[[receivers]]\ncard = "{card("bill", FIRST)}"\n'
    text += f'\n[[receivers]]\ncard = "{card("biIl", SECOND)}"\n'
    home.config_path.write_text(text, encoding="utf-8")
    with ow.Peer(home.folder) as peer:
        assert peer.status().name == CYRILLIC
    warnings = [said.message for said in caplog.records if said.levelname == "WARNING"]
    assert any("CYRILLIC SMALL LETTER A" in said for said in warnings)
    assert any("'biIl' and 'bill' look alike" in said for said in warnings)


@pytest.mark.parametrize("names", [("alice", CYRILLIC), ("alice", "AIice"), ("a-b", "a_b")])
def test_nodes_of_a_lab_with_such_names_are_numbered(names):
    assert _names(names, 2) == ("peer0", "peer1")
    assert _names(("alice", "zoë"), 2) == ("alice", "zoë")
