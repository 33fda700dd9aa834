"""`--out` and `--force`: where a command writes, and that nothing there is lost by accident."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, TypeAlias

from oneway.cli.options import switch
from oneway.errors import ConfigError, StoreError
from oneway.files.atomic import write_atomically
from oneway.files.output_folder import read_marker, unknown_files

Force: TypeAlias = Annotated[
    bool, switch("--force", "Overwrite a file or folder that this command made.")
]
"""The flag of every command that has --out."""
_BEGINNING = 65_536
"""Bytes of a file that are looked at."""


def check_out_file(path: Path, known_by: bytes, *, force: bool, flag: str = "--out") -> None:
    """Find out before the work, not after it, whether a file can be written.

    Args:
        path: The file.
        known_by: What the command's own files have near their beginning: with force these are
            overwritten, and no others.
        force: Whether an existing file may be overwritten.
        flag: Which flag names it.

    Raises:
        ConfigError: If it exists and may not be overwritten, is a folder, or is to lie in none.
        StoreError: If its folder cannot be written.
    """
    if path.is_dir():
        raise ConfigError(f"{flag} {path} is a folder; name a file")
    if path.exists() or path.is_symlink():
        if not force:
            raise _exists(path, flag)
        if not _is_own(path, known_by):
            raise ConfigError(
                f"{flag} {path} is not a file that this command writes, and --force never "
                "overwrites one; choose another name"
            )
    require_writable(path.absolute().parent, flag)
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"{flag} {path}: there is no folder {path.parent}; make it first")


def _is_own(path: Path, known_by: bytes) -> bool:
    """Whether a file has what the command's own files have near their beginning, or is empty."""
    try:
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING)
    except OSError:
        return False
    return known_by in beginning or not beginning


def check_out_folder(folder: Path, command: str, *, force: bool, refresh: bool = False) -> None:
    """Find out before the work whether a command may write into a folder: a new or empty one may.

    Args:
        folder: The folder that --out names.
        command: As the folder's marker names it, see `oneway.files.output_folder`.
        force: Whether a folder that the same command made may be replaced.
        refresh: Whether the command only overwrites its own files there, which needs no force.

    Raises:
        ConfigError: If it holds something that may not be overwritten.
        StoreError: If it cannot be written.
    """
    require_writable(folder)
    if not folder.exists() or not any(folder.iterdir()):
        return
    marker = read_marker(folder)
    if marker is None or marker.made_by != command:
        raise ConfigError(
            f"--out {folder} was not made by oneway {command}, and is never overwritten; choose "
            "another folder"
        )
    if refresh:
        return
    if not force:
        raise _exists(folder)
    if unknown := unknown_files(folder, command):
        raise ConfigError(
            f"--out {folder} holds {unknown[0].relative_to(folder)}, which oneway {command} did "
            "not write and never deletes; move it away, or choose another folder"
        )


def write_out_file(path: Path, text: str, *, force: bool) -> None:
    """Write a file whole or not at all; one that appeared meanwhile is not overwritten either.

    Raises:
        ConfigError: If it exists and may not be overwritten, or cannot be written.
    """
    try:
        if force:
            write_atomically(path, text)
        else:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; choose another --out") from error


def require_writable(folder: Path, flag: str = "--out") -> None:
    """Find out before a long run, not after it, whether its results can be written.

    Raises:
        StoreError: If the folder, or a folder it would be made in, cannot be written.
    """
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        reason = f"{existing} is a file"
    elif not os.access(existing, os.W_OK):
        reason = f"you may not write to {existing}"
    else:
        return
    raise StoreError(f"cannot write to {folder}: {reason}; choose another folder with {flag}")


def _exists(path: Path, flag: str = "--out") -> ConfigError:
    return ConfigError(
        f"{flag} {path} exists and is not overwritten; choose another name, or add --force"
    )
