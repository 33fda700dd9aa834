"""Model of a peer for whoever may have its folder: the running peer is asked, or the store read."""

from __future__ import annotations

from contextlib import closing, suppress

from oneway.errors import TransportError
from oneway.export import FittedModel
from oneway.peer.home.home import Home
from oneway.peer.offline import stored_model


def model_of(home: Home, *, momentary: bool = False, api_token: str = "") -> FittedModel:
    """The settled model of a peer, or the momentary one, whether it runs or not.

    What a running peer does not say, because it serves no local API, wants another token or has
    just stopped, is read from its store: all that it has learned is there within a moment.

    Args:
        home: The peer's folder.
        momentary: Whether the estimate of this moment is wanted.
        api_token: What its local API wants to see, if anything.

    Raises:
        StoreError: If there is no model, or it is not one for the task.
        ConfigError: If its files are wrong.
    """
    status = home.status()
    if status is not None and status.api and status.pid == home.running_process():
        with suppress(TransportError, ModuleNotFoundError):  # a small installation has no client
            from oneway.peer.api.client import PeerClient

            with closing(PeerClient(status.api, api_token)) as client:
                return client.model(momentary)
    return stored_model(home, momentary=momentary)
