from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from oneway.cli.output import print_json
from oneway.datasets import DATASETS
from oneway.datasets.trust_graphs import graph_sha256

FOUR_EDGES = "# sender receiver\n10 20\n20 30\n30 10\n20 10\n"
NAMES = [
    *("flights", "occupancy", "susy", "adult", "heart", "digits", "mnist", "cifar10"),
    *("synthetic", "advogato", "epinions"),
    *("wiki-vote", "bitcoin-alpha", "bitcoin-otc"),
]


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server on this machine that has one edge list, which is Epinions' here."""
    (tmp_path / "four-edges").write_text(FOUR_EDGES)
    known = DATASETS["epinions"]
    files = (replace(known.files[0], sha256=graph_sha256(tmp_path / "four-edges")),)
    monkeypatch.setitem(DATASETS._entries, "epinions", replace(known, files=files))

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
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_json_of_a_graph_holds_its_statistics(oneway):
    Path("edges.txt").write_text(FOUR_EDGES)
    assert oneway("graph", "edges.txt", "--json").json == {
        "num_nodes": 3,
        "num_edges": 4,
        "weighted": False,
        "reciprocity": 0.5,
        "strong_components": 1,
        "largest_component": 3,
        "most_receivers": 2,
        "most_senders": 2,
        "smallest_stationary_mass": pytest.approx(2 / 3),
        "largest_stationary_mass": pytest.approx(4 / 3),
    }


def test_people_read_what_the_statistics_mean(oneway):
    Path("edges.txt.gz").write_bytes(gzip.compress(FOUR_EDGES.encode()))
    shown = oneway("graph", "edges.txt.gz")
    assert (shown.code, shown.err) == (0, "")
    assert "50.0% of the edges go both ways" in shown.out
    assert "1, the graph is strongly connected" in shown.out
    assert "0.667 to 1.33, where 1 is an equal share" in shown.out


def test_a_graph_in_pieces_is_measured_in_its_largest_component(oneway):
    Path("edges.csv").write_text("a,b\nb,a\nb,c\n")
    shown = oneway("graph", "edges.csv")
    assert "2, the largest has 2 of the nodes" in shown.out
    assert "of the largest component" in shown.out
    assert oneway("graph", "edges.csv", "--json").json["smallest_stationary_mass"] == 1


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


def test_the_list_for_people_names_every_set_and_how_to_get_it(oneway, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = oneway("data", "list")
    assert all(f"\n {name} " in shown.out for name in NAMES)
    assert max(map(len, shown.out.splitlines())) <= 80
    assert f"Data sets live in {tmp_path / 'data'}; ONEWAY_DATA names another" in shown.err
    assert "oneway data fetch NAME" in shown.err


def test_info_says_where_a_set_belongs_and_how_to_get_it(oneway, tmp_path):
    shown = oneway("data", "info", "susy")
    assert shown.code == 0
    assert "no; oneway data fetch susy" in shown.out
    assert str(tmp_path / "data" / "susy") in shown.out
    answer = oneway("data", "info", "susy", "--json").json
    assert (answer["rows"], answer["present"], answer["kind"]) == (5_000_000, False, "table")


def test_flights_need_no_fetching(oneway):
    files = oneway("data", "fetch", "flights", "--json").json["files"]
    assert [Path(file).name for file in files] == ["flights.csv.zip", "weather.csv"]
    shown = oneway("data", "fetch", "flights")
    assert shown.out.splitlines() == files
    assert shown.err.startswith("flights needs no fetching")


def test_a_fetched_network_can_be_looked_at(oneway, mirror, tmp_path):
    fetched = oneway("data", "fetch", "epinions", "--url", f"{mirror}/epinions.gz", "--json")
    target = tmp_path / "data" / "trust" / "soc-Epinions1.txt.gz"
    assert (fetched.code, fetched.err) == (0, "")
    assert fetched.json == {"name": "epinions", "files": [str(target)]}
    assert oneway("data", "info", "epinions", "--json").json["files"] == [str(target)]
    assert oneway("graph", "epinions", "--json").json["num_edges"] == 4


def test_a_folder_to_fetch_into_may_be_given(oneway, mirror):
    fetched = oneway(
        "data", "fetch", "epinions", "--url", f"{mirror}/epinions.gz", "--folder", "mine"
    )
    assert fetched.out == "mine/trust/soc-Epinions1.txt.gz\n"
    assert fetched.err == "epinions is ready:\n"
    assert Path("mine/trust/soc-Epinions1.txt.gz").exists()


def test_a_failed_fetch_leaves_nothing_and_says_where_to_put_the_file(oneway, mirror):
    failed = oneway("data", "fetch", "epinions", "--url", f"{mirror}/gone", "--folder", "mine")
    assert (failed.code, failed.out) == (2, "")
    assert failed.err.startswith(f"Error: epinions could not be fetched from {mirror}/gone: ")
    assert "404" in failed.err
    assert failed.err.endswith("put soc-Epinions1.txt.gz into mine/trust\n")
    assert not any(path.is_file() for path in Path("mine").rglob("*"))


def test_json_holds_no_numbers_that_json_does_not_have(capsys):
    """Strict parsers refuse NaN and Infinity."""
    print_json({"loss": float("nan"), "tried": [1.0, float("inf")], 3: {"rate": 0.1}})
    assert json.loads(capsys.readouterr().out) == {
        "loss": None,
        "tried": [1.0, None],
        "3": {"rate": 0.1},
    }
