"""Batches: what several samples say together, clipped and noised, is all that a step may depend on.

Every gradient is shortened to the norm `clip` on its own, then added to a sum; once `samples` are
in, noise is added to the sum, once, and only then anything else sees it. Before that neither the
model nor any other memory changes, so that all gradients of a batch are taken at a model that does
not depend on the batch, and one sample moves what is said by `clip` at most.

With `band` 1 the noise of every batch is independent of the others'. With more, each batch takes
back a part of the noise of those before: the noise of the n-th batch is z_n - z_{n-1}/2 -
z_{n-2}/8 - ..., of which a sum over batches, which is what a model is, keeps far less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from oneway.errors import ConfigError
from oneway.privacy.banded_noise import coefficients
from oneway.records import Bools, Matrix

DEFAULT_SAMPLES = 16
"""Of so many samples a push carries the steps unless a task says otherwise."""


class Normals(Protocol):
    """Where noise comes from: a generator of NumPy, or in a peer the operating system."""

    def standard_normal(self, size: Any) -> Any:
        """Independent standard normal numbers."""


@dataclass(frozen=True)
class Batches:
    """How the gradients of samples become what a step is made of; rows are nodes.

    Attributes:
        samples: How many make a batch.
        clip: The norm to which each gradient is shortened.
        noise: The standard deviation of what each batch newly draws, relative to `clip`.
        band: From so many batches, its own included, the noise of a batch is made.

    Raises:
        ConfigError: One of them breaks its rule.
    """

    samples: int = DEFAULT_SAMPLES
    clip: float = math.inf
    noise: float = 0.0
    band: int = 1

    def __post_init__(self) -> None:
        for name, least in (("samples", 1), ("band", 1)):
            value = getattr(self, name)
            if not (isinstance(value, int) and value >= least):
                raise ConfigError(f"{name} is {value!r}; it must be a whole number from {least} on")
        if not self.clip > 0:
            raise ConfigError(f"clip is {self.clip!r}; it must be a number above 0")
        if not (self.noise >= 0 and (self.noise == 0 or math.isfinite(self.noise * self.clip))):
            raise ConfigError(
                f"noise is {self.noise!r} with clip {self.clip!r}; it must be a number of at least "
                "0, and noise needs a finite clip"
            )

    def describe(self) -> dict[str, Any]:
        """All parameters, in terms JSON can hold."""
        return {
            "samples": self.samples,
            "clip": self.clip if math.isfinite(self.clip) else "infinite",
            "noise": self.noise,
            "band": self.band,
        }

    def add(
        self, gradients: Matrix, active: Bools | None, memory: Mapping[str, Matrix], rng: Normals
    ) -> tuple[Matrix, Bools, dict[str, Matrix]]:
        """Add a sample's gradient to each node's batch.

        Args:
            gradients: `[node, dim]`.
            active: Which nodes had a sample; None if all had.
            memory: What this returned before; empty at first.
            rng: For the noise.

        Returns:
            The sums, noised where a batch is full; which nodes' batches are; and the memory after
            it, in which those batches have begun anew.
        """
        clipped = gradients
        if math.isfinite(self.clip):
            lengths = np.sqrt(np.einsum("nd,nd->n", gradients, gradients))
            if not lengths.max(initial=0.0) <= self.clip:
                clipped = gradients * (self.clip / np.maximum(lengths, self.clip))[:, None]
                # Too long to be measured is as if without contents: none is refused for its size.
                clipped = np.where(np.isfinite(lengths)[:, None], clipped, 0.0)
        here = np.ones((len(gradients), 1))
        if active is not None:
            here[:, 0] = active
            clipped = np.where(active[:, None], clipped, 0.0)
        sums = memory["sum"] + clipped if "sum" in memory else clipped
        counts = memory["count"] + here if "count" in memory else here
        full: Bools = counts[:, 0] >= self.samples
        after = {"sum": sums, "count": counts}
        past = memory.get("past")
        if full.any():
            after = {name: np.where(full[:, None], 0.0, array) for name, array in after.items()}
            if self.noise:
                sums, past = self._noised(sums, full, past, rng)
        if past is not None:
            after["past"] = past
        return sums, full, after

    def _noised(
        self, sums: Matrix, full: Bools, past: Matrix | None, rng: Normals
    ) -> tuple[Matrix, Matrix]:
        """The sums of the full batches with noise; and what was drawn, the newest first."""
        dim, weights = sums.shape[1], coefficients(self.band).astype(sums.dtype)
        if past is None:
            past = np.zeros((len(sums), (self.band - 1) * dim), sums.dtype)
        drawn = rng.standard_normal((int(full.sum()), dim)).astype(sums.dtype)
        before = past if full.all() else past[full]  # a peer's single row is not copied for this
        earlier = before.reshape(len(before), self.band - 1, dim)
        noise = self.clip * self.noise * (drawn + weights[1:] @ earlier)
        newest = np.hstack([drawn, before[:, :-dim]]) if self.band > 1 else before
        if full.all():
            return sums + noise, newest
        noised, remembered = sums.copy(), past.copy()
        noised[full] += noise
        remembered[full] = newest
        return noised, remembered
