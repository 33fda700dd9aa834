"""PyTorch modules as models name them: found, built from a seed, flattened, and fingerprinted.

A module is an `nn.Module`, a function that returns one, or the name `package.module:function` of
such a function. Code never travels: a task has the name, and a fingerprint of what the function
made where the task was written, so that a site whose function makes something else is told so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from oneway.errors import ConfigError
from oneway.models.torch_process import drawn_from
from oneway.registry import installed_function
from oneway.sentences import cut, listed, shown

_FIXED_SEED = 0
"""Of the initial values that a fingerprint is of: the same at all sites, whatever a task says."""
_SAID = ("nn.Module", "torch.nn.Module", "Module")
"""How functions say that they return modules, where annotations are text."""
_KINDS = (torch.float32, torch.float64)


def called(given: object) -> str:
    """Return what people call a module or a function: its name, or the module's own words."""
    if isinstance(given, str):
        return given
    if isinstance(given, nn.Module):
        return repr(given)
    return f"{getattr(given, '__module__', '')}:{getattr(given, '__qualname__', repr(given))}"


def built(given: object, arguments: Mapping[str, Any], seed: int = _FIXED_SEED) -> nn.Module:
    """Return the module that a user gives, with its own initialisation from a seed.

    An `nn.Module` is not initialised anew: it starts from the values that it has.

    Raises:
        ConfigError: It is missing, no module, or cannot be learned in one vector per node.
    """
    if isinstance(given, nn.Module):
        return given
    function = _maker(given) if isinstance(given, str) else given
    if not callable(function):
        raise ConfigError(
            f"module is {shown(given)}; it must be an nn.Module, a function that returns one, or a "
            'name such as "package.module:function"'
        )
    try:
        with drawn_from(seed):
            module = function(**arguments)
    except Exception as error:  # whatever is wrong in somebody else's code
        raise ConfigError(
            f"module {shown(called(given))} cannot be made with {shown(str(dict(arguments)))} "
            f"({cut(f'{type(error).__name__}: {error}')}); correct the function or its arguments"
        ) from error
    if not isinstance(module, nn.Module):
        raise ConfigError(
            f"module {shown(called(given))} returns {shown(module)}; it must return an nn.Module"
        )
    return module


def _maker(name: str) -> Callable[..., Any]:
    """Return what a task names, if that says itself that it makes modules.

    A task of somebody else comes with arguments, too: any other function, of any package that is
    installed here, would be called with them.
    """
    found = installed_function(name)
    if isinstance(found, type) and issubclass(found, nn.Module):
        return found
    said = getattr(found, "__annotations__", {}).get("return")
    if said in _SAID or (isinstance(said, type) and issubclass(said, nn.Module)):
        return found
    raise ConfigError(
        f"module {shown(name)} does not say what it returns; write it as "
        f"def {name.partition(':')[2]}(...) -> nn.Module, or name a class of modules"
    )


def check_module(module: nn.Module) -> None:
    """Check that all that is learned in a module is in parameters of one kind of number.

    Raises:
        ConfigError: It has buffers, no parameters, parameters of several kinds or without values,
            or parts that cannot be called with parameters from elsewhere.
    """
    name = type(module).__name__
    _check_parts(module)
    buffers = [name for name, _ in module.named_buffers()]
    if buffers:
        raise ConfigError(
            f"module {name} has buffers ({listed(buffers, 3)}), which nodes would have to share "
            "besides parameters, as batch norm's running statistics; use nn.GroupNorm or "
            "nn.LayerNorm, and plain attributes for constants"
        )
    kinds = {parameter.dtype for parameter in module.parameters()}
    if not trainable(module) or len(kinds) > 1 or not kinds <= set(_KINDS):
        found = listed(sorted(str(kind) for kind in kinds)) or "none"
        raise ConfigError(
            f"module {name} has parameters of the kind {found}, "
            f"{len(trainable(module))} of them to be learned; it needs some, all float32 or all "
            "float64"
        )


