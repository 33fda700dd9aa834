"""`oneway lab --virtual`: conditions are flags, and the books are exact."""

from __future__ import annotations

from dataclasses import fields

import pytest

import oneway as ow
from oneway.task.conditions import Conditions

SMALL = ("lab", "--data", "synthetic", "--nodes", 4, "--samples", 10, "--virtual", "--rate", 5)


def test_flags_are_the_conditions_and_the_run_is_stored(oneway, tmp_path):
    told = ("--sleepers", 0.5, "--unequal", 1, "--no-poisson", "--push-clip", 2, "--loss", 0.1)
    result = oneway(*SMALL, *told, "--json", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    config = result.json["config"]
    assert config["exact_books"] is True
    expected = Conditions(rate=5.0, loss=0.1, sleepers=0.5, unequal=1.0, poisson=False, clip=2.0)
    assert config["conditions"] == expected.describe()
    assert ow.Run.load(tmp_path / "run").average_loss == result.json["average_loss"]


def test_the_books_are_shown(oneway):
    assert "exact, to the last unit" in oneway(*SMALL).out


def test_there_is_a_flag_for_every_condition(oneway, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    help_text = oneway("lab", "--help").out
    for field in fields(Conditions):
        name = {"clip": "push_clip"}.get(field.name, field.name)
        assert f"--{name.replace('_', '-')}" in help_text


@pytest.mark.parametrize(
    ("flags", "culprit"),
    [((*SMALL, "--kill-every", "5s"), "--kill-every"), (("lab", "--sleepers", 0.1), "sleepers")],
)
def test_what_does_not_go_together_is_one_sentence(oneway, flags, culprit):
    result = oneway(*flags)
    assert result.code != 0
    assert culprit in result.err
    assert len(result.err.strip().splitlines()) == 1
