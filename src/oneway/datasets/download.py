"""Downloading the data sets that are known by name."""

from __future__ import annotations

import hashlib
import http.client
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from oneway.datasets.data_set import DATASETS, DataSet, info
from oneway.errors import DataError
from oneway.files.folders import data_folder

TIMEOUT_SECONDS = 30.0
CHUNK_BYTES = 2**18

Progress = Callable[[int, int | None], None]
"""Called with the bytes received so far, and the bytes in all if the server says."""


def fetch(
    name: str,
    folder: Path | None = None,
    url: str | None = None,
    progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Download a data set, unless it is there and its SHA-256 proves it right.

    Everything is downloaded, unpacked and checked in a folder that is removed at the end; only
    then the files are moved to their places, so that nothing half-written is ever there.

    Args:
        name: The data set; "flights" needs no fetching, its files come with a package.
        folder: The data folder; `data_folder()` if not given.
        url: A mirror to download from: of the archive, or of the file itself if there is one.
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
        return info(name).found
    base = data_folder() if folder is None else folder
    targets = tuple(base / file.path for file in data_set.files)
    proofs = [file.sha256 for file in data_set.files]
    present = all(path.is_file() for path in targets)
    if present and all(proofs) and list(map(_sha256, targets)) == proofs:
        return targets
    address = url or data_set.url
    by_hand = f"put {', '.join(file.member for file in data_set.files)} into {targets[0].parent}"
    try:
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{name}.", suffix=".part", dir=base) as work:
            archive = Path(work) / "download"
            _download(address, archive, progress)
            unpacked = _unpack(archive, data_set, Path(work))
            for path, file in zip(unpacked, data_set.files, strict=True):
                if file.sha256 not in (None, digest := _sha256(path)):
                    raise _FetchError(
                        f"{file.member} has the SHA-256 {digest} instead of {file.sha256}"
                    )
            for path, target in zip(unpacked, targets, strict=True):
                target.parent.mkdir(parents=True, exist_ok=True)
                path.replace(target)
    except _FetchError as failure:
        raise DataError(
            f"{name} could not be fetched from {address}: {failure}; try again, or {by_hand}"
        ) from None
    except OSError as error:
        raise DataError(
            f"{base} cannot be written ({error}); make room there, choose another folder with "
            f"ONEWAY_DATA, or {by_hand}"
        ) from None
    return targets


class _FetchError(Exception):
    """Why a download is of no use."""


def _download(url: str, target: Path, progress: Progress | None) -> None:
    done = 0
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            stated = response.headers.get("Content-Length")
            total = int(stated) if stated else None
            with target.open("wb") as file:
                while chunk := response.read(CHUNK_BYTES):
                    file.write(chunk)
                    done += len(chunk)
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
    """Take the files of a data set out of a zip or tar archive; a bare file is itself."""
    folder = work / "unpacked"
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                zipped.extractall(folder)
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tarred:
                tarred.extractall(folder, filter="data")
        elif len(data_set.files) > 1:
            raise _FetchError("it is neither a zip nor a tar archive")
        else:
            return [archive]
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError) as error:
        raise _FetchError(f"the archive is damaged ({error})") from None
    unpacked = {path.name: path for path in folder.rglob("*") if path.is_file()}
    for file in data_set.files:
        if file.member not in unpacked:
            raise _FetchError(f"the archive holds no {file.member}")
    return [unpacked[file.member] for file in data_set.files]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
