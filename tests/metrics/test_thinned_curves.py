from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oneway import metrics
from oneway.records import RunRecord

RECORD = RunRecord(
    algorithm="ops",
    loss_sums=np.array([2.0, 0.0, 3.0]),
    sample_counts=np.array([0, 2, 2]),
    correct_counts=np.array([0, 1, 2]),
    disagreement=np.zeros(3),
    numerators=np.zeros((2, 1)),
    masses=np.ones(2),
    complete=True,
    seconds=0.0,
)


@pytest.mark.parametrize("num_points", [0, 1, 2, 499, 500, 501, 10_007])
def test_few_points_are_kept_in_order_with_the_first_and_the_last(num_points):
    kept = metrics.evenly_spread(num_points)
    assert len(kept) == min(num_points, 500)
    assert (np.diff(kept) > 0).all()
    if num_points:
        assert (kept[0], kept[-1]) == (0, num_points - 1)


def test_accuracy_so_far_is_over_all_samples_so_far():
    np.testing.assert_array_equal(metrics.accuracy_curve(RECORD), [np.nan, 0.5, 0.75])
    assert metrics.accuracy_curve(replace(RECORD, correct_counts=None)) is None
