"""Gradient transforms, one file each: what happens to a gradient before the step."""

from oneway.methods.transforms.base import TRANSFORMS, Transform
from oneway.methods.transforms.clip import Clip
from oneway.methods.transforms.momentum import Momentum

__all__ = ["TRANSFORMS", "Clip", "Momentum", "Transform"]
