"""Line styles: how a curve is told from others without colour."""

from __future__ import annotations

from typing import TypeAlias

Dashes: TypeAlias = str | tuple[int, tuple[int, ...]]
"""A name, or an offset with the lengths of strokes and gaps, as matplotlib has them."""
