"""Where the learning rate restarted, as the curve of a peer's loss shows it."""

from __future__ import annotations

from oneway.dashboard.peer.cards import restart_lines
from oneway.records.curve import Curve

CURVE = Curve(width=4, samples=16, loss_sums=(4.0,) * 4, correct=(1,) * 4, times=(1, 2, 3, 4))


def test_a_restart_is_a_vertical_line_over_samples_or_time():
    marks = restart_lines([8, 14], CURVE, [4, 8, 12, 16], [0.5, 0.9, 0.2, 0.4])
    assert [line.points for line in marks] == [
        [(8.0, 0.2), (8.0, 0.9)],
        [(14.0, 0.2), (14.0, 0.9)],
    ]
    assert [line.in_legend for line in marks] == [True, False]
    in_time = restart_lines([14], CURVE, [1000, 2000, 3000, 4000], [0.5, 0.9, 0.2, 0.4])
    assert in_time[0].points[0][0] == 3500.0


def test_what_the_curve_does_not_reach_is_not_marked():
    late = Curve(width=1, samples=2, loss_sums=(1.0, 1.0), correct=(1, 1), times=(1, 2), before=100)
    assert restart_lines([50, 200], late, [101, 102], [1.0, 1.0]) == []
