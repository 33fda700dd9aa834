"""The page of one's own peer, in a real browser, while the peer learns, dies and comes back."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from builders import make_receiver, make_sender, make_status

from oneway.peer.home.home import Home
from oneway.peer.identity.keys import key_text

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
Page, expect = playwright.Page, playwright.expect

SECONDS = 240.0
HEADER = "Temperature,Light,Occupancy"
PLAIN = os.environ | {"OPENBLAS_NUM_THREADS": "1"}


def oneway(*arguments: object) -> str:
    """Run a command to its end; what it printed on stdout."""
    done = subprocess.run(
        [sys.executable, "-m", "oneway", *map(str, arguments)],
        env=PLAIN,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def running(spawn: Callable) -> Callable:
    """A real `oneway peer run` of a folder, gone at the end of its `with` block."""

    @contextmanager
    def run(home: Path, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "oneway", "peer", "run", "--home", home, *arguments]
        with (home / "log").open("ab") as log:
            process = spawn(command, env=PLAIN, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            yield process
            process.kill()
            process.wait(SECONDS)

    return run


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task, with its stream beside it: the label is plain from the light."""
    folder = tmp_path_factory.mktemp("task")
    rows = "".join(
        f"{20 + n % 5},{430 * (n % 3 == 0)},{'yes' if n % 3 == 0 else 'no'}\n"
        for n in range(100_000)
    )
    (folder / "stream.csv").write_text(f"{HEADER}\n{rows}")
    oneway(
        "peer", "task", folder / "stream.csv", "--label", "Occupancy", "--out", folder / "task.toml"
    )
    return folder


