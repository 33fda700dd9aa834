"""Downloading the data sets that are known by name."""

from __future__ import annotations

import http.client
import lzma
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from oneway.datasets.data_set import DATASETS, DataFile, DataSet
from oneway.errors import DataError, OnewayError
from oneway.files.folders import data_folder
from oneway.sentences import cut

TIMEOUT_SECONDS = 30.0
CHUNK_BYTES = 2**18

_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
)

Progress = Callable[[int, int | None], None]
"""Called with the bytes received so far, and the bytes in all if the server says."""


def fetch(
    name: str,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Download a data set, unless it is there with the right SHA-256.

    Everything is downloaded, unpacked and checked in a temporary folder; only then the files are
    moved to their places, so that no half-written file is ever there. A file whose digest is not
    known is checked only by TLS.

    Args:
        name: The data set; "flights" needs no fetching, its files come with a package.
        folder: The data folder; `data_folder()` if not given.
        progress: Called after every chunk.

    Returns:
        The files of the data set, ready to be loaded.

    Raises:
        ConfigError: If there is no such data set; suggests the nearest name.
        DataError: If the download fails or ends early, or a file has the wrong SHA-256; says where
            to put the files by hand.
    """
    data_set = DATASETS[name]
    if not data_set.url:
        return data_set.present_files()
    base = data_folder() if folder is None else folder
    targets = tuple(base / file.path for file in data_set.files)
    if all(map(_is_right, data_set.files, targets)):
        return targets
    by_hand = f"put {', '.join(file.member for file in data_set.files)} into {targets[0].parent}"
    try:
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{name}.", suffix=".part", dir=base) as work:
            archive = Path(work) / "download"
            _download(data_set.url, archive, progress)
            unpacked = _unpack(archive, data_set, Path(work))
            for path, file in zip(unpacked, data_set.files, strict=True):
                _check(path, file)
            for path, target in zip(unpacked, targets, strict=True):
                target.parent.mkdir(parents=True, exist_ok=True)
                path.replace(target)
    except _FetchError as failure:
        raise DataError(
            f"{name} could not be fetched from {data_set.url}: {failure}; try again, or {by_hand}"
        ) from None
    except OSError as error:
        raise DataError(
            f"{base} cannot be written ({error}); make room there, choose another folder with "
            f"ONEWAY_DATA, or {by_hand}"
        ) from None
    return targets


def _is_right(file: DataFile, path: Path) -> bool:
    """Whether a file is there, with the right digest if that is known."""
    try:
        return path.is_file() and file.sha256 in (None, file.digest(path))
    except OnewayError:
        return False


def _check(path: Path, file: DataFile) -> None:
    """Check that a downloaded file can be read, and has the right digest if that is known."""
    try:
        digest = file.digest(path)
    except OnewayError as error:
        reason = str(error).replace(str(path), file.member)
        raise _FetchError(f"{file.member} is not what it should be: {cut(reason)}") from None
    if file.sha256 not in (None, digest):
        raise _FetchError(f"{file.member} has the SHA-256 {digest} instead of {file.sha256}")


class _FetchError(Exception):
    """The reason why a download failed."""


def _download(url: str, target: Path, progress: Progress | None) -> None:
    done = 0
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            stated = response.headers.get("Content-Length")
            total = int(stated) if stated else None
            with target.open("wb") as file:
                while chunk := response.read(CHUNK_BYTES):
                    done += len(chunk)
                    file.write(chunk)
                    if progress is not None:
                        progress(done, total)
    except urllib.error.HTTPError as error:
        error.close()
        raise _FetchError(f"the server answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise _FetchError(str(error.reason)) from None
    except (http.client.HTTPException, TimeoutError, ConnectionError, ValueError) as error:
        raise _FetchError(str(error) or type(error).__name__) from None
    if total is not None and done != total:
        raise _FetchError(f"the server sent {done:,} of {total:,} bytes")


def _unpack(archive: Path, data_set: DataSet, work: Path) -> list[Path]:
    """Take the files of a data set, and no others, out of an archive; a bare file is itself."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                members = {_name(item.filename): item for item in zipped.infolist()}
                return [_take(zipped.open, members, file, work) for file in data_set.files]
        if tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tarred:
                held = {_name(item.name): item for item in tarred if item.isfile()}
                return [_take(tarred.extractfile, held, file, work) for file in data_set.files]
    except (*_DAMAGE, OSError) as error:
        # The disk gives a number with what is wrong, bzip2 does not.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise _FetchError(f"the archive is damaged ({error})") from None
    if len(data_set.files) > 1:
        raise _FetchError("it is neither a zip nor a tar archive")
    return [archive]


def _take(
    open_member: Callable[[Any], IO[bytes] | None],
    members: Mapping[str, object],
    file: DataFile,
    work: Path,
) -> Path:
    if file.member not in members:
        raise _FetchError(f"the archive holds no {file.member}")
    path = work / file.member
    content = open_member(members[file.member])
    assert content is not None, "only ordinary files are members"
    with content, path.open("wb") as target:
        shutil.copyfileobj(content, target)
    return path


def _name(path: str) -> str:
    return path.rpartition("/")[2]
