"""Modules that tasks of tests name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn


def linear(features: int = 4, outputs: int = 1) -> nn.Module:
    """Logistic or softmax regression: starts from zeros, float64."""
    from torch import nn

    module = nn.Linear(features, outputs)
    nn.init.zeros_(module.weight)
    nn.init.zeros_(module.bias)
    return module.double()


def network(
    features: int = 4, hidden: int = 6, outputs: int = 1, dropout: float = 0.0
) -> nn.Module:
    """One hidden layer."""
    from torch import nn

    layers = [nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, outputs)]
    return nn.Sequential(*layers, nn.Dropout(dropout)) if dropout else nn.Sequential(*layers)


def root() -> nn.Module:
    """Has no gradient where the first feature is 0."""
    import torch

    class Root(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.last = torch.nn.Parameter(torch.ones(1)), torch.nn.Linear(4, 1)

        def forward(self, rows: Any) -> Any:
            return torch.sqrt(rows[:, :1] * self.scale) + self.last(rows)

    return Root()
