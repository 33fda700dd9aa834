"""Gradient transforms, one file each: what happens to a gradient before the step."""

from oneway.methods.transforms.adagrad import AdaGrad
from oneway.methods.transforms.base import TRANSFORMS, Transform
from oneway.methods.transforms.clip import Clip
from oneway.methods.transforms.forget import Forget
from oneway.methods.transforms.momentum import Momentum
from oneway.methods.transforms.restart import Restart

__all__ = ["TRANSFORMS", "AdaGrad", "Clip", "Forget", "Momentum", "Restart", "Transform"]