def make_peer(name: str, task: Path, home: Path) -> Path:
    """Make a peer's folder; any free port, as the first ones are those that others take too."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    there = ("--task", task / "task.toml", "--home", home, "--listen", listen)
    oneway("peer", "init", name, *there)
    return home


@pytest.fixture
def alice(task: Path, tmp_path: Path) -> Path:
    return make_peer("alice", task, tmp_path / "alice")


@pytest.fixture
def bobs_card(task: Path, tmp_path: Path) -> str:
    home = make_peer("bob", task, tmp_path / "bob")
    return oneway("peer", "card", "--home", home).strip()


def stat(page: Page, name: str) -> str:
    return page.locator(f"[data-stat={name}] .value").inner_text()


def field(page: Page, feature: str):
    return page.get_by_role("textbox", name=feature, exact=True)


def samples(page: Page) -> int:
    text = stat(page, "samples").replace(",", "")
    return int(text) if text.isdigit() else 0


def sees(page: Page, state: str) -> None:
    expect(page.locator("[data-state]")).to_have_text(state)


def wait_for_samples(page: Page, more_than: int) -> int:
    page.wait_for_function(
        "least => Number(document.querySelector('[data-stat=samples] .value')"
        "?.innerText.replace(/,/g, '')) > least",
        arg=more_than,
    )
    return samples(page)


def points(page: Page, chart: str) -> int:
    """How many points the first line of a chart has."""
    return page.get_by_role("img", name=chart).evaluate(
        "element => element.chart?.getOption().series[0]?.data.length ?? 0"
    )


def test_the_page_shows_how_the_peer_learns_and_predicts_with_it(
    alice: Path, task: Path, start: Callable, open_page: Callable, running: Callable
):
    with running(alice, "--data", task / "stream.csv", "--rate", 300, "--serve", 0):
        page = open_page(start("peer", "dashboard", "--home", str(alice), "--listen", "0").url)
        sees(page, "running")
        seen = wait_for_samples(page, 300)
        assert 0.0 < float(stat(page, "average-loss")) < 0.7
        expect(page.locator("[data-stat=average-loss] .note")).to_contain_text("base rate")
        expect(page.locator("[data-measures]")).to_contain_text("Confusion matrix")
        assert float(stat(page, "accuracy")) > 60.0
        assert stat(page, "mass") == "1.0000"
        expect(page.locator("[data-privacy]")).to_contain_text("epsilon 8, delta 1e-05 for each")
        expect(page.get_by_text("of 16 samples for the next push")).to_be_visible()
        assert wait_for_samples(page, seen) > seen
        # From its beginning, not from when the page was opened.
        page.wait_for_function(
            "() => document.querySelector('.ow-chart').chart?.getOption().series[0].data.length>100"
        )
        first = page.get_by_role("img", name="Loss of this peer").evaluate(
            "element => element.chart.getOption().series[1].data[0][0]"
        )
        assert first <= 16
        assert points(page, "Accuracy of this peer") > 100

        field(page, "Light").fill("abc")
        page.get_by_role("button", name="Predict").click()
        expect(page.locator("label", has=field(page, "Light"))).to_contain_text("is not a number")
        field(page, "Light").fill("430")
        page.get_by_role("button", name="Predict").click()
        expect(page.locator("[data-answer]")).to_have_text("Occupancy: yes")
        expect(page.get_by_text("By the personal model")).to_be_visible()
        shares = [float(text.rstrip("%")) for text in page.locator(".share").all_inner_texts()]
        assert sum(shares) == pytest.approx(100.0, abs=0.2)
        field(page, "Light").fill("0")
        field(page, "Light").press("Enter")
        expect(page.locator("[data-answer]")).to_have_text("Occupancy: no")


def test_trust_is_changed_by_cards_and_distrust_is_confirmed(
    alice: Path, bobs_card: str, start: Callable, open_page: Callable
):
    page = open_page(start("peer", "dashboard", "--home", str(alice), "--listen", "0").url)
    own_card = oneway("peer", "card", "--home", alice).strip()
    expect(page.locator("[data-card]")).to_have_text(own_card)
    expect(page.get_by_role("img", name="The card as a QR code")).to_be_visible()

    card = field(page, "Card of a peer to send to")
    card.fill("oneway:nonsense")
    page.get_by_role("button", name="Trust", exact=True).click()
    expect(page.locator("label", has=card)).to_contain_text("is not a card")
    # What is a name of a file here is none: a page must not read files.
    card.fill(str(alice / "key.secret"))
    page.get_by_role("button", name="Trust", exact=True).click()
    expect(page.locator("label", has=card)).to_contain_text("does not begin with oneway:")

    card.fill(bobs_card)
    weight = field(page, "Weight")
    weight.fill("1e308")
    page.get_by_role("button", name="Trust", exact=True).click()
    expect(page.locator("label", has=weight)).to_contain_text("the weight is 1e308")
    weight.fill("2")
    page.get_by_role("button", name="Trust", exact=True).click()
    expect(page.get_by_text("alice sends to bob with weight 2.")).to_be_visible()
    receiver = page.locator("[data-edge=bob]")
    expect(receiver).to_contain_text("begins when the peer runs")
    assert re.search(r"weight = 2", (alice / "peers.toml").read_text())

    page.get_by_role("button", name="Distrust bob").click()
    page.get_by_role("button", name="Cancel").click()
    expect(receiver).to_be_visible()
    page.get_by_role("button", name="Distrust bob").click()
    page.get_by_role("button", name="Distrust", exact=True).last.click()
    expect(receiver).to_be_hidden()
    assert bobs_card not in (alice / "peers.toml").read_text()

    field(page, "Card or key of a peer to admit").fill(bobs_card)
    page.get_by_role("button", name="Admit", exact=True).click()
    expect(page.locator("[data-edge=bob]")).to_contain_text("admitted")


def test_on_a_phone_a_peer_with_long_texts_is_no_wider_than_the_screen(
    alice: Path, bobs_card: str, start: Callable, open_page: Callable
):
    oneway("peer", "trust", bobs_card, "--home", alice)
    home = Home.open(alice)
    [bob], now = home.config().receivers, time.time()
    left = make_receiver(key=key_text(bob.key), left=True, link_since=now - 600, last_answer=now)
    full = make_receiver(name="dora", held_back="it is full", in_flight_mass=0.25, last_answer=now)
    silent = make_sender(last_push=now - 100)
    edges = {"receivers": [left, full], "senders": [silent]}
    status = make_status(pid=os.getpid(), started=now - 900, time=now, mass=-8.2e6, **edges)
    with home.lock():
        home.write_status(status)
        url = start("peer", "dashboard", "--home", str(alice), "--listen", "0").url
        page = open_page(url, width=390, dark=True)
        expect(page.locator("[data-edge=bob]")).to_contain_text("has left")
        expect(page.locator("[data-edge=dora]")).to_contain_text("it is full")
        expect(page.locator("[data-edge=carol] .ow-chip")).to_have_text("silent")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
