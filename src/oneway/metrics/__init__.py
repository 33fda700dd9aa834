"""Numbers about a run: losses, accuracy, regret and its comparator, disagreement, mass."""

from oneway.metrics.comparator import best_fixed_model, comparator_sums
from oneway.metrics.learning_curve import Thinned, evenly_spread
from oneway.metrics.measures import (
    accuracy,
    accuracy_curve,
    alone_loss,
    average_loss,
    base_loss,
    baseline_curve,
    disagreement,
    disagreement_of_holders,
    loss_curve,
    losses,
    mean_loss,
    network_mean,
    regret,
    total_mass,
)

__all__ = [
    "Thinned",
    "accuracy",
    "accuracy_curve",
    "alone_loss",
    "average_loss",
    "base_loss",
    "baseline_curve",
    "best_fixed_model",
    "comparator_sums",
    "disagreement",
    "disagreement_of_holders",
    "evenly_spread",
    "loss_curve",
    "losses",
    "mean_loss",
    "network_mean",
    "regret",
    "total_mass",
]
