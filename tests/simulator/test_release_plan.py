"""Which batches are full when, and their noise, against plain loops over rounds and nodes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.methods import Batches
from oneway.simulator.release_plan import ReleasePlan


def literal_plan(batches, rows, dim, rng):
    """`{(round, node): noise}`, one sample after the other."""
    weights = [math.prod((k - 1.5) / k for k in range(1, n + 1)) for n in range(batches.band)]
    num_rounds, num_nodes = rows.shape
    counts, draws = [0] * num_nodes, [[] for _ in range(num_nodes)]
    plan = {}
    for t in range(num_rounds):
        for node in range(num_nodes):
            if rows[t, node] < 0:
                continue
            counts[node] += 1
            if counts[node] == batches.samples:
                counts[node] = 0
                noise = np.zeros(dim)
                if batches.noise:
                    draws[node].insert(0, rng.standard_normal(dim))
                    for weight, draw in zip(weights, draws[node], strict=False):
                        noise += weight * draw
                plan[t, node] = batches.clip * batches.noise * noise if batches.noise else noise
    return plan


@given(
    samples=st.integers(1, 5),
    spread=st.sampled_from([0.0, 0.7]),
    band=st.sampled_from([1, 2, 5]),
    holes=st.sampled_from([0.0, 0.3, 0.9]),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    memory=st.sampled_from([1, 500, 3_000, 16_000_000]),
    seed=st.integers(0, 10**6),
)
def test_the_plan_is_what_loops_find_however_it_is_asked_for(
    samples, spread, band, holes, cuts, memory, seed
):
    rows = np.where(np.random.default_rng(seed).random((30, 4)) < holes, -1, 0)
    batches = Batches(samples, 2.0, spread, band)
    expected = literal_plan(batches, rows, 3, np.random.default_rng(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oneway.simulator.release_plan._MEMORY", memory)
        plan = ReleasePlan(batches, rows, 3, np.random.default_rng(seed))
    found, done = {}, 0
    for last in sorted({*cuts, 30}):
        for piece in plan.pieces(done, last):
            assert piece.first == done
            assert piece.releases.shape == (piece.last - piece.first, 4)
            done = piece.last
            for place, node in zip(*np.nonzero(piece.releases >= 0), strict=True):
                release = piece.releases[place, node]
                noise = piece.noise[release] if spread else np.zeros(3)
                found[piece.first + int(place), int(node)] = noise
        assert done == last
    assert found.keys() == expected.keys()
    for key, noise in expected.items():
        np.testing.assert_allclose(found[key], noise, rtol=1e-12, atol=1e-13)


def test_the_memory_for_noise_is_bounded():
    rows = np.zeros((3_000, 200), np.int32)
    plan = ReleasePlan(Batches(4, 1.0, 1.0), rows, 100, np.random.default_rng(0))
    pieces = list(plan.pieces(0, 3_000))
    assert len(pieces) > 5
    assert max(piece.noise.nbytes for piece in pieces) <= 16_000_000
