"""The page of one's own peer, in a real browser, while the peer learns, dies and comes back."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from oneway.peer.home.home import Home
from oneway.peer.identity.keys import key_text
from oneway.tables import npy_arrays
from oneway.testing.records import make_receiver, make_sender, make_status

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
def running(background: Callable) -> Callable:
    """A real `oneway peer run` of a folder, gone at the end of its `with` block."""

    @contextmanager
    def run(home: Path, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "oneway", "peer", "run", "--home", home, *arguments]
        with (
            (home / "log").open("ab") as log,
            background(
                command, env=PLAIN, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            ) as process,
        ):
            yield process

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


@pytest.mark.parametrize("serves", [True, False], ids=["with an API", "from the folder"])
def test_the_page_shows_how_the_peer_learns_and_predicts_with_it(
    alice: Path, task: Path, start: Callable, open_page: Callable, running: Callable, serves: bool
):
    more = ["--serve", "0"] if serves else []
    with running(alice, "--data", task / "stream.csv", "--rate", 300, *more):
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

        field(page, "Light").fill("430")
        page.get_by_role("button", name="Predict").click()
        expect(page.locator("[data-answer]")).to_have_text("Occupancy: yes")
        by = "of the running peer" if serves else "on the disk"
        expect(page.get_by_text(f"By the settled model {by}, the average")).to_be_visible()
        shares = [float(text.rstrip("%")) for text in page.locator(".share").all_inner_texts()]
        assert sum(shares) == pytest.approx(100.0, abs=0.2)
        field(page, "Light").fill("0")
        field(page, "Light").press("Enter")
        expect(page.locator("[data-answer]")).to_have_text("Occupancy: no")


def test_columns_of_which_one_is_one_are_a_single_choice(
    tmp_path: Path, start: Callable, open_page: Callable
):
    rows = "".join(
        f"{int(n % 3 == 0)},{int(n % 3 > 0)},{n % 7},{'yes' if n % 3 == 0 else 'no'}\n"
        for n in range(600)
    )
    stream, described = tmp_path / "rooms.csv", tmp_path / "task.toml"
    stream.write_text(f"room east,room west,hour,busy\n{rows}")
    numbers = ("--numeric", "room east,room west")  # and not two booleans
    plain = ("--privacy", "none", "--learning-rate", "0.1")
    oneway("peer", "task", stream, "--label", "busy", *numbers, *plain, "--out", described)
    home = tmp_path / "carol"
    oneway("peer", "init", "carol", "--task", described, "--home", home)
    oneway("peer", "run", "--data", stream, "--until-done", "--home", home)
    page = open_page(start("peer", "dashboard", "--home", str(home), "--listen", "0").url)
    room, answer = page.get_by_role("combobox", name="room"), page.locator("[data-answer]")
    expect(field(page, "hour")).to_be_visible()
    expect(page.get_by_role("textbox", name="room east")).to_have_count(0)
    # It begins with what is most frequent.
    page.get_by_role("button", name="Predict").click()
    expect(answer).to_have_text("busy: no")
    room.click()
    page.get_by_role("option", name="east").click()
    page.get_by_role("button", name="Predict").click()
    expect(answer).to_have_text("busy: yes")


def test_text_that_is_no_number_is_marked_at_its_field(
    alice: Path, start: Callable, open_page: Callable
):
    page = open_page(start("peer", "dashboard", "--home", str(alice), "--listen", "0").url)
    sees(page, "never started")
    field(page, "Light").fill("abc")
    marked = page.locator("label", has=field(page, "Light"))
    expect(marked).to_contain_text("abc is not a number")
    page.get_by_role("button", name="Predict").click()
    expect(page.get_by_text("Mend what is marked first.")).to_be_visible()
    expect(page.locator("label", has=field(page, "Temperature"))).not_to_contain_text("number")
    field(page, "Light").fill("430")
    page.get_by_role("button", name="Predict").click()
    expect(page.get_by_text("alice has never run, so it has no model yet")).to_be_visible()


def test_a_peer_that_is_killed_is_said_to_be_stopped_and_recovers_when_it_starts(
    alice: Path, task: Path, start: Callable, open_page: Callable, running: Callable
):
    served = start("peer", "dashboard", "--home", str(alice), "--listen", "0")
    page = open_page(served.url)
    sees(page, "never started")
    stream = ("--data", task / "stream.csv", "--rate", 200)
    with running(alice, *stream, "--serve", 0) as process:
        sees(page, "running")
        wait_for_samples(page, 50)
        os.kill(process.pid, signal.SIGSTOP)
        sees(page, "silent")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        sees(page, "stopped")
        expect(page.locator("[data-banner]")).to_contain_text("alice is not running")
        expect(page.locator("[data-banner]")).to_contain_text("oneway peer run --data FILE --home")
        before = wait_for_samples(page, 50)
        field(page, "Light").fill("430")
        page.get_by_role("button", name="Predict").click()
        expect(page.locator("[data-answer]")).to_be_visible()
    with running(alice, *stream):
        sees(page, "running")
        wait_for_samples(page, before)
    aside = alice.rename(alice.with_name("aside"))
    expect(page.locator("[data-problem]")).to_contain_text("there is no peer's folder")
    aside.rename(alice)
    expect(page.locator("[data-problem]")).to_be_hidden()
    sees(page, "stopped")
    assert served.interrupt() == 0
    assert "Traceback" not in served.output


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
    card.fill(own_card)
    page.get_by_role("button", name="Trust", exact=True).click()
    expect(page.locator("label", has=card)).to_contain_text("that is your own card")
    # What is a name of a file here is none: a page must not read files.
    card.fill(str(alice / "key.secret"))
    page.get_by_role("button", name="Trust", exact=True).click()
    expect(page.locator("label", has=card)).to_contain_text("does not begin with oneway:")

    card.fill(bobs_card)
    field(page, "Weight").fill("2")
    page.get_by_role("button", name="Trust", exact=True).click()
    expect(page.get_by_text("alice sends to bob with weight 2.")).to_be_visible()
    receiver = page.locator("[data-edge=bob]")
    expect(receiver).to_contain_text("begins when the peer runs")
    assert re.search(r"weight = 2", (alice / "peer.toml").read_text())

    page.get_by_role("button", name="Distrust bob").click()
    page.get_by_role("button", name="Cancel").click()
    expect(receiver).to_be_visible()
    page.get_by_role("button", name="Distrust bob").click()
    page.get_by_role("button", name="Distrust", exact=True).last.click()
    expect(receiver).to_be_hidden()
    assert bobs_card not in (alice / "peer.toml").read_text()

    field(page, "Card or key of a peer to admit").fill(bobs_card)
    page.get_by_role("button", name="Admit", exact=True).click()
    expect(page.locator("[data-edge=bob]")).to_contain_text("admitted")


def test_what_is_wrong_is_marked_at_its_field_until_it_is_edited(
    alice: Path, bobs_card: str, start: Callable, open_page: Callable
):
    page = open_page(start("peer", "dashboard", "--home", str(alice), "--listen", "0").url)
    card, weight = field(page, "Card of a peer to send to"), field(page, "Weight")
    at_card, at_weight = page.locator("label", has=card), page.locator("label", has=weight)
    trust = page.get_by_role("button", name="Trust", exact=True)
    before = (alice / "peer.toml").read_text()

    trust.click()
    expect(at_card).to_contain_text("paste the line that oneway peer card prints there")
    card.fill("oneway:nonsense")
    expect(at_card).not_to_contain_text("paste the line")
    trust.click()
    expect(at_card).to_contain_text("is not a card")
    card.fill(bobs_card)
    expect(at_card).not_to_contain_text("is not a card")

    for wrong in ("0", "-1", "1e308", "1e-320"):
        weight.fill(wrong)
        trust.click()
        expect(at_weight).to_contain_text(f"the weight is {wrong}; it must be a number above 0")
    weight.fill("much")
    trust.click()
    expect(at_weight).to_contain_text("much is not a number")
    expect(at_card).not_to_contain_text("weight")
    assert (alice / "peer.toml").read_text() == before

    weight.fill("3")
    expect(at_weight).not_to_contain_text("number")
    trust.click()
    expect(page.get_by_text("alice sends to bob with weight 3.")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_who_fell_silent_or_left_and_a_mass_that_cannot_be_are_marked(
    alice: Path, bobs_card: str, start: Callable, open_page: Callable, width: int
):
    oneway("peer", "trust", bobs_card, "--home", alice)
    home = Home.open(alice)
    [bob], now = home.config().receivers, time.time()
    left = make_receiver(
        key=key_text(bob.key), left=True, link="connecting", link_since=now - 600, last_answer=now
    )
    full = make_receiver(name="dora", held_back="it is full", in_flight_mass=0.25, last_answer=now)
    senders = [
        make_sender(last_push=now - 100),
        make_sender(name="erin", key="e" * 52, last_push=now - 100, last_heard=now, waiting=1.5),
    ]
    status = make_status(
        pid=os.getpid(),
        started=now - 900,
        time=now,
        mass=-8.2e6,
        mass_limit=256.0,
        receivers=[left, full],
        senders=senders,
        receipts=2,
    )
    with home.lock():
        home.write_status(status)
        url = start("peer", "dashboard", "--home", str(alice), "--listen", "0").url
        page = open_page(url, width=width)
        expect(page.locator("[data-edge=bob]")).to_contain_text("has left")
        expect(page.locator("[data-edge=bob]")).to_contain_text("as it said: distrust it")
        expect(page.locator("[data-edge=bob]")).not_to_contain_text("nobody answers")
        expect(page.locator("[data-edge=dora]")).to_contain_text("it is full")
        expect(page.locator("[data-edge=carol] .ow-chip")).to_have_text("silent")
        expect(page.locator("[data-edge=carol]")).to_contain_text("cannot reach this peer")
        expect(page.locator("[data-edge=erin] .ow-chip")).to_have_text("sends")
        expect(page.locator("[data-edge=erin]")).to_contain_text("1.5 of mass")
        expect(page.locator("[data-stat=mass]")).to_contain_text("cannot be")
        expect(page.get_by_text("2, kept for others")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(
    alice: Path, start: Callable, open_page: Callable, width: int
):
    url = start("peer", "dashboard", "--home", str(alice), "--listen", "0").url
    page = open_page(url, width=width, dark=True)
    sees(page, "never started")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# Images.


@pytest.fixture(scope="module")
def painter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A peer that has learned which half of an image is bright."""
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 60, (300, 1, 8, 8))
    labels = np.arange(300) % 2
    pixels[labels == 0, :, :, :4] += 180
    pixels[labels == 1, :, :, 4:] += 180
    names = np.array(["left", "right"])[labels]
    npy_arrays.save(folder / "images.npy", pixels.astype(np.uint8), names)
    flags = ("--label", "side", "--privacy", "none", "--out", folder / "task.toml")
    oneway("peer", "task", folder / "images.npy", *flags)
    home = make_peer("painter", folder, folder / "painter")
    oneway("peer", "run", "--home", home, "--data", folder / "images.npy", "--until-done")
    return home


