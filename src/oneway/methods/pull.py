"""Pull: receivers average the models that arrive; the baseline without mass."""

from __future__ import annotations

from dataclasses import dataclass

from oneway.methods.base import Method
from oneway.records import Segment


@dataclass(frozen=True)
class Pull(Method):
    """Every node averages its own model with those that arrive, all with equal weight.

        x_i' = mean over j in {i} and the senders of i of (x_j - gamma * gradient_j(x_j))

    Weights of a row sum to 1, so a common model stays common whatever the graph, and no mass is
    needed; but samples count by how far their node is heard, which is a bias where nodes differ.
    """

    name = "pull"
    label = "Pull"
    meaning = "receivers average models, no mass"
    colour = "#999933"
    payload = (Segment("model", "copied"),)
