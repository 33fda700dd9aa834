"""Neural networks: any PyTorch module as a model, with any differentiable loss of one sample.

The parameters of all nodes are rows of one matrix; the tensors of a module are views of a row.
PyTorch is the extra `torch`, imported when a model is first made.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, fields
from functools import cached_property, partial
from hashlib import blake2b
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from oneway.errors import ConfigError, needs_extra
from oneway.models.base import (
    LabelKind,
    LearningPass,
    Model,
    Predictions,
    check_number,
    class_rule,
    log_odds,
    rounded_units,
    row_shares,
)
from oneway.models.linear import LogisticRegression, RidgeRegression
from oneway.models.softmax import softmax
from oneway.records import Batch, Bools, Floats, Matrix, Vector
from oneway.registry import installed_function
from oneway.sentences import cut, listed, shown

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:

    class _Lazy:
        def __getattr__(self, name: str) -> Any:
            found = self.__dict__[name] = getattr(import_module("torch"), name)
            return found

    torch = _Lazy()

LABELS_OF: dict[str, LabelKind] = {
    "logistic": "binary",
    "cross-entropy": "classes",
    "squared": "number",
}
"""Which labels the named losses learn from."""
LARGEST_BATCHED = 500_000
"""With at least this many parameters, samples are looped over, which is faster at a million: memory
is slower than arithmetic (benchmarks/torch_nodes.py)."""
_LOSS_FOR = {kind: loss for loss, kind in LABELS_OF.items()}
_FIXED_SEED = 0
"""Seed of the initial values that a fingerprint covers, the same at all sites."""
_TRIED_ROWS = 7
"""Samples of a trial. With fewer, a convolution could take rows without channels for the channels
of one image."""
_generator_lock = threading.RLock()


@dataclass(frozen=True, eq=False, init=False)
class Torch(Model):
    """The loss of a PyTorch module's outputs plus l2/2 * ||x||^2; x are all parameters, flattened.

    Parameters are float32, or float64 if the module's are (`module.double()`). A module starts from
    the values it has; a function is called with PyTorch's generator seeded by the run, so that all
    nodes start from the same values. Dropout is drawn for every node and sample that is learned
    from, and is off in predictions.

    Attributes:
        module: An `nn.Module`, a function that returns one, or the name of such a function,
            "package.module:function". It takes `[sample, *shape]` and gives `[sample, output]`.
        objective: The argument `loss`: "logistic" (one output, labels -1 and +1), "cross-entropy"
            (an output per class), "squared" (one output, numbers), a function of the outputs of one
            sample and its label, or the name of one. If None, the labels decide.
        shape: Shape of a sample as the module sees it; None for a flat row.
        l2: How strongly parameters are pulled towards 0.
        labels: Which labels it learns from if the loss is a function; None if the data decides.
        arguments: Arguments of the function that makes the module.
        num_classes: How many outputs there must be; 0 for any number.
        center: Prediction where the output of a squared loss is 0.
        scale: How far an output of 1 is above that.
        hash: The `fingerprint` of the module that a task means; "" for any.

    Raises:
        ConfigError: A value breaks its rule; the module is missing, does not match `hash`, or
            cannot be learned.
        MissingExtraError: PyTorch is not installed.
    """

    name = "torch"
    skips = True
    # An initialisation divides by the inputs of a layer: gradients do not grow with their number.
    typical_features = 19
    usual_data = "digits"

    module: Any
    objective: str | Callable[[Any, Any], Any] | None
    shape: tuple[int, ...] | None
    l2: float
    labels: LabelKind
    arguments: Mapping[str, Any]
    num_classes: int
    center: float
    scale: float
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
        hash: str = "",  # noqa: A002
    ) -> None:
        with needs_extra("a torch model", "torch"):
            import_module("torch")
        options = {
            "module": module,
            "objective": loss,  # every model has a method `loss`
            "shape": _checked_shape(shape),
            "l2": check_number("Torch", "l2", l2, least=0.0),
            "labels": _checked_labels(loss, labels),
            "arguments": dict(arguments or {}),
            "num_classes": num_classes,
            "center": check_number("Torch", "center", center),
            "scale": check_number("Torch", "scale", scale, above=0.0),
            "hash": hash,
        }
        for name, value in options.items():
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        """Return the options: what is made of them is made again."""
        return {it.name: getattr(self, it.name) for it in fields(self)}

    def _changed(self, **options: Any) -> Self:
        own = self.__getstate__()
        own["loss"] = own.pop("objective")
        return type(self)(**own | options)

    def dim(self, num_features: int) -> int:
        """Return how many numbers are learned."""
        self._fit(num_features)
        return len(self._first)

    def init(self, num_features: int, rng: np.random.Generator) -> Vector:
        """Return the module's own initialisation, from a seed that `rng` draws."""
        _ = self._built  # checks it
        # Spawned: noise that is drawn from `rng` later is the same whatever model starts.
        seed = int(rng.spawn(1)[0].integers(2**63))
        start: Vector = _flat(_build(self.module, self.arguments, seed)).numpy()
        return start

    # Losses and gradients, sample by sample: those of several samples in one batched program
    # (`torch.func.vmap`), or one after the other where PyTorch cannot batch a module or a loss.

    def losses(self, params: Vector | Matrix, batch: Batch) -> Vector:
        """Return the loss of every row, the l2 term included."""
        with torch.no_grad():
            outputs = self._outputs(params, batch.features)
            losses: Vector = self._each(self._loss, outputs, self._truth(batch.labels)).numpy()
        return losses.astype(np.float64) + self._penalty(params)

    def gradients(self, stack: Matrix, batch: Batch) -> Matrix:
        """Return the gradient of every row, l2 * x included, without dropout."""
        return self._pass(stack, batch, None)[2]

    def gradient(self, params: Vector, batch: Batch, counts: Vector | None = None) -> Vector:
        """Return the gradient of the mean loss, in one pass over the batch."""
        own = self._tensor(params).clone().requires_grad_()
        outputs = self._call(self._evaluating, own, self._rows(batch.features))
        losses = self._each(self._loss, outputs.reshape(len(batch), -1), self._truth(batch.labels))
        weights = torch.from_numpy(row_shares(batch, counts)).to(losses.dtype)
        gradient: Vector = _gradient(weights @ losses, own).numpy()
        return gradient + self.l2 * params

    def drawn_gradients(self, stack: Matrix, batch: Batch, rng: np.random.Generator) -> Matrix:
        """Return the gradient of every row, with dropout."""
        return self._pass(stack, batch, self._seed(batch, rng))[2]

    def learning_pass(self, stack: Matrix, batch: Batch, rng: np.random.Generator) -> LearningPass:
        """Return losses, right predictions and gradients, in one pass unless there is dropout."""
        seed = self._seed(batch, rng)
        losses, outputs, gradients = self._pass(stack, batch, seed)
        if seed is not None:  # predictions are made without dropout
            losses, outputs = self.losses(stack, batch), self.outputs(stack, batch.features)
        correct = self._predicted(outputs) == batch.labels if self.classifies else None
        return LearningPass(losses, correct, gradients)

    def _pass(self, stack: Matrix, batch: Batch, seed: int | None) -> tuple[Vector, Matrix, Matrix]:
        """Losses, outputs and gradients of every row; `seed` is that of dropout, None for none."""
        module = self._evaluating if seed is None else self._training
        params, rows = self._tensor(stack), self._rows(batch.features)
        program = self._looped if self._loops_over(len(rows)) else self._batched
        with nullcontext() if seed is None else _drawn_from(seed):
            gradients, losses, outputs = program(module, params, rows, self._truth(batch.labels))
        own: Vector = losses.numpy().astype(np.float64) + self._penalty(stack)
        return own, outputs.numpy(), gradients.numpy()

    def _looped(
        self, module: nn.Module, params: Tensor, rows: Tensor, truth: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        gradients = torch.empty_like(params, memory_format=torch.contiguous_format)
        losses, outputs = gradients.new_empty(len(rows)), []
        for row in range(len(rows)):
            own = params[row].detach().requires_grad_()
            loss, found = self._sample(module, own, rows[row], truth[row])
            torch.add(_gradient(loss, own), params[row], alpha=self.l2, out=gradients[row])
            losses[row] = loss.detach()
            outputs.append(found.detach())
        return gradients, losses, torch.stack(outputs) if outputs else gradients[:, :0]

    def _batched(
        self, module: nn.Module, params: Tensor, rows: Tensor, truth: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        sample = torch.func.grad_and_value(partial(self._sample, module), has_aux=True)
        program = torch.func.vmap(sample, randomness="different")
        gradients, (losses, outputs) = program(params, rows, truth)
        gradients = torch.add(gradients.detach(), params, alpha=self.l2)
        return gradients, losses.detach(), outputs.detach()

    def _sample(
        self, module: nn.Module, params: Tensor, row: Tensor, label: Tensor
    ) -> tuple[Tensor, Tensor]:
        outputs = self._call(module, params, row[None]).reshape(-1)
        return self._loss(outputs, label), outputs

    def _call(self, module: nn.Module, params: Tensor, rows: Tensor) -> Tensor:
        """The outputs of a module with these parameters."""
        found: Tensor = torch.func.functional_call(module, self._views(params), (rows,))
        return found

    def _each(self, function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        """A function of one row, for every row: in one program, or one after the other."""
        if not self._loops_over(len(tensors[0])):
            batched: Tensor = torch.func.vmap(function)(*tensors)
            return batched
        found = [function(*row) for row in zip(*tensors, strict=True)]
        return torch.stack(found) if found else torch.zeros(0)

    def _loops_over(self, num_rows: int) -> bool:
        return num_rows <= 1 or len(self._first) >= LARGEST_BATCHED or not self._can_be_batched

    @cached_property
    def _can_be_batched(self) -> bool:
        """Whether PyTorch can batch the module and the loss over nodes, by a trial."""
        params, truth = self._first.repeat(2, 1), self._truth(np.ones(2))
        try:
            # From a seed of its own: the trial must not use up what the caller draws.
            with _drawn_from(_FIXED_SEED), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # PyTorch warns where it would loop inside.
                warnings.filterwarnings("error", message=".*performance drop.*")
                self._batched(self._training, params, self._zeros(2), truth)
        except Exception:  # such as an `if` on a value, an LSTM, any error in a user's code
            return False
        return True

    def _seed(self, batch: Batch, rng: np.random.Generator) -> int | None:
        """Seed of dropout; None if there is none."""
        self._fit(batch.features.shape[1])
        return int(rng.integers(2**63)) if self._is_random else None

    @cached_property
    def _is_random(self) -> bool:
        """Whether the module draws random numbers while it learns, as dropout does."""
        with _drawn_from(_FIXED_SEED), torch.no_grad():
            before = torch.get_rng_state()
            self._training(self._zeros(2))
            return not torch.equal(before, torch.get_rng_state())

    def _penalty(self, params: Vector | Matrix) -> Vector | float:
        if not self.l2:
            return 0.0
        squares: Vector = np.einsum("...d,...d->...", params, params)
        return 0.5 * self.l2 * squares.astype(np.float64)

    # Arrays as tensors.

    def _tensor(self, array: Floats) -> Tensor:
        # PyTorch has no read-only tensors, so such arrays are copied.
        own = array if array.flags.writeable and array.flags.c_contiguous else array.copy(order="C")
        return torch.from_numpy(own).to(self._first.dtype)

    def _views(self, params: Tensor) -> dict[str, Tensor]:
        """View one vector of parameters as the tensors of the module."""
        parts = torch.split(params, [it.numel() for it in self._sizes.values()])
        pairs = zip(self._sizes.items(), parts, strict=True)
        return {name: it.view(size) for (name, size), it in pairs}

    def _rows(self, features: Floats) -> Tensor:
        shape, _ = self._fit(features.shape[1])
        return self._tensor(features).reshape(len(features), *shape)

    def _zeros(self, count: int) -> Tensor:
        shape, _ = next(iter(self._fits.values()))
        return torch.zeros(count, *shape, dtype=self._first.dtype)

    @cached_property
    def _units(self) -> RidgeRegression:
        return RidgeRegression(l2=0.0, center=self.center, scale=self.scale)

    def _truth(self, labels: Floats) -> Tensor:
        if self.labels == "classes":
            return torch.from_numpy(labels.astype(np.int64))
        return self._tensor(self._units.targets(labels))

    # Predictions.

    def outputs(self, params: Vector | Matrix, features: Floats) -> Matrix:
        """Return the outputs of the module, `[row, output]`, as float64."""
        with torch.no_grad():
            return np.asarray(self._outputs(params, features).numpy(), np.float64)

    def _outputs(self, params: Vector | Matrix, features: Floats) -> Tensor:
        own, rows, module = self._tensor(params), self._rows(features), self._evaluating
        if params.ndim == 1:
            found = self._call(module, own, rows)
        else:
            found = self._each(lambda own, row: self._call(module, own, row[None]), own, rows)
        return found.reshape(len(rows), self._fit(features.shape[1])[1])

    def _predicted(self, outputs: Matrix) -> Vector:
        if not len(outputs):
            return np.zeros(0)
        if self.labels == "binary":
            return np.where(outputs[:, 0] >= 0.0, 1.0, -1.0)
        if self.labels == "classes":
            return np.asarray(outputs.argmax(axis=1), np.float64)
        return self.center + self.scale * outputs[:, 0].astype(np.float64)

    def predict(self, params: Vector, features: Floats) -> Vector:
        """Return the sign of the output, the class with the largest, or the output itself."""
        return self._predicted(self.outputs(params, features))

    def predictions(self, params: Vector | Matrix, features: Floats) -> Predictions:
        """Return predictions; where it classifies, with probabilities, if any, and scores."""
        outputs = self.outputs(params, features)
        scores, probabilities = (
            outputs if self.classifies else None,
            self._probabilities_of(outputs),
        )
        if probabilities is not None and self.labels == "classes":
            scores = log_odds(probabilities)
        return Predictions(self._predicted(outputs), scores, probabilities)

    def probabilities(self, params: Vector, features: Floats) -> Matrix | None:
        """Return the probability of each class, `[row, class]`; None for other losses."""
        return (
            self._probabilities_of(self.outputs(params, features))
            if self.says_probabilities
            else None
        )

    @property
    def says_probabilities(self) -> bool:
        """Whether the loss is the logarithm of a probability."""
        return isinstance(self.objective, str) and self.objective in ("logistic", "cross-entropy")

    def _probabilities_of(self, outputs: Matrix) -> Matrix | None:
        if not self.says_probabilities:
            return None
        if self.labels == "binary":
            return LogisticRegression().probabilities_of(outputs[:, 0])
        return softmax(outputs)

    def base_losses(self, expected: Matrix, labels: Floats) -> Vector:
        """Return the loss of predictions that ignore the features, in units of the scale."""
        if self.classifies:
            return super().base_losses(expected, labels)
        return self._units.base_losses(expected, labels)

    def _label_rule(self, labels: Floats) -> tuple[Bools, str, str]:
        if self.labels != "classes":
            return super()._label_rule(labels)
        return class_rule(labels, self.num_classes or math.inf)

    # Options that the data decides.

    @classmethod
    def kind_of_labels(cls, options: Mapping[str, Any]) -> LabelKind | None:
        """Return what the loss learns from; None if the labels decide."""
        loss, labels = options.get("loss"), options.get("labels")
        return LABELS_OF.get(loss, labels) if isinstance(loss, str) else labels

    @classmethod
    def for_labels(cls, num_classes: int, **options: Any) -> Self:
        """Return a model for labels with so many classes (0 for numbers)."""
        if "module" not in options:
            raise ConfigError(
                'model torch has no module; add module = "package.module:function" under '
                "[options.torch], or say model torch:package.module:function"
            )
        by_count: dict[int, LabelKind] = {0: "number", 2: "binary"}
        kind = cls.kind_of_labels(options) or by_count.get(num_classes, "classes")
        count = num_classes if kind == "classes" else 0
        loss = options.pop("loss", None) or _LOSS_FOR[kind]
        return cls(loss=loss, **{"labels": kind, "num_classes": count} | options)

    def for_samples(self, shape: tuple[int, ...], labels: Floats | None = None) -> Self:
        """Return the model with the shape in which its module takes samples, and with its loss.

        A convolution gets an axis of channels where samples have none; a module that takes no
        array, such as a linear layer over all pixels, sees a flat row. Labels of -1 and +1 are
        learned by the logistic loss, others by the cross-entropy if there are several outputs, else
        by the squared loss. Options that were given stay.

        Raises:
            ConfigError: The module cannot take a sample in any of these shapes.
        """
        if self.shape is None and (seen := _fitting_shape(self._built, shape)) is not None:
            return self._changed(shape=seen).for_samples(shape, labels)
        if labels is None:
            return self
        kind, count = self.labels, self.num_classes
        if kind is None or (kind == "classes" and not count):
            # Without the loss: a function may accept only whole numbers, and is tried with others.
            _, outputs = self._changed(loss=None)._fit(math.prod(shape))
            if kind is None:
                kind = "classes" if outputs > 1 else "number"
                kind = "binary" if np.all(np.abs(labels) == 1) else kind
            count = outputs if kind == "classes" else 0
        loss = _LOSS_FOR[kind] if self.objective is None else self.objective
        if (loss, kind, count) == (self.objective, self.labels, self.num_classes):
            return self
        return self._changed(loss=loss, labels=kind, num_classes=count)

    def start_options(self, expected: Vector, deviation: float) -> dict[str, Any]:
        """Return mean and deviation of numbers: a network learns them in such units."""
        return rounded_units(float(expected[0]), deviation) if self.objective == "squared" else {}

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

    def options(self) -> dict[str, Any]:
        """Return the options that make the same model again, where the module has a name."""
        own = super().options()
        loss = own.pop("objective")
        return own | {
            "module": _name_of(self.module),
            "loss": None if loss is None else _name_of(loss),
        }

    def describe(self) -> dict[str, Any]:
        """Return the module's name or representation, its size and all options, for JSON."""
        own, is_number = self.options(), self.labels == "number"
        rest: dict[str, Any] = {
            "shape": self.shape and list(self.shape),
            "arguments": dict(self.arguments),
            "center": is_number and self.center,
            "scale": is_number and self.scale != 1 and self.scale,
        }
        return {
            "model": "Torch",
            "module": own["module"],
            "parameters": int(self.fingerprint.partition("-")[0]),
            "hash": self.fingerprint,
            **{name: own[name] for name in ("loss", "labels", "l2")},
            **{name: value for name, value in rest.items() if value},
        }

    # The module.

    @cached_property
    def _built(self) -> nn.Module:
        """The module with the values that its fingerprint covers, checked."""
        module = _build(self.module, self.arguments, _FIXED_SEED)
        _check_state(module)
        found = _fingerprint(module)
        if self.hash and found != self.hash:
            same_shapes = found.rsplit("-", 1)[0] == str(self.hash).rsplit("-", 1)[0]
            differs = "starts from other values" if same_shapes else "has other shapes or parts"
            raise ConfigError(
                f"module {shown(_name_of(self.module))} {differs} here ({found}, torch "
                f"{torch.__version__}) than the task says ({self.hash}; the first number counts "
                "parameters); install the versions of it and of torch that the task was made with"
            )
        return module

    @cached_property
    def fingerprint(self) -> str:
        """Number of parameters, and digests of its parts and of its values from a fixed seed.

        What a task has as `hash`.
        """
        return _fingerprint(self._built)

    def filled(self, params: Vector) -> nn.Module:
        """Return a copy of the module with these parameters, in evaluation mode."""
        own = deepcopy(self._built).eval()
        for name, values in self._views(self._tensor(params)).items():
            own.get_parameter(name).data.copy_(values)
        return own

    @cached_property
    def dtype(self) -> type[np.float32] | type[np.float64]:  # type: ignore[override]
        """Type of the parameters."""
        return np.float64 if self._first.dtype == torch.float64 else np.float32

    @cached_property
    def _first(self) -> Tensor:
        return _flat(self._built)

    @cached_property
    def _sizes(self) -> dict[str, torch.Size]:
        return {name: it.shape for name, it in _learned(self._built).items()}

    @cached_property
    def _evaluating(self) -> nn.Module:
        return deepcopy(self._built).cpu().requires_grad_(False).eval()

    @cached_property
    def _training(self) -> nn.Module:
        return deepcopy(self._evaluating).train()

    @cached_property
    def _fits(self) -> dict[int, tuple[tuple[int, ...], int]]:
        return {}

    def _fit(self, num_features: int) -> tuple[tuple[int, ...], int]:
        """Shape of a sample with so many numbers, and how many outputs it has; checked once."""
        if num_features not in self._fits:
            shape = (num_features,) if self.shape is None else self.shape
            if math.prod(shape) != num_features:
                raise ConfigError(
                    f"Torch got shape={shape}, which is {math.prod(shape):,} numbers, and a sample "
                    f"has {num_features:,}; give the shape of a sample"
                )
            outputs = _num_outputs(self._evaluating, shape, "set shape to what the module takes")
            one = self.objective in ("logistic", "squared")
            if outputs != (needed := 1 if one else self.num_classes or outputs):
                raise ConfigError(
                    f"the module gives {outputs} outputs for a sample, and its labels need "
                    f"{needed}; correct its last layer, or choose another loss"
                )
            if self.objective is not None:
                self._check_loss(torch.zeros(1, *shape, dtype=self._first.dtype))
            self._fits[num_features] = shape, outputs
        return self._fits[num_features]

    def _check_loss(self, row: Tensor) -> None:
        name, module = _name_of(self.objective), type(self._built).__name__
        problem = f"loss {name} of module {module} has no gradient"
        remedy = "it must be a scalar tensor computed from the outputs of one sample and its label"
        with _explained(problem, remedy):
            truth = self._truth(np.array([0.0 if self.labels == "classes" else 1.0]))
            self._looped(self._evaluating, self._first[None], row, truth)

    @cached_property
    def _loss(self) -> Callable[[Any, Any], Any]:
        if self.objective is None:
            raise ConfigError("Torch got loss=None, so that labels decide about it; give the loss")
        if not isinstance(self.objective, str):
            return self.objective
        named = {"logistic": _logistic, "cross-entropy": _cross_entropy, "squared": _squared}
        return named.get(self.objective) or installed_function(self.objective)


def _checked_shape(shape: Any) -> tuple[int, ...] | None:
    if shape is None:
        return None
    sizes = tuple(shape) if isinstance(shape, tuple | list) else ()
    if not sizes or not all(type(size) is int and size >= 1 for size in sizes):
        raise ConfigError(
            f"Torch got shape={shape!r}; it must be whole numbers from 1 on, as (1, 28, 28)"
        )
    return sizes


def _checked_labels(loss: object, labels: LabelKind | None) -> LabelKind | None:
    """Return which labels a loss learns from; None if the labels decide."""
    if labels not in (None, *_LOSS_FOR):
        raise ConfigError(f"Torch got labels={shown(labels)}; it is one of {listed(_LOSS_FOR)}")
    if loss is None or callable(loss) or (isinstance(loss, str) and ":" in loss):
        return labels
    known = LABELS_OF.get(loss) if isinstance(loss, str) else None
    if known is None or labels not in (None, known):
        raise ConfigError(
            f"Torch got loss={shown(loss)} and labels={shown(labels)}; a loss is one of "
            f"{listed(LABELS_OF)}, which leave labels out, a function of outputs and label, or the "
            "name of one: package.module:function"
        )
    return known


# The module: built from a seed, checked, flattened, and fingerprinted.


@contextmanager
def _explained(problem: str, remedy: str) -> Iterator[None]:
    """Put any error of a user's code into one sentence."""
    try:
        yield
    except Exception as error:
        reason = cut(" ".join(f"{type(error).__name__}: {error}".split()))
        raise ConfigError(f"{problem} ({reason}); {remedy}") from error


@contextmanager
def _drawn_from(seed: int) -> Iterator[None]:
    """Let PyTorch draw from a seed in the block; its own generator then goes on as before.

    PyTorch has one generator for all threads, so only one of them is in such a block.
    """
    with _generator_lock, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _name_of(given: object) -> str:
    """The name of a function, or the representation of a module."""
    if isinstance(given, str):
        return given
    if isinstance(given, torch.nn.Module):
        return repr(given)
    return f"{getattr(given, '__module__', '')}:{getattr(given, '__qualname__', repr(given))}"


def _build(given: object, arguments: Mapping[str, Any], seed: int) -> nn.Module:
    """Return the module that a user gives; one that a function makes is initialised from a seed."""
    if isinstance(given, torch.nn.Module):
        return given
    function = installed_function(given) if isinstance(given, str) else given
    if not callable(function):
        raise ConfigError(
            f"module is {shown(given)}; it must be an nn.Module, a function that returns one, or a "
            'name such as "package.module:function"'
        )
    name = shown(_name_of(given))
    problem = f"module {name} cannot be made with {shown(str(dict(arguments)))}"
    with _explained(problem, "correct the function or its arguments"), _drawn_from(seed):
        module = function(**arguments)
    if not isinstance(module, torch.nn.Module):
        raise ConfigError(f"module {name} returns {shown(module)}; it must return an nn.Module")
    return module


def _check_state(module: nn.Module) -> None:
    """Check that a module's state is parameters of one type of number, and nothing else."""
    name, buffers = type(module).__name__, [name for name, _ in module.named_buffers()]
    if buffers:
        raise ConfigError(
            f"module {name} has buffers ({listed(buffers, 3)}), which nodes would have to share "
            "besides parameters, as batch norm's running statistics; use nn.GroupNorm or "
            "nn.LayerNorm, and plain attributes for constants"
        )
    with _explained(f"the parameters of module {name} cannot be learned", "correct the module"):
        kinds = {parameter.dtype for parameter in module.parameters()}
        if kinds not in ({torch.float32}, {torch.float64}):
            raise TypeError(f"parameters are {kinds or 'none'}, not all float32 or all float64")
        _flat(module)


def _learned(module: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters by name, without the constant ones (`requires_grad=False`)."""
    return {name: it for name, it in module.named_parameters() if it.requires_grad}


def _flat(module: nn.Module) -> Tensor:
    """Return a copy of the parameters that are learned, as one vector."""
    return torch.cat([it.detach().cpu().reshape(-1) for it in _learned(module).values()])


def _fingerprint(module: nn.Module) -> str:
    """Return the number of parameters, and digests of parts and of all values.

    Parts are parameters with their shapes, and modules with their classes: tanh is not ReLU.
    """
    shapes = [(name, tuple(it.shape), str(it.dtype)) for name, it in module.named_parameters()]
    parts = [(name, type(it).__name__) for name, it in module.named_modules()]
    of_parts = blake2b(repr((shapes, parts)).encode(), digest_size=4, person=b"oneway module")
    of_values = blake2b(digest_size=8, person=b"oneway module")
    for parameter in module.parameters():
        of_values.update(np.ascontiguousarray(parameter.detach().cpu().numpy()).tobytes())
    count = sum(it.numel() for it in _learned(module).values())
    return f"{count}-{of_parts.hexdigest()}-{of_values.hexdigest()}"


def _num_outputs(module: nn.Module, shape: tuple[int, ...], remedy: str) -> int:
    """Return how many numbers a module gives for a sample of a shape, by a trial."""
    rows = torch.zeros(_TRIED_ROWS, *shape, dtype=next(module.parameters()).dtype)
    problem = f"module {type(module).__name__} cannot take samples of the shape {shape}"
    with _explained(problem, remedy), torch.no_grad():
        outputs = module(rows)
        found = tuple(outputs.shape)
        if len(found) not in (1, 2) or found[0] != len(rows):
            raise TypeError(f"it gives {found} for {len(rows)} samples, not [sample, output]")
    return math.prod(found[1:])


def _fitting_shape(module: nn.Module, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape in which a module takes samples of a shape, by trials; None for a row."""
    nn = torch.nn
    convolutions = (
        it for it in module.modules() if isinstance(it, nn.Conv1d | nn.Conv2d | nn.Conv3d)
    )
    axes, flat_row = len(getattr(next(convolutions, None), "kernel_size", ())), (math.prod(shape),)
    candidates, remedy = [shape, flat_row], "correct its first layer, or set shape to what it takes"
    if axes and len(shape) == axes:
        candidates.insert(0, (1, *shape))
    if axes and len(shape) == axes + 1 and shape[-1] == 1:
        candidates.insert(1, (1, *shape[:-1]))  # channels last: with one channel the same row
    elif axes and len(shape) == axes + 1 and shape[-1] < min(shape[:-1]):
        remedy = "PyTorch has channels first: save the images as numpy.moveaxis(images, -1, 1)"
    if set(candidates) == {flat_row}:
        return None
    refusals = []
    for candidate in candidates:
        try:
            _num_outputs(deepcopy(module).eval(), candidate, remedy)
        except ConfigError as refusal:
            refusals.append(refusal)
        else:
            return None if candidate == flat_row else candidate
    raise refusals[0]


def _gradient(loss: Tensor, params: Tensor) -> Tensor:
    """The gradient of a loss; 0 where it is constant, as a branch of a function may be."""
    if not loss.requires_grad:
        return torch.zeros_like(params)
    return torch.autograd.grad(loss, params, materialize_grads=True)[0]


def _logistic(outputs: Tensor, label: Tensor) -> Tensor:
    """log(1 + exp(-y s)) of the only output."""
    margin = label * outputs.reshape(())
    return torch.logaddexp(-margin, torch.zeros_like(margin))


def _cross_entropy(outputs: Tensor, label: Tensor) -> Tensor:
    """log(sum_k exp(s_k)) - s_y."""
    return torch.logsumexp(outputs, 0) - outputs.gather(0, label.reshape(1)).reshape(())


def _squared(outputs: Tensor, label: Tensor) -> Tensor:
    """(s - y)^2 / 2 of the only output."""
    return 0.5 * (outputs.reshape(()) - label) ** 2
