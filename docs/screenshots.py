"""Take the pictures of docs/images that show pages: real processes, real data, a real browser.

make screenshots
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
WIDTHS = {"": 1280, "-phone": 390}
PATIENCE_MS = 120_000
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
ONEWAY = [sys.executable, "-m", "oneway"]
PLAIN = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def oneway(folder: Path, *arguments: str) -> str:
    """Run a command to its end, and return what it prints."""
    done = subprocess.run(
        [*ONEWAY, *arguments], cwd=folder, env=PLAIN, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[Path]:
    """A command in the background, ended with Ctrl-C; yields the file with what it says."""
    said = folder / f"{'-'.join(arguments[:2])}.log"
    with said.open("w") as log:
        process = subprocess.Popen(
            [*ONEWAY, *arguments], cwd=folder, env=PLAIN, stdout=log, stderr=log
        )
    try:
        yield said
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(120)


def url_in(said: Path) -> str:
    """Where the page is, once the command says so."""
    for _ in range(600):
        found = re.search(r"Open (http://\S+)", said.read_text())
        if found:
            return found[1]
        time.sleep(0.1)
    raise SystemExit(said.read_text())


def open_page(browser: Browser, url: str, width: int, scheme: str = "light") -> Page:
    """A page of a certain width."""
    height = 900 if width > 600 else 844
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=1.25
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(url)
    return page


def take(page: Page, name: str, *, whole: bool = True) -> None:
    """Keep what a page shows: all of it, or what fits on the screen."""
    page.wait_for_timeout(2500)  # charts and pulses are drawn again every other second
    page.screenshot(path=IMAGES / f"{name}.png", full_page=whole)
    sys.stdout.write(f"docs/images/{name}.png\n")


def lab(browser: Browser, folder: Path) -> None:
    """A lab on the flights that has learned for a while, with one peer killed."""
    with running(folder, "lab", "--dashboard", "--listen", "0", "--out", "lab") as said:
        url = url_in(said)
        page = open_page(browser, url, WIDTHS[""])
        page.wait_for_function(
            """() => [...document.querySelectorAll("[data-peer]")].filter((node) =>
              Number(node.ariaLabel.match(/([\\d,]+) samples/)?.[1].replace(",", "")) > 1500
            ).length >= 8"""
        )
        page.locator("[data-peer=peer3]").click()
        page.get_by_role("button", name="kill -9 peer3").click()
        page.wait_for_selector("[data-peer=peer3][data-state=down]")
        page.locator(".q-notification").wait_for(state="detached")
        page.get_by_text("Who sends to whom").click()
        page.locator(".ow-graph svg").click(position={"x": 3, "y": 3})  # nothing is picked
        page.evaluate("scrollTo(0, 0)")
        take(page, "lab", whole=False)
        page.locator("[data-peer=peer3]").click()
        take(open_page(browser, url, WIDTHS[""], "dark"), "lab-dark")
        take(open_page(browser, url, WIDTHS["-phone"]), "lab-phone")
        page.get_by_role("button", name="Restart peer3").click()
        page.wait_for_selector("[data-peer=peer3][data-state=up]")
        page.get_by_role("button", name="Finish and audit").click()
        page.get_by_role("button", name="Finish", exact=True).click()
        page.wait_for_selector("[data-result]:visible")
        take(page, "lab-end")


def peer(browser: Browser, folder: Path) -> None:
    """Alice's page, while she and bob learn from each other."""
    oneway(folder, "data", "deal", "flights", "--owner", "origin", "--out", "flights")
    cards = {}
    for name in ("alice", "bob"):
        (folder / name).mkdir()
        oneway(folder / name, "peer", "init", name, "--task", "../flights/task.toml")
        cards[name] = oneway(folder / name, "peer", "card")
    for name, other in (("alice", "bob"), ("bob", "alice")):
        oneway(folder / name, "peer", "admit", cards[other])
        oneway(folder / name, "peer", "trust", cards[other])
    with ExitStack() as stack:
        for name, airport in (("alice", "EWR"), ("bob", "JFK")):
            stream = f"../flights/{airport}.csv"
            run = running(folder / name, "peer", "run", "--data", stream, "--rate", "60")
            stack.enter_context(run)
        said = stack.enter_context(running(folder / "alice", "peer", "dashboard", "--listen", "0"))
        url = url_in(said)
        time.sleep(40)
        for end, width in WIDTHS.items():
            page = open_page(browser, url, width)
            page.wait_for_selector("[data-stat=mass]")
            take(page, f"peer{end}")


def runs(browser: Browser, folder: Path) -> None:
    """Simulations beside the lab of before."""
    for method in ("ops", "local", "dol-symm", "col"):
        more = [] if method in ("local", "col") else ["--max-receivers", "3"]
        size = ("--nodes", "20", "--rounds", "3000")
        out = ("--out", f"simulations/{method}")
        oneway(folder, "simulate", "--method", method, *size, *more, *out)
    with running(folder, "runs", ".", "--listen", "0") as said:
        url = url_in(said)
        chosen = "&".join(f"run=simulations/{name}" for name in ("ops", "local", "dol-symm", "col"))
        for end, width in WIDTHS.items():
            take(open_page(browser, f"{url}?{chosen}", width), f"runs{end}")


def main() -> None:
    """Take them all, or those that are named."""
    wanted = sys.argv[1:] or ["lab", "peer", "runs"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        for shoot in (lab, peer, runs):
            if shoot.__name__ in wanted:
                shoot(browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
