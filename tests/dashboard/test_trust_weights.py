"""Which weights the page takes: those that a peer can be told, and no others."""

from __future__ import annotations

import pytest

from oneway.dashboard.peer.trust import weight_problem
from oneway.errors import ConfigError
from oneway.peer.home.config import Receiver
from oneway.peer.identity.card import Card

BOB = Card(bytes(range(32)), "127.0.0.1", 7702, "bob")


@pytest.mark.parametrize("text", ["1", " 2.5 ", "1e-6", "1e6"])
def test_a_weight_that_the_page_takes_can_be_told_to_a_peer(text):
    assert weight_problem(text) is None
    assert Receiver(BOB, float(text)).weight == float(text)


@pytest.mark.parametrize("text", ["0", "-1", "1e308", "1e-320", "1000001", "0." + "0" * 30 + "1"])
def test_an_impossible_weight_gets_the_rule_of_the_configuration(text):
    said = weight_problem(text)
    assert said is not None
    with pytest.raises(ConfigError, match="the weight of bob is") as refused:
        Receiver(BOB, float(text))
    assert said.partition("; ")[2] == str(refused.value).partition("; ")[2]


@pytest.mark.parametrize("text", ["much", "", None, "nan", "1,5"])
def test_what_is_no_number_is_no_weight(text):
    assert weight_problem(text) is not None
