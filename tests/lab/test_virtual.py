"""The peers' own code in virtual time keeps exact books, and repeats itself to the last bit."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from engine_cases import LOGISTIC as MODEL
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import ConfigError, DivergenceError, TaskError
from oneway.lab.virtual.clock import World, peer_loop
from oneway.lab.virtual.run import Traffic, task_for
from oneway.methods import Batches, Method
from oneway.task.conditions import Conditions, Delay

QUICK = {"rate": 10.0, "delay": Delay.fixed(0.01), "poisson": False}


def network(num_nodes: int, num_rounds: int, receivers: int = 2, seed: int = 3):
    """Samples and a graph."""
    table = ow.streams.synthetic(num_samples=num_nodes * num_rounds, num_features=3, seed=seed)
    graph = ow.TrustGraph.random(num_nodes=num_nodes, max_receivers=receivers, seed=seed)
    return table.table.deal(num_nodes), graph


def run(
    conditions: Conditions, method: Method | None = None, *, nodes=5, rounds=12, seed=0
) -> ow.Run:
    """A small network."""
    stream, graph = network(nodes, rounds)
    method = method or ow.OnlinePushSum(0.3, "capped")
    return ow.virtual_lab(
        method, MODEL, stream, graph, conditions=conditions, seed=seed, progress=False
    )


def traffic(found: ow.Run) -> Traffic:
    return Traffic(**found.record.config["traffic"])


def total_mass(found: ow.Run) -> float:
    return float(found.masses.sum()) + found.record.config["mass_in_flight"]


def digest(found: ow.Run) -> str:
    """A hash of every bit of a run."""
    whole, record = blake2b(digest_size=16), found.record
    for array in (record.loss_sums, record.sample_counts, record.disagreement, found.numerators):
        whole.update(array.tobytes())
    whole.update(found.masses.tobytes() + found.stream.rows.tobytes())
    whole.update(json.dumps(record.config, default=str).encode())
    return whole.hexdigest()


SHARES = st.sampled_from([0.0, 0.0, 0.3])
WORLDS = st.builds(
    Conditions,
    rate=st.sampled_from([2.0, 20.0]),
    unequal=st.sampled_from([0.0, 1.0]),
    poisson=st.booleans(),
    delay=st.sampled_from(["0", "0.05", "exponential:0.1", "uniform:0,2"]),
    loss=st.sampled_from([0.0, 0.1, 0.4]),
    sleepers=SHARES,
    awake=st.just(1.0),
    asleep=st.just(1.0),
    crashes=st.sampled_from([0.0, 0.0, 0.5]),
    down=st.sampled_from([0.3, 3.0]),
    joining=SHARES,
    leaving=SHARES,
    liars=SHARES,
    window=st.sampled_from([None, 1]),
    clip=st.sampled_from([0.5, math.inf]),
    commit=st.sampled_from([0.0, 0.002, 0.2]),
    presume_dead_after=st.sampled_from([1.0, 120.0]),
)
METHODS = st.sampled_from(
    [
        ow.OnlinePushSum(0.3, "capped"),
        ow.Relay(0.3),
        ow.Tracking(0.1),
        ow.OnlinePushSum("auto", batches=Batches(4, 1.0, 0.5, 2)),
        ow.NaiveGossip(0.1),
    ]
)


def test_any_directed_graph_is_accepted_and_keeps_exact_books():
    stream, _ = network(4, 12)
    graph = ow.TrustGraph.from_edges([(0, 1), (1, 0), (1, 2)], 4)
    conditions = Conditions(**QUICK)
    for method in (ow.OnlinePushSum(0.3, "capped"), ow.Relay(0.3, "curvature")):
        found = ow.virtual_lab(method, MODEL, stream, graph, conditions=conditions)
        assert found.record.config["exact_books"] is True


# Without shrinking: each try is two networks, and a smaller one is no clearer.
@settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(conditions=WORLDS, method=METHODS, seed=st.integers(0, 2**20))
def test_books_are_exact_after_any_faults_and_the_same_seed_gives_the_same_bits(
    conditions: Conditions, method: Method, seed: int
) -> None:
    first = run(conditions, method, seed=seed)
    assert first.record.config["exact_books"]
    assert traffic(first).samples == first.record.sample_counts.sum()
    again = run(conditions, method, seed=seed)
    assert digest(again) == digest(first)


def test_another_process_that_hashes_otherwise_computes_the_same_bits() -> None:
    told = {"loss": 0.2, "sleepers": 0.4, "awake": 1.0, "asleep": 0.5, "leaving": 0.3}
    conditions = Conditions(**told)
    here = Path(__file__).parent
    folders = [str(here), str(here.parent / "worlds")]
    script = f"import sys; sys.path[:0] = {folders!r}; " + (
        f"import test_virtual as t; print(t.digest(t.run(t.Conditions(**{told}), nodes=8)))"
    )
    theirs = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": "1234"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert theirs.stdout.strip() == digest(run(conditions, nodes=8))


def test_a_node_without_company_learns_what_the_simulator_learns() -> None:
    """One life, one clock: only the rounding of the books, 2^-40 a step, is between the two."""
    stream, _ = network(4, 30)
    method = ow.Isolated(0.3)
    alone = ow.virtual_lab(method, MODEL, stream, conditions=Conditions(**QUICK))
    known = ow.simulate(method, MODEL, stream)
    assert alone.average_loss == pytest.approx(known.average_loss, rel=1e-12)
    np.testing.assert_allclose(alone.numerators, known.numerators, rtol=1e-12)
    assert traffic(alone).messages == 0


def test_a_network_without_delays_or_faults_suffers_about_what_rounds_suffer() -> None:
    """One push follows a sample, as in a round; but some nodes are ahead by a part of one."""
    method = ow.OnlinePushSum(0.3, "capped")
    told = Conditions(rate=20.0, poisson=False, delay=Delay.fixed(0.0), commit=0.0)
    apart, gains = [], []
    for seed in range(3):
        stream, graph = network(10, 40, receivers=3, seed=seed)
        found = ow.virtual_lab(method, MODEL, stream, graph, conditions=told)
        assert found.record.sample_counts.sum() == 10 * 40
        known = ow.simulate(method, MODEL, stream, graph).average_loss
        apart.append(found.average_loss - known)
        gains.append(ow.simulate(ow.Isolated(0.3), MODEL, stream).average_loss - known)
    assert np.mean(gains) > 0.015
    assert abs(np.mean(apart)) < 0.2 * np.mean(gains)


def test_equal_clocks_come_through_all_their_samples_and_sleepers_do_not() -> None:
    assert run(Conditions(**QUICK)).record.sample_counts.sum() == 5 * 12
    tired = Conditions(**QUICK, sleepers=0.9, awake=0.2, asleep=0.2)
    found = run(tired)
    assert found.record.sample_counts.sum() < 5 * 12
    assert traffic(found).sleeps > 0


def test_a_silent_receiver_is_presumed_dead_and_the_books_are_exact_when_it_is_back() -> None:
    """It slept through the end of the others' patience, and had taken in what they took back."""
    away = Conditions(
        **QUICK, sleepers=0.5, awake=0.4, asleep=20.0, presume_dead_after=0.5, seconds=40.0
    )
    found = run(away, nodes=6, rounds=20)
    assert traffic(found).sleeps > 0
    assert found.record.config["exact_books"]


