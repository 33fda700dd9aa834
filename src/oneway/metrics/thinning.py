"""Long curves with few points, to look at."""

from __future__ import annotations

import numpy as np

from oneway.records import Ints

MOST_POINTS = 500


def thinned(num_points: int, most: int = MOST_POINTS) -> Ints:
    """Which of so many points to show: at most `most`, evenly spread, the first and the last too.

    >>> thinned(3).tolist(), thinned(10, most=4).tolist()
    ([0, 1, 2], [0, 3, 6, 9])
    """
    shown = min(num_points, most)
    places: Ints = np.round(np.linspace(0, num_points - 1, shown)).astype(np.int64)
    return places
