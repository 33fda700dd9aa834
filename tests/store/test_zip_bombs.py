"""Runs from elsewhere: reading one never takes more memory than its files have bytes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from oneway import store
from oneway.errors import StoreError
from oneway.store.catalogue import find_runs
from oneway.store.run_folder import MOST_BYTES
from oneway.testing.records import make_record

UNFOLDED = 2_400_000_000
NAMES = ("loss_sums", "sample_counts")

READ_ALL = """
import json, resource, sys
from pathlib import Path
from oneway import store
from oneway.errors import StoreError
from oneway.dashboard.runs.catalogue_cache import CatalogueCache

# Numpy and its friends are there already: what is left is for the run.
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 200_000_000,) * 2)
folder = Path(sys.argv[1])
runs = CatalogueCache(folder)
runs.refresh(1e9)
said = [entry.problem for entry in runs.catalogue.entries]
for read in (store.load, store.load_losses):
    try:
        read(folder / "run")
    except StoreError as error:
        said.append(str(error))
print(json.dumps(said))
"""


def npy_header(num_values: int) -> bytes:
    header = io.BytesIO()
    said = {"descr": "<f8", "fortran_order": False, "shape": (num_values,)}
    np.lib.format.write_array_header_1_0(header, said)
    return header.getvalue()


def deflated(file: Path, num_bytes: int = UNFOLDED) -> None:
    """The classic bomb: a megabyte of nothing for every gigabyte of zeros."""
    zeros = bytes(1 << 22)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in NAMES:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(npy_header(num_bytes // 16))
                for start in range(0, num_bytes // 2, len(zeros)):
                    member.write(zeros[: num_bytes // 2 - start])


def deflated_and_lying(file: Path) -> None:
    """The same, but its table of contents says that there is little in it."""
    deflated(file, 1 << 25)
    content = file.read_bytes()
    true = (len(npy_header(1 << 21)) + (1 << 24)).to_bytes(4, "little")
    assert true in content
    file.write_bytes(content.replace(true, (100).to_bytes(4, "little")))


def overlapping(file: Path) -> None:
    """Two arrays that are the same bytes of the file."""
    values = np.zeros(1 << 20)
    np.savez(file, loss_sums=values, sample_counts=values)
    with zipfile.ZipFile(file) as archive:
        second = archive.getinfo("sample_counts.npy").header_offset
        start = archive.start_dir
    content = file.read_bytes()
    directory = content[start:].replace(second.to_bytes(4, "little"), bytes(4))
    gone = start - second
    end = directory.rfind(b"PK\x05\x06")
    directory = directory[: end + 16] + second.to_bytes(4, "little") + directory[end + 20 :]
    assert gone > 1 << 23
    file.write_bytes(content[:second] + directory)


def claiming(file: Path) -> None:
    """Arrays that say they are large, in a file that is not."""
    with zipfile.ZipFile(file, "w") as archive:
        for name in NAMES:
            archive.writestr(f"{name}.npy", npy_header(UNFOLDED // 16) + bytes(1000))


def with_a_long_table_of_contents(file: Path) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(40_000):
            archive.writestr(zipfile.ZipInfo(f"{number:07}"), b"")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    store.save(make_record(config={"num_rounds": 2}), tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how much memory it has")
def test_a_zip_bomb_is_named_and_never_unfolded(run):
    deflated(run / "arrays.npz")
    assert (run / "arrays.npz").stat().st_size < 2_500_000
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, run.parent], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    listed, loaded, losses = json.loads(done.stdout)
    for said in (listed, loaded, losses):
        assert "loss_sums in arrays.npz is compressed" in said
        assert said.endswith("run it again")


@pytest.mark.parametrize(
    "damage",
    [deflated_and_lying, overlapping, claiming, with_a_long_table_of_contents],
    ids=lambda damage: damage.__name__,
)
def test_an_archive_that_lies_about_its_sizes_is_damage(run, damage: Callable[[Path], None]):
    damage(run / "arrays.npz")
    for read in (store.load, store.load_losses):
        with pytest.raises(StoreError, match=r"run is damaged \(.*(arrays\.npz|zip|directory)"):
            read(run)


def test_a_text_that_grows_without_end_is_read_up_to_the_limit(run, tmp_path):
    (run / "run.json").write_bytes(b" " * (MOST_BYTES + 1))
    (entry,) = find_runs(tmp_path)
    assert entry.problem.startswith("run.json has more than")


def test_a_lab_with_sentences_without_end_is_listed_with_the_first(tmp_path):
    (tmp_path / "task.toml").touch()
    (tmp_path / "result.json").write_text(json.dumps({"sentences": ["a"] * 100_000}))
    (entry,) = find_runs(tmp_path)
    assert entry.sentences == ("a",) * 100
