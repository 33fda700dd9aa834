"""A peer as a library: learn and predict in river's manner, durable in the end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from plain import PLAIN_TOML
from unused_address import unused_address

import oneway as ow
from oneway.errors import DataError, OnewayError
from oneway.methods import METHODS
from oneway.peer.home.home import Home
from oneway.peer.offline import stored_model
from oneway.peer.store.store import read_snapshot

TASK = f"""
{PLAIN_TOML}label = "late"
classes = ["no", "yes"]
model = "logistic"
learning_rate = 0.3
[features]
rain = {{}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "task.toml").write_text(TASK)
    home = Home.create(tmp_path / "alice", "alice", tmp_path / "task.toml", unused_address())
    return home.folder


def test_a_peer_learns_and_predicts_one_sample_at_a_time(folder):
    with ow.Peer(folder) as peer:
        first = peer.learn_one({"rain": 1.0}, "yes")
        for _ in range(50):
            peer.learn_one({"rain": 1.0}, "yes")
            peer.learn_one({"rain": -1.0}, "no")
        assert peer.learn_one({"rain": 1.0}, "yes") < 0.5 * first
        assert peer.predict_one({"rain": 2.0}) == "yes"
        assert peer.predict_one({"rain": -2.0}) == "no"
        probabilities = peer.predict_proba_one({"rain": 2.0})
        assert sum(probabilities.values()) == pytest.approx(1.0)
        assert probabilities["yes"] > 0.8
        assert peer.status().samples == 102
    assert read_snapshot(folder / "peer.sqlite").journal.samples == 102


@pytest.mark.skipif(os.cpu_count() == 1, reason="one core has one thread anyway")
def test_a_running_peer_multiplies_with_one_thread(folder):
    script = """
import sys, threadpoolctl, oneway
def threads():
    return [it["num_threads"] for it in threadpoolctl.threadpool_info() if it["user_api"] == "blas"]
with oneway.Peer(sys.argv[1]):
    print(*threads())
print(*threads())
"""
    two = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", script, str(folder)]
    ended = subprocess.run(command, env=two, capture_output=True, text=True, timeout=60)
    assert ended.stdout.split() == ["1", "2"], ended.stderr


def test_what_was_learned_is_kept_even_if_the_peer_never_ran(folder):
    peer = ow.Peer(folder)
    peer.learn_one({"rain": 1.0}, "yes")
    peer.close()
    again = ow.Peer(folder)
    assert again.node.snapshot.journal.samples == 1
    assert again.predict_one({"rain": 1.0}) == "yes"
    again.close()


def test_a_sample_that_cannot_be_used_changes_nothing(folder):
    peer = ow.Peer(folder)
    before = peer.node.snapshot
    with pytest.raises(DataError, match="the sample has no feature 'rain'"):
        peer.learn_one({"sun": 1.0}, "yes")
    assert peer.node.snapshot is before
    peer.close()


def test_a_peer_that_does_not_run_says_so(folder):
    peer = ow.Peer(folder)
    with pytest.raises(OnewayError, match="the peer is not running"):
        peer.status()
    peer.close()


@pytest.mark.parametrize(
    "method", [name for name in METHODS if METHODS[name].exchange != "average"]
)
def test_the_model_on_the_disk_predicts_like_the_peer_whatever_its_method_sends(folder, method):
    home = Home.open(folder)
    home.task_path.write_text(TASK.replace('method = "ops"', f'method = "{method}"'))
    peer = ow.Peer(folder)
    for _ in range(5):
        peer.learn_one({"rain": 1.0}, "yes")
    said = {flag: peer.predict_proba_one({"rain": 2.0}, momentary=flag) for flag in (True, False)}
    peer.close()
    for flag, shares in said.items():
        assert stored_model(home, momentary=flag).predict_proba_one({"rain": "2.0"}) == shares