def test_who_leaves_hands_over_everything() -> None:
    found = run(Conditions(**QUICK, leaving=0.4, seconds=30.0), nodes=6)
    assert traffic(found).left == 2
    assert (found.masses == 0).sum() == 2
    assert total_mass(found) == pytest.approx(6, abs=1e-9)


def test_crashes_forget_nothing_that_was_said_and_no_sample_is_skipped() -> None:
    found = run(Conditions(**QUICK, crashes=0.5, down=0.5, seconds=30.0), nodes=6)
    assert traffic(found).crashes > 0
    assert found.record.config["exact_books"]
    assert found.record.sample_counts.sum() == 6 * 12


def test_a_liar_moves_the_others_and_nobody_can_tell_by_the_books(caplog) -> None:
    honest = run(Conditions(**QUICK, clip=math.inf), nodes=6)
    lied = run(Conditions(**QUICK, clip=math.inf, liars=0.1, lie=50.0), nodes=6)
    assert lied.record.config["exact_books"]
    [liar] = np.flatnonzero((lied.stream.rows < 0).all(axis=0))

    def norm_of_others(found: ow.Run) -> float:
        norms = np.linalg.norm(found.numerators / found.masses[:, None], axis=1)
        return float(np.delete(norms, liar).mean())

    usual = norm_of_others(honest)
    assert norm_of_others(lied) > 3 * usual
    clipped = run(Conditions(**QUICK, clip=0.5, liars=0.1, lie=50.0), nodes=6)
    assert traffic(clipped).clipped > 0
    assert norm_of_others(clipped) < 1.5 * usual
    assert not caplog.records  # of a thousand peers nobody reads what each of them logs


def test_a_method_has_the_same_batches_and_noise_as_in_a_simulation() -> None:
    stream, _ = network(4, 5)
    method = ow.Relay("auto", batches=Batches(4, 1.0, 0.5, 2))
    task = task_for(method, MODEL, stream)
    assert task.build_method().batches == method.batches
    # A peer asks for its own privacy by changing the task.
    assert replace(task, samples_per_push=8).build_method().batches == method.batches
    assert task.samples_per_push == 4
    assert task.privacy
    assert not task_for(ow.Relay("auto"), MODEL, stream).privacy


