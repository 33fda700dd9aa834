"""Where to draw the nodes of a graph whose order says something: on a circle."""

from __future__ import annotations

import numpy as np

from oneway.records import Matrix


def places_on_circle(num_nodes: int) -> Matrix:
    """X and y of every node, from 0 to 1: clockwise on a screen, the first one at the top.

    >>> places_on_circle(4).round(6).tolist()
    [[0.5, 0.0], [1.0, 0.5], [0.5, 1.0], [0.0, 0.5]]
    """
    turns = 2.0 * np.pi * np.arange(num_nodes) / max(num_nodes, 1)
    places: Matrix = 0.5 + 0.5 * np.column_stack([np.sin(turns), -np.cos(turns)])
    return places
