"""Options of a torch model: checked, completed by labels, and turned into a network.

Nothing here imports PyTorch until a model is made: it is the extra `torch`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

import numpy as np

from oneway.errors import ConfigError, needs_extra
from oneway.models.base import LabelKind, Model, check_l2, check_number
from oneway.records import Floats, Vector
from oneway.registry import installed_function
from oneway.sentences import listed, shown

if TYPE_CHECKING:
    from torch import nn

    from oneway.models.torch_network import Network

Backend: TypeAlias = Literal["auto", "loop", "vmap", "compile"]
"""How gradients are computed."""
LABELS_OF: dict[str, LabelKind] = {
    "logistic": "binary",
    "cross-entropy": "classes",
    "squared": "number",
}
"""Which labels the losses with a name learn from."""
_LOSS_FOR = {kind: loss for loss, kind in LABELS_OF.items()}


@dataclass(frozen=True, eq=False, init=False)
class TorchOptions(Model):
    """What a torch model is told; see `Torch`."""

    # An initialisation divides by the inputs of a layer: gradients do not grow with their number.
    typical_features = 19
    usual_data = "digits"
    site_options = ("device", "threads", "backend")

    module: Any
    objective: str | Callable[[Any, Any], Any] | None
    shape: tuple[int, ...] | None
    l2: float
    labels: LabelKind
    arguments: Mapping[str, Any]
    num_classes: int
    center: float
    scale: float
    backend: Backend
    device: str
    threads: int
    hash: str

    def __init__(
        self,
        module: Any,
        loss: str | Callable[[Any, Any], Any] | None = None,
        shape: tuple[int, ...] | None = None,
        l2: float = 1e-4,
        *,
        labels: LabelKind | None = None,
        arguments: Mapping[str, Any] | None = None,
        num_classes: int = 0,
        center: float = 0.0,
        scale: float = 1.0,
        backend: Backend = "auto",
        device: str = "auto",
        threads: int = 1,
        hash: str = "",  # noqa: A002
    ) -> None:
        # By hand: every model has a method `loss`, so that the option has another name here.
        if not isinstance(arguments, Mapping | None):
            raise ConfigError(
                f"Torch got arguments={shown(arguments)}; it must be a table, as {{ hidden = 32 }}"
            )
        if not isinstance(hash, str):
            raise ConfigError(
                f"Torch got hash={shown(hash)}; it must be text: leave it out, and whatever makes "
                "a task from data writes it"
            )
        given = {**locals(), "objective": loss, "arguments": dict(arguments or {})}
        for it in fields(self):
            object.__setattr__(self, it.name, given[it.name])
        with needs_extra("a torch model", "torch"):
            import torch  # noqa: F401
        for name, known in (("labels", tuple(_LOSS_FOR)), ("backend", get_args(Backend))):
            if given[name] is not None and given[name] not in known:
                raise ConfigError(
                    f"Torch got {name}={shown(given[name])}; it is one of {listed(known)}"
                )
        if isinstance(loss, str) and ":" not in loss:
            if loss not in LABELS_OF:
                raise ConfigError(
                    f"Torch got loss={shown(loss)}; it is one of {listed(LABELS_OF)}, a function "
                    "of outputs and label, or the name of one: package.module:function"
                )
            if labels not in (None, LABELS_OF[loss]):
                raise ConfigError(
                    f"Torch got loss={shown(loss)}, which learns {LABELS_OF[loss]} labels, and "
                    f"labels={shown(labels)}; leave labels out"
                )
            object.__setattr__(self, "labels", LABELS_OF[loss])
        elif not (loss is None or isinstance(loss, str) or callable(loss)):
            raise ConfigError(f"Torch got loss={shown(loss)}; it must be a name or a function")
        self._check_numbers()

    @abstractmethod
    def changed(self, **options: Any) -> Self:
        """Return the model with other options, as those of `__init__`."""

    def _check_numbers(self) -> None:
        if self.shape is not None:
            given: Any = self.shape
            sizes = tuple(given) if isinstance(given, tuple | list) else ()
            if not sizes or not all(type(size) is int and size >= 1 for size in sizes):
                raise ConfigError(
                    f"Torch got shape={given!r}; it must be whole numbers from 1 on, as (1, 28, 28)"
                )
            object.__setattr__(self, "shape", sizes)
        if not (type(self.threads) is int and self.threads >= 1):
            raise ConfigError(f"Torch got threads={self.threads!r}; it must be 1 or more")
        object.__setattr__(self, "l2", check_l2("Torch", self.l2))
        object.__setattr__(self, "center", check_number("Torch", "center", self.center))
        object.__setattr__(self, "scale", check_number("Torch", "scale", self.scale, above=0.0))

    def __getstate__(self) -> dict[str, Any]:
        """Return all but what is made of it: compiled programs cannot be pickled."""
        made = ("_networks", "_built", "dtype")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    # What it is told by labels.

    @classmethod
    def kind_of_labels(cls, options: Mapping[str, Any]) -> LabelKind | None:
        """Return what the loss learns from; None if the labels decide."""
        loss = options.get("loss")
        told: LabelKind | None = options.get("labels")
        return LABELS_OF.get(loss, told) if isinstance(loss, str) else told

    @classmethod
    def for_labels(cls, num_classes: int, **options: Any) -> Self:
        """Return a model for labels with so many classes (0 for numbers)."""
        if "module" not in options:
            raise ConfigError(
                'model torch has no module; add module = "package.module:function" under '
                "[options.torch], or say model torch:package.module:function"
            )
        kind = cls.kind_of_labels(options)
        by_count: dict[int, LabelKind] = {0: "number", 2: "binary"}
        kind = kind or by_count.get(num_classes, "classes")
        count = num_classes if kind == "classes" else 0
        loss = options.pop("loss", None)
        return cls(loss=loss, **{"labels": kind, "num_classes": count} | options)._told(kind)

    def told(self, num_features: int, labels: Floats) -> Model:
        """Return the model with the loss for labels: told by them and the number of outputs."""
        kind: LabelKind | None = self.labels
        if kind is None:
            kind = "number"
            if np.all(np.abs(labels) == 1):
                kind = "binary"
            # Without the loss, which may take classes only and is tried with a number till then.
            elif self.changed(loss=None)._network(num_features).num_outputs > 1:
                kind = "classes"
        return self._told(kind)

    def shaped(self, shape: tuple[int, ...]) -> Self:
        """Return the model that sees samples as the arrays they are, if its module takes these.

        A convolution gets an axis of channels where samples have none. A module that takes none of
        it, such as a linear layer over all pixels, sees a flat row; what is said as `shape` stays.

        Raises:
            ConfigError: The module cannot take a sample in any of these shapes.
        """
        from oneway.models.torch_shapes import fitting_shape

        if self.shape is not None:
            return self
        found = fitting_shape(self._built, shape)
        return self if found is None else self.changed(shape=found)

    def _told(self, kind: LabelKind) -> Self:
        loss = _LOSS_FOR[kind] if self.objective is None else self.objective
        if (loss, kind) == (self.objective, self.labels):
            return self
        return self.changed(loss=loss, labels=kind)

    def start_options(self, expected: Vector, deviation: float) -> dict[str, Any]:
        """Return mean and deviation of numbers: a network learns them in such units."""
        if self.objective != "squared":
            return {}
        scale = float(f"{deviation:.4g}")
        center = round(float(expected[0]), 4 - math.floor(math.log10(scale)))
        return {"center": center, "scale": scale}

    def task_options(self) -> dict[str, Any]:
        """Return the fingerprint of the module, which every site of a task checks, and its shape.

        Raises:
            ConfigError: The module has no name by which other sites could find it.
        """
        if not isinstance(self.module, str):
            raise ConfigError(
                f"module is {shown(self.module)}; a task names the function that makes it, as "
                '"package.module:function", for every site to call its own'
            )
        seen = {} if self.shape is None else {"shape": list(self.shape)}
        return {**seen, "hash": self.fingerprint}

    # Its module.

    @cached_property
    def _built(self) -> nn.Module:
        """The module with the values that its fingerprint is of."""
        from oneway.models import torch_modules

        module = torch_modules.built(self.module, self.arguments)
        torch_modules.check_module(module)
        if self.hash:
            torch_modules.check_fingerprint(module, torch_modules.called(self.module), self.hash)
        return module

    @cached_property
    def fingerprint(self) -> str:
        """How many parameters there are, and digests of shapes and first values (by a fixed seed).

        What a task has as `hash`.
        """
        from oneway.models.torch_modules import fingerprint

        return fingerprint(self._built)

    def filled(self, params: Vector) -> nn.Module:
        """Return a copy of the module with these parameters, as it predicts: without dropout."""
        from oneway.models.torch_modules import filled

        return filled(self._built, params)

    @cached_property
    def dtype(self) -> type[np.float32] | type[np.float64]:  # type: ignore[override]
        """The kind of number that parameters are."""
        from oneway.models.torch_modules import flat

        return np.float64 if flat(self._built).dtype == np.float64 else np.float32

    @cached_property
    def _networks(self) -> dict[int, Network]:
        return {}

    def _network(self, num_features: int) -> Network:
        """The module as a function, for samples with so many numbers."""
        if num_features not in self._networks:
            self._networks[num_features] = self._made_for(num_features)
        return self._networks[num_features]

    def _made_for(self, num_features: int) -> Network:
        from oneway.models.torch_network import Network
        from oneway.models.torch_process import device_named

        shape = (num_features,) if self.shape is None else self.shape
        if math.prod(shape) != num_features:
            raise ConfigError(
                f"Torch got shape={shape}, which is {math.prod(shape):,} numbers, and a sample has "
                f"{num_features:,}; give the shape of a sample"
            )
        device = device_named(self.device)
        whole = self.labels == "classes"
        network = Network(
            self._built, self._loss_function, whole, shape, device, self.backend, self.threads
        )
        outputs = network.num_outputs
        if self.objective in ("logistic", "squared") and outputs != 1:
            raise ConfigError(
                f"the module gives {outputs} outputs for a sample, and the loss {self.objective} "
                "needs one; correct its last layer, or choose another loss"
            )
        if self.objective == "cross-entropy" and (
            outputs < 2 or self.num_classes not in (0, outputs)
        ):
            needed = f"{self.num_classes}" if self.num_classes else "at least 2"
            raise ConfigError(
                f"the module gives {outputs} outputs for a sample, and there are {needed} classes; "
                "correct its last layer to give one for each"
            )
        if network.has_loss:
            tried = {"binary": [1.0, -1.0], "classes": [0.0, max(0.0, outputs - 1.0)]}
            network.check_loss(tried.get(self.labels, [1.0]))
        return network

    @property
    def _loss_function(self) -> Callable[[Any, Any], Any] | None:
        from oneway.models import torch_network

        if not isinstance(self.objective, str):
            return self.objective
        own: dict[str, Callable[[Any, Any], Any]] = {
            "logistic": torch_network.logistic_loss,
            "cross-entropy": torch_network.cross_entropy_loss,
            "squared": torch_network.squared_loss,
        }
        return own.get(self.objective) or installed_function(self.objective)

    def options(self) -> dict[str, Any]:
        """Return what makes the same model again, where the module has a name."""
        from oneway.models.torch_modules import called

        own = super().options()
        loss = own.pop("objective")
        said = loss if isinstance(loss, str | None) else called(loss)
        return own | {"module": called(self.module), "loss": said}

    def describe(self) -> dict[str, Any]:
        """Return the module's name or words, its size and all that it was told, for JSON."""
        from oneway.models.torch_modules import called

        loss: Any = self.objective
        loss = loss if isinstance(loss, str | None) else called(loss)
        said: dict[str, Any] = {
            "shape": self.shape and list(self.shape),
            "arguments": dict(self.arguments),
        }
        if self.labels == "number":
            said |= {
                "center": self.center or None,
                "scale": None if self.scale == 1 else self.scale,
            }
        return {
            "model": "Torch",
            "module": called(self.module),
            "parameters": int(self.fingerprint.partition("-")[0]),
            "hash": self.fingerprint,
            "loss": loss,
            "labels": self.labels,
            "l2": self.l2,
            **{name: value for name, value in said.items() if value},
        }
