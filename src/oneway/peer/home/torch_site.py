"""How a peer computes the PyTorch module of its task, in peer.toml: no part of the agreement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from oneway.files.typed_values import check_fields
from oneway.models.torch_options import Backend


@dataclass(frozen=True)
class TorchSite:
    """Where and with how many threads PyTorch computes at this site; see `oneway.models.Torch`.

    Raises:
        ConfigError: One of them breaks its rule.
    """

    device: Annotated[
        str, Meta(description='"cpu", "cuda" or "auto": CUDA (untested) where there is one')
    ] = "auto"
    threads: Annotated[int, Meta(ge=1, description="how many threads PyTorch may use")] = 1
    backend: Annotated[
        Backend, Meta(description='"loop", "vmap", "compile" or "auto"; the same numbers by each')
    ] = "auto"

    def __post_init__(self) -> None:
        check_fields(self)
