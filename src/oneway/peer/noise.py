"""Noise of a peer: normal numbers from the operating system's cryptographic generator.

Whoever could guess the noise could take it off again, so it never comes from a seed that is stored,
and what was drawn is forgotten with the process.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from oneway.records import Floats

_STEPS = 2.0**-53
"""Between two neighbouring uniform numbers: all that a float has digits for."""


class SecretNormals:
    """Standard normal numbers that nobody can repeat, by the method of Box and Muller."""

    def standard_normal(self, size: Any) -> Floats:
        """Independent standard normal numbers in an array of this shape."""
        count = math.prod(size) if isinstance(size, tuple) else int(size)
        pairs = -(-count // 2)
        raw = np.frombuffer(os.urandom(16 * pairs), np.uint64).reshape(2, pairs) >> np.uint64(11)
        # From 2^-53 to 1: a logarithm of 0 cannot occur.
        radii = np.sqrt(-2.0 * np.log((raw[0] + np.uint64(1)) * _STEPS))
        angles = (2.0 * math.pi * _STEPS) * raw[1]
        both = np.concatenate([radii * np.cos(angles), radii * np.sin(angles)])
        return both[:count].reshape(size)