def _check_parts(module: nn.Module) -> None:
    """Check that a module can be copied, and called with other parameters."""
    name = type(module).__name__
    lazy = [key for key, it in module.named_parameters() if is_lazy(it)]
    if lazy:
        raise ConfigError(
            f"module {name} has parameters without a shape before its first call "
            f"({listed(lazy, 3)}); all nodes need them from the start: use nn.Linear and such with "
            "the number of inputs instead of nn.LazyLinear"
        )
    unset = [key for key, it in module.named_parameters() if it.is_meta]
    if unset:
        raise ConfigError(
            f"module {name} has parameters without values, on the device meta "
            f"({listed(unset, 3)}); all nodes start from its values: make it on the device cpu"
        )
    for place, part in module.named_modules():
        own = f"module {name}" if part is module else f"part {place} of module {name}"
        if isinstance(part, torch.jit.ScriptModule):
            raise ConfigError(
                f"{own} is a script of torch.jit, which cannot be called with the parameters of "
                "every node; give the module that the script was made of"
            )
        computed = [key for key, it in vars(part).items() if isinstance(it, Tensor) and it.grad_fn]
        if computed:
            raise ConfigError(
                f"{own} keeps {listed(computed, 3)}, computed from parameters, as nn.utils."
                "weight_norm does; it must be computed at every call: use "
                "nn.utils.parametrizations.weight_norm, or compute it in forward"
            )


def trainable(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that are learned, by name; those without a gradient are constants."""
    return {name: it for name, it in module.named_parameters() if it.requires_grad}


def flat(module: nn.Module) -> NDArray[Any]:
    """Return a copy of the parameters that are learned, as one vector."""
    parts = [it.detach().cpu().reshape(-1) for it in trainable(module).values()]
    values: NDArray[Any] = torch.cat(parts).numpy()
    return values


def filled(module: nn.Module, values: NDArray[Any]) -> nn.Module:
    """Return a copy of a module with a vector as its parameters, as it predicts."""
    own, first = deepcopy(module).eval(), 0
    for parameter in trainable(own).values():
        part = torch.from_numpy(values[first : first + parameter.numel()].copy())
        parameter.data.copy_(part.reshape(parameter.shape))
        first += parameter.numel()
    return own


def fingerprint(module: nn.Module) -> str:
    """Return how many parameters a module learns, and digests of its parts and of all values.

    Parts are parameters with their shapes, and modules with their classes: tanh is not ReLU.
    """
    shapes = [(name, tuple(it.shape), str(it.dtype)) for name, it in module.named_parameters()]
    parts = [(name, type(it).__name__) for name, it in module.named_modules()]
    values = blake2b(digest_size=8, person=b"oneway module")
    for parameter in module.parameters():
        values.update(np.ascontiguousarray(parameter.detach().cpu().numpy()).tobytes())
    of_shapes = blake2b(
        repr((shapes, parts)).encode(), digest_size=4, person=b"oneway module"
    ).hexdigest()
    count = sum(it.numel() for it in trainable(module).values())
    return f"{count}-{of_shapes}-{values.hexdigest()}"


def check_fingerprint(module: nn.Module, name: str, expected: str) -> None:
    """Check that a module is the one that a task means.

    Raises:
        ConfigError: It has other shapes, or starts from other values.
    """
    found = fingerprint(module)
    if found == expected:
        return
    shapes, of_task = found.rsplit("-", 1)[0], expected.rsplit("-", 1)[0]
    if shapes != of_task:
        raise ConfigError(
            f"module {shown(name)} has other shapes or parts here ({found}) than the task says "
            f"({expected}; the first number counts parameters); install the version that the task "
            "was made with"
        )
    raise ConfigError(
        f"module {shown(name)} starts from other values here ({found}) than the task says "
        f"({expected}); install the versions of it and of torch that the task was made with"
    )
