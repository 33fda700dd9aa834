"""Labels that come later: against a transcription, in both engines; none late is as it was."""

from __future__ import annotations

import numpy as np
import pytest
from engine_cases import LOGISTIC, assert_same_bits
from hypothesis import given
from hypothesis import strategies as st
from literal_network import (
    LiteralNetwork,
    PullNode,
    PushSumNode,
    RelayNode,
    Shifted,
    TrackingNode,
    some_graph,
    some_stream,
)

import oneway as ow
from oneway.methods import METHODS, Batches
from oneway.records import Batch

MODEL = Shifted(l2=1e-2)
NODES = {
    ow.OnlinePushSum: PushSumNode,
    ow.Relay: RelayNode,
    ow.Pull: PullNode,
    ow.Tracking: TrackingNode,
}


class LateNetwork(LiteralNetwork):
    """Every node has a list of samples that wait: (when the label is known, when it was seen)."""

    def __init__(self, *args, waits, **options):
        super().__init__(*args, **options)
        self.waits = waits
        self.open = [[] for _ in self.nodes]

    def round(self, round_index):
        rows = self.stream.rows[round_index]
        self.losses.append(0.0)
        acting = [False] * len(self.nodes)
        for i, node in enumerate(self.nodes):
            if rows[i] >= 0:
                params = np.array(node.estimate())
                self.losses[-1] += self.model.loss(params, self.sample(rows[i]))
                due = round_index + int(self.waits[round_index, i])
                self.open[i].append((due, round_index, int(rows[i])))
            known = sorted(it for it in self.open[i] if it[0] <= round_index)
            if known:
                self.open[i].remove(known[0])
                acting[i] = True
                self.learn_from(i, node, known[0][2], round_index)
        for _ in range(self.mixes):
            self.exchange()

    def sample(self, row):
        return Batch(self.stream.features[row : row + 1], self.stream.labels[row : row + 1])

    def learn_from(self, i, node, row, round_index):
        """As `learn`, of another sample and without its loss."""
        params = np.array(node.estimate())
        gradient = [float(value) for value in self.model.gradient(params, self.sample(row))]
        if self.batches[i]:
            gradient = self.batches[i].add(gradient, self.rng)
            if gradient is None:
                return
        node.descend([self.rate(round_index) * value for value in gradient])


def some_waits(stream, seed, most):
    return np.random.default_rng(seed).integers(0, most, stream.rows.shape, endpoint=True)


@pytest.mark.parametrize("method", NODES, ids=lambda it: it.name)
@given(
    num_nodes=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    holes=st.sampled_from([0.0, 0.5]),
    most=st.sampled_from([0, 1, 4, 30]),
    mixes=st.sampled_from([1, 2]),
    batches=st.sampled_from([None, Batches(2)]),
)
def test_late_labels_are_learned_as_a_list_of_open_samples_says(
    method, num_nodes, seed, holes, most, mixes, batches
):
    graph, stream = some_graph(num_nodes, seed), some_stream(num_nodes, 16, seed, holes)
    waits, options = some_waits(stream, seed, most), {"batches": batches, "mixes": mixes}
    literal = LateNetwork(
        NODES[method], MODEL, stream, graph, seed=seed, waits=waits, **options
    ).run()
    late = stream.delayed(waits)
    run = ow.simulate(method(0.1, **options), MODEL, late, graph, seed=seed)
    np.testing.assert_allclose(run.estimates, literal.estimates, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run.record.loss_sums, literal.losses, rtol=1e-12, atol=1e-12)
    assert run.record.config["engine"] == "reference"
    never = sum(map(len, literal.open))
    assert late.origin["delayed"]["never_known"] == never


BATCHES = Batches(2, 0.5, 0.3)


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize(("name", "batches"), [("ops", None), ("relay", BATCHES)])
def test_a_delay_of_zero_changes_no_bit(engine, name, batches):
    """Although late labels go another way through the engines."""
    graph, stream = some_graph(7, 5), some_stream(7, 50, 5, holes=0.2)
    method = METHODS[name](0.3, "curvature", batches=batches)
    plain = ow.simulate(method, LOGISTIC, stream, graph, engine=engine)
    late = ow.simulate(method, LOGISTIC, stream.delayed(0), graph, engine=engine)
    assert late.stream.late is not None
    assert_same_bits(plain, late)
    np.testing.assert_array_equal(plain.record.correct_counts, late.record.correct_counts)


@given(
    num_nodes=st.integers(1, 5),
    num_rounds=st.integers(1, 30),
    seed=st.integers(0, 10**6),
    most=st.integers(0, 40),
)
def test_every_sample_is_learned_once_when_it_is_due_or_later_and_never_before(
    num_nodes, num_rounds, seed, most
):
    stream = some_stream(num_nodes, num_rounds, seed, 0.3)
    waits = some_waits(stream, seed, most)
    late = stream.delayed(waits)
    for node in range(num_nodes):
        due = {
            int(row): t + int(waits[t, node])
            for t, row in enumerate(stream.rows[:, node])
            if row >= 0
        }
        learned = [(t, int(row)) for t, row in enumerate(late.late[:, node]) if row >= 0]
        assert len({row for _, row in learned}) == len(learned)
        assert all(t >= due[row] for t, row in learned)
        free = set(range(num_rounds)) - {t for t, _ in learned}
        for t, row in learned:  # it waited only because others were learned from meanwhile
            assert not free & set(range(due[row], t))
        missing = due.keys() - {row for _, row in learned}
        assert all(not free & set(range(due[row], num_rounds)) for row in missing)
