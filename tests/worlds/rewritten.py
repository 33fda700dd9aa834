"""A peer.toml that its owner has edited."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from oneway.peer.home.config_file import write_config
from oneway.peer.home.home import Home


def rewrite(home: Home, **changes: Any) -> None:
    """Write a peer.toml with other settings, as its owner would."""
    write_config(replace(home.config(), **changes), home.config_path)
