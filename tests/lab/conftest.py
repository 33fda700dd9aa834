"""A small problem, and statuses as peers write them."""

from __future__ import annotations

from small_lab import make_observation, problem

__all__ = ["make_observation", "problem"]
