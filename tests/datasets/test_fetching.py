"""Downloads: from a server on this machine into the data folder, checked or refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from oneway.datasets import DATASETS
from oneway.datasets.trust_graphs import graph_sha256
from oneway.errors import DataError
from oneway.streams import fetch

GRAPH = gzip.compress(b"# from to\n0\t1\n1\t0\n")
ADVOGATO = b"% sym\n1 2 0.8\n"
MEMBERS = {"datatest.txt": b"one", "datatraining.txt": b"two", "datatest2.txt": b"three"}


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:bz2") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def broken(content: bytes) -> bytes:
    """An archive that begins well."""
    middle = len(content) // 2
    return content[:middle] + bytes(64) + content[middle + 64 :]


PAGES = {
    "/epinions": GRAPH,
    "/unsized": GRAPH,
    "/short": GRAPH,
    "/advogato": tarred("advogato/out.advogato", ADVOGATO),
    "/occupancy.zip": zipped(MEMBERS),
    "/incomplete.zip": zipped({"datatest.txt": b"one"}),
    "/changed.zip": zipped(MEMBERS | {"datatest.txt": b"another"}),
    "/damaged.zip": zipped(MEMBERS).replace(b"datatest2.txt", b"datatest9.txt", 1),
    "/more.zip": zipped({"../escaped": b"x", "a/SUSY.csv.gz": b"1,2\n", "huge": bytes(10_000)}),
    "/page": b"<html>sorry</html>",
    "/other": gzip.compress(b"0\t1\n1\t0\n0\t2\n"),
    "/broken.tar.bz2": broken(tarred("out.advogato", random.Random(0).randbytes(3_000_000))),
}
"""Path -> bytes; "/short" promises more than it sends, "/unsized" promises nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    requests: list[str]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        page = PAGES.get(self.path)
        if page is None:
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/unsized":
            promised = len(page) + (1000 if self.path == "/short" else 0)
            self.send_header("Content-Length", str(promised))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    server.requests = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def published(
    server: Server, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], None]:
    """Publish a data set under a path of the server, with the digests of small files."""
    server.requests.clear()
    edges = {"epinions": GRAPH, "advogato": ADVOGATO}

    def publish(name: str, page: str) -> None:
        data_set = DATASETS[name]
        files = data_set.files
        if name in edges:
            file = tmp_path_factory.mktemp(name) / "edges"
            file.write_bytes(edges[name])
            files = (replace(files[0], sha256=graph_sha256(file)),)
        elif name == "occupancy":
            digests = {key: hashlib.sha256(value).hexdigest() for key, value in MEMBERS.items()}
            files = tuple(replace(file, sha256=digests[file.member]) for file in files)
        address = page if ":" in page else f"http://127.0.0.1:{server.server_address[1]}{page}"
        published = replace(data_set, url=address, files=files)
        monkeypatch.setitem(DATASETS._entries, name, published)

    return publish


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("name", "page", "files"),
    [
        ("epinions", "/epinions", {"trust/soc-Epinions1.txt.gz": GRAPH}),
        ("epinions", "/unsized", {"trust/soc-Epinions1.txt.gz": GRAPH}),
        ("advogato", "/advogato", {"trust/out.advogato": ADVOGATO}),
        ("occupancy", "/occupancy.zip", {f"occupancy/{it}": MEMBERS[it] for it in MEMBERS}),
        ("susy", "/more.zip", {"susy/SUSY.csv.gz": b"1,2\n"}),
    ],
)
def test_the_files_of_a_data_set_and_no_others_are_taken_from_a_download(
    published, server, tmp_path, monkeypatch, name, page, files
):
    published(name, page)
    seen: list[tuple[int, int | None]] = []
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path))
    paths = fetch(name, progress=lambda done, total: seen.append((done, total)))
    size = len(PAGES[page])
    assert seen[-1] == (size, None if page == "/unsized" else size)
    assert {str(path.relative_to(tmp_path)): path.read_bytes() for path in paths} == files
    assert everything_in(tmp_path) == sorted(files)
    fetch(name)
    assert server.requests == [page], "what is there is not fetched again"


def test_a_file_that_was_spoilt_is_fetched_again(published, tmp_path):
    published("occupancy", "/occupancy.zip")
    files = fetch("occupancy", tmp_path)
    files[0].write_bytes(b"spoilt")
    fetch("occupancy", tmp_path)
    assert files[0].read_bytes() == b"one"
    files[0].write_bytes(b"mine")
    published("occupancy", "/damaged.zip")
    with pytest.raises(DataError):
        fetch("occupancy", tmp_path)
    assert files[0].read_bytes() == b"mine", "a failed download leaves it alone"


@pytest.mark.parametrize(
    ("name", "page", "culprit"),
    [
        ("epinions", "/missing", "404"),
        ("epinions", "/short", f"{len(GRAPH)} of 1,0.. bytes"),
        ("occupancy", "/changed.zip", "datatest.txt has the SHA-256"),
        ("occupancy", "/incomplete.zip", "datatraining.txt"),
        ("occupancy", "/damaged.zip", "damaged"),
        ("occupancy", "/page", "neither a zip nor a tar"),
        ("epinions", "/page", "soc-Epinions1.txt.gz"),
        ("epinions", "/other", "soc-Epinions1.txt.gz has the SHA-256"),
        ("advogato", "/broken.tar.bz2", "damaged"),
        ("epinions", "nowhere:", "nowhere"),
        ("epinions", "http://127.0.0.1:1/", "refused"),
    ],
)
def test_a_download_that_fails_leaves_nothing_and_says_where_to_put_files(
    published, tmp_path, name, page, culprit
):
    published(name, page)
    with pytest.raises(DataError, match=culprit) as caught:
        fetch(name, tmp_path)
    assert str(tmp_path / DATASETS[name].files[0].path.partition("/")[0]) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert everything_in(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_named(published, tmp_path):
    published("epinions", "/epinions")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"file.data cannot be written"):
        fetch("epinions", tmp_path / "file" / "data")


def test_every_address_is_encrypted_and_which_digests_are_known():
    for name, data_set in DATASETS.items():
        if data_set.url:
            assert data_set.url.startswith("https://"), name
    unknown = {
        name for name, each in DATASETS.items() if any(file.sha256 is None for file in each.files)
    }
    assert unknown == {"susy"}
