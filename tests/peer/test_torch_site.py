"""Device, threads and backend are every site's own matter: in peer.toml, and in no agreement."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from oneway.errors import ConfigError
from oneway.peer.home.config import PeerConfig
from oneway.peer.home.config_file import config_toml, parse_config
from oneway.peer.home.home import Home
from oneway.peer.home.own_privacy import OwnPrivacy
from oneway.peer.home.torch_site import TorchSite
from oneway.task.task import Feature, Task

pytest.importorskip("torch", reason="the extra torch is not installed")

OWN = {"device": "cpu", "threads": 2, "backend": "loop"}


def torch_task(**own: object) -> Task:
    options = {"module": "nets:network", **own}
    features = tuple(map(Feature, "abcd"))
    return Task("torch", "y", features, ("-1", "1"), options={"torch": options})


def older(**own: object) -> str:
    """A task.toml as it was when tasks had such options."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in own.items()]
    return torch_task().to_toml() + "\n".join([*lines, ""])


def test_a_task_is_the_same_whatever_a_site_says():
    plain, told = torch_task(), torch_task(**OWN)
    assert told == plain
    assert told.fingerprint == plain.fingerprint
    assert told.to_toml() == plain.to_toml()
    assert told.fields() == plain.fields()
    model = told.build_model()
    assert (model.device, model.threads, model.backend) == ("cpu", 2, "loop")
    assert replace(told, learning_rate=0.5).build_model().threads == 2
    assert told.sealed().site == OWN


def test_an_older_task_file_is_read_and_what_it_says_for_all_is_not_followed():
    said: list[str] = []
    task = Task.parse(older(**OWN), "old.toml", said.append)
    assert task == torch_task()
    assert task.fingerprint == torch_task().fingerprint
    assert task.build_model().threads == 1
    assert len(said) == len(OWN)
    assert all("old.toml" in sentence and "[torch]" in sentence for sentence in said)


def test_a_peer_goes_by_its_own_file(tmp_path: Path):
    home = Home.create(tmp_path / "ada", "ada", torch_task(), "127.0.0.1:7701")
    assert home.task().site == {"device": "auto", "threads": 1, "backend": "auto"}
    text = home.config_path.read_text()
    assert "threads = 1" in text
    home.config_path.write_text(text.replace("threads = 1", "threads = 3"))
    assert home.task().build_model().threads == 3
    assert home.task().fingerprint == torch_task().fingerprint
    home.change(lambda config: replace(config, keep=0.25))
    assert home.task().site["threads"] == 3


def test_what_a_task_in_memory_says_goes_into_the_file_of_the_peer(tmp_path: Path):
    home = Home.create(tmp_path / "ada", "ada", torch_task(**OWN), "127.0.0.1:7701")
    assert home.config().torch == TorchSite(**OWN)
    assert home.task().site == OWN


def test_a_new_peer_of_an_older_task_file_is_told_what_is_not_followed(tmp_path: Path):
    path, said = tmp_path / "task.toml", []
    path.write_text(older(device="cuda"))
    home = Home.create(tmp_path / "ada", "ada", path, "127.0.0.1:7701", note=said.append)
    assert ["device" in sentence for sentence in said] == [True]
    assert home.task().build_model().device == "auto"


@pytest.mark.parametrize(
    ("line", "culprit"),
    [("threads = 0", "threads"), ('backend = "fast"', "backend"), ("cores = 2", "cores")],
)
def test_what_a_site_cannot_say_is_named(line, culprit):
    text = config_toml(PeerConfig("ada", "127.0.0.1:7701"))
    with pytest.raises(ConfigError, match=culprit):
        parse_config(f"{text}\n[torch]\n{line}\n")


def test_a_peer_of_another_model_has_no_such_table():
    config = PeerConfig("ada", "127.0.0.1:7701")
    assert "[torch]" not in config_toml(config, "logistic").split("\n")
    assert parse_config(config_toml(config, "torch")) == config
    told = replace(config, torch=TorchSite(threads=4))
    assert parse_config(config_toml(told)) == told


def test_a_running_peer_says_which_tables_it_does_not_follow():
    before = PeerConfig("ada", "127.0.0.1:7701")
    after = replace(before, torch=TorchSite(threads=4), privacy=OwnPrivacy(epsilon=1.0))
    assert [it.split()[0] for it in after.unfollowed(before, before.privacy)] == [
        "[privacy]",
        "[torch]",
    ]
    assert not after.unfollowed(after, before.privacy)
    assert not before.unfollowed(replace(after, torch=TorchSite()), before.privacy)