def test_an_image_is_predicted_from_a_file_and_as_drawn(
    painter: Path, start: Callable, open_page: Callable, tmp_path: Path
):
    # Larger than the model's images, coloured, with the right half bright.
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[:, 32:] = (250, 240, 255)
    Image.fromarray(pixels).save(tmp_path / "right.png")
    (tmp_path / "broken.png").write_bytes(b"no image")
    page = open_page(start("peer", "dashboard", "--home", str(painter), "--listen", "0").url)
    canvas = page.locator("canvas[aria-label=features]")
    expect(canvas).to_be_visible()
    page.get_by_role("button", name="Predict").click()
    expect(page.get_by_text("give an image, or its numbers")).to_be_visible()

    page.set_input_files("input[type=file]", tmp_path / "right.png")
    typed = page.get_by_role("textbox", name="features, 1 x 8 x 8 numbers")
    expect(typed).to_have_value(re.compile(r"^\[0, 0, 0, 0, 24"))
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("[data-answer]")).to_have_text("side: right")

    page.set_input_files("input[type=file]", tmp_path / "broken.png")
    expect(page.get_by_text("broken.png is not an image")).to_be_visible()

    page.get_by_role("button", name="Clear").click()
    expect(typed).to_have_value("[" + ", ".join(["0"] * 64) + "]")
    box = canvas.bounding_box()
    for part in (0.1, 0.25, 0.4):
        page.mouse.move(box["x"] + part * box["width"], box["y"] + 2)
        page.mouse.down()
        page.mouse.move(box["x"] + part * box["width"], box["y"] + box["height"] - 2, steps=5)
        page.mouse.up()
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("[data-answer]")).to_have_text("side: left")
    typed.fill(", ".join(["0, 0, 0, 0, 200, 200, 200, 200"] * 8))
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("[data-answer]")).to_have_text("side: right")