class Homemade(ow.OnlinePushSum):
    """Registered nowhere."""


def test_what_peers_cannot_run_is_refused_in_a_sentence() -> None:
    stream, graph = network(4, 5)
    with pytest.raises(ConfigError, match="Homemade"):
        task_for(Homemade(0.1), MODEL, stream)
    with pytest.raises(TaskError, match="needs a server"):
        task_for(ow.Centralised(0.1), MODEL, stream)
    with pytest.raises(ConfigError, match="labels of the stream come later"):
        task_for(ow.Relay(0.1), MODEL, stream.delayed(2))
    with pytest.raises(ConfigError, match="one TrustGraph"):
        ow.virtual_lab(ow.Relay(0.1), MODEL, stream, [graph, graph])


def test_an_asynchronous_run_is_a_run_that_is_saved_loaded_and_compared(tmp_path) -> None:
    stream, graph = network(5, 12)
    told = Conditions(**QUICK, clip=math.inf, sleepers=0.4, awake=0.5, asleep=0.5)
    found = ow.virtual_lab(ow.Relay("auto"), MODEL, stream, graph, conditions=told)
    assert found.record.num_rounds == 12
    assert found.record.config["exact_books"] is True
    assert found.record.config["conditions"]["clip"] == "infinite"
    assert found.record.config["virtual_seconds"] == pytest.approx(1.2)
    # The base rate is of the samples that were learned from, and of no others.
    assert (found.stream.rows >= 0).sum() == found.record.sample_counts.sum() < 60
    assert 0.3 < found.base_loss < 2.0
    assert 0.3 < found.alone_loss < 2.0
    loaded = ow.Run.load(found.save(tmp_path / "run"), model=MODEL, stream=stream)
    assert loaded.record.config["traffic"] == found.record.config["traffic"]
    assert loaded.average_loss == found.average_loss
    assert len(ow.compare({"one": found, "other": loaded}).to_frame()) == 2


def test_samples_that_peers_refuse_do_not_vanish_in_silence() -> None:
    with pytest.raises(DivergenceError, match=r"refused \d+ of \d+ samples.*smaller") as caught:
        run(Conditions(**QUICK), ow.OnlinePushSum(1e9))
    error = caught.value
    assert f"round {error.round_index} of node {error.node}" in str(error)


# The clock.


def test_events_of_one_moment_come_by_owner_and_then_as_they_were_called() -> None:
    world, seen = World(), []
    for moment, owner, what in ((2.0, 0, "c"), (1.0, 7, "b"), (1.0, 3, "a"), (2.0, 0, "d")):
        world.at(moment, owner, lambda what=what: seen.append((world.now, what)))
    world.run_until(1.5)
    assert (seen, world.now) == ([(1.0, "a"), (1.0, "b")], 1.5)
    world.run_until(2.0)
    assert [what for _, what in seen] == ["a", "b", "c", "d"]
    assert world.done == 4


async def naps(world, seen, seconds):
    for _ in range(3):
        await asyncio.sleep(seconds)
        seen.append(world.now)


def test_tasks_of_asyncio_run_in_virtual_time_and_sleep_while_their_peer_does() -> None:
    world, seen, others = World(), [], []
    loop = peer_loop(world, 0, 0.0)
    loop.create_task(naps(world, seen, 1.0))
    peer_loop(world, 1, 0.0).create_task(naps(world, others, 1.0))
    world.run_until(1.5)
    loop.stand_still()
    world.run_until(10.0)
    assert seen == pytest.approx([1.0], abs=1e-4)
    assert others == pytest.approx([1.0, 2.0, 3.0], abs=1e-4)
    assert loop.time() == pytest.approx(1.5)
    loop.go_on()
    world.run_until(20.0)
    assert seen == pytest.approx([1.0, 10.5, 11.5], abs=1e-4)


def test_what_a_thread_would_do_takes_as_long_as_a_commit() -> None:
    world, seen = World(commit=0.5), []

    async def write() -> None:
        seen.append(await asyncio.to_thread(lambda: world.now))

    peer_loop(world, 0, 0.0).create_task(write())
    world.run_until(2.0)
    assert seen == pytest.approx([0.5], abs=1e-4)


def test_a_callback_that_fails_ends_the_run() -> None:
    world = World()

    def fail() -> None:
        raise ValueError("as expected")

    peer_loop(world, 0, 0.0).call_soon(fail)
    with pytest.raises(ValueError, match="as expected"):
        world.run_until(1.0)
