"""Personal predictions of a peer, and progressive validation of them.

With every sample the peer predicts, by its own mixture of the shared model and of experts that
never leave it (`oneway.personal`), counts how good that was, and lets the experts learn. Nothing of
it travels, so it needs no noise; all of it is stored with the rest, in the sample's own commit.

A peer whose method sends nothing, and a model whose loss experts cannot mix, have no personal
predictions: the shared model answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np

from oneway.errors import ConfigError
from oneway.export.personal import NETWORK
from oneway.methods import Gradients, Isolated, Method, State
from oneway.methods.auto_rate import AUTO
from oneway.metrics.baselines import curve_verdict, lately
from oneway.metrics.tally import Tally, base_expectation, measures_of, with_sample
from oneway.models import Model, Predictions, Torch
from oneway.peer.disclosure import percent_step
from oneway.personal import Personal
from oneway.personal.experts import NORMS
from oneway.personal.links import answers_to
from oneway.personal.mixtures import AdaHedge, Bayes
from oneway.personal.personal import EXPERTS, MOST_ALONE, PRIOR, TOP, WITHOUT_ALONE, scores_of
from oneway.personal.words import believes
from oneway.records import Batch, Matrix, Vector
from oneway.records.curve import Curve
from oneway.records.measures import Measures
from oneway.task.task import Task

ALONE = "alone."
"""How the names of the arrays begin that a network that is alone has."""
_PERSONAL, _TALLY = "personal.", "tally."
_LEFT_OUT = "experts.left_out"
_LARGEST = float(np.finfo(np.float64).max)


class Measured(NamedTuple):
    """What one sample more brought: what is stored, and the losses before it was learned from.

    Attributes:
        arrays: By name, as they are stored; arrays that change are new objects.
        loss: Of what answers.
        correct: Whether that was right; None where this has no meaning.
        shared_loss: Of the shared model; None if that is what answers.
        alone_loss: Of learning alone; None without personal predictions.
        base_loss: Of the running base rate; None if nothing is measured.
    """

    arrays: Mapping[str, Matrix]
    loss: float
    correct: bool | None
    shared_loss: float | None = None
    alone_loss: float | None = None
    base_loss: float | None = None


class Measuring:
    """Predicts personally and measures the predictions; holds nothing that changes.

    Args:
        task: What is learned.
        model: The task's.
        num_features: Of a sample, as the model sees it.
        start: The parameters to begin with.

    Attributes:
        personal: The experts of a peer, and how they are mixed; None without them.
        note: What there is to know about them, as a sentence; empty if nothing.
    """

    def __init__(self, task: Task, model: Model, num_features: int, start: Vector) -> None:
        self._model, self._start = model, start
        self._num_classes = len(task.classes)
        self.personal: Personal | None = None
        self._network: Method | None = None
        self._rng = np.random.default_rng(0)
        self.note = ""
        if not task.build_method().payload:
            return
        is_large = len(start) > MOST_ALONE and isinstance(model, Torch)
        try:
            self.personal = Personal.of(model, num_features, start, has_alone=not is_large)
        except ConfigError as error:
            self.note = str(error)
            return
        if not self.personal.network_alone:
            return
        if self.personal.has_alone:
            fair = replace(task.with_method(Isolated.name), learning_rate=AUTO, schedule="constant")
            self._network = fair.build_method()
        else:
            self.note = (
                f"the expert alone is off: the network has {len(start):,} parameters, and a second "
                f"one is learned alone up to {MOST_ALONE:,}"
            )

    def resumed(self, arrays: Mapping[str, Matrix]) -> tuple[Mapping[str, Matrix], str]:
        """What was stored, and as a sentence that personal predictions begin anew; else empty.

        They do if what is stored of them is not of this task's shape, or not finite.
        """
        stored = _stripped(arrays, _PERSONAL)
        wanted = {} if self.personal is None else self.personal.begin(1)
        shapes = [{name: it.shape for name, it in found.items()} for found in (stored, wanted)]
        network = _stripped(arrays, ALONE)
        fits = all(it.size in (1, len(self._start)) for it in network.values())
        fits = fits and bool(network) <= (self._network is not None)
        sound = all(np.isfinite(it).all() for it in (*stored.values(), *network.values()))
        if (not stored and not network) or (shapes[0] == shapes[1] and fits and sound):
            return arrays, ""
        rest = {name: it for name, it in arrays.items() if name.startswith(_TALLY)}
        return rest, "personal predictions begin anew: what was stored is not of this task's model"

    def memory(self, arrays: Mapping[str, Matrix]) -> dict[str, Matrix] | None:
        """What a `PersonalModel` is made of; None without personal predictions."""
        if self.personal is None:
            return None
        memory = _stripped(arrays, _PERSONAL) or self.personal.begin(1)
        if self._network is not None:
            memory[NETWORK] = self._network.estimate(self._network_state(self._network, arrays))
        return memory

    def measured(
        self,
        arrays: Mapping[str, Matrix],
        params: Vector,
        batch: Batch,
        loss: float,
        correct: bool | None,
        seen: int,
    ) -> Measured:
        """Predict and count one sample, given everything as it was before it; then learn it.

        Args:
            arrays: What was measured before, and the memory of the experts.
            params: The shared model.
            batch: The sample.
            loss: Of the shared model, if that is what answers.
            correct: Whether the shared model is right, if that is what answers.
            seen: How many samples the peer has learned from.
        """
        tally = tally_in(arrays)
        model, label = self._model, float(batch.labels[0])
        expected = base_expectation(tally, model.labels, self._num_classes)
        shared = alone = None
        own: dict[str, Matrix] = {}
        with np.errstate(over="ignore", invalid="ignore"):
            base = float(model.base_losses(expected, batch.labels)[0])
            if self.personal is None:
                answers = model.predictions(params, batch.features)
            else:
                answers, losses = self._personal(self.personal, arrays, params, batch, seen, own)
                loss, shared, alone = losses
                correct = bool(answers.predicted[0] == label) if model.classifies else None
            tally = with_sample(
                tally, model, self._num_classes, answers, label, loss, base, alone, shared
            )
        own |= {_TALLY + name: array for name, array in tally.items()}
        return Measured(own, loss, correct, shared, alone, base)

    def _personal(
        self,
        personal: Personal,
        arrays: Mapping[str, Matrix],
        params: Vector,
        batch: Batch,
        seen: int,
        own: dict[str, Matrix],
    ) -> tuple[Predictions, tuple[float, float, float | None]]:
        """What is answered, and the losses of it, shared and alone; memories go into `own`.

        The loss of alone is None if that expert is off.
        """
        memory = _stripped(arrays, _PERSONAL) or personal.begin(1)
        given = scores_of(self._model, params[None, :], batch.features)[:, None]
        if personal.network_alone:
            network = self._learned_alone(arrays, batch, seen, own)
            given = np.concatenate([given, network], axis=1)
        forecast = personal.predict(memory, given, batch.features)
        after, suffered = personal.learn(memory, forecast, batch.labels)
        own |= {_PERSONAL + name: array for name, array in after.items()}
        experts = suffered.experts[0].tolist()
        missing = [not math.isfinite(it) for it in experts]
        missing[1] &= personal.has_alone
        if _LEFT_OUT in arrays or any(missing):
            own[_LEFT_OUT] = arrays.get(_LEFT_OUT, np.zeros(len(experts))) + missing
        losses = [float(suffered.personal[0]), *experts[:2]]
        # A loss that is no number is the worst there is: sums have no place for it.
        yours, shared, alone = (it if math.isfinite(it) else _LARGEST for it in losses)
        return answers_to(personal.link, forecast.answer), (
            yours,
            shared,
            alone if personal.has_alone else None,
        )

    def _learned_alone(
        self, arrays: Mapping[str, Matrix], batch: Batch, index: int, own: dict[str, Matrix]
    ) -> Matrix:
        """The scores of the network that is alone; nan if it is off. Then it learns."""
        method = self._network
        if method is None:
            assert self.personal is not None
            return np.full((1, 1, self.personal.link.width), np.nan)
        state = self._network_state(method, arrays)
        stack = method.estimate(state)
        scores = scores_of(self._model, stack, batch.features)[:, None]
        told = self._model.learning_pass(stack, batch, self._rng)
        bounds = None
        if method.rule.needs_curvature:
            bounds = self._model.curvature_bounds(batch.features)
        after = method.learn(state, Gradients(told.gradients, index, bounds), self._rng)
        # One that leaves the finite numbers stays where it was: it has failed, and goes on failing.
        if not np.isfinite(method.estimate(after)).all():
            after = state
        own |= {ALONE + name: array for name, array in after.memory.items()}
        return scores

    def _network_state(self, method: Method, arrays: Mapping[str, Matrix]) -> State:
        own = _stripped(arrays, ALONE)
        return State({}, own) if own else method.start(self._start[None, :])


def tally_in(arrays: Mapping[str, Matrix]) -> Tally:
    """The tally among the arrays of a store."""
    return _stripped(arrays, _TALLY)


def weights_in(arrays: Mapping[str, Matrix]) -> Vector | None:
    """How much a stored mixture believes each expert; None without it."""
    top = _stripped(arrays, _PERSONAL + TOP)
    if not top:
        return None
    heads_only = arrays[_PERSONAL + NORMS].shape[1] == 1
    has_alone = not heads_only or any(name.startswith(ALONE) for name in arrays)
    kind = Bayes if set(top) == set(Bayes.names) else AdaHedge
    mixture = kind(PRIOR if has_alone else WITHOUT_ALONE)
    weights: Vector = mixture.weights(top)[0]
    return weights


def measures_in(arrays: Mapping[str, Matrix], task: Task, curve: Curve) -> Measures | None:
    """What a peer's arrays and its curve tell; None before the first sample that was measured."""
    found = measures_of(tally_in(arrays), task.classes, lately(curve))
    weights = weights_in(arrays)
    if found is None or weights is None:
        return found
    missing = arrays.get(_LEFT_OUT, np.zeros(len(EXPERTS)))
    return msgspec.structs.replace(
        found,
        weights=dict(zip(EXPERTS, weights.tolist(), strict=True)),
        left_out={name: int(count) for name, count in zip(EXPERTS, missing, strict=True) if count},
        believes=believes(weights.tolist()),
        # Not finer than what is disclosed beside it.
        verdict=curve_verdict(curve, percent_step(curve.samples)),
    )


def _stripped(arrays: Mapping[str, Matrix], prefix: str) -> dict[str, Matrix]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
