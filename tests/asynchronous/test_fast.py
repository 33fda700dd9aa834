"""The compiled event loop: equal to a literal transcription, conserving mass, repeatable."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from literal_events import Literal

import oneway as ow
from oneway.asynchronous.conditions import Conditions
from oneway.asynchronous.fast import run_fast
from oneway.asynchronous.outcome import Outcome
from oneway.asynchronous.roles import Roles
from oneway.errors import ConfigError, TaskError
from oneway.methods import Batches, Isolated, OnlinePushSum, Pull, Relay, Tracking
from oneway.models import Hinge, LogisticRegression, RidgeRegression

WORLDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "equal clocks, fixed delays": {"poisson": False, "delay": 0.03},
    "loss": {"loss": 0.3},
    "in order": {"ordered": True, "loss": 0.1},
    "narrow": {"bandwidth": 20_000.0},
    "sleep": {"sleepers": 0.5, "awake": 1.0, "asleep": 1.0, "presume_dead_after": 0.6},
    "crashes": {"crashes": 0.5, "down": 0.5, "commit": 0.05},
    "crashes and deaths": {
        "crashes": 0.5, "down": 0.9, "commit": 0.02, "presume_dead_after": 0.5, "loss": 0.2,
    },
    "joining": {"joining": 0.4},
    "leaving": {"leaving": 0.4},
    "joining and leaving": {"joining": 0.4, "leaving": 0.4, "loss": 0.2},
    "liars": {"liars": 0.2},
    "deaths": {"loss": 0.5, "presume_dead_after": 0.3},
    "one push at a time": {"window": 1},
    "no clip": {"clip": np.inf, "liars": 0.2},
    "slow disks": {"rate": 100.0, "commit": 0.02, "seconds": 1.0},
    "everything": {
        "crashes": 0.3, "down": 0.5, "sleepers": 0.3, "awake": 1.0, "asleep": 1.0, "joining": 0.3,
        "leaving": 0.3, "loss": 0.2, "presume_dead_after": 0.5, "liars": 0.1, "unequal": 1.0,
        "bandwidth": 50_000.0, "ordered": True,
    },
}  # fmt: skip
METHODS = {
    "relay": Relay(0.3, "curvature"),
    "ops": OnlinePushSum(0.3, "curvature"),
    "pull": Pull(0.3, "capped"),
}


def problem(num_nodes: int = 8, rounds: int = 30, seed: int = 0) -> tuple[ow.Stream, ow.TrustGraph]:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((rounds, num_nodes, 3))
    labels = np.where(
        features @ [1.0, -2.0, 0.5] + rng.standard_normal(features.shape[:2]) > 0, 1, -1
    )
    graph = ow.TrustGraph.random(num_nodes, min(4, num_nodes - 1), seed=seed)
    return ow.Stream.from_arrays(features, labels.astype(float)), graph


def run(method: Any, conditions: Conditions, seed: int = 3, bins: int = 4, **given: Any) -> Outcome:
    stream, graph = problem(**given)
    return run_fast(method, LogisticRegression(), stream, graph, conditions, seed, bins=bins)


def gap(method: Any, world: dict[str, Any], model: Any = None, wrong: str = "") -> float:
    """How far the loop is from the transcription; infinite if another number of things happened."""
    stream, graph = problem()
    model, conditions = model or LogisticRegression(), Conditions(**world)
    found = run_fast(method, model, stream, graph, conditions, 3, bins=3)
    told = Literal(method, model, stream, graph, conditions, 3, wrong).run()
    counts = {it.name for it in fields(found.traffic)} - {"mean_round_trip", "rejected"}
    if any(getattr(found.traffic, name) != told.tally[name] for name in counts):
        return np.inf
    masses = np.array([node.held[told.dim] for node in told.nodes])
    numerators = np.array([node.held[: told.dim] for node in told.nodes])
    if told.n.copied:
        numerators *= masses[:, None]
    numerators[masses <= 0] = 0.0
    return max(
        np.abs(found.masses - masses).max(),
        np.abs(found.numerators - numerators).max(),
        abs(found.loss_sums.sum() - sum(loss for _, loss in told.losses)),
        abs(found.mass_in_flight - told.in_flight),
        abs(found.traffic.mean_round_trip - np.mean(told.trips)) if told.trips else 0.0,
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("world", WORLDS)
def test_the_loop_equals_the_literal_transcription(method: str, world: str) -> None:
    assert gap(METHODS[method], WORLDS[world]) < 1e-9


@pytest.mark.parametrize(
    ("method", "model"),
    [
        (OnlinePushSum(0.1, "paper", batches=Batches(4, 1.0, 0.3, 3)), LogisticRegression()),
        (Relay("auto", "curvature", batches=Batches(2)), Hinge()),
        (OnlinePushSum("auto", "mass"), RidgeRegression()),
        (Relay(lambda k: 0.3 / (1 + k), "capped", mixes=2, deposit="mass"), RidgeRegression()),
        (Isolated(0.1, "curvature"), LogisticRegression(intercept=False)),
    ],
    ids=["noise", "auto hinge", "auto ridge", "schedule", "alone"],
)
@pytest.mark.parametrize("world", ["plain", "everything"])
def test_so_it_does_for_batches_noise_rates_and_models(method: Any, model: Any, world: str) -> None:
    assert gap(method, WORLDS[world], model) < 1e-9


@pytest.mark.parametrize(
    ("wrong", "world"),
    [
        ("mass in flight is not counted", "plain"),
        ("what is lost is not said again", "loss"),
        ("stale totals are absorbed", "plain"),
        ("a liar mints", "liars"),
        ("the dead keep what they never acknowledged", "deaths"),
        ("a crash keeps what nobody was told", "crashes"),
    ],
)
def test_a_transcription_with_a_mistake_differs(wrong: str, world: str) -> None:
    assert gap(METHODS["relay"], WORLDS[world], wrong=wrong) > 1e-6


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_mass_in_hand_and_in_flight_is_what_was_brought(data: st.DataObject) -> None:
    rarely = st.sampled_from([0.0, 0.0, 0.3, 0.6])
    names = ("loss", "sleepers", "crashes", "joining", "leaving", "liars", "unequal")
    conditions = Conditions(
        **{name: data.draw(rarely) for name in names},
        awake=0.5,
        asleep=0.7,
        down=0.4,
        presume_dead_after=data.draw(st.sampled_from([0.2, 0.6, 120.0])),
        commit=data.draw(st.sampled_from([0.0, 0.002, 0.1])),
        window=data.draw(st.sampled_from([None, 1, 3])),
        ordered=data.draw(st.booleans()),
        poisson=data.draw(st.booleans()),
        bandwidth=data.draw(st.sampled_from([np.inf, 30_000.0])),
        delay=data.draw(st.sampled_from(["0", "0.05", "exponential:0.2"])),
    )
    method = METHODS[data.draw(st.sampled_from(sorted(METHODS)))]
    seed = data.draw(st.integers(0, 1000))
    size = data.draw(st.integers(2, 9))
    outcome = run(method, conditions, seed=seed, num_nodes=size, rounds=20)
    minted = np.count_nonzero(Roles.draw(conditions, size, 2.0, seed).joins <= 0.0)
    total = outcome.masses.sum() + outcome.mass_in_flight
    assert np.isclose(total, round(total), atol=1e-9)
    assert minted - 1e-9 <= total <= minted + outcome.traffic.joined + 1e-9
    assert (outcome.masses >= 0.0).all()


def test_a_run_is_a_function_of_its_seed_whatever_its_stretches(monkeypatch) -> None:
    conditions = Conditions(**WORLDS["everything"])
    first = run(METHODS["relay"], conditions)
    monkeypatch.setattr("oneway.asynchronous.fast._FIRST_STRETCH", 1)
    monkeypatch.setattr("oneway.simulator.snapshots.InOneProcess.pace", 0.0)
    second, other = run(METHODS["relay"], conditions), run(METHODS["relay"], conditions, seed=4)
    assert first.traffic == second.traffic
    for name in ("loss_sums", "numerators", "masses", "disagreement"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    assert not np.array_equal(first.masses, other.masses)


def test_bins_add_up_to_the_same_whatever_their_number() -> None:
    few, many = (run(METHODS["ops"], Conditions(loss=0.1), bins=bins) for bins in (1, 7))
    assert few.traffic == many.traffic
    assert np.isclose(few.loss_sums.sum(), many.loss_sums.sum())
    assert few.sample_counts.sum() == many.sample_counts.sum() == few.traffic.samples


def test_there_may_be_any_number_of_short_bins() -> None:
    """How many events are run at once must not double with every bin that ends early."""
    many = run(METHODS["ops"], Conditions(rate=100.0), bins=100, num_nodes=4)
    assert (len(many.loss_sums), many.complete) == (100, True)


def test_without_delays_and_with_equal_clocks_it_learns_as_in_rounds() -> None:
    stream, graph = problem(num_nodes=20, rounds=200)
    conditions = Conditions(poisson=False, delay=0.0, commit=0.0)
    for method in (Relay(0.1, "curvature"), OnlinePushSum(0.1, "curvature")):
        rounds = ow.simulate(method, LogisticRegression(), stream, graph, progress=False)
        found = run_fast(method, LogisticRegression(), stream, graph, conditions, 0, bins=4)
        loss = found.loss_sums.sum() / found.sample_counts.sum()
        assert abs(loss / float(rounds.average_loss) - 1) < 0.03


@pytest.mark.parametrize(
    ("method", "culprit"),
    [
        (Tracking(0.1), "Tracking"),
        (OnlinePushSum(0.1, transforms=(ow.methods.transforms.TRANSFORMS["adagrad"](),)), "transf"),
    ],
)
def test_what_the_loop_does_not_know_is_refused_by_name(method: Any, culprit: str) -> None:
    with pytest.raises(ConfigError, match=culprit) as told:
        run(method, Conditions())
    assert "exact" in str(told.value)


def test_liars_learn_nothing_so_that_baselines_are_of_the_honest_ones() -> None:
    found = run(METHODS["ops"], Conditions(liars=0.5))
    assert found.learned.sum() == found.sample_counts.sum() > 0
    assert (found.learned == 0).sum() == 4


def test_what_lies_centuries_ahead_stops_nothing() -> None:
    found = run(METHODS["ops"], Conditions(crashes=1e-9, awake=1e9, sleepers=0.2))
    assert found.sample_counts.sum() > 100


def test_what_neither_level_knows_is_not_sent_from_one_to_the_other() -> None:
    with pytest.raises(TaskError, match="server"):
        run(ow.Centralised(0.1), Conditions())
