"""Losses and gradients of a PyTorch module without parameters of its own, sample by sample.

Parameters are rows of one matrix; the tensors of a module are views of a row. Three backends give
the same numbers: `loop` differentiates one sample after the other, `vmap` all of them in one
batched program, `compile` that program as native code.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from oneway.errors import ConfigError
from oneway.models.torch_modules import trainable
from oneway.models.torch_options import Backend
from oneway.models.torch_process import drawn_from, using_threads
from oneway.models.torch_trials import (
    check_loss,
    check_samples_apart,
    loss_name,
    reason_of,
    unbatched,
)
from oneway.records import Floats, Matrix, Vector
from oneway.sentences import cut, shown

LossFunction: TypeAlias = Callable[[Any, Any], Any]
"""(outputs of one sample, its label) -> its loss, a scalar."""

LARGEST_BATCHED = 500_000
"""From so many parameters on `auto` loops, which is faster at a million, where a batch is slower
than memory is: benchmarks/torch_nodes.py."""


@dataclass(frozen=True, eq=False)
class Passed:
    """What one pass over some samples gave; arrays of NumPy, one row per sample.

    Attributes:
        losses: Without an l2 term.
        outputs: Of the module, `[row, output]`.
        gradients: Of the losses, `[row, parameter]`.
    """

    losses: Vector
    outputs: Matrix
    gradients: Matrix


class Network:
    """A module as a function of parameters, features and labels.

    Args:
        module: Where its structure, and parameters without a gradient, are from; it is not changed.
        loss: Of the outputs of a sample and its label; None where only outputs are asked for.
        whole: Whether labels are whole numbers: the codes of classes.
        shape: Of a sample as the module sees it.
        device: Where it computes.
        backend: How gradients are computed.
        threads: How many threads PyTorch may use.
    """

    def __init__(
        self,
        module: nn.Module,
        loss: LossFunction | None,
        whole: bool,
        shape: tuple[int, ...],
        device: torch.device,
        backend: Backend,
        threads: int,
    ) -> None:
        self._loss, self._whole, self._shape, self._device = loss, whole, shape, device
        self._backend, self._threads = backend, threads
        self._places: dict[str, tuple[int, int, torch.Size]] = {}
        self.dim = 0
        for name, parameter in trainable(module).items():
            end = self.dim + parameter.numel()
            self._places[name] = (self.dim, end, parameter.shape)
            self.dim = end
        self._kind = next(module.parameters()).dtype
        own = deepcopy(module).to(device).requires_grad_(False)
        self._evaluating, self._training = own.eval(), deepcopy(own).train()

    # What a module is like: asked once, at a sample of zeros.

    @cached_property
    def num_outputs(self) -> int:
        """How many numbers the module gives for a sample, whatever other samples there are.

        Raises:
            ConfigError: It cannot take a sample of this shape, or gives something else.
        """
        name = type(self._evaluating).__name__
        try:
            zeros = torch.zeros(1, self.dim, dtype=self._kind, device=self._device)
            outputs = self._forward(self._evaluating, self._views(zeros[0]), self._zero_rows(1))
        except Exception as error:  # whatever is wrong in somebody else's code
            raise ConfigError(
                f"module {name} cannot take a sample of the shape {self._shape} "
                f"({reason_of(error)}); set shape to what the module takes, or correct its first "
                "layer"
            ) from error
        there = isinstance(outputs, Tensor) and outputs.is_floating_point()
        if not (there and outputs.ndim in (1, 2) and len(outputs) == 1):
            found = f"the shape {tuple(outputs.shape)}" if there else shown(outputs)
            raise ConfigError(
                f"module {name} gives {found} for one sample; it must give [sample, output]"
            )
        check_samples_apart(self._evaluating, self._shape, self._kind)
        return int(outputs.numel())

    @cached_property
    def is_random(self) -> bool:
        """Whether the module draws random numbers while it learns, as dropout does."""
        rows = self._zero_rows(2)
        views = self._views(torch.zeros(2, self.dim, dtype=self._kind, device=self._device))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # that a part of it would be looped inside
                vmap(self._outputs_in(self._training))(views, rows)
        except (RuntimeError, UserWarning) as error:
            if "random" in str(error):
                return True
            if self._backend in ("vmap", "compile"):
                raise ConfigError(
                    f"module {type(self._training).__name__} cannot be batched over nodes "
                    f'({cut(" ".join(str(error).split()))}); say backend = "loop"'
                ) from error
            self._backend = "loop"
            return any(_draws(part) for part in self._training.modules())
        return False

    @property
    def has_loss(self) -> bool:
        """Whether it was given a loss."""
        return self._loss is not None

    def check_loss(self, labels: list[float]) -> None:
        """Check the loss of samples with these labels; what cannot be batched is looped.

        Raises:
            ConfigError: It is no scalar with a gradient, cannot be computed, or cannot be batched
                where the backend says so.
        """
        assert self._loss is not None
        outputs = torch.zeros(self.num_outputs, dtype=self._kind, device=self._device)
        truth = self._labels(np.array(labels))
        with using_threads(self._threads):
            check_loss(self._loss, outputs, truth)
            looped = self._backend == "loop"
            reason = "" if looped else unbatched(self._loss, outputs, truth)
        if reason and self._backend != "auto":
            raise ConfigError(
                f"loss {loss_name(self._loss)} cannot be batched over nodes ({reason}); say "
                'backend = "loop", or write it without if and .item()'
            )
        if reason:
            self._backend = "loop"

    # What drivers ask for.

    def outputs(self, params: Vector | Matrix, features: Floats) -> Matrix:
        """Return `[row, output]`, under one parameter vector or one per row."""
        with using_threads(self._threads), torch.no_grad():
            views, rows = self._views(self._tensor(params)), self._rows(features)
            if params.ndim == 1 or len(rows) == 1:
                if params.ndim == 2:
                    views = {name: it[0] for name, it in views.items()}
                found = self._forward(self._evaluating, views, rows)
            elif self._looping(len(rows)):
                each = self._outputs_in(self._evaluating)
                parts = [each(_row(views, i), rows[i]) for i in range(len(rows))]
                found = torch.stack(parts) if parts else torch.zeros(0, self.num_outputs)
            else:
                found = self._batched_outputs(views, rows)
            outputs: Matrix = _array(found.reshape(len(rows), self.num_outputs))
            return outputs

    def losses(self, params: Vector | Matrix, features: Floats, labels: Floats) -> Vector:
        """Return the loss of every row, under one parameter vector or one per row."""
        outputs = torch.from_numpy(self.outputs(params, features)).to(self._device)
        with using_threads(self._threads), torch.no_grad():
            losses: Vector = _array(self._each_loss(outputs, self._labels(labels)))
            return losses.astype(np.float64)

    def gradient(self, params: Vector, features: Floats, labels: Floats, shares: Vector) -> Vector:
        """Return the gradient of a weighted sum of the losses of rows under one vector."""
        with using_threads(self._threads):
            own = self._tensor(params).clone().requires_grad_()
            outputs = self._forward(self._evaluating, self._views(own), self._rows(features))
            losses = self._each_loss(outputs.reshape(len(features), -1), self._labels(labels))
            weights = torch.from_numpy(np.asarray(shares)).to(self._device, losses.dtype)
            [found] = _gradients(weights @ losses, [own])
            gradient: Vector = _array(found)
            return gradient

    def passed(
        self,
        stack: Matrix,
        features: Floats,
        labels: Floats,
        l2: float = 0.0,
        seed: int | None = None,
    ) -> Passed:
        """Return losses, outputs and gradients of every row, each under its own parameters.

        Args:
            stack: `[row, parameter]`.
            features: `[row, feature]`.
            labels: `[row]`.
            l2: Times the parameters is added to the gradients.
            seed: Of what the module draws while it learns; None if it does not learn: dropout is
                off.
        """
        learning = seed is not None and self.is_random
        drawing: AbstractContextManager[None] = nullcontext()
        if learning:
            assert seed is not None
            drawing = drawn_from(seed)
        with using_threads(self._threads), drawing:
            params = self._tensor(stack)
            views, rows, truth = self._views(params), self._rows(features), self._labels(labels)
            if self._looping(len(rows)):
                losses, outputs, gradients = self._looped(views, rows, truth, learning)
            else:
                program = self._learning_program if learning else self._program
                parts, (losses, outputs) = program(views, rows, truth)
                flat = [
                    parts[name].reshape(len(rows), last - first)
                    for name, (first, last, _) in self._places.items()
                ]
                gradients = torch.cat(flat, dim=1)
            if l2:
                gradients.add_(params, alpha=l2)
            return Passed(
                _array(losses).astype(np.float64),
                _array(outputs.reshape(len(rows), self.num_outputs)),
                _array(gradients),
            )

    # How.

    def _looping(self, num_rows: int) -> bool:
        _ = self.is_random  # finds out whether it can be batched
        if self._backend == "auto":
            return num_rows <= 1 or self.dim >= LARGEST_BATCHED
        return self._backend == "loop" or num_rows == 0

    def _looped(
        self, views: dict[str, Tensor], rows: Tensor, truth: Tensor, learning: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        gradients = torch.empty(len(rows), self.dim, dtype=self._kind, device=self._device)
        losses = torch.empty(len(rows), dtype=self._kind)
        outputs = torch.empty(len(rows), self.num_outputs, dtype=self._kind)
        sample = self._sample_in(self._training if learning else self._evaluating)
        for row in range(len(rows)):
            own = {name: it[row].detach().requires_grad_() for name, it in views.items()}
            loss, given = sample(own, rows[row], truth[row])
            parts = _gradients(loss, list(own.values()))
            torch.cat([part.reshape(-1) for part in parts], out=gradients[row])
            losses[row], outputs[row] = loss.detach(), given.detach()
        return losses, outputs, gradients

    @cached_property
    def _program(self) -> Callable[..., Any]:
        batched = vmap(grad_and_value(self._sample_in(self._evaluating), has_aux=True))
        return self._compiled(batched)

    @cached_property
    def _learning_program(self) -> Callable[..., Any]:
        sample = self._sample_in(self._training)
        batched = vmap(grad_and_value(sample, has_aux=True), randomness="different")
        return self._compiled(batched)

    @cached_property
    def _batched_outputs(self) -> Callable[..., Any]:
        return self._compiled(vmap(self._outputs_in(self._evaluating)))

    def _compiled(self, program: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = (
            torch.compile(program) if self._backend == "compile" else program
        )
        return compiled

    def _sample_in(self, module: nn.Module) -> Callable[..., Any]:
        each, loss = self._outputs_in(module), self._loss
        assert loss is not None

        def sample(views: dict[str, Tensor], row: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
            outputs = each(views, row)
            return loss(outputs, label), outputs

        return sample

    def _outputs_in(self, module: nn.Module) -> Callable[[dict[str, Tensor], Tensor], Tensor]:
        def outputs(views: dict[str, Tensor], row: Tensor) -> Tensor:
            given: Tensor = self._forward(module, views, row[None])
            return given.reshape(-1)

        return outputs

    def _forward(self, module: nn.Module, views: dict[str, Tensor], rows: Tensor) -> Any:
        return functional_call(module, views, (rows,))

    def _each_loss(self, outputs: Tensor, truth: Tensor) -> Tensor:
        assert self._loss is not None
        if len(truth) > 1 and not self._looping(len(truth)):
            found: Tensor = vmap(self._loss)(outputs, truth)
            return found
        losses = [self._loss(one, label) for one, label in zip(outputs, truth, strict=True)]
        return torch.stack(losses) if losses else torch.zeros(0, dtype=self._kind)

    def _views(self, params: Tensor) -> dict[str, Tensor]:
        """View `params[..., parameter]` as the tensors of the module, `[..., *shape]`."""
        return {
            name: params[..., first:last].view((*params.shape[:-1], *shape))
            for name, (first, last, shape) in self._places.items()
        }

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        # PyTorch has no arrays that may not be written to: what is one is copied.
        own = array if array.flags.writeable and array.flags.c_contiguous else array.copy(order="C")
        return torch.from_numpy(own).to(self._device, self._kind)

    def _rows(self, features: Floats) -> Tensor:
        return self._tensor(features).reshape(len(features), *self._shape)

    def _zero_rows(self, count: int) -> Tensor:
        return torch.zeros(count, *self._shape, dtype=self._kind, device=self._device)

    def _labels(self, labels: Floats) -> Tensor:
        if self._whole:
            return torch.from_numpy(labels.astype(np.int64)).to(self._device)
        return self._tensor(labels)


def _draws(part: nn.Module) -> bool:
    """Whether a module that cannot be tried in a batch has dropout, by its attributes."""
    shares = (getattr(part, name, 0.0) for name in ("p", "dropout"))
    return any(isinstance(share, float) and share > 0.0 for share in shares)


def _gradients(loss: Tensor, params: list[Tensor]) -> Sequence[Tensor]:
    """The gradients of a loss; 0 where it is constant, as a branch of a function may be."""
    if not loss.requires_grad:
        return [torch.zeros_like(it) for it in params]
    return torch.autograd.grad(loss, params, materialize_grads=True)


def _row(views: dict[str, Tensor], row: int) -> dict[str, Tensor]:
    return {name: it[row] for name, it in views.items()}


def _array(tensor: Tensor) -> Any:
    return tensor.detach().cpu().numpy()


def logistic_loss(outputs: Tensor, label: Tensor) -> Tensor:
    """Return log(1 + exp(-y s)) of the only output."""
    margin = label * outputs.reshape(())
    return torch.logaddexp(-margin, torch.zeros_like(margin))


def cross_entropy_loss(outputs: Tensor, label: Tensor) -> Tensor:
    """Return log(sum_k exp(s_k)) - s_y."""
    of_label = outputs.gather(0, label.reshape(1)).reshape(())
    return torch.logsumexp(outputs, 0) - of_label


def squared_loss(outputs: Tensor, label: Tensor) -> Tensor:
    """Return (s - y)^2 / 2 of the only output."""
    return 0.5 * (outputs.reshape(()) - label) ** 2
