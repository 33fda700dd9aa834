"""Example networks: modules that tasks can name at every site where oneway is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def digits_network(hidden: int = 32, pixels: int = 64, classes: int = 10) -> nn.Module:
    """Return one hidden layer over the pixels of an image; 2,410 parameters for the data digits."""
    from torch import nn

    return nn.Sequential(
        nn.Flatten(), nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, classes)
    )


def flights_network(hidden: int = 16, features: int = 33) -> nn.Module:
    """Return one hidden layer over a row of numbers, for two classes or a number; 561 parameters.

    As many features as the data flights has.
    """
    from torch import nn

    return nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, 1))


def image_network(channels: int = 1, side: int = 8, classes: int = 10) -> nn.Module:
    """Return two convolutions with group norm, and one layer, over square images."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1, stride=2),
        nn.GroupNorm(4, 16),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * (-(-side // 2)) ** 2, classes),
    )
