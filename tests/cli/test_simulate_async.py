"""`oneway simulate --async`: conditions are flags, and the result is a run like any other."""

from __future__ import annotations

from dataclasses import fields

import pytest

import oneway as ow
from oneway.task.conditions import Conditions

SMALL = ("simulate", "--data", "synthetic", "--nodes", 6, "--rounds", 10, "--async")


def test_flags_are_the_conditions_and_the_run_is_stored(oneway, tmp_path):
    told = ("--sleepers", 0.5, "--unequal", 1, "--no-poisson", "--window", 2)
    result = oneway(*SMALL, *told, "--push-clip", 2, "--json", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    config = result.json["config"]
    assert config["engine"] == "asynchronous"
    expected = Conditions(sleepers=0.5, unequal=1.0, poisson=False, window=2, clip=2.0)
    assert config["conditions"] == expected.describe()
    assert ow.Run.load(tmp_path / "run").average_loss == result.json["average_loss"]


def test_there_is_a_flag_for_every_condition(oneway, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    help_text = oneway("simulate", "--help").out
    for field in fields(Conditions):
        name = {"clip": "push_clip"}.get(field.name, field.name)
        assert f"--{name.replace('_', '-')}" in help_text


@pytest.mark.parametrize(
    ("flags", "culprit"),
    [
        (("--delay", "-1"), "delay"),
        (("--loss", "1"), "loss"),
        (("--rate", "0"), "rate"),
        (("--engine", "fast"), "engine"),
        (("--method", "col"), "server"),
    ],
)
def test_bad_input_is_one_sentence(oneway, flags, culprit):
    result = oneway(*SMALL, *flags)
    assert result.code != 0
    assert culprit in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert result.out == ""


def test_conditions_without_async_are_not_ignored(oneway):
    result = oneway("simulate", "--data", "synthetic", "--rounds", 5, "--loss", 0.1)
    assert result.code != 0
    assert "--async" in result.err
