from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.errors import CardError, ConfigError
from oneway.peer.identity.card import EXAMPLE, Card, check_name, parse_card_or_key
from oneway.peer.identity.keys import key_text

KEY = bytes(range(32))
TEXT = key_text(KEY)

labels = st.from_regex(r"[A-Za-z]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?", fullmatch=True)
hosts = st.one_of(
    st.lists(labels, min_size=1, max_size=4).map(".".join),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(str),
).filter(lambda host: host not in ("0.0.0.0", "::"))
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True)


@given(st.binary(min_size=32, max_size=32), hosts, st.integers(1, 65535), names)
def test_a_card_survives_its_text_form(key, host, port, name):
    card = Card(key, host, port, name)
    text = str(card)
    assert Card.parse(text) == card
    assert Card.parse(f"  {text}\n") == card
    assert text.isascii()
    assert " " not in text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "does not begin with oneway:"),
        ("http://example.org", "does not begin with oneway:"),
        (f"oneway:{TEXT}", "no @ between"),
        (f"oneway:{TEXT[1:]}@host:1?name=a", "is 51 long"),
        (f"oneway:{TEXT}@host:1", "does not end with ?name="),
        (f"oneway:{TEXT}@host:1?weight=2", "does not end with ?name="),
        (f"oneway:{TEXT}@host:1?name=", "the name '' cannot be used"),
        (f"oneway:{TEXT}@host:1?name=a%20b", "the name 'a b' cannot be used"),
        (f"oneway:{TEXT}@host:1?name=a&b=c", "the name 'a&b=c' cannot be used"),
        (f"oneway:{TEXT}@host:1?name=%FF", "not percent-encoded UTF-8"),
        (f"oneway:{TEXT}@host:1?name=-rf", "begins with a letter or digit"),
        (f"oneway:{TEXT}@host?name=a", "'host' is not host:port"),
        (f"oneway:{TEXT}@:1?name=a", "':1' is not host:port"),
        (f"oneway:{TEXT}@host:?name=a", "the port '' is not a number from 1 to 65535"),
        (f"oneway:{TEXT}@host:0?name=a", "the port 0 is not a number from 1 to 65535"),
        (f"oneway:{TEXT}@host:65536?name=a", "the port 65536 is not a number from 1 to 65535"),
        (f"oneway:{TEXT}@host:1.5?name=a", "the port '1.5' is not a number"),
        (f"oneway:{TEXT}@ho st:1?name=a", "'ho st' is neither a host name nor an IP address"),
        (f"oneway:{TEXT}@a..b:1?name=a", "'a..b' is neither"),
        (f"oneway:{TEXT}@1.2.3:1?name=a", "'1.2.3' is neither"),
        (f"oneway:{TEXT}@::1:7701?name=a", "an IPv6 address stands in brackets"),
        (f"oneway:{TEXT}@[::x]:7701?name=a", "'::x' is neither"),
        (f"oneway:{TEXT}@[::1%eth0]:7701?name=a", "'::1%eth0' is neither"),
        (f"oneway:{TEXT}@[host]:7701?name=a", "only IPv6 addresses stand in brackets"),
        (f"oneway:{TEXT}@[::1:7701?name=a", "is not host:port"),
        (f"oneway:{TEXT}@0.0.0.0:7701?name=a", "nobody can dial it; its owner sets advertise"),
        (f"oneway:{TEXT}@[::]:7701?name=a", "nobody can dial it"),
        (f"oneway:{TEXT}@host:1?name={'a' * 2000}", "longer than 1000"),
    ],
)
def test_a_malformed_card_is_told_what_is_wrong_and_shown_a_correct_one(text, reason):
    with pytest.raises(CardError) as caught:
        Card.parse(text)
    message = str(caught.value)
    assert reason in message
    assert message.endswith(EXAMPLE)
    assert len(message) < 700


def complaint_about(text: str) -> str:
    try:
        Card.parse(text)
    except CardError as error:
        return str(error)
    return ""


@given(st.one_of(st.text(), st.text().map(lambda text: f"oneway:{TEXT}@{text}?name=a")))
def test_no_text_breaks_the_parser_and_no_control_character_reaches_the_terminal(text):
    assert complaint_about(text).isprintable()


def test_a_card_or_a_bare_key_is_recognised():
    card = Card(KEY, "host", 1, "a")
    assert parse_card_or_key(f" {card} ") == card
    assert parse_card_or_key(f"{TEXT}\n") == KEY
    with pytest.raises(CardError, match=r"'bob' is neither a card nor a key: .* oneway:"):
        parse_card_or_key("bob")


@pytest.mark.parametrize("name", ["alice", "Bob-2", "a.b_c", "7", "x" * 64])
def test_good_names_pass(name):
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "-a", "..", "a/b", "a\n", "zoë", None, 7])
def test_bad_names_get_the_rule(name):
    with pytest.raises(ConfigError, match="a name has 1 to 64 letters"):
        check_name(name)
