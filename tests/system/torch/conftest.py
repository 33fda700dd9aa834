"""Ways to call the command line."""

from __future__ import annotations

from command_line import here, oneway, read_until, spawn

__all__ = ["here", "oneway", "read_until", "spawn"]
