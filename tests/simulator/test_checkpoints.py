"""Checkpoints: a run that is cut anywhere, and started again, ends in the same bits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import ConfigError, StoreError
from oneway.methods import Batches
from oneway.methods.transforms import Momentum

MODEL = ow.models.LogisticRegression(l2=1e-2, intercept=True)
ROUNDS, NODES = 60, 13


class CutError(Exception):
    """The power went out."""


@dataclass(frozen=True)
class CutAt:
    """A constant learning rate, on a machine that stops when a round is asked for."""

    rate: float
    cut: list[int] = field(default_factory=list, repr=False, compare=False)

    def __call__(self, index: int) -> float:
        if index in self.cut:
            self.cut.remove(index)
            raise CutError
        return self.rate


def world(seed=1):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((ROUNDS, NODES, 8)).astype(np.float32)
    labels = rng.choice([-1.0, 1.0], (ROUNDS, NODES)).astype(np.float32)
    full = ow.Stream.from_arrays(features, labels)
    rows = np.where(rng.random(full.rows.shape) < 0.2, -1, full.rows)
    graph = ow.TrustGraph.random(NODES, 4, seed=seed)
    return ow.Stream(full.features, full.labels, rows), graph


NOISE = Batches(3, 0.7, 0.8, 5)
CASES = {
    "fast, relay, noise": (ow.Relay, {"batches": NOISE, "mixes": 3}, {"engine": "fast"}),
    "fast, ops": (ow.OnlinePushSum, {}, {"engine": "fast"}),
    "fast, server": (ow.Centralised, {}, {"engine": "fast"}),
    "reference, relay, noise": (ow.Relay, {"batches": NOISE}, {"engine": "reference"}),
    "reference, transform": (
        ow.OnlinePushSum, {"transforms": (Momentum(0.9),)}, {"engine": "reference"},
    ),
    "reference, server": (ow.Centralised, {}, {"engine": "reference"}),
    "reference, tracking": (ow.Tracking, {}, {"engine": "reference"}),
    "delayed, pull": (ow.Pull, {}, {"delays": (1, 4)}),
    "delayed, ops": (ow.OnlinePushSum, {}, {"delays": (2, 3)}),
}  # fmt: skip


def assert_same_bits(one, other):
    assert np.array_equal(one.numerators, other.numerators)
    assert np.array_equal(one.masses, other.masses)
    for name in ("loss_sums", "correct_counts", "disagreement", "sample_counts"):
        assert np.array_equal(getattr(one.record, name), getattr(other.record, name)), name
    assert one.tally.keys() == other.tally.keys()
    for name, array in one.tally.items():
        assert np.array_equal(other.tally[name], array), name


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(sorted(CASES)), cuts=st.lists(st.integers(0, ROUNDS - 1), max_size=4))
def test_a_run_cut_anywhere_and_started_again_ends_in_the_same_bits(
    name, cuts, tmp_path_factory: pytest.TempPathFactory
):
    folder = tmp_path_factory.mktemp("checkpoint")
    kind, told, given_to = CASES[name]
    stream, graph = world()

    def run(cut, **more):
        rate = CutAt(0.1, list(cut))
        return ow.simulate(
            kind(rate, **told), MODEL, stream, graph, seed=3, measure=True, **given_to, **more
        )

    whole = run(())
    for cut in cuts:
        try:
            # The first round asked for is also asked for when the rates are looked over.
            kept = {"checkpoint": folder, "checkpoint_seconds": 0}
            rate = CutAt(0.1)
            method = kind(rate, **told)
            rate.cut.clear()
            _cut_later(rate, cut)
            ow.simulate(method, MODEL, stream, graph, seed=3, measure=True, **given_to, **kept)
        except CutError:
            pass
    resumed = run((), checkpoint=folder, checkpoint_seconds=0)
    assert_same_bits(whole, resumed)


def _cut_later(rate: CutAt, cut: int) -> None:
    """Cut when the round is asked for a second time: all are asked for once, to name the run."""

    class Late(list):
        seen = 0

        def __contains__(self, index: object) -> bool:
            if index == cut:
                self.seen += 1
            return index == cut and self.seen > 1

        def remove(self, _: int) -> None:
            self.seen = -(10**9)

    object.__setattr__(rate, "cut", Late())


CHILD = """
import os, signal, sys
sys.path.insert(0, {here!r})
from test_checkpoints import killed_run
killed_run({engine!r}, {folder!r}, {at})
"""


@dataclass(frozen=True)
class KillsAt:
    """A constant learning rate in a process that kills itself when a round begins."""

    rate: float
    at: int = field(default=-1, repr=False)
    asked: list[int] = field(default_factory=list, repr=False)

    def __call__(self, index: int) -> float:
        if index == self.at:
            self.asked.append(index)
            if len(self.asked) > 1:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.rate


def killed_run(engine: str, folder: str | None, at: int):
    """A run with a checkpoint after every stretch, killed in a round if it is asked for."""
    stream, graph = world()
    kept = {} if folder is None else {"checkpoint": folder, "checkpoint_seconds": 0}
    method = ow.Relay(KillsAt(0.1, at), batches=NOISE)
    return ow.simulate(
        method, MODEL, stream, graph, seed=3, measure=True, engine=engine, progress=False, **kept
    )


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_process_that_is_killed_goes_on_where_it_was(engine, tmp_path):
    folder = tmp_path / "checkpoint"
    script = CHILD.format(here=str(Path(__file__).parent), engine=engine, folder=str(folder), at=40)
    child = subprocess.run([sys.executable, "-c", script], timeout=300, check=False)
    assert child.returncode == -signal.SIGKILL
    stored = json.loads((folder / "checkpoint.json").read_text())
    assert 0 < stored["rounds"] <= 40
    resumed = killed_run(engine, str(folder), -1)
    assert_same_bits(killed_run(engine, None, -1), resumed)


def interrupted(folder, seed=3, rate=0.1, stream=None, **more):
    """A run that ends in its middle, with a checkpoint."""
    given_stream, graph = world()
    method = ow.OnlinePushSum(CutAt(rate))
    _cut_later(method.learning_rate, 30)
    with pytest.raises(CutError):
        ow.simulate(
            method, MODEL, stream or given_stream, graph, seed=seed, engine="reference",
            checkpoint=folder, checkpoint_seconds=0, **more,
        )  # fmt: skip


def again(folder, stream=None, rate=0.1, model=MODEL, **more):
    given_stream, graph = world()
    told = {"seed": 3, "engine": "reference", **more}
    method = ow.OnlinePushSum(CutAt(rate))
    return ow.simulate(method, model, stream or given_stream, graph, checkpoint=folder, **told)


def test_a_checkpoint_of_another_run_is_refused_by_what_differs(tmp_path):
    interrupted(tmp_path)
    stream, _ = world()
    features = stream.features.copy()
    features[7, 3] += 1.0
    others = {
        "learning_rate": {"rate": 0.2},
        r"model\.l2": {"model": ow.models.LogisticRegression(l2=0.5)},
        "seed": {"seed": 4},
        "engine": {"engine": "fast"},
        "measure": {"measure": True},
        "features|checksum": {"stream": ow.Stream(features, stream.labels, stream.rows)},
    }
    for name, changed in others.items():
        with pytest.raises(StoreError, match=f"another run: .*({name})"):
            again(tmp_path, **changed)
    assert again(tmp_path).complete


def test_rates_that_are_named_alike_and_differ_are_told_apart(tmp_path):
    @dataclass(frozen=True)
    class Secret:
        rate: float = field(repr=False)

        def __call__(self, _: int) -> float:
            return self.rate

    stream, graph = world()
    for rate, complaint in ((0.1, None), (0.2, "learning_rates")):
        method = ow.OnlinePushSum(Secret(rate))
        given_to = {"checkpoint": tmp_path, "checkpoint_seconds": 0, "engine": "reference"}
        if complaint is None:
            ow.simulate(method, MODEL, stream, graph, **given_to)
        else:
            with pytest.raises(StoreError, match=complaint):
                ow.simulate(method, MODEL, stream, graph, **given_to)


@pytest.mark.parametrize("name", ["checkpoint.json", "nodes", "measurements"])
@pytest.mark.parametrize("damage", ["cut short", "flipped", "emptied"])
def test_a_damaged_checkpoint_is_named(name, damage, tmp_path):
    interrupted(tmp_path)
    [path] = [it for it in tmp_path.iterdir() if it.name.startswith(name)]
    content = bytearray(path.read_bytes())
    middle = content.index(b"\x93NUMPY") + 200 if path.suffix == ".npz" else len(content) // 2
    if damage == "flipped":
        content[middle] ^= 0xFF
    kept = {"cut short": content[: len(content) // 2], "flipped": content, "emptied": b""}[damage]
    path.write_bytes(kept)
    with pytest.raises(StoreError, match=rf"{name}.*damaged.*delete checkpoint\.json"):
        again(tmp_path)


def changed(**told):
    """A manifest in which some things are others."""

    def change(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), **told}))

    return change


def compressed_by_nobody(path: Path) -> None:
    """The method of compression in both headers of the first array is one that is not known."""
    content = bytearray(path.read_bytes())
    content[8] = content[content.index(b"PK\x01\x02") + 10] = 99
    path.write_bytes(content)


def encrypted(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def an_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("checkpoint.json", changed(rounds=np.inf)),
        ("checkpoint.json", changed(rounds=-5)),
        ("checkpoint.json", changed(files={"measurements": 5, "nodes": 7})),
        ("checkpoint.json", lambda path: path.write_text("[" * 100_000)),
        ("checkpoint.json", lambda path: path.write_text("null")),
        ("nodes", compressed_by_nobody),
        ("nodes", encrypted),
        ("nodes", an_array),
    ],
)
def test_whatever_else_is_wrong_with_a_file_is_damage_too(name, damage, tmp_path):
    interrupted(tmp_path)
    damage(next(it for it in tmp_path.iterdir() if it.name.startswith(name)))
    with pytest.raises(StoreError, match=rf"{name}.*damaged.*delete checkpoint\.json"):
        again(tmp_path)


def test_half_written_files_of_a_crash_are_of_no_account_and_go(tmp_path):
    interrupted(tmp_path)
    (tmp_path / "nodes-31.draft").write_bytes(b"half")
    (tmp_path / "nodes-31.npz").write_bytes(b"and this was never named")
    (tmp_path / ".checkpoint.json.0123abcd").write_bytes(b"{")
    run = again(tmp_path, checkpoint_seconds=0)
    assert run.complete
    left = {it.name for it in tmp_path.iterdir()}
    named = json.loads((tmp_path / "checkpoint.json").read_text())["files"].values()
    assert left == {"checkpoint.json", "checkpoint.lock", *named}


def test_files_of_others_in_the_folder_stay(tmp_path):
    theirs = {"mydata.npz", "letter.draft", "nodes.npz", "my-nodes-3.npz", ".checkpoint.json.mine"}
    for name in theirs:
        (tmp_path / name).write_text("mine")
    (tmp_path / "nodes-99.draft").mkdir()
    assert again(tmp_path, checkpoint_seconds=0).complete
    for name in theirs:
        assert (tmp_path / name).read_text() == "mine"
    assert (tmp_path / "checkpoint.json").exists()


def test_a_folder_is_one_runs_at_a_time(tmp_path):
    stream, graph = world()
    refused = []

    def other(index: int) -> float:
        if index == 5 and not refused and (tmp_path / "checkpoint.json").exists():
            with pytest.raises(StoreError, match="another run uses the checkpoint"):
                again(tmp_path)
            refused.append(index)
        return 0.1

    ow.simulate(
        ow.OnlinePushSum(other), MODEL, stream, graph, engine="reference",
        checkpoint=tmp_path, checkpoint_seconds=0,
    )  # fmt: skip
    assert refused
    (tmp_path / "checkpoint.json").unlink()
    assert again(tmp_path).complete


def test_seeds_of_numpy_are_seeds(tmp_path):
    plain = again(tmp_path / "plain", seed=4, checkpoint_seconds=0)
    found = again(tmp_path / "plain", seed=np.int64(4))
    assert np.array_equal(found.numerators, plain.numerators)
    assert again(tmp_path / "two", seed=np.array([1, 2])).record.config["seed"] == [1, 2]
    for wrong in (-1, 1.5, "x", None):
        with pytest.raises(ConfigError, match="seed is"):
            again(tmp_path / "none", seed=wrong)


def test_a_checkpoint_of_another_format_is_refused(tmp_path):
    interrupted(tmp_path)
    path = tmp_path / "checkpoint.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(StoreError, match="format 99"):
        again(tmp_path)


def test_bad_folders_and_seconds_are_named(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ConfigError, match=r"file.* cannot be made"):
        again(blocked / "inside")
    with pytest.raises(ConfigError, match="checkpoint_seconds is -1"):
        again(tmp_path, checkpoint_seconds=-1)
    for wrong in (5, ""):
        with pytest.raises(ConfigError, match=f"checkpoint is {wrong!r}"):
            again(wrong)
