"""A network in parts, which are plain objects here: the bits of one process, whatever the parts."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import ClusterError, ConfigError, DivergenceError, GraphError
from oneway.methods import Batches
from oneway.methods.step_rules import Capped
from oneway.simulator.checkpoint import Checkpoint
from oneway.simulator.fast_engine import NO_EDGES, routes_of
from oneway.simulator.measurements import Measurements
from oneway.simulator.network import Network
from oneway.simulator.part_routes import Partition, split_routes
from oneway.simulator.parts_engine import LocalHands, PartsEngine
from oneway.simulator.raw_rows import num_classes
from oneway.simulator.run_loop import RunLoop
from oneway.simulator.snapshots import LostPartError
from oneway.simulator.tallying import Tallying

MODEL = ow.models.LogisticRegression(l2=1e-2, intercept=True)
METHODS = {
    "ops": ow.OnlinePushSum(0.2),
    "ops, curvature, three mixes": ow.OnlinePushSum(0.9, step="curvature", mixes=3),
    "ops, noise": ow.OnlinePushSum(0.2, batches=Batches(3, 0.7, 0.8, 5)),
    "relay": ow.Relay(ow.InverseSqrt(0.5), step=Capped(0.4)),
    "relay by mass, two mixes": ow.Relay(0.2, deposit="mass", amount=0.6, mixes=2),
    "relay, chosen rate, batches": ow.Relay("auto", batches=Batches(4)),
    "pull": ow.Pull(0.2),
    "both ways": ow.MutualGossip(0.2, mixes=2),
    "one way, no mass": ow.NaiveGossip(0.05),
    "alone": ow.Isolated(0.3),
}


def some_stream(num_nodes, num_rounds, seed, holes=0.2, late=False):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num_rounds, num_nodes, 8)).astype(np.float32)
    labels = rng.choice([-1.0, 1.0], (num_rounds, num_nodes)).astype(np.float32)
    full = ow.Stream.from_arrays(features, labels)
    rows = np.where(rng.random(full.rows.shape) < holes, -1, full.rows)
    stream = ow.Stream(full.features, full.labels, rows)
    return stream.delayed(rng.integers(0, 4, rows.shape)) if late else stream


def in_parts(method, stream, graph, part_of, *, every=3, cuts=(), model=MODEL, seed=3):
    """The engine after all rounds, advanced from cut to cut, and what it has measured."""
    told = model.told(stream.dim, stream.labels)
    tallying = Tallying(told, stream, num_classes(told, stream))
    measured = Measurements.blank(stream.num_rounds, tallying)
    engine = PartsEngine(
        method, told, stream, measured, seed,
        partition=Partition.of(part_of), hands=LocalHands(), every=every,
    )  # fmt: skip
    network, done = Network(method, graph, stream), 0
    for last in (*sorted(set(cuts) - {0}), stream.num_rounds):
        for begin, end, mixing in network.stretches(done, last):
            engine.advance(begin, end, mixing)
        done = last
    return engine, measured


def assert_same_bits(run, engine, measured, every=3):
    state = engine.state
    assert np.array_equal(state.numerators, run.numerators)
    assert np.array_equal(state.masses, run.masses)
    assert np.array_equal(measured.loss_sums, run.record.loss_sums)
    if run.accuracy is not None:
        assert np.array_equal(measured.correct_counts, run.record.correct_counts)
    last = len(measured.disagreement) - 1
    known = [at for at in range(last + 1) if (at + 1) % every == 0 or at == last]
    assert np.flatnonzero(~np.isnan(measured.disagreement)).tolist() == known
    assert np.array_equal(measured.disagreement[known], run.disagreement[known])
    assert measured.tallying.tally.keys() == run.tally.keys()
    for name, array in run.tally.items():
        assert np.array_equal(measured.tallying.tally[name], array)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(METHODS)),
    num_nodes=st.integers(2, 40),
    most_parts=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    every=st.integers(1, 9),
    late=st.booleans(),
    cuts=st.sets(st.integers(1, 12), max_size=3),
)
def test_any_graph_in_any_parts_has_the_bits_of_one_process(
    name, num_nodes, most_parts, seed, every, late, cuts
):
    rng = np.random.default_rng(seed)
    method = METHODS[name]
    late = late and name in ("ops", "relay")
    stream = some_stream(num_nodes, 13, seed, late=late)
    graph = ow.TrustGraph.random(num_nodes, min(5, num_nodes - 1), seed=seed)
    found = rng.integers(0, most_parts, num_nodes)
    part_of = np.unique(found, return_inverse=True)[1]
    run = ow.simulate(method, MODEL, stream, graph, engine="fast", seed=3, measure=True)
    engine, measured = in_parts(method, stream, graph, part_of, every=every, cuts=cuts)
    assert_same_bits(run, engine, measured, every)


@pytest.mark.parametrize("model", [ow.models.RidgeRegression(), ow.models.Hinge(intercept=False)])
def test_other_linear_models_and_graphs_that_take_turns(model):
    stream = some_stream(17, 20, 5, holes=0.0)
    graphs = [ow.TrustGraph.random(17, max_receivers=5, seed=seed) for seed in range(3)]
    part_of = np.arange(17) % 3
    method = ow.OnlinePushSum(0.1)
    run = ow.simulate(method, model, stream, graphs, engine="fast", seed=3, measure=True)
    engine, measured = in_parts(method, stream, graphs, part_of, model=model)
    assert_same_bits(run, engine, measured)


def test_more_graphs_than_parts_remember(monkeypatch):
    monkeypatch.setattr("oneway.simulator.parts_engine._REMEMBERED", 2)
    stream = some_stream(9, 12, 5)
    graphs = [ow.TrustGraph.random(9, max_receivers=3, seed=seed) for seed in range(5)]
    method = ow.Relay(0.1)
    run = ow.simulate(method, MODEL, stream, graphs, engine="fast", seed=3, measure=True)
    assert_same_bits(run, *in_parts(method, stream, graphs, np.arange(9) // 4))


class FailingHands(LocalHands):
    """Parts that are lost at given calls, counted over all their lives."""

    def __init__(self, failures):
        self.failures, self.calls, self.begun = set(failures), 0, 0

    def begin(self, setups, num_parts):
        self.begun += 1
        super().begin(setups, num_parts)

    def get(self, promises):
        self.calls += 1
        if self.calls in self.failures:
            self._parts = []
            raise LostPartError("part 1 was lost")
        return super().get(promises)


def looped(hands, stream, graph, method, folder=None):
    """A run of three parts through the loop that restores them, with or without checkpoints."""
    told = MODEL.told(stream.dim, stream.labels)
    measured = Measurements.blank(stream.num_rounds, Tallying(told, stream, 2))
    engine = PartsEngine(
        method, told, stream, measured, 3,
        partition=Partition.of(np.arange(stream.num_nodes) % 3), hands=hands, every=3,
    )  # fmt: skip
    kept = None if folder is None else Checkpoint(folder, 0, {"run": "this"})
    loop = RunLoop(engine, Network(method, graph, stream), measured, stream.num_rounds, kept)
    loop.run("rounds", False)
    return loop, engine, measured


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    failures=st.sets(st.integers(1, 60), max_size=3), kept=st.booleans(), seed=st.integers(0, 99)
)
def test_parts_that_are_lost_cost_rounds_and_no_bit(failures, kept, seed, tmp_path_factory):
    stream, graph = some_stream(11, 13, seed), ow.TrustGraph.random(11, 3, seed=seed)
    method, hands = METHODS["relay, chosen rate, batches"], FailingHands(failures)
    folder = tmp_path_factory.mktemp("kept") if kept else None
    loop, engine, measured = looped(hands, stream, graph, method, folder)
    assert loop.restarts == hands.begun - 1
    assert loop.restarts == sum(call <= hands.calls for call in failures)
    hands.failures.clear()
    run = ow.simulate(method, MODEL, stream, graph, engine="fast", seed=3, measure=True)
    assert_same_bits(run, engine, measured)


def test_parts_that_are_lost_again_and_again_end_the_run_with_a_sentence():
    stream, graph = some_stream(11, 13, 1), ow.TrustGraph.ring(11)
    hands = FailingHands(range(2, 99))
    with pytest.raises(ClusterError, match=r"part 1 was lost after round \d+, 4 times"):
        looped(hands, stream, graph, ow.OnlinePushSum(0.1))


@pytest.mark.parametrize("name", ["ops", "alone", "relay by mass, two mixes"])
def test_a_run_that_diverges_says_the_same_in_parts(name):
    method = METHODS[name]
    # Ridge has no bound on its derivative: large samples throw a model out of all numbers.
    model, stream = ow.models.RidgeRegression(l2=0.0), some_stream(11, 60, 2)
    stream = ow.Stream(1e4 * stream.features, stream.labels, stream.rows)
    graph = ow.TrustGraph.random(11, max_receivers=3, seed=1)
    with pytest.raises(DivergenceError) as one:
        ow.simulate(method, model, stream, graph, engine="fast", seed=3)
    with pytest.raises(DivergenceError) as parts:
        in_parts(method, stream, graph, np.arange(11) % 3, model=model, every=7)
    assert str(parts.value) == str(one.value)


@settings(max_examples=50, deadline=None)
@given(num_nodes=st.integers(2, 30), num_parts=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_every_part_gets_what_its_nodes_receive_and_nothing_else(num_nodes, num_parts, seed):
    rng = np.random.default_rng(seed)
    graph = ow.TrustGraph.random(num_nodes, min(4, num_nodes - 1), seed=seed)
    part_of = np.unique(rng.integers(0, num_parts, num_nodes), return_inverse=True)[1]
    partition = Partition.of(part_of)
    routes = routes_of(ow.Relay(0.1), graph.mixing())
    split = split_routes(routes, partition)
    for part, (own, nodes) in enumerate(zip(split, partition.nodes, strict=True)):
        ghosts = [partition.nodes[other][split[other].sends[part]] for other in range(len(split))]
        assert [len(some) for some in ghosts] == list(own.ghosts)
        known = np.concatenate([nodes, *ghosts])
        needed = {int(node) for node in nodes}
        for here, whole in ((own.edges, routes[0]), (own.parcel_edges, routes[1])):
            for place, node in enumerate(nodes):
                mine = slice(here[0][place], here[0][place + 1])
                wanted = slice(whole[0][node], whole[0][node + 1])
                assert known[here[1][mine]].tolist() == whole[1][wanted].tolist()
                assert here[2][mine].tolist() == whole[2][wanted].tolist()
                needed |= set(whole[1][wanted].tolist())
        assert sorted(known.tolist()) == sorted(needed)


def test_a_part_has_only_the_rows_of_the_table_that_its_nodes_see():
    from oneway.simulator.parts_engine import own_stream

    stream = some_stream(6, 5, 1, late=True)
    own = own_stream(stream, np.array([1, 4]))
    for rows, whole in ((own.rows, stream.rows), (own.late, stream.late)):
        there = whole[:, [1, 4]] >= 0
        assert np.array_equal(rows >= 0, there)
        seen = own.features[rows[there]]
        assert np.array_equal(seen, stream.features[whole[:, [1, 4]][there]])
    assert len(own.labels) == len(np.unique(stream.rows[:, [1, 4]][stream.rows[:, [1, 4]] >= 0]))


BAD = {
    "no parts": ({"parts": 0}, GraphError, "parts is 0"),
    "half a part": ({"parts": 1.5}, GraphError, r"parts is 1\.5"),
    "more parts than nodes": ({"parts": 18}, GraphError, "part 17 would be empty"),
    "an empty part": ({"parts": [0] * 9 + [2] * 8}, GraphError, "part 1 has no nodes"),
    "a negative part": ({"parts": [0] * 16 + [-1]}, GraphError, "node 16 is in part -1"),
    "a partition of other nodes": ({"parts": [0, 1]}, GraphError, "the network has 17 nodes"),
    "no numbers": ({"parts": np.full(17, 0.5)}, GraphError, "float64"),
    "no file": ({"parts": "nowhere.npy"}, GraphError, "nowhere.npy"),
    "never measured": ({"disagreement_every": 0}, ConfigError, "disagreement_every is 0"),
    "single precision": ({"precision": "float32"}, ConfigError, "float32.*engine='fast'"),
    "delays": ({"delays": (1, 2)}, ConfigError, "delays"),
    "an address of another form": ({"engine": "ray://a b"}, ConfigError, "'a b'"),
}


@pytest.mark.parametrize(("given", "error", "said"), BAD.values(), ids=BAD)
def test_bad_input_is_one_sentence_before_anything_starts(given, error, said):
    stream, graph = some_stream(17, 3, 1), ow.TrustGraph.ring(17)
    with pytest.raises(error, match=said):
        ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph, **{"engine": "ray", **given})


def test_what_has_no_kernel_is_refused_with_the_engine_that_runs_it():
    stream, graph = some_stream(17, 3, 1), ow.TrustGraph.ring(17)
    run = partial(ow.simulate, stream=stream, graph=graph, engine="ray")
    for method in (ow.Centralised(0.1), ow.Tracking(0.1)):
        with pytest.raises(ConfigError, match=f"{type(method).__name__}.*engine='fast'"):
            run(method, MODEL)


@pytest.mark.parametrize("given", [{"parts": 2}, {"disagreement_every": 5}])
def test_arguments_of_parts_are_refused_in_one_process(given):
    stream, graph = some_stream(17, 3, 1), ow.TrustGraph.ring(17)
    with pytest.raises(ConfigError, match="one process"):
        ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph, **given)


def test_one_process_is_chosen_where_it_fits_and_says_so():
    stream, graph = some_stream(17, 3, 1), ow.TrustGraph.ring(17)
    run = ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph)
    assert "fits in memory" in run.record.config["engine_reason"]
    asked = ow.simulate(ow.OnlinePushSum(0.1), MODEL, stream, graph, engine="fast")
    assert "engine_reason" not in asked.record.config


def test_no_edges_make_no_ghosts():
    split = split_routes((NO_EDGES, NO_EDGES), Partition.of(np.array([0, 1, 0])))
    assert [own.ghosts for own in split] == [(0, 0), (0, 0)]
