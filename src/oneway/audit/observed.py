"""What attackers make of a sender's pushes: its steps, and the samples that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from oneway.errors import ConfigError
from oneway.methods import Method
from oneway.models import HasCurvature, Model
from oneway.privacy.reconstruction import Candidates, LinearAttack, Steps, with_substance
from oneway.records import Ints, Matrix, Vector

LINEAR = ("logistic", "hinge", "ridge", "softmax")


@dataclass(frozen=True, eq=False)
class Observed:
    """What one attacker knows about the steps of a sender.

    Attributes:
        attacker: Who it is, in a few words.
        steps: What it takes the steps to be.
        masses: `[step]`, what the sender held then.
        indices: `[step]`, how many samples came before, for the schedule of learning rates.
    """

    attacker: str
    steps: Steps
    masses: Vector
    indices: Ints

    def lengths(self, method: Method, curvatures: Vector | None) -> Vector:
        """How long the method's step rule makes steps of these curvatures."""
        rates = np.array([method.rate(int(index)) for index in self.indices])
        # A step rule goes element by element, so that one rate each is as good as one for all.
        return method.rule.lengths(cast(float, rates), self.masses, curvatures)

    def candidates(self, method: Method, model: Model) -> Candidates:
        """The samples that the steps would come from, were each of them one sample's."""
        attack = attack_on(model)
        real = with_substance(self.steps)
        kept = Observed(
            self.attacker,
            Steps(self.steps.values[real], self.steps.estimates[real]),
            self.masses[real],
            self.indices[real],
        )

        def lengths(features: Matrix) -> Vector:
            curvatures = None
            if method.rule.needs_curvature and isinstance(model, HasCurvature):
                curvatures = model.curvature_bounds(features)
            return kept.lengths(method, curvatures)

        return attack.candidates(kept.steps, lengths)


def attack_on(model: Model) -> LinearAttack:
    """The attack on a model.

    Raises:
        ConfigError: It is not linear.
    """
    if model.name not in LINEAR:
        raise ConfigError(
            f"model {model.name} is not one that the audit's attack can invert; it knows "
            f"{', '.join(LINEAR)}: audit one of these"
        )
    facts: dict[str, Any] = model.describe()
    return LinearAttack(
        loss=cast(Any, model.name),
        l2=float(facts["l2"]),
        intercept=bool(facts["intercept"]),
        num_classes=int(facts.get("num_classes", 0)),
    )
