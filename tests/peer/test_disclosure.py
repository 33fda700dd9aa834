"""What a status lets its readers find out about samples: an attack that knows all but the labels.

The attacker has the features, the model before every sample, and every status that was disclosed.
Between two of them it weighs every pattern of labels that fits by what the model expected, and
takes for each label the one that is more probable then: no attacker with these facts does better.
"""

from __future__ import annotations

import asyncio
import json
import math
import stat
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

import httpx
import numpy as np
import pytest
from builders import make_status, replace
from hypothesis import given
from hypothesis import strategies as st
from plain import PLAIN
from real_peers import until

from oneway.peer.api.app import build_app
from oneway.peer.disclosure import WINDOW, disclosed, disclosed_curve, unchanged
from oneway.peer.peer import Peer
from oneway.records.curve import Curve
from oneway.records.status import Status
from oneway.tables import Number
from oneway.task.task import Task

NUM_SAMPLES = 150
TASK = Task("logistic", "y", (Number("u"), Number("v")), ("no", "yes"), **PLAIN)
PATTERNS = (np.arange(2**WINDOW)[:, None] >> np.arange(WINDOW)) & 1

Disclose = Callable[[Status, Status | None], Status]


@dataclass(frozen=True)
class Stream:
    """Labels, predictions, the losses that each label would have had, and the statuses."""

    labels: np.ndarray
    predicted: np.ndarray
    losses: np.ndarray
    statuses: list[Status]
    curve: Curve


@pytest.fixture(scope="module", params=range(4))
def stream(request, tmp_path_factory) -> Stream:
    """A peer that learns noisy labels."""
    rng = np.random.default_rng(request.param)
    labels, predicted, losses, statuses = [], [], [], []
    with Peer.create(tmp_path_factory.mktemp("peers") / "alice", TASK) as peer:
        for _ in range(NUM_SAMPLES):
            u, v = rng.normal(size=2)
            x, label = {"u": float(u), "v": float(v)}, int(u + rng.normal() > 0)
            shares = peer.predict_proba_one(x)
            losses.append([-math.log(shares["no"]), -math.log(shares["yes"])])
            labels.append(label)
            predicted.append(int(peer.predict_one(x) == "yes"))
            assert peer.learn_one(x, ("no", "yes")[label]) == pytest.approx(losses[-1][label])
            statuses.append(peer.status())
        arrays = map(np.array, (labels, predicted, losses))
        return Stream(*arrays, statuses, peer.curve())


def exactly(status: Status, _: Status | None) -> Status:
    """Wrong: everything as it is."""
    return status


def rounded_every_sample(status: Status, _: Status | None) -> Status:
    """Wrong: three significant digits and nothing else."""
    loss, share = status.average_loss, status.accuracy
    return replace(status, average_loss=float(f"{loss:.3g}"), accuracy=float(f"{share:.3g}"))


def exactly_by_window(status: Status, before: Status | None) -> Status:
    """Wrong: windows, and all digits."""
    measured = before.measured_samples if before else 0
    return status if status.samples - measured >= WINDOW else unchanged(status, before)


def as_it_is(status: Status, before: Status | None) -> Status:
    """What a peer does; its recent losses begin with its life."""
    return disclosed(status, before, min(status.samples, 200))


def half_steps(status: Status, disclose: Disclose) -> tuple[float, float]:
    """How far the sums of losses and of right predictions may be from what a status says."""
    loss, samples = status.average_loss, status.measured_samples
    if disclose is as_it_is:
        steps = [grid(max(8 / samples, 1e-3) * scale) for scale in (loss, 1.0)]
    elif disclose is rounded_every_sample:
        told = (loss, status.accuracy)
        steps = [10.0 ** (math.floor(math.log10(it)) - 2) if it else 0.0 for it in told]
    else:
        steps = [0.0, 0.0]
    return samples * steps[0] / 2 + 1e-9, samples * steps[1] / 2 + 1e-9


def grid(least: float) -> float:
    return min(
        digit * 10.0**power
        for power in range(-6, 3)
        for digit in (1, 2, 5)
        if digit * 10.0**power >= least * (1 - 1e-9)
    )


def attack(stream: Stream, disclose: Disclose) -> float:
    """The share of labels that are guessed right, of those that a status covers."""
    seen = [make_status(average_loss=0.0, accuracy=0.0)]
    last: Status | None = None
    for exact in stream.statuses:
        last = disclose(exact, last)
        if last.average_loss is not None and last.measured_samples != seen[-1].measured_samples:
            seen.append(last)
    guesses = [_guessed(stream, one, other, disclose) for one, other in pairwise(seen)]
    return float((np.concatenate(guesses) == stream.labels[: seen[-1].measured_samples]).mean())


