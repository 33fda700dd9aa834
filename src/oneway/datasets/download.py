"""Downloading the data sets that are known by name."""

from __future__ import annotations

import http.client
import lzma
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from oneway.datasets.data_set import DATASETS, DataFile, DataSet, info
from oneway.errors import DataError, OnewayError
from oneway.files.folders import data_folder
from oneway.sentences import cut

TIMEOUT_SECONDS = 30.0
MOST_BYTES = 2 << 30
"""Of a download, and of a file in it: more than twice the largest data set, SUSY."""
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
        DataError: If the download fails or ends early, or a file has the wrong SHA-256, or not the
            one of the first download; says where to put the files by hand.
    """
    data_set = DATASETS[name]
    if not data_set.url:
        return info(name).found
    base = data_folder() if folder is None else folder
    targets = tuple(base / file.path for file in data_set.files)
    if all(map(_is_proven, data_set.files, targets)):
        return targets
    address = url or data_set.url
    by_hand = f"put {', '.join(file.member for file in data_set.files)} into {targets[0].parent}"
    try:
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{name}.", suffix=".part", dir=base) as work:
            archive = Path(work) / "download"
            _download(address, archive, progress)
            unpacked = _unpack(archive, data_set, Path(work))
            for path, file, target in zip(unpacked, data_set.files, targets, strict=True):
                _check(path, file, target)
            for path, file, target in zip(unpacked, data_set.files, targets, strict=True):
                target.parent.mkdir(parents=True, exist_ok=True)
                if file.sha256 is None and _first_seen(target) is None:
                    _note_of(target).write_text(f"{file.digest(path)}  {target.name}\n")
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


def _is_proven(file: DataFile, path: Path) -> bool:
    """Whether a file is there, and the one that is known or was there first."""
    expected = file.sha256 or _first_seen(path)
    try:
        return expected is not None and path.is_file() and file.digest(path) == expected
    except OnewayError:
        return False


def _check(path: Path, file: DataFile, target: Path) -> None:
    """Check that a downloaded file is the one that is known, or the one of the first download."""
    try:
        digest = file.digest(path)
    except OnewayError as error:
        reason = str(error).replace(str(path), file.member)
        raise _FetchError(f"{file.member} is not what it should be: {cut(reason)}") from None
    first = _first_seen(target)
    if file.sha256 not in (None, digest):
        raise _FetchError(f"{file.member} has the SHA-256 {digest} instead of {file.sha256}")
    if file.sha256 is None and first not in (None, digest):
        raise _FetchError(
            f"{file.member} has the SHA-256 {digest}, and at the first download it had {first}; if "
            f"you know that its publisher has changed it, remove {_note_of(target)}"
        )


def _note_of(target: Path) -> Path:
    """The file with the SHA-256 of the first download, as sha256sum -c reads it."""
    return target.with_name(f"{target.name}.sha256")


def _first_seen(target: Path) -> str | None:
    try:
        words = _note_of(target).read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return None
    return words[0] if words else None


class _FetchError(Exception):
    """Why a download is of no use."""


def _download(url: str, target: Path, progress: Progress | None) -> None:
    done = 0
    try:
        with _OPENER.open(url, timeout=TIMEOUT_SECONDS) as response:
            stated = response.headers.get("Content-Length")
            total = int(stated) if stated else None
            with target.open("wb") as file:
                while chunk := response.read(CHUNK_BYTES):
                    done += len(chunk)
                    if done > MOST_BYTES:
                        raise _FetchError(f"it has more than {MOST_BYTES:,} bytes")
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


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Follows no redirect from an encrypted address to one that is not."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if req.type == "https" and not newurl.lower().startswith("https:"):
            raise urllib.error.URLError(f"the server leads to {newurl[:200]}, which has no TLS")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_OPENER = urllib.request.build_opener(_NoDowngrade)


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
    path, left = work / file.member, MOST_BYTES
    content = open_member(members[file.member])
    assert content is not None, "only ordinary files are members"
    with content, path.open("wb") as target:
        # Counted: what an archive says about sizes may be a lie.
        while chunk := content.read(CHUNK_BYTES):
            left -= len(chunk)
            if left < 0:
                raise _FetchError(f"{file.member} in it has more than {MOST_BYTES:,} bytes")
            target.write(chunk)
    return path


def _name(path: str) -> str:
    return path.rpartition("/")[2]
