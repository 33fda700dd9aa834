"""The folder of a peer: what it is told, its secret key, its durable state, and who runs it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

import msgspec

from oneway.errors import ConfigError, TaskError
from oneway.files.atomic import sync_folder, write_atomically
from oneway.files.toml import read_text
from oneway.peer.home.config import DEFAULT_KEEP, PeerConfig, Peers
from oneway.peer.home.config_file import PEERS_FILE, read_config, write_config, write_peers
from oneway.peer.home.free_address import free_address
from oneway.peer.home.process_lock import close_to_others, hold, holder, in_turn
from oneway.peer.identity.keys import load, save
from oneway.records.status import Status
from oneway.task.task import Task
from oneway.transport.address import is_wildcard, parse_address
from oneway.transport.keys import KeyPair, generate


@dataclass(frozen=True)
class Home:
    """The files of one peer.

    Attributes:
        folder: Where they lie; all of a peer is in its folder.
    """

    folder: Path

    @property
    def config_path(self) -> Path:
        """The settings that the owner writes; no command changes them."""
        return self.folder / "peer.toml"

    @property
    def peers_path(self) -> Path:
        """The settings that commands and pages change: trust, admission, pauses."""
        return self.folder / PEERS_FILE

    @property
    def peers_lock_path(self) -> Path:
        """Held for a moment by whoever changes peers.toml."""
        return self.folder / f"{PEERS_FILE}.lock"

    @property
    def task_path(self) -> Path:
        """What all peers are told."""
        return self.folder / "task.toml"

    @property
    def key_path(self) -> Path:
        """The secret key."""
        return self.folder / "key.secret"

    @property
    def store_path(self) -> Path:
        """The durable state."""
        return self.folder / "peer.sqlite"

    @property
    def status_path(self) -> Path:
        """What the running peer last said about itself."""
        return self.folder / "status.json"

    @property
    def token_path(self) -> Path:
        """What requests to the local API have to show."""
        return self.folder / "api.token"

    @property
    def lock_path(self) -> Path:
        """Held by the process that runs this peer."""
        return self.folder / "peer.lock"

    @classmethod
    def create(
        cls,
        folder: Path,
        name: str,
        task: Path | Task,
        listen: str | None = None,
        *,
        advertise: str = "",
        transport: str = "zeromq",
        keep: float = DEFAULT_KEEP,
        allow: Iterable[str] = (),
    ) -> Home:
        """Make a new peer in a folder, which may exist and hold other things.

        Args:
            folder: Where it shall live.
            name: What others shall call it.
            task: What all peers learn, or the task.toml that says it.
            listen: Where it listens; without, a port of this machine that no other peer has.
            advertise: Where others reach it, if not there.
            transport: How messages travel, by name.
            keep: The share of its mass that it keeps at a push.
            allow: Names of code that the task.toml may name; what a `Task` names is allowed.

        Raises:
            ConfigError: If there is a peer already, or the name, the task or the address breaks a
                rule, the task.toml names code that is not allowed, or the folder cannot be
                written; nothing is left behind.
            KeyFileError: If the key cannot be written.
        """
        home = cls(folder)
        if isinstance(task, Task):
            text, where, learned = task.to_toml(), None, task
            allow = [*allow, *task.code_names]
        else:
            text = read_text(task, TaskError, "name the task.toml that the other peers have")
            allow = list(allow)
            where, learned = task, Task.parse(text, str(task), allow=allow)
        learned.require_without_server()
        config = PeerConfig(name, listen or "127.0.0.1:7701", advertise, transport)
        config = replace(config, keep=keep, allow=tuple(dict.fromkeys(allow)))
        _require_address(config)
        if listen is None:
            config = replace(config, listen=free_address(folder))
        try:
            own_task = (
                where is not None and home.task_path.exists() and home.task_path.samefile(where)
            )
            home._refuse_existing(own_task=own_task)
            home._write(config, None if own_task else text)
        except OSError as error:
            raise ConfigError(f"cannot make a peer in {folder}: {error.strerror}") from error
        return home

    @classmethod
    def open(cls, folder: Path) -> Home:
        """Return the home of a peer that was made before.

        Raises:
            ConfigError: If there is no peer in the folder, or a part of it is missing.
        """
        home = cls(folder)
        remedy = "go to one, or make one with oneway peer init NAME --task task.toml"
        try:
            if not folder.is_dir():
                raise ConfigError(f"there is no peer's folder {folder}; {remedy}")
            if not home.config_path.exists():
                raise ConfigError(
                    f"{folder} is not a peer's folder (it has no peer.toml); {remedy}"
                )
            parts = (home.task_path, home.key_path, home.peers_path)
            missing = [path for path in parts if not path.exists()]
        except OSError as error:
            raise ConfigError(f"cannot look into {folder}: {error.strerror}") from error
        if missing:
            raise ConfigError(
                f"the peer in {folder} has no {missing[0].name}; put it back from your backup, or "
                "move the folder away and make a new one"
            )
        return home

    def config(self) -> PeerConfig:
        """Read the settings of this peer.

        Raises:
            ConfigError: If it is malformed.
        """
        return read_config(self.config_path)

    def change(self, how: Callable[[PeerConfig], PeerConfig]) -> tuple[PeerConfig, PeerConfig]:
        """Change peers.toml; a running peer follows.

        Of several that change it at once, each builds on what the one before has written.

        Args:
            how: Makes the new configuration out of the old one, with the same peer.toml; it must
                not call this itself.

        Returns:
            The configuration before and after.

        Raises:
            ConfigError: If it is malformed, or cannot be written.
        """
        # Said first, and so that no lock is left where there is no peer.
        self.config()
        with in_turn(self.peers_lock_path):
            before = self.config()
            after = how(before)
            trust = {field.name: getattr(after, field.name) for field in fields(Peers)}
            if after != replace(before, **trust):
                raise ConfigError("a setting of peer.toml would change; edit that file instead")
            if after != before:
                write_peers(after, self.peers_path)
        return before, after

    def task(self) -> Task:
        """Read what all peers are told.

        Raises:
            TaskError: If it is malformed, or names code that peer.toml does not allow.
            ConfigError: If peer.toml is malformed.
        """
        return Task.read(self.task_path, allow=self.config().allow)

    def keys(self) -> KeyPair:
        """Read the key pair.

        Raises:
            KeyFileError: If the key file is malformed, or open to others.
        """
        return load(self.key_path)

    def status(self) -> Status | None:
        """Read what the peer last said about itself; None if it never did, or it is unreadable."""
        try:
            return msgspec.json.decode(self.status_path.read_bytes(), type=Status)
        except (OSError, msgspec.MsgspecError):
            return None

    def write_status(self, status: Status) -> None:
        """Replace the status in one step, so that a reader never sees half of it."""
        beside = self.status_path.with_suffix(".new")
        # Made anew: what somebody has put in its place, a link say, is not written to.
        beside.unlink(missing_ok=True)
        try:
            with open(beside, "xb", opener=partial(os.open, mode=0o600)) as file:
                file.write(msgspec.json.format(msgspec.json.encode(status), indent=2))
            beside.replace(self.status_path)
        finally:
            beside.unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Run this peer: no other process can at the same time, and a killed one is no obstacle.

        Raises:
            ConfigError: If another process runs it; names the process.
        """
        with hold(self.lock_path, f"the peer in {self.folder}"):
            # A backup that was copied back may be open to all.
            for end in ("", "-wal", "-shm"):
                close_to_others(self.store_path.with_name(f"{self.store_path.name}{end}"))
            yield

    def running_process(self) -> int | None:
        """Return the id of the process that runs this peer; None if none does."""
        return holder(self.lock_path)

    def _write(self, config: PeerConfig, task: str | None) -> None:
        """Write all files, or none."""
        folders = (self.folder, *self.folder.parents)
        made = [path for path in folders if not path.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # First: a key is never overwritten, so of two that make a peer here one stops.
            save(generate(), self.key_path)
            made = [self.config_path, self.peers_path, self.key_path, *made]
            if task is not None:
                made = [self.task_path, *made]
                write_atomically(self.task_path, task)
            # Last: a folder with a peer.toml has everything else.
            write_config(config, self.config_path)
            sync_folder(self.folder)
        except BaseException:
            _remove(made)
            raise

    def _refuse_existing(self, *, own_task: bool) -> None:
        mine = [self.config_path, self.peers_path, self.key_path, self.store_path]
        for path in mine if own_task else [*mine, self.task_path]:
            # A broken link counts too: writing would follow it.
            if path.exists() or path.is_symlink():
                raise ConfigError(
                    f"{self.folder} already has a {path.name}, and a peer is never overwritten; "
                    "choose another folder, or move that one away"
                )


def _require_address(config: PeerConfig) -> None:
    """Find out before anything is made whether the peer can have a card."""
    host, port = parse_address(config.listen)
    if is_wildcard(host) and not config.advertise:
        remedy = "say under which address others reach it"
        raise ConfigError(
            f"it is to listen on {config.listen}, every interface of this machine, which nobody "
            "can dial",
            remedy=f'{remedy}: advertise="HOST:{port}"',
            flag_remedy=f"{remedy}: --advertise HOST:{port}",
        )


def _remove(paths: list[Path]) -> None:
    """Remove the files and empty folders, as far as they are there."""
    for path in paths:
        try:
            path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
        except OSError:
            # Somebody else has put something there meanwhile, or the disk fails: the error that
            # brought us here is the one to tell.
            continue
