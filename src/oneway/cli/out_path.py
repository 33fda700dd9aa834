"""`--out` and `--force`: where a command writes, and that nothing there is lost by accident."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias

from oneway.cli.options import switch
from oneway.cli.output import require_writable
from oneway.errors import ConfigError
from oneway.files.atomic import write_atomically

Force: TypeAlias = Annotated[bool, switch("--force", "Overwrite what --out names.")]
"""The flag of every command that has --out."""


def check_out_file(path: Path, *, force: bool, flag: str = "--out") -> None:
    """Find out before the work, not after it, whether a file can be written.

    Raises:
        ConfigError: If it exists and may not be overwritten, or is a folder.
        StoreError: If its folder cannot be written.
    """
    if path.is_dir():
        raise ConfigError(f"{flag} {path} is a folder; name a file")
    _refuse_existing(path, path.exists() or path.is_symlink(), force, flag)
    require_writable(path.absolute().parent)


def check_out_folder(
    folder: Path,
    *,
    force: bool,
    is_own: Callable[[Path], bool] = lambda _: False,
    goes_on: bool = False,
    flag: str = "--out",
) -> None:
    """Find out before the work whether a folder can be written; an empty one always can.

    Args:
        folder: What --out names.
        force: Whether what this command wrote there earlier may be replaced.
        is_own: Whether a folder was written by this command: no other is ever replaced.
        goes_on: Whether a folder of its own needs no --force, since it is continued or refreshed.
        flag: How the folder was named.

    Raises:
        ConfigError: If it holds something that may not be overwritten.
        StoreError: If it cannot be written.
    """
    require_writable(folder)
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not is_own(folder):
        raise ConfigError(
            f"{flag} {folder} holds files that this command did not write, and they are never "
            "overwritten; choose another folder"
        )
    _refuse_existing(folder, not goes_on, force, flag)


def write_out_file(path: Path, text: str, *, force: bool, flag: str = "--out") -> None:
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
        _refuse_existing(path, True, False, flag)
    except OSError as error:
        raise ConfigError(
            f"cannot write {path}: {error.strerror}; choose another {flag}"
        ) from error


def empty_folder(folder: Path) -> None:
    """Remove what a command wrote into a folder earlier, after `check_out_folder` has agreed."""
    if folder.exists():
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _refuse_existing(path: Path, exists: bool, force: bool, flag: str) -> None:
    if exists and not force:
        raise ConfigError(
            f"{flag} {path} exists and is not overwritten; choose another name, or add --force"
        )
