from __future__ import annotations

import gzip
import hashlib
import io
import random
import socket
import tarfile
import threading
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from oneway.datasets import DATASETS, download
from oneway.datasets.trust_graphs import graph_sha256
from oneway.errors import DataError
from oneway.streams import DataFile, DataSet, fetch

GRAPH = gzip.compress(b"# from to\n0\t1\n1\t0\n")
MEMBERS = {"datatest.txt": b"one", "datatraining.txt": b"two", "datatest2.txt": b"three"}


class Mirror(ThreadingHTTPServer):
    """Serves bytes by path from this machine; "/short" promises more than it sends."""

    daemon_threads = True

    def __init__(self, pages: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages = pages
        self.requests: list[str] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        page = self.server.pages.get(self.path)
        if page is None:
            self.send_error(404)
            return
        self.send_response(200)
        promised = len(page) + (1000 if self.path == "/short" else 0)
        if self.path != "/unsized":
            self.send_header("Content-Length", str(promised))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        pass


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


def lying(content: bytes, size: int) -> bytes:
    """An archive that says that what it holds is small."""
    return content.replace(size.to_bytes(4, "little"), (10).to_bytes(4, "little"))


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    pages = {
        "/epinions": GRAPH,
        "/unsized": GRAPH,
        "/short": GRAPH,
        "/advogato": tarred("advogato/out.advogato", b"% sym\n1 2 0.8\n"),
        "/susy.zip": zipped({"SUSY.csv.gz": gzip.compress(b"1,2\n")}),
        "/occupancy.zip": zipped(MEMBERS),
        "/incomplete.zip": zipped({"datatest.txt": b"one"}),
        "/damaged.zip": zipped(MEMBERS).replace(b"datatest2.txt", b"datatest9.txt", 1),
        "/ratings": gzip.compress(b"6,2,4,1289241911.7\n2,6,-1,1289241941.5\n"),
        "/ratings-2": gzip.compress(b"6,2,4,1289241911.7\n2,6,1,1289241941.5\n"),
        "/page": b"<html>sorry</html>",
        "/other": gzip.compress(b"0\t1\n1\t0\n0\t2\n"),
        "/broken.tar.bz2": broken(tarred("out.advogato", random.Random(0).randbytes(3_000_000))),
        "/susy-2.zip": zipped({"SUSY.csv.gz": gzip.compress(b"1,3\n")}),
        "/bomb.zip": zipped({"SUSY.csv.gz": bytes(3_000_000)}),
        "/lying-bomb.zip": lying(zipped({"SUSY.csv.gz": bytes(3_000_000)}), 3_000_000),
        "/bomb": bytes(3_000_000),
    }
    server = Mirror(pages)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def small_graphs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trust graphs with the digests of small ones."""
    for name, content in (("epinions", GRAPH), ("advogato", b"% sym\n1 2 0.8\n")):
        file = tmp_path_factory.mktemp(name) / "edges"
        file.write_bytes(content)
        data_set = DATASETS[name]
        files = (replace(data_set.files[0], sha256=graph_sha256(file)),)
        monkeypatch.setitem(DATASETS._entries, name, replace(data_set, files=files))


@pytest.fixture
def checked_set(monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """The occupancy data set with the checksums of small files."""
    files = tuple(
        DataFile(f"occupancy/{name}", name, hashlib.sha256(content).hexdigest())
        for name, content in MEMBERS.items()
    )
    data_set = replace(DATASETS["occupancy"], url="http://127.0.0.1:9/", files=files)
    monkeypatch.setitem(DATASETS._entries, "occupancy", data_set)
    return data_set


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("page", ["/epinions", "/unsized"])
def test_a_bare_file_is_downloaded(mirror: Mirror, tmp_path: Path, page: str) -> None:
    seen: list[tuple[int, int | None]] = []
    files = fetch(
        "epinions", tmp_path, mirror.url(page), lambda done, total: seen.append((done, total))
    )
    assert files == (tmp_path / "trust" / "soc-Epinions1.txt.gz",)
    assert files[0].read_bytes() == GRAPH
    assert seen[-1] == (len(GRAPH), None if page == "/unsized" else len(GRAPH))
    assert everything_in(tmp_path) == ["trust/soc-Epinions1.txt.gz"]


def test_a_file_is_taken_out_of_a_tar_archive(mirror: Mirror, tmp_path: Path) -> None:
    (file,) = fetch("advogato", tmp_path, mirror.url("/advogato"))
    assert file.read_bytes() == b"% sym\n1 2 0.8\n"
    assert everything_in(tmp_path) == ["trust/out.advogato"]


def test_a_file_is_taken_out_of_a_zip_archive(mirror: Mirror, tmp_path: Path) -> None:
    (file,) = fetch("susy", tmp_path, mirror.url("/susy.zip"))
    assert gzip.decompress(file.read_bytes()) == b"1,2\n"


@pytest.mark.usefixtures("checked_set")
def test_files_with_the_right_checksum_are_kept_and_not_fetched_again(
    mirror: Mirror, tmp_path: Path
) -> None:
    files = fetch("occupancy", tmp_path, mirror.url("/occupancy.zip"))
    assert {path.name: path.read_bytes() for path in files} == MEMBERS
    assert fetch("occupancy", tmp_path, mirror.url("/occupancy.zip")) == files
    assert mirror.requests == ["/occupancy.zip"]
    files[0].write_bytes(b"spoilt")
    fetch("occupancy", tmp_path, mirror.url("/occupancy.zip"))
    assert files[0].read_bytes() == b"one"


def test_a_download_is_found_in_the_data_folder(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path))
    (file,) = fetch("epinions", url=mirror.url("/epinions"))
    assert file.parent.parent == tmp_path


@pytest.mark.parametrize(
    ("name", "page", "message"),
    [
        ("epinions", "/missing", "the server answers 404 Not Found"),
        ("epinions", "/short", f"the server sent {len(GRAPH)} of 1,0.. bytes"),
        ("occupancy", "/occupancy.zip", "datatest.txt has the SHA-256 .* instead of 1b92c7"),
        ("occupancy", "/incomplete.zip", "the archive holds no datatraining.txt"),
        ("occupancy", "/damaged.zip", "the archive is damaged"),
        ("occupancy", "/page", "neither a zip nor a tar archive"),
        ("epinions", "/page", "soc-Epinions1.txt.gz is not what it should be: "),
        ("epinions", "/other", "soc-Epinions1.txt.gz has the SHA-256 .* instead of "),
        ("advogato", "/other", "out.advogato has the SHA-256 .* instead of "),
        ("advogato", "/broken.tar.bz2", "the archive is damaged"),
    ],
)
def test_a_download_that_fails_leaves_nothing_and_says_what_to_do(
    mirror: Mirror, tmp_path: Path, name: str, page: str, message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        fetch(name, tmp_path, mirror.url(page))
    folder = tmp_path / ("occupancy" if name == "occupancy" else "trust")
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert everything_in(tmp_path) == []


def test_a_failed_download_leaves_the_old_file_alone(mirror: Mirror, tmp_path: Path) -> None:
    (file,) = fetch("epinions", tmp_path, mirror.url("/epinions"))
    file.write_bytes(b"another")
    with pytest.raises(DataError):
        fetch("epinions", tmp_path, mirror.url("/short"))
    assert file.read_bytes() == b"another"


def test_a_refused_connection_is_named(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(DataError, match=r"could not be fetched from http.*refused.*put soc-Epin"):
        fetch("epinions", tmp_path, f"http://127.0.0.1:{port}/")
    assert everything_in(tmp_path) == []


def test_an_address_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"could not be fetched from nowhere: unknown url type"):
        fetch("epinions", tmp_path, "nowhere")


def test_a_folder_that_cannot_be_written_is_named(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"file.data cannot be written"):
        fetch("epinions", tmp_path / "file" / "data", mirror.url("/epinions"))


def test_comments_line_ends_and_packing_make_no_other_graph(tmp_path: Path) -> None:
    def digest(content: bytes) -> str:
        (tmp_path / "edges").write_bytes(content)
        return graph_sha256(tmp_path / "edges")

    plain = digest(b"1 2 .8\n2 1 1\n3 1 .6")
    assert digest(b"% asym posweighted\n% 3 3 3\r\n1 2 0.8\r\n2 1 1.0\r\n3 1 .6\n") == plain
    assert digest(gzip.compress(b"1 2 .8\n2 1 1\n3 1 .6\n")) == plain
    for other in (b"1 2 .8\n2 1 1\n3 1 .8", b"1 2\n2 1\n3 1", b"1 2 .8\n2 1 1\n1 3 .6"):
        assert digest(other) != plain
    # A comment that changes what is loaded changes the digest.
    assert digest(b"% sym\n1 2 .8\n2 1 1\n3 1 .6") != plain


def test_every_address_is_encrypted_and_every_digest_is_known_or_remembered() -> None:
    for name, data_set in DATASETS.items():
        if data_set.url:
            assert data_set.url.startswith("https://"), name
    unknown = {
        name for name, each in DATASETS.items() if any(file.sha256 is None for file in each.files)
    }
    assert unknown == {
        *("adult", "heart", "susy", "mnist", "cifar10"),
        *("wiki-vote", "bitcoin-alpha", "bitcoin-otc"),
    }


def test_what_was_downloaded_first_is_not_replaced_by_another_without_a_word(
    mirror: Mirror, tmp_path: Path
) -> None:
    (file,) = fetch("susy", tmp_path, mirror.url("/susy.zip"))
    first, note = file.read_bytes(), file.with_name("SUSY.csv.gz.sha256")
    assert note.read_text() == f"{hashlib.sha256(first).hexdigest()}  SUSY.csv.gz\n"
    fetch("susy", tmp_path, mirror.url("/susy.zip"))
    assert mirror.requests == ["/susy.zip"], "it is there, and the one of the first download"
    file.unlink()
    with pytest.raises(DataError, match=r"at the first download it had .* remove .*gz\.sha256"):
        fetch("susy", tmp_path, mirror.url("/susy-2.zip"))
    assert everything_in(tmp_path) == ["susy/SUSY.csv.gz.sha256"]
    fetch("susy", tmp_path, mirror.url("/susy.zip"))
    assert file.read_bytes() == first
    note.unlink()
    fetch("susy", tmp_path, mirror.url("/susy-2.zip"))
    assert gzip.decompress(file.read_bytes()) == b"1,3\n"
    assert hashlib.sha256(file.read_bytes()).hexdigest() in note.read_text()


@pytest.mark.parametrize("page", ["/bomb", "/bomb.zip", "/lying-bomb.zip"])
def test_no_more_is_downloaded_or_unpacked_than_the_largest_data_set_has(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.setattr(download, "MOST_BYTES", 1_000_000)
    with pytest.raises(DataError, match=r"has more than 1,000,000 bytes|is damaged"):
        fetch("susy", tmp_path, mirror.url(page))
    assert everything_in(tmp_path) == []


def test_an_archive_gives_only_what_is_asked_for(mirror: Mirror, tmp_path: Path) -> None:
    mirror.pages["/more.zip"] = zipped(
        {"../escaped": b"x", "a/SUSY.csv.gz": b"1,2\n", "huge": bytes(1_000_000)}
    )
    (file,) = fetch("susy", tmp_path / "data", mirror.url("/more.zip"))
    assert file.read_bytes() == b"1,2\n"
    assert everything_in(tmp_path) == ["data/susy/SUSY.csv.gz", "data/susy/SUSY.csv.gz.sha256"]


def test_an_encrypted_address_does_not_lead_to_one_that_is_not() -> None:
    follow = download._NoDowngrade().redirect_request
    asked = urllib.request.Request("https://publisher.example/file")
    with pytest.raises(urllib.error.URLError, match=r"http://publisher\.example.*no TLS"):
        follow(asked, None, 302, "Found", {}, "http://publisher.example/file")
    followed = follow(asked, None, 302, "Found", {}, "https://elsewhere.example/file")
    assert followed is not None
    assert followed.full_url == "https://elsewhere.example/file"


def test_a_graph_whose_digest_is_not_known_must_stay_what_it_was_at_first(
    mirror: Mirror, tmp_path: Path
) -> None:
    (file,) = fetch("bitcoin-otc", tmp_path, mirror.url("/ratings"))
    note = file.with_name(f"{file.name}.sha256")
    assert note.read_text().split()[1] == "soc-sign-bitcoinotc.csv.gz"
    assert fetch("bitcoin-otc", tmp_path, mirror.url("/ratings")) == (file,)
    assert mirror.requests == ["/ratings"]
    file.unlink()
    with pytest.raises(DataError, match="at the first download it had"):
        fetch("bitcoin-otc", tmp_path, mirror.url("/ratings-2"))
    assert not file.exists()
    with pytest.raises(DataError, match="is not what it should be"):
        fetch("bitcoin-alpha", tmp_path, mirror.url("/page"))