def _guessed(stream: Stream, one: Status, other: Status, disclose: Disclose) -> np.ndarray:
    first, end = one.measured_samples, other.measured_samples
    patterns = PATTERNS[: 2 ** (end - first), : end - first]
    losses, predicted = stream.losses[first:end], stream.predicted[first:end]
    suffered = np.where(patterns, losses[:, 1], losses[:, 0]).sum(axis=1)
    right = (patterns == predicted).sum(axis=1)
    room = np.array(half_steps(other, disclose))
    if first:
        room += half_steps(one, disclose)
    loss_sum = end * other.average_loss - first * one.average_loss
    right_sum = end * other.accuracy - first * one.accuracy
    fits = (abs(suffered - loss_sum) <= room[0]) & (abs(right - right_sum) <= room[1])
    chances = np.exp(-suffered) * fits
    return (chances @ patterns > 0.5 * chances.sum()).astype(int)


def guess(stream: Stream, count: int) -> float:
    """The same without any status: as the model predicts."""
    return float((stream.predicted == stream.labels)[:count].mean())


WRONG = [exactly, exactly_by_window, rounded_every_sample]


@pytest.mark.parametrize("disclose", WRONG, ids=lambda it: it.__name__)
def test_statuses_with_more_digits_or_shorter_windows_tell_every_label(stream, disclose):
    assert guess(stream, NUM_SAMPLES) < 0.8
    assert attack(stream, disclose) == 1.0


def test_what_is_disclosed_tells_hardly_more_than_the_model(stream):
    covered = NUM_SAMPLES - NUM_SAMPLES % WINDOW
    assert attack(stream, as_it_is) <= guess(stream, covered) + 0.04


def test_no_count_and_no_share_of_few_samples_is_disclosed(stream):
    last = None
    for exact in stream.statuses:
        last = as_it_is(exact, last)
        counts: list[int] = []
        if last.measures is not None:
            counts += [*chain(*last.measures.confusion)]
            counts += [it for of in last.measures.classes for it in (of.samples, of.predicted)]
            counts += [it.samples for it in last.measures.calibration]
            assert last.measures.so_far.samples == last.measured_samples
        assert not any(it % WINDOW for it in counts)
        assert last.samples == exact.samples
    assert last.measured_samples == NUM_SAMPLES - NUM_SAMPLES % WINDOW
    assert last.average_loss == pytest.approx(stream.statuses[-1].average_loss, rel=0.1)


def test_a_curve_is_disclosed_in_whole_windows(stream):
    found = disclosed_curve(stream.curve)
    whole = NUM_SAMPLES // WINDOW
    assert (found.width, found.samples) == (WINDOW, whole * WINDOW)
    assert len(found.loss_sums) == len(found.correct) == len(found.times) == whole
    exact = np.reshape(stream.curve.loss_sums[: whole * WINDOW], (whole, WINDOW)).sum(axis=1)
    assert not np.isclose(found.loss_sums, exact, rtol=1e-6).any()
    np.testing.assert_allclose(found.loss_sums, exact, rtol=0.6)
    assert disclosed_curve(Curve()) == Curve(width=WINDOW)


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(1, 30))
def test_however_often_a_peer_starts_again_windows_are_no_shorter(new_samples, restart):
    """A restart only has the status on the disk, and losses of its own life."""
    samples, life, before, measured = 0, 0, None, [0]
    for number, new in enumerate(new_samples):
        samples, life = samples + new, life + new
        exact = make_status(
            samples=samples,
            measured_samples=samples,
            average_loss=1 / (1 + samples),
            recent_loss=1 / (1 + life),
        )
        before = disclosed(exact, before, life)
        if before.measured_samples != measured[-1]:
            measured.append(before.measured_samples)
            assert (before.recent_loss is None) == (life < WINDOW)
        if number % restart == 0:
            life = 0
    assert all(after - one >= WINDOW for one, after in pairwise(measured))


def test_status_json_is_for_its_owner_only_and_goes_on_where_it_was(tmp_path):
    folder = tmp_path / "alice"
    rows = [({"u": float(at % 3), "v": 1.0}, ("no", "yes")[at % 2]) for at in range(WINDOW + 1)]
    with Peer.create(folder, TASK) as peer:
        peer.learn_many([{**x, "y": y} for x, y in rows[:WINDOW]])
        first = peer.disclosed_status()
    path = peer.home.status_path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with Peer(folder) as peer:
        peer.learn_one(*rows[WINDOW])
        again = peer.disclosed_status()
        assert peer.status().average_loss != again.average_loss
    written = json.loads(path.read_text())
    assert written["samples"] == WINDOW + 1
    assert written["average_loss"] == first.average_loss == again.average_loss
    assert written["measured_samples"] == WINDOW


