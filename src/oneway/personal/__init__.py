"""What a node predicts with: its own mixture of the shared model and models that never leave it."""

from oneway.personal.links import Link, link_of
from oneway.personal.mixtures import bayes_bound
from oneway.personal.personal import Forecast, Personal, Suffered

__all__ = ["Forecast", "Link", "Personal", "Suffered", "bayes_bound", "link_of"]
