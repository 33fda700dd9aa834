"""Chain of transforms: what comes out of several, one after the other, and what they remember.

The memory of a transform is found by its place in the chain and its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from oneway.methods.transforms.base import Transform
from oneway.records import Matrix


def transform_memory(
    chain: Iterable[Transform], params: Matrix, prefix: str = ""
) -> dict[str, Matrix]:
    """The memory of a chain of transforms before the first step."""
    return {
        f"{prefix}{place}.{transform.name}.{key}": array
        for place, transform in enumerate(chain)
        for key, array in transform.init(params).items()
    }


def transformed(
    chain: Iterable[Transform],
    memory: Mapping[str, Matrix],
    updates: Matrix,
    rng: np.random.Generator,
    prefix: str = "",
) -> tuple[Matrix, dict[str, Matrix]]:
    """What comes out of a chain of transforms, and their memory after it."""
    after: dict[str, Matrix] = {}
    for place, transform in enumerate(chain):
        start = f"{prefix}{place}.{transform.name}."
        updates, own = transform.update(updates, _below(start, memory), rng)
        after |= {start + key: array for key, array in own.items()}
    return updates, after


def kept_share(chain: Iterable[Transform], memory: Mapping[str, Matrix]) -> Matrix | float:
    """Which share of what a chosen learning rate goes by all transforms together let stay."""
    share: Matrix | float = 1.0
    for place, transform in enumerate(chain):
        share = share * transform.squares_kept(_below(f"{place}.{transform.name}.", memory))
    return share


def _below(start: str, memory: Mapping[str, Matrix]) -> dict[str, Matrix]:
    return {
        key.removeprefix(start): array for key, array in memory.items() if key.startswith(start)
    }