# --- everything that a running peer answers ---

Numbers = dict[str, float]
READ = ("/status", "/curve", "/metrics")


def numbers_in(value: object, name: str = "") -> Numbers:
    """Every number of an answer by its path; of a list that grows, by its place from the end."""
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = ((at - len(value), it) for at, it in enumerate(value[-3:], len(value[:-3])))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return {name: float(value)}
    else:
        return {}
    return {path: it for key, of in parts for path, it in numbers_in(of, f"{name}.{key}").items()}


def numbers_of_text(text: str) -> Numbers:
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(number) for name, _, number in lines}


async def everything(client: httpx.AsyncClient, peer: Peer) -> Numbers:
    """Every number that can be read: of status.json, and of each answer of the local API."""
    texts = {path: (await client.get(path)).text for path in READ}
    found = numbers_of_text(texts.pop("/metrics"))
    texts["status.json"] = peer.home.status_path.read_text()
    for path, text in texts.items():
        found |= numbers_in(json.loads(text), path)
    return found


@dataclass(frozen=True)
class Watched:
    """What a reader saw before and after every sample, and what it wants to know."""

    seen: list[Numbers]
    labels: np.ndarray
    predicted: np.ndarray
    losses: np.ndarray


def watched(folder: Path, *, exact: bool) -> Watched:
    rng, seen = np.random.default_rng(7), []
    labels, predicted, losses = [], [], []
    Peer.create(folder, TASK).close()

    async def watch(peer: Peer) -> None:
        transport = httpx.ASGITransport(build_app(peer))
        url = "http://127.0.0.1:8701"
        async with httpx.AsyncClient(transport=transport, base_url=url) as client:
            seen.append(await everything(client, peer))
            for _ in range(NUM_SAMPLES):
                u, v = rng.normal(size=2)
                x, label = {"u": float(u), "v": float(v)}, int(u + rng.normal() > 0)
                shares = peer.predict_proba_one(x)
                labels.append(label)
                predicted.append(int(shares["yes"] > 0.5))
                losses.append([-math.log(shares["no"]), -math.log(shares["yes"])])
                peer.learn_one(x, ("no", "yes")[label])
                seen.append(await everything(client, peer))

    with Peer(folder, exact_status=exact) as peer:
        until(peer.home.status_path.exists, "a first status")
        asyncio.run(watch(peer))
    return Watched(seen, *map(np.array, (labels, predicted, losses)))


def told_apart(watched: Watched) -> dict[str, float]:
    """For every number that is read, the share of labels that its changes give away.

    A number is tried as a mean over all samples, as a sum and as the last sample's own, and its
    change as the loss of a sample, as whether a prediction was right, and as the label itself.
    """
    counts = np.arange(1, len(watched.labels) + 1)
    found = {}
    for name in watched.seen[-1]:
        values = np.array([it.get(name, 0.0) for it in watched.seen])
        before, after = values[:-1], values[1:]
        with np.errstate(all="ignore"):
            changes = [counts * after - (counts - 1) * before, after - before, after]
        rates = []
        for change in changes:
            of_losses = abs(watched.losses - change[:, None]).argmin(axis=1)
            of_right = np.where(abs(change - 1) < 0.5, watched.predicted, 1 - watched.predicted)
            guesses = [of_losses, of_right, change > 0.5]
            # What did not change tells nothing; then the model's own guess is the best.
            guesses = [np.where(before != after, it, watched.predicted) for it in guesses]
            rates += [float((it == watched.labels).mean()) for it in guesses]
        found[name] = max(rates)
    return found


def test_no_number_that_a_running_peer_answers_tells_samples_apart(tmp_path):
    hidden = watched(tmp_path / "alice", exact=False)
    model = float((hidden.predicted == hidden.labels).mean())
    assert model < 0.8
    best = told_apart(hidden)
    assert max(best.values()) <= model + 0.04, max(best, key=best.__getitem__)


def test_the_same_numbers_exactly_tell_every_sample_apart(tmp_path):
    best = told_apart(watched(tmp_path / "alice", exact=True))
    names = ("/status.average_loss", "status.json.accuracy", "oneway_average_loss")
    assert [best[it] for it in names] == [1.0] * 3
    assert best["/curve.loss_sums.-1"] > 0.99
