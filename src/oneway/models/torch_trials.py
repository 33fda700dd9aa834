"""Trials of a PyTorch module and a loss before a run: each is a function of one sample.

What is wrong with somebody else's code is found here, at two samples, and said in one sentence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from oneway.errors import ConfigError
from oneway.models.torch_process import drawn_from
from oneway.sentences import cut, shown

_CLOSE = 1e-3
"""How far the outputs of a sample may differ, relative to the largest: sums in another order."""


def reason_of(error: Exception) -> str:
    """Return what an exception says, on one line and cut."""
    return cut(" ".join(f"{type(error).__name__}: {error}".split()))


def check_samples_apart(module: nn.Module, shape: tuple[int, ...], kind: torch.dtype) -> None:
    """Check that outputs of a module depend on parameters and their own sample alone.

    Two samples are given together, again, and each alone, near the values that parameters have.

    Raises:
        ConfigError: They depend on other samples or on earlier calls, or it takes one at a time.
    """
    name, device = type(module).__name__, next(module.parameters()).device
    with drawn_from(0), torch.no_grad():
        # Off the values they have, which may all be 0; upwards, since some must be positive.
        near = {key: it + 0.1 * torch.rand_like(it) for key, it in module.named_parameters()}
        # As codes from 0 to 1 are what most modules take; if not these, all take zeros.
        tried = torch.rand(2, *shape).to(device, kind)
        for rows in (tried, torch.zeros_like(tried)):
            try:
                together, again, *alone = (
                    functional_call(module, near, (part,)).reshape(len(part), -1)
                    for part in (rows, rows, rows[:1], rows[1:])
                )
                failed = None
                break
            except Exception as error:  # whatever is wrong in somebody else's code
                failed = error
    if failed is not None:
        raise ConfigError(
            f"module {name} cannot take two samples of the shape {shape} at once "
            f"({reason_of(failed)}); it must take [sample, *shape] and give [sample, output]"
        ) from failed
    if not _equal(again, together):
        raise ConfigError(
            f"module {name} gives other outputs when it is called again with the same samples; it "
            "must predict from parameters and sample alone: draw random numbers only if "
            "self.training, and keep no state"
        )
    if not _equal(torch.cat(alone), together):
        raise ConfigError(
            f"module {name} gives other outputs for a sample alone than beside another one; a "
            "sample's output must not depend on other samples: leave out what goes over the axis "
            "of samples, such as x.mean(0)"
        )


def _equal(found: Tensor, expected: Tensor) -> bool:
    if found.shape != expected.shape or not expected.numel():
        return found.shape == expected.shape
    size = expected.nan_to_num(0.0, 0.0, 0.0).abs().max().item()
    return torch.allclose(found, expected, rtol=0.0, atol=_CLOSE * size, equal_nan=True)


def check_loss(loss: Callable[[Any, Any], Any], outputs: Tensor, labels: Tensor) -> None:
    """Check that the loss of a sample is a scalar with a gradient, and drawn from nothing.

    Args:
        loss: Of outputs and label.
        outputs: Of one sample: all 0.
        labels: Some that a sample may have.

    Raises:
        ConfigError: It is something else, or cannot be computed.
    """
    name, connected, drawn = loss_name(loss), False, False
    for label, value in product(labels, (0.0, 1.0, -1.0)):  # at some of them it may be constant
        given = torch.full_like(outputs, value, requires_grad=True)
        try:
            with drawn_from(0):
                before = _generators()
                found = loss(given.clone(), label)
                drawn |= any(not torch.equal(*it) for it in zip(before, _generators(), strict=True))
        except Exception as error:  # whatever is wrong in somebody else's code
            raise ConfigError(
                f"loss {name} cannot take {len(outputs)} outputs of a sample and its label "
                f"({reason_of(error)}); correct it"
            ) from error
        if not (isinstance(found, Tensor) and found.ndim == 0):
            said = f"the shape {tuple(found.shape)}" if isinstance(found, Tensor) else shown(found)
            raise ConfigError(
                f"loss {name} gives {said} for one sample; it must be a scalar tensor: end "
                "it with .sum() or .mean()"
            )
        if not found.is_floating_point():
            raise ConfigError(
                f"loss {name} gives a number of the kind {found.dtype}, which has no gradient to "
                "learn from; it must be real and floating: leave out .long(), and take .abs() or "
                ".real of what is complex"
            )
        if found.requires_grad:
            [slope] = torch.autograd.grad(found, [given], allow_unused=True)
            connected |= slope is not None
    if drawn:
        raise ConfigError(
            f"loss {name} draws random numbers, which the seed of a run would not give again; it "
            "must be a function of outputs and label: draw in the module, as nn.Dropout does"
        )
    if not connected:
        raise ConfigError(
            f"loss {name} does not depend on the outputs by anything that has a gradient, so that "
            "nothing would be learned; compute it from them without .detach(), .item() or a new "
            "tensor"
        )


def unbatched(loss: Callable[[Any, Any], Any], outputs: Tensor, labels: Tensor) -> str:
    """Return why the loss of several samples cannot be one batched program; "" if it can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are for who calls it
            batched = vmap(grad_and_value(lambda given, truth: loss(given.clone(), truth)))
            batched(outputs.repeat(len(labels), 1), labels)
    except Exception as error:  # as an `if` on a value, and whatever it does to tensors
        return reason_of(error)
    return ""


def loss_name(loss: Callable[[Any, Any], Any]) -> str:
    """Return what people call a loss."""
    return getattr(loss, "__name__", repr(loss))


def _generators() -> list[Tensor]:
    return [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]
