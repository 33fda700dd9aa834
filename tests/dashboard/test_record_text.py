from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import make_record

from oneway import metrics
from oneway.dashboard.runs.record_text import MEASURES, points
from oneway.dashboard.runs.run_table import row
from oneway.records import RunRecord
from oneway.store import Entry


def record(num_rounds: int = 3) -> RunRecord:
    rng = np.random.default_rng(num_rounds)
    return make_record(
        loss_sums=rng.random(num_rounds),
        correct_counts=np.ones(num_rounds, dtype=np.int64),
        disagreement=rng.random(num_rounds),
    )


def test_a_curve_has_few_points_and_ends_where_the_run_does():
    run = record(20_000)
    drawn = points(MEASURES["Average loss"], run)
    assert len(drawn) == 500
    assert drawn[0][0] == 1
    assert drawn[-1] == (20_000, pytest.approx(metrics.average_loss(run)))


def test_a_damaged_run_cannot_be_ticked(tmp_path):
    entry = Entry("a", tmp_path, "simulation", 0.0, is_run=True, complete=True)
    assert (row(entry)["state"], row(entry)["comparable"]) == ("complete", True)
    damaged = row(replace(entry, problem="torn"))
    assert (damaged["state"], damaged["comparable"]) == ("damaged", False)
