"""Shapes of samples as a PyTorch module takes them: found by trying, from the shape of the data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy

import torch
from torch import Tensor, nn

from oneway.errors import ConfigError
from oneway.sentences import cut

_ROWS = 7
"""How many samples are tried: a convolution takes rows without channels for the channels of one
image, if there are as many of them."""
_AXES: dict[type[nn.Module], int] = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}
"""Over how many axes a convolution goes, besides that of channels."""


def fitting_shape(module: nn.Module, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape in which a module takes samples of a shape; None for a flat row.

    Raises:
        ConfigError: It takes them in no shape.
    """
    axes, flat = _axes(module), (math.prod(shape),)
    tried = [*_candidates(axes, shape), flat]
    if set(tried) == {flat}:
        return None  # what is wrong with it, if anything, is said where it is used
    refusals = []
    for candidate in tried:
        refusal = _refusal(module, candidate)
        if refusal is None:
            return None if candidate == flat else candidate
        refusals.append(f"as {candidate}: {refusal}")
    remedy = "correct its first layer, or set shape to what it takes"
    if axes and len(shape) == axes + 1 and shape[-1] < min(shape[:-1]):
        remedy = "PyTorch has channels first: save the images as numpy.moveaxis(images, -1, 1)"
    raise ConfigError(
        f"module {type(module).__name__} cannot take samples of the shape {shape} "
        f"({refusals[0]}); {remedy}"
    )


def _candidates(axes: int, shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """What samples may be to a module, the likeliest first; without the flat row."""
    if axes and len(shape) == axes:
        yield (1, *shape)
    yield shape
    if axes and len(shape) == axes + 1 and shape[-1] == 1:
        yield (1, *shape[:-1])  # channels last: of one channel that is the same row


def _axes(module: nn.Module) -> int:
    """Over how many axes the first convolution of a module goes; 0 if it has none."""
    found = (_AXES[kind] for part in module.modules() for kind in _AXES if isinstance(part, kind))
    return next(found, 0)


def _refusal(module: nn.Module, shape: tuple[int, ...]) -> str | None:
    """Why a module cannot take samples of a shape; None if it can."""
    first = next(module.parameters())
    rows = torch.zeros(_ROWS, *shape, dtype=first.dtype, device=first.device)
    try:
        with torch.no_grad():
            outputs = deepcopy(module).eval()(rows)
    except Exception as error:  # whatever is wrong in somebody else's code
        return cut(" ".join(f"{type(error).__name__}: {error}".split()))
    if not isinstance(outputs, Tensor):
        return "it gives no tensor"
    if outputs.ndim not in (1, 2) or len(outputs) != _ROWS:
        return f"it gives the shape {tuple(outputs.shape)} for {_ROWS} samples"
    return None
