"""What PyTorch has once for a whole process: its threads, its generator, its devices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from oneway.errors import ConfigError
from oneway.sentences import cut, shown

_generator_lock = threading.RLock()
_thread_lock = threading.Lock()
_thread_users: list[int] = []


def device_named(name: str) -> torch.device:
    """Return a device; "auto" is CUDA where there is one.

    Raises:
        ConfigError: It is not there.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
            raise RuntimeError(f"there are {torch.cuda.device_count()} CUDA devices")
        torch.zeros(1, device=device).cpu()  # a name alone says nothing, as "mps" or "meta"
    except Exception as error:  # of many kinds, one per device
        raise ConfigError(
            f"device is {shown(name)}, which is not there ({cut(str(error))}); leave it out, or "
            'say device = "cpu"'
        ) from None
    return device


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Let PyTorch use so many threads in the block, which is a setting of the whole process."""
    with _thread_lock:
        if not _thread_users:
            _thread_users.append(torch.get_num_threads())  # what to go back to
        _thread_users.append(count)
        torch.set_num_threads(count)
    try:
        yield
    finally:
        with _thread_lock:
            _thread_users.pop()
            if len(_thread_users) == 1:
                torch.set_num_threads(_thread_users.pop())


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """Let PyTorch draw from a seed in the block; its own generator goes on afterwards as before.

    PyTorch has one generator for all threads, so only one of them is in such a block.
    """
    devices = range(torch.cuda.device_count())
    with _generator_lock, torch.random.fork_rng(devices=list(devices)):
        torch.manual_seed(seed)
        yield
