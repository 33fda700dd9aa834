from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from oneway.datasets import DATASETS
from oneway.datasets.trust_graphs import graph_sha256

FOUR_EDGES = "# sender receiver\n10 20\n20 30\n30 10\n20 10\n"
NAMES = [
    *("flights", "occupancy", "susy", "adult", "heart", "digits", "mnist"),
    *("synthetic", "advogato", "epinions"),
]


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Publish Epinions, here four edges, under a path of a server on this machine."""
    (tmp_path / "four-edges").write_text(FOUR_EDGES)
    known = DATASETS["epinions"]
    files = (replace(known.files[0], sha256=graph_sha256(tmp_path / "four-edges")),)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/epinions.gz":
                self.send_response(200)
                self.end_headers()
                self.wfile.write(gzip.compress(FOUR_EDGES.encode()))
            else:
                self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def publish_as(path: str) -> str:
            address = f"http://127.0.0.1:{server.server_address[1]}{path}"
            data_set = replace(known, files=files, url=address)
            monkeypatch.setitem(DATASETS._entries, "epinions", data_set)
            return address

        yield publish_as
        server.shutdown()
        thread.join()


def test_the_list_says_what_is_here(oneway, tmp_path):
    (tmp_path / "data" / "trust").mkdir(parents=True)
    (tmp_path / "data" / "trust" / "out.advogato").write_text("1 2 1\n")
    items = oneway("data", "list", "--json").json
    assert [item["name"] for item in items] == NAMES
    for item in items:
        assert set(item) == {
            "name",
            "kind",
            "about",
            "rows",
            "licence",
            "url",
            "present",
            "files",
            "folder",
        }
    present = {item["name"]: item["present"] for item in items}
    assert (present["advogato"], present["occupancy"]) == (True, False)
    unfetched = {item["name"] for item in items if item["url"] is None}
    assert unfetched == {"flights", "digits", "synthetic"}


def test_a_failed_fetch_leaves_nothing_and_says_where_to_put_the_file(oneway, publish):
    address = publish("/gone")
    failed = oneway("data", "fetch", "epinions", "--folder", "mine")
    assert (failed.code, failed.out) == (2, "")
    assert failed.err.startswith(f"Error: epinions could not be fetched from {address}: ")
    assert "404" in failed.err
    assert failed.err.endswith("put soc-Epinions1.txt.gz into mine/trust\n")
    assert not any(path.is_file() for path in Path("mine").rglob("*"))
