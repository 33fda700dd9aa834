"""Recorder of an asynchronous run: every sample's loss and moment, then sums over bins of time."""

from __future__ import annotations

import numpy as np

from oneway.records import Ints, Vector


class Recorder:
    """What every sample cost, and when; one that is learned anew after a crash counts once."""

    def __init__(self, num_rounds: int, num_nodes: int) -> None:
        self._moments = np.full((num_rounds, num_nodes), np.nan)
        self._losses = np.zeros((num_rounds, num_nodes))
        self._right = np.zeros((num_rounds, num_nodes), np.int8)

    def note(self, place: int, node: int, moment: float, loss: float, right: int) -> None:
        """Note the loss of a node's sample, suffered before it was learned from."""
        self._moments[place, node] = moment
        self._losses[place, node] = loss
        self._right[place, node] = right

    def binned(self, seconds: float, bins: int) -> tuple[Vector, Ints, Ints]:
        """Per bin of so many seconds in all: the sum of losses, how many, how many were right."""
        known = self._moments <= seconds
        places = np.minimum((bins / seconds * self._moments[known]).astype(np.int64), bins - 1)

        losses, right = np.zeros(bins), np.zeros(bins, np.int64)
        np.add.at(losses, places, self._losses[known])
        np.add.at(right, places, self._right[known])
        return losses, np.bincount(places, minlength=bins), right

    def learned(self) -> Ints:
        """How many rounds of the stream each node came through."""
        known = ~np.isnan(self._moments)
        last: Ints = len(known) - known[::-1].argmax(axis=0)
        return np.where(known.any(axis=0), last, 0)
