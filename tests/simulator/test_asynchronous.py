"""The asynchronous network as arrays: lockstep where nothing is asynchronous, and sums that hold.

How near it comes to the peers' own code is tested where that runs: `tests/lab/test_virtual.py`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal_network import Shifted, some_graph, some_stream

import oneway as ow
from oneway.errors import ConfigError
from oneway.methods import METHODS, Batches
from oneway.simulator.asynchronous import TICKS, AsynchronousEngine, Links, Schedule
from oneway.simulator.measurements import Measurements
from oneway.task.conditions import Conditions

MODEL = Shifted(l2=1e-2)
LOGISTIC = ow.models.LogisticRegression()
FAR = np.iinfo(np.int64).max // 4
CALM = {"rate": 1.0, "delay": "0", "commit": 0.0, "clip": math.inf}
"""Everything arrives by the next tick."""

SHARES = st.sampled_from([0.0, 0.0, 0.3])
WORLDS = st.builds(
    Conditions,
    rate=st.sampled_from([0.1, 1.0, 10.0]),
    unequal=st.sampled_from([0.0, 1.0]),
    poisson=st.booleans(),
    delay=st.sampled_from(["0", "0.05", "lognormal:0.5,1", "exponential:3"]),
    loss=SHARES,
    sleepers=SHARES,
    awake=st.sampled_from([1.0, 30.0]),
    asleep=st.sampled_from([1.0, 30.0]),
    crashes=st.sampled_from([0.0, 0.05]),
    down=st.sampled_from([0.3, 10.0]),
    joining=SHARES,
    leaving=SHARES,
    liars=SHARES,
    window=st.sampled_from([None, 1]),
    clip=st.sampled_from([0.5, math.inf]),
    presume_dead_after=st.sampled_from([2.0, 120.0]),
)


def everybody_always(num_ticks: int, num_nodes: int) -> Schedule:
    """All are there, and come to a sample in every tick."""
    rounds = np.repeat(np.arange(num_ticks)[:, None], num_nodes, axis=1)
    no_ticks, nobody = np.zeros(num_nodes, int), np.zeros(num_nodes, bool)
    up = np.ones((num_ticks, num_nodes), bool)
    return Schedule(1.0, rounds, up, no_ticks, np.full(num_nodes, FAR), nobody)


def engine_for(method, stream, conditions, schedule=None, seed=0, model=MODEL):
    schedule = schedule or Schedule.draw(conditions, stream.num_rounds, stream.num_nodes, seed)
    blank = Measurements.blank(schedule.num_ticks)
    of_ticks = schedule.stream(stream)
    return AsynchronousEngine(method, model, of_ticks, blank, seed, conditions, schedule)


@pytest.mark.parametrize("name", [it for it in METHODS if it != "col"])
@given(seed=st.integers(0, 10**6), batches=st.sampled_from([None, Batches(1), Batches(3)]))
@settings(max_examples=8)
def test_with_samples_everywhere_and_no_delays_it_is_lockstep(name, seed, batches):
    """What is pushed in a tick is there before the next one: not a tick later."""
    graph, stream = some_graph(6, seed), some_stream(6, 15, seed)
    method = METHODS[name](0.2, batches=batches)
    engine = engine_for(method, stream, Conditions(**CALM), everybody_always(15, 6), seed)
    engine.advance(0, 15, method.shares(graph))
    lockstep = ow.simulate(method, MODEL, stream, graph, engine="reference", seed=seed)
    if batches != Batches(3):
        np.testing.assert_allclose(engine.state.estimates, lockstep.estimates, rtol=1e-11)
        np.testing.assert_allclose(engine.state.masses, lockstep.masses, rtol=1e-11)
        losses = engine.measurements.loss_sums
        np.testing.assert_allclose(losses, lockstep.record.loss_sums, rtol=1e-11)
    elif method.payload:
        # In rounds all push every time; nodes on their own after steps, and to pass on.
        assert np.abs(engine.state.estimates - lockstep.estimates).max() < 1.0


@settings(max_examples=25)
@given(
    conditions=WORLDS,
    kind=st.sampled_from([ow.OnlinePushSum, ow.Relay]),
    batches=st.sampled_from([None, Batches(3, 1.0, 0.5)]),
    seed=st.integers(0, 10**6),
    one_way=st.booleans(),
)
def test_mass_is_what_was_minted_less_what_was_burned_under_any_conditions(
    conditions, kind, batches, seed, one_way
):
    stream = some_stream(6, 10, seed, 0.2)
    graph = some_graph(6, seed)
    if one_way:
        graph = ow.TrustGraph.from_edges([(0, 1), (1, 0), (1, 2), (3, 4)], 6)
    method = kind(0.1, "curvature", batches=batches).suited_to_peers()
    engine, mixing = engine_for(method, stream, conditions, seed=seed), method.shares(graph)
    for tick in range(engine.schedule.num_ticks):
        engine.advance(tick, tick + 1, mixing)
        held = engine.held.segments["mass"]
        assert (held >= 0.0).all()
        total = held.sum() + engine.mass_in_flight
        assert total == pytest.approx(engine.minted - engine.burned, rel=1e-9)


def test_no_step_is_lost_under_way():
    """Of steps that nobody deposits, those held and those under way are all that were taken."""
    conditions = Conditions(loss=0.3, sleepers=0.3, awake=5.0, asleep=5.0, clip=math.inf)
    graph, stream = some_graph(6, 1), some_stream(6, 40, 1)
    method = ow.Relay(0.1, amount=1e-300).suited_to_peers()
    engine, mixing = engine_for(method, stream, conditions), method.shares(graph)
    taken = 0
    for tick in range(engine.schedule.num_ticks):
        engine.advance(tick, tick + 1, mixing)
        taken += (engine.stream.rows[tick] >= 0).sum()
        count = engine.held.segments["count"].sum() + engine.under_way("count")[0]
        assert count == pytest.approx(taken, rel=1e-9)
    assert taken > 100


def test_trackers_and_what_is_under_way_sum_to_the_momenta():
    conditions = Conditions(loss=0.3, sleepers=0.3, awake=5.0, asleep=5.0)
    graph, stream = some_graph(6, 4), some_stream(6, 40, 4)
    method = ow.Tracking(0.1)
    engine, mixing = engine_for(method, stream, conditions), method.shares(graph)
    for tick in range(engine.schedule.num_ticks):
        engine.advance(tick, tick + 1, mixing)
        trackers = engine.held.segments["tracker"].sum(axis=0) + engine.under_way("tracker")
        momenta = engine.held.memory["momentum"].sum(axis=0)
        np.testing.assert_allclose(trackers, momenta, rtol=1e-9, atol=1e-11)
    assert np.abs(momenta).max() > 0


@given(conditions=WORLDS, seed=st.integers(0, 10**6))
@settings(max_examples=8)
def test_the_same_seed_gives_the_same_bits(conditions, seed):
    graph, stream = some_graph(6, seed), some_stream(6, 10, seed)
    runs = [
        ow.simulate(ow.Relay("auto"), LOGISTIC, stream, graph, conditions=conditions, seed=seed)
        for _ in range(2)
    ]
    for name in ("loss_sums", "sample_counts", "disagreement", "numerators", "masses"):
        one, other = (getattr(run.record, name) for run in runs)
        np.testing.assert_array_equal(one, other)


# Schedules.


@settings(max_examples=30)
@given(conditions=WORLDS, seed=st.integers(0, 10**6))
def test_a_node_comes_to_its_rounds_in_order_and_only_while_it_is_there(conditions, seed):
    plan = Schedule.draw(conditions, 20, 8, seed)
    ticks = np.arange(plan.num_ticks)
    for node in range(8):
        there = plan.rounds[:, node] >= 0
        found = plan.rounds[there, node]
        np.testing.assert_array_equal(found, np.arange(len(found)))
        assert plan.up[there, node].all()
        assert (ticks[there] >= plan.joins[node]).all()
        assert (ticks[there] < plan.leaves[node]).all()


def test_samples_come_at_the_rate_asked_for():
    spread = Schedule.draw(Conditions(), 400, 50, 1).rounds
    assert spread.max(axis=0).mean() == pytest.approx(400, rel=0.05)
    assert np.std(np.diff(np.flatnonzero(spread[:, 0] >= 0))) > 1.0
    even = Schedule.draw(Conditions(poisson=False), 100, 20, 1).rounds
    assert (even.max(axis=0) == 99).all()
    assert set(np.diff(np.flatnonzero(even[:, 0] >= 0))) == {TICKS}


def test_sleepers_sleep_their_share_of_the_time_and_crashed_nodes_are_down_for_a_while():
    told = Conditions(rate=1.0, sleepers=0.5, awake=10.0, asleep=30.0)
    up = Schedule.draw(told, 2000, 40, 1).up
    assert np.sort(up.mean(axis=0))[:20].mean() == pytest.approx(0.25, abs=0.03)
    assert (up.mean(axis=0) == 1.0).sum() == 20
    down = ~Schedule.draw(Conditions(rate=1.0, crashes=0.01, down=5.0), 2000, 40, 1).up
    assert down.mean() == pytest.approx(5.0 / 105.0, rel=0.1)


def test_labels_that_come_late_are_learned_from_when_they_have_come():
    graph, stream = some_graph(4, 2), some_stream(4, 20, 2)
    told = Conditions(**CALM, poisson=False)
    run = ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream.delayed(3), graph, conditions=told)
    assert run.stream.late is not None
    known, seen = ((it >= 0).sum(axis=0) for it in (run.stream.late, run.stream.rows))
    np.testing.assert_array_equal(known, seen - 3)


# What happens to nodes.


def run_with(method=None, nodes=8, rounds=40, seed=3, graph=None, **told):
    stream = ow.streams.synthetic(num_samples=nodes * rounds, num_features=4, seed=seed)
    dealt = stream.table.deal(nodes, seed=seed)
    graph = graph or ow.TrustGraph.random(nodes, 3, seed=seed)
    method = method or ow.Relay("auto")
    return ow.simulate(method, LOGISTIC, dealt, graph, conditions=Conditions(**told), seed=seed)


def test_newcomers_bring_a_unit_of_mass_and_leavers_hand_over_all_they_hold():
    run = run_with(rate=1.0, joining=0.5, leaving=0.25)
    config = run.record.config
    assert (run.masses == 0.0).sum() >= 1
    assert config["mass_minted"] >= 8 - 1e-9
    total = run.masses.sum() + config["mass_in_flight"]
    assert total == pytest.approx(config["mass_minted"] - config["mass_burned"], rel=1e-9)
    assert np.isfinite(run.average_loss)


def test_nodes_without_samples_pass_on_what_they_receive():
    """Without that, all mass ends up in the nodes without samples, or in those with."""
    rows = np.full((300, 3), -1)
    rows[:, 0] = np.arange(300)
    rng = np.random.default_rng(0)
    stream = ow.Stream(rng.standard_normal((300, 2)), rng.choice([-1.0, 1.0], 300), rows)
    told = Conditions(**CALM)
    method = ow.OnlinePushSum(0.1)
    run = ow.simulate(method, MODEL, stream, ow.TrustGraph.ring(3), conditions=told)
    assert run.masses.min() > 0.2
    assert run.masses.sum() + run.record.config["mass_in_flight"] == pytest.approx(3.0, abs=0.5)


@pytest.mark.parametrize("method", [ow.OnlinePushSum(0.3), ow.Relay(0.3), ow.Pull(0.3)])
def test_a_liar_moves_the_others_less_with_a_clip(method):
    def norms(**told):
        run = run_with(method, rate=1.0, **told)
        honest = (run.stream.rows >= 0).any(axis=0)
        return float(np.linalg.norm(run.estimates[honest], axis=1).mean())

    honest = norms(clip=math.inf)
    lied = norms(clip=math.inf, liars=0.1, lie=50.0)
    clipped = norms(clip=0.5, liars=0.1, lie=50.0)
    assert lied > 3 * honest
    assert clipped < 0.5 * lied


def test_long_delays_and_losses_cost_and_faults_do_not_break_the_run():
    usual = run_with(rate=10.0, rounds=160).average_loss
    slow = run_with(rate=10.0, rounds=160, delay="5").average_loss
    assert slow > usual
    alone = run_with(ow.Isolated("auto"), rate=10.0, rounds=160)
    assert alone.record.config["mass_in_flight"] == 0.0


def test_of_copies_that_overtake_each_other_the_newest_counts():
    method, graph = ow.Pull(0.1), ow.TrustGraph.from_edges([(0, 1), (1, 0)], 2)
    state = method.start(np.array([[10.0], [0.0]]))
    plan, rng = everybody_always(9, 2), np.random.default_rng(0)
    slow, quick = (Conditions(delay=it, commit=0.0, clip=math.inf) for it in ("4", "0"))
    links = Links(method, method.shares(graph), state, slow, plan)
    acting = np.array([True, False])
    links.push(state, acting, 0, rng)
    links._conditions = quick
    links.push(method.start(np.array([[20.0], [0.0]])), acting, 1, rng)
    links.keep_copies(links.mail.due(2))
    assert not len(links.mail.due(9).edges)  # the older one came with the newer one, not after it
    averaged = links.averaged(method.start(np.zeros((2, 1))))
    np.testing.assert_array_equal(averaged.segments["model"], [[0.0], [10.0]])


def test_a_push_is_repeated_after_longer_and_longer_waits_until_it_arrives():
    graph, stream = some_graph(4, 1), some_stream(4, 30, 1)
    method = ow.OnlinePushSum(0.1).suited_to_peers()
    flying = []
    for loss in (0.0, 0.6):
        told = Conditions(rate=10.0, loss=loss)
        engine = engine_for(method, stream, told)
        engine.advance(0, 30, method.shares(graph))
        flying.append(engine.mass_in_flight)
    assert flying[1] > flying[0]


# The result, and what is refused.


def test_a_run_is_saved_loaded_measured_and_compared(tmp_path):
    run = run_with(sleepers=0.4, awake=5.0, asleep=5.0, clip=math.inf)
    config = run.record.config
    assert config["engine"] == "asynchronous"
    assert config["conditions"]["clip"] == "infinite"
    assert config["virtual_seconds"] == pytest.approx(4.0)
    assert run.record.num_rounds == TICKS * 40
    assert (run.stream.rows >= 0).sum() == run.record.sample_counts.sum() < 8 * 40
    assert 0.3 < run.base_loss < 1.0
    assert 0.5 < run.measures.accuracy < 1.0
    loaded = ow.Run.load(run.save(tmp_path / "run"), model=LOGISTIC, stream=run.stream)
    assert loaded.average_loss == run.average_loss
    assert len(ow.compare({"one": run, "other": loaded}).to_frame()) == 2


def test_personal_predictions_are_of_the_same_samples():
    stream = ow.streams.synthetic(num_samples=400, num_features=4, seed=3).table.deal(8)
    told = Conditions(loss=0.2)
    graph = ow.TrustGraph.random(8, 3, seed=3)
    run = ow.simulate(
        ow.Relay("auto"), LOGISTIC, stream, graph, conditions=told, personal=True, measure=True
    )
    np.testing.assert_array_equal(run.personal.counts, run.record.sample_counts)
    assert run.personal_loss < run.base_loss


@pytest.mark.parametrize(
    ("told", "culprit"),
    [
        ({"conditions": (1, 3)}, "conditions are"),
        ({"conditions": Conditions(), "engine": "fast"}, "engine is"),
        ({"conditions": Conditions(), "engine": "reference"}, "engine is"),
    ],
)
def test_what_does_not_go_together_is_refused(told, culprit):
    with pytest.raises(ConfigError, match=culprit):
        ow.simulate(ow.Relay(0.1), MODEL, some_stream(4, 5, 1), some_graph(4, 1), **told)


def test_an_asynchronous_network_has_no_server_and_one_graph():
    stream, graph = some_stream(4, 5, 1), some_graph(4, 1)
    with pytest.raises(ConfigError, match="server"):
        ow.simulate(ow.Centralised(0.1), MODEL, stream, conditions=Conditions())
    with pytest.raises(ConfigError, match="one TrustGraph"):
        ow.simulate(ow.Relay(0.1), MODEL, stream, [graph, graph], conditions=Conditions())
