"""Numbers about a run: losses, accuracy, regret and its comparator, disagreement, mass."""

from oneway.metrics.comparator import best_fixed_model, comparator_sums
from oneway.metrics.curves import (
    accuracy,
    accuracy_curve,
    average_loss,
    loss_curve,
    losses,
    mean_loss,
    regret,
)
from oneway.metrics.network import disagreement, network_mean, total_mass
from oneway.metrics.thinning import thinned

__all__ = [
    "accuracy",
    "accuracy_curve",
    "average_loss",
    "best_fixed_model",
    "comparator_sums",
    "disagreement",
    "loss_curve",
    "losses",
    "mean_loss",
    "network_mean",
    "regret",
    "thinned",
    "total_mass",
]
