"""The keys of a task about privacy: what they may be, and which sentence says so."""

from __future__ import annotations

import pytest
from plain import PLAIN_TOML

from oneway.errors import ConfigError, TaskError
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.settings import read_settings
from oneway.task.task import Task

TEXT = """\
label = "y"
classes = ["0", "1"]
model = "logistic"
[features]
x = {}
"""
BAD_PRIVACY = {
    "an epsilon of zero": ("", "[privacy]\nepsilon = 0", "epsilon .*is 0; .* above 0"),
    "a negative epsilon": ("", "[privacy]\nepsilon = -1", "epsilon .*is -1; .* above 0"),
    "an epsilon as text": ("", "[privacy]\nepsilon = 'low'", "epsilon .*is 'low'"),
    "an epsilon that is no number": ("", "[privacy]\nepsilon = nan", "epsilon .*is nan"),
    "an infinite epsilon": ("", "[privacy]\nepsilon = inf", "epsilon .*is inf"),
    "a delta of zero": ("", "[privacy]\ndelta = 0", "delta .*is 0; .* at least 1e-12"),
    "a delta of one": ("", "[privacy]\ndelta = 1", "delta .*is 1; .* below 1"),
    "a clip of zero": ("", "[privacy]\nclip = 0", "clip .*is 0"),
    "a negative clip": ("", "[privacy]\nclip = -1.5", "clip .*is -1.5"),
    "a clip that is another word": ("", "[privacy]\nclip = 'much'", "clip .*is 'much'"),
    "a band of zero": ("", "[privacy]\nband = 0", "band .*is 0"),
    "another unit": ("", "[privacy]\nunit = 'person'", "unit .*is 'person'"),
    "a group without a column": ("", "[privacy]\nunit = 'group'", 'unit is "group" and group is '),
    "a column without groups": ("", "[privacy]\ngroup = 'who'", "group is 'who' and unit is"),
    "records without groups": ("", "[privacy]\nrecords_per_group = 3", "records_per_group is set"),
    "no records of a group": (
        "", "[privacy]\nunit='group'\ngroup='who'\nrecords_per_group = 0", "records_per_gr.*is 0"
    ),
    "a misspelt key of the privacy": ("", "[privacy]\nepsilom = 1", "'epsilom'.*'epsilon'"),
    "another word for none": ("privacy = 'off'\n", "", "privacy .*is 'off'; it must be \"none\""),
    "privacy as a number": ("privacy = 8\n", "", "privacy .*is 8; it must be \"none\""),
    "a push of no samples": ("samples_per_push = 0\n", "", "samples_per_push .*is 0; .* least 1"),
    "a push of half a sample": ("samples_per_push = 0.5\n", "", "samples_per_push .*is 0.5"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "message"), BAD_PRIVACY.values(), ids=BAD_PRIVACY)
def test_bad_privacy_gets_a_sentence_that_names_key_value_and_file(before, after, message):
    with pytest.raises(TaskError, match=message) as caught:
        Task.parse(before + TEXT + after)
    assert "task.toml" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("before", "after", "message"), BAD_PRIVACY.values(), ids=BAD_PRIVACY)
def test_bad_privacy_is_refused_in_settings_too(before, after, message, tmp_path):
    (tmp_path / "task.toml").write_text(before + TEXT + after)
    with pytest.raises(ConfigError, match=message):
        read_settings(tmp_path / "task.toml", {})


def test_none_is_written_out_by_hand():
    assert Task.parse(TEXT).privacy == Privacy()
    task = Task.parse(PLAIN_TOML + TEXT)
    assert (task.privacy, task.samples_per_push) == (NO_PRIVACY, 1)
    assert task.build_method().batches is None
    assert not task.privacy
    assert task.privacy.guarantee is None
    assert "samples can be read" in task.privacy.brief


def test_privacy_none_cannot_be_had_together_with_an_epsilon():
    with pytest.raises(TaskError, match="Cannot overwrite"):
        Task.parse(PLAIN_TOML + TEXT + "[privacy]\nepsilon = 1")
    with pytest.raises(ConfigError, match=r'privacy is "none" and epsilon is 1.0; leave out one'):
        read_settings(None, {"privacy": "none", "epsilon": 1.0})


def test_flags_change_what_a_file_says_key_by_key(tmp_path):
    path = tmp_path / "task.toml"
    path.write_text(TEXT + "[privacy]\nepsilon = 2\ndelta = 1e-6")
    assert read_settings(path, {}).privacy == Privacy(epsilon=2.0, delta=1e-6)
    assert read_settings(path, {"epsilon": 1.0}).privacy == Privacy(epsilon=1.0, delta=1e-6)
    assert read_settings(path, {"privacy": "none"}).privacy == NO_PRIVACY
    path.write_text(PLAIN_TOML + TEXT)
    assert read_settings(path, {}).privacy == NO_PRIVACY
    assert read_settings(path, {"epsilon": 1.0}).privacy == Privacy(epsilon=1.0)
    assert read_settings(path, {"epsilon": 1.0}).samples_per_push == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epsilon", 0.0), ("epsilon", -1.0), ("epsilon", float("nan")), ("epsilon", float("inf")),
        ("delta", 0.0), ("delta", 1.0), ("delta", 2.0), ("clip", 0.0), ("clip", -1.0), ("band", 0),
        ("records_per_group", 0), ("unit", "person"),
    ],
)  # fmt: skip
def test_a_bad_value_is_named_wherever_it_comes_from(key, value):
    with pytest.raises(ConfigError, match=f"{key} is "):
        Privacy(**{key: value})
    with pytest.raises(ConfigError, match=f"{key} is "):
        read_settings(None, {key: value})


def test_delta_must_suit_the_number_of_samples():
    Privacy(delta=1e-5).check_samples(100_000)
    with pytest.raises(ConfigError, match=r"delta is 1e-05 and 100,001 samples .*: choose 1e-06"):
        Privacy(delta=1e-5).check_samples(100_001)
    NO_PRIVACY.check_samples(10**12)
