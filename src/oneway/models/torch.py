"""Neural networks: any PyTorch module as a model, with any differentiable loss of one sample."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Self, cast

import numpy as np

from oneway.models.base import Answers, Lesson, log_odds, row_shares
from oneway.models.torch_options import TorchOptions
from oneway.records import Batch, Bools, Floats, Matrix, Vector


@dataclass(frozen=True, eq=False, init=False)
class Torch(TorchOptions):
    """The loss of a PyTorch module's outputs plus l2/2 * ||x||^2; x are all parameters, flattened.

    Parameters are float32, or float64 if the module's are (`module.double()`). A module that is
    given starts from the values it has; a function is called with PyTorch's generator seeded by the
    run, so that all nodes start from the same values. Dropout is drawn anew for every node and
    sample that is learned from, and is off when predicting.

    Attributes:
        module: An `nn.Module`, a function that returns one, or the name of such a function,
            "package.module:function". It takes `[sample, *shape]` and gives `[sample, output]`.
        loss: "logistic" (one output, labels -1 and +1), "cross-entropy" (an output per class),
            "squared" (one output, numbers), a function of the outputs of one sample and its label,
            or the name of one. If None, that for the labels.
        shape: Of a sample as the module sees it; None for a flat row.
        l2: How strongly parameters are pulled towards 0.
        labels: Which labels it learns from, where the loss is a function; told from the labels if
            None.
        arguments: Of the function that makes the module.
        num_classes: How many outputs there must be, where labels say it; 0 for any number.
        center: What is predicted where the output of a squared loss is 0.
        scale: By how much an output of 1 is above that.
        backend: "loop" (one sample after the other), "vmap" (all nodes in one batched program),
            "compile" (that as native code, after some seconds of compilation) or "auto": vmap, but
            for one node, or from half a million parameters on, the loop.
        device: "cpu", "cuda" or "auto": CUDA where there is one. CUDA is untested: no machine that
            the tests run on has it.
        threads: How many threads PyTorch may use.
        hash: The fingerprint of the module that a task means (`fingerprint`); "" for any.

    Raises:
        ConfigError: A value breaks its rule; the module is missing, not the one that `hash` says,
            or cannot be learned.
        MissingExtraError: PyTorch is not installed.
    """

    name = "torch"
    skips = True

    def __new__(cls, module: object = None, loss: object = None, *_: Any, **__: Any) -> Self:  # noqa: ARG004
        """Make a model; one that says probabilities where the loss does."""
        says = cls is Torch and isinstance(loss, str) and loss in ("logistic", "cross-entropy")
        return object.__new__(cast("type[Self]", TorchClassifier) if says else cls)

    def changed(self, **options: Any) -> Self:
        """Return the model with other options, as those of `__init__`."""
        own = {it.name: getattr(self, it.name) for it in fields(self)}
        own["loss"] = own.pop("objective")
        return cast("Self", Torch(**own | options))

    def dim(self, num_features: int) -> int:
        """Return how many numbers are learned."""
        return self._network(num_features).dim

    def init(self, num_features: int, rng: np.random.Generator) -> Vector:
        """Return the module's own initialisation, from a seed that `rng` draws."""
        from oneway.models.torch_modules import built, flat

        _ = self._built  # checks what it is
        # Spawned: noise that is drawn from `rng` later is the same whatever model starts.
        seed = int(rng.spawn(1)[0].integers(2**63))
        start: Vector = flat(built(self.module, self.arguments, seed))
        return start

    def losses(self, params: Vector | Matrix, batch: Batch) -> Vector:
        """Return the loss of every row, the l2 term included."""
        network = self._network(batch.features.shape[1])
        losses = network.losses(params, batch.features, self._targets(batch.labels))
        return losses + self._penalty(params)

    def gradients(self, stack: Matrix, batch: Batch) -> Matrix:
        """Return the gradient of every row, l2 * x included, without dropout."""
        return self._lesson(stack, batch, None)[1].gradients

    def gradient(self, params: Vector, batch: Batch, counts: Vector | None = None) -> Vector:
        """Return the gradient of the mean loss, in one pass over the batch."""
        network = self._network(batch.features.shape[1])
        shares = row_shares(batch, counts)
        found = network.gradient(params, batch.features, self._targets(batch.labels), shares)
        return found + self.l2 * params

    def drawn_gradients(self, stack: Matrix, batch: Batch, rng: np.random.Generator) -> Matrix:
        """Return the gradient of every row, with what the module draws while it learns."""
        return self._lesson(stack, batch, self._seed(batch, rng))[1].gradients

    def lesson(self, stack: Matrix, batch: Batch, rng: np.random.Generator) -> Lesson:
        """Return all that a sample tells, in one pass if nothing is drawn while learning."""
        seed = self._seed(batch, rng)
        outputs, lesson = self._lesson(stack, batch, seed)
        losses = lesson.losses
        if seed is not None:  # predictions are made without dropout
            network = self._network(batch.features.shape[1])
            outputs = network.outputs(stack, batch.features)
            losses = self.losses(stack, batch)
        correct = self._predicted(outputs) == batch.labels if self.classifies else None
        return Lesson(losses, correct, lesson.gradients, owned=True)

    def _seed(self, batch: Batch, rng: np.random.Generator) -> int | None:
        """What dropout is drawn from; None if there is none."""
        if not self._network(batch.features.shape[1]).is_random:
            return None
        return int(rng.integers(2**63))

    def _lesson(self, stack: Matrix, batch: Batch, seed: int | None) -> tuple[Matrix, Lesson]:
        network = self._network(batch.features.shape[1])
        targets = self._targets(batch.labels)
        passed = network.passed(stack, batch.features, targets, self.l2, seed)
        losses = passed.losses + self._penalty(stack)
        return passed.outputs, Lesson(losses, None, passed.gradients)

    def _penalty(self, params: Vector | Matrix) -> Vector | float:
        if not self.l2:
            return 0.0
        squares: Vector = np.einsum("...d,...d->...", params, params)
        return 0.5 * self.l2 * squares.astype(np.float64)

    def _targets(self, labels: Floats) -> Floats:
        if self.center == 0.0 and self.scale == 1.0:
            return labels
        targets: Vector = (np.asarray(labels, np.float64) - self.center) / self.scale
        return targets

    # What it predicts.

    def outputs(self, params: Vector | Matrix, features: Floats) -> Matrix:
        """Return what the module gives, `[row, output]`, as float64."""
        found = self._network(features.shape[1]).outputs(params, features)
        return np.asarray(found, np.float64)

    def _predicted(self, outputs: Matrix) -> Vector:
        if self.labels == "binary":
            return np.where(outputs[:, 0] >= 0.0, 1.0, -1.0)
        if self.labels == "classes":
            return np.asarray(outputs.argmax(axis=1), np.float64)
        return self.center + self.scale * outputs[:, 0].astype(np.float64)

    def predict(self, params: Vector, features: Floats) -> Vector:
        """Return the sign of the output, the class with the largest, or the output itself."""
        return self._predicted(self.outputs(params, features))

    def correct(self, params: Vector | Matrix, batch: Batch) -> Bools | None:
        """Return for every row whether the prediction is right; None for numbers."""
        if not self.classifies:
            return None
        return np.asarray(self._predicted(self.outputs(params, batch.features)) == batch.labels)

    def answers(self, params: Vector | Matrix, features: Floats) -> Answers:
        """Return predictions, with the outputs as scores where it classifies."""
        outputs = self.outputs(params, features)
        return Answers(self._predicted(outputs), outputs if self.classifies else None)

    def base_losses(self, expected: Matrix, labels: Floats) -> Vector:
        """Return the loss of answers that know nothing of the features, in the loss's units."""
        if self.classifies:
            return super().base_losses(expected, labels)
        losses: Vector = 0.5 * (self._targets(expected[:, 0]) - self._targets(labels)) ** 2
        return losses

    def _label_rule(self, labels: Floats) -> tuple[Bools, str, str]:
        if self.labels != "classes":
            return super()._label_rule(labels)
        most = min((it.num_outputs for it in self._networks.values()), default=math.inf)
        known = (labels >= 0) & (labels < most) & (labels == np.floor(labels))
        return known, f"one of the classes 0..{most - 1:g}", "number the classes from 0"


class TorchClassifier(Torch):
    """A torch model whose loss, logistic or cross-entropy, is that of probabilities."""

    def probabilities(self, params: Vector, features: Floats) -> Matrix:
        """Return how probable each class is, `[row, class]`."""
        return self._chances(self.outputs(params, features))

    def answers(self, params: Vector | Matrix, features: Floats) -> Answers:
        """Return predictions, probabilities, and as scores the output or their log-odds."""
        outputs = self.outputs(params, features)
        chances = self._chances(outputs)
        scores = outputs if self.labels == "binary" else log_odds(chances)
        return Answers(self._predicted(outputs), scores, chances)

    def _chances(self, outputs: Matrix) -> Matrix:
        if self.labels == "binary":
            second = 0.5 * (1.0 + np.tanh(0.5 * outputs[:, 0]))
            return np.column_stack([1.0 - second, second])
        chances: Matrix = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        return chances
