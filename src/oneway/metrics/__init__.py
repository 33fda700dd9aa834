"""Numbers about a run: losses, accuracy, regret and its comparator, disagreement, mass."""

from oneway.metrics.comparator import best_fixed_model, comparator_sums
from oneway.metrics.curves import accuracy, average_loss, loss_curve, losses, regret
from oneway.metrics.network import disagreement, network_mean, total_mass

__all__ = [
    "accuracy",
    "average_loss",
    "best_fixed_model",
    "comparator_sums",
    "disagreement",
    "loss_curve",
    "losses",
    "network_mean",
    "regret",
    "total_mass",
]
