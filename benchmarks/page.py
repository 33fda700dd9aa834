"""What the page of a lab costs: processor and memory of its process, and the peers' pace.

32 peers push, first without a page, then with the page open in a browser, then without again; all
in one run. The page's process should take at most a quarter of a core, and its memory should not
grow. The browser is told apart: it runs where somebody looks, here on the same processors. How
smooth it is: frames per second, and how long from a click until a peer is killed and grey.

    python benchmarks/page.py [PEERS] [SECONDS]
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PEERS = int(sys.argv[1]) if len(sys.argv) > 1 else 32
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
RATE = 5.0
"""Samples per second of each peer: what two cores manage with 32 of them."""

WARM_UP_SECONDS = 20.0
PATIENCE_MS = 120_000
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
FRAME_SECONDS = 10
FRAMES = """(seconds) => new Promise((resolve) => {
  const began = performance.now();
  let frames = 0;
  const next = (now) => {
    frames += 1;
    if (now - began < 1000 * seconds) requestAnimationFrame(next);
    else resolve(frames / seconds);
  };
  requestAnimationFrame(next);
})"""
_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def lab(folder: Path, *more: str):
    """A lab as a process that has been learning for a while; yields it with what it said."""
    sizes = ["--nodes", str(PEERS), "--samples", "20000", "--rate", str(RATE)]
    arguments = ["lab", "--data", "synthetic", *sizes, "--out", str(folder), *more]
    said = folder.with_suffix(".log")
    with said.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "oneway", *arguments],
            stdout=log,
            stderr=log,
        )
    try:
        while statuses(folder)[0] < PEERS:
            if process.poll() is not None:
                raise SystemExit(said.read_text())
            time.sleep(0.5)
        yield process, said
    finally:
        # Twice: there is nothing to audit here.
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        process.wait(120)


def statuses(folder: Path) -> tuple[int, int, int]:
    """How many peers say something, and what they have learned from and sent in all."""
    found = [json.loads(path.read_bytes()) for path in folder.glob("*/status.json")]
    return (
        len(found),
        sum(status["samples"] for status in found),
        sum(status["frames_out"] for status in found),
    )


def children_of(process: int) -> list[int]:
    """The processes that a process started."""
    listed = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in listed.split()]


def page_process(process: int) -> int:
    """The page's process: the child that multiprocessing spawned."""
    for child in children_of(process):
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
            return child
    raise SystemExit("there is no process of the page")


def cpu_seconds(process: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def megabytes(process: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) / 1024


@dataclass(frozen=True)
class Pace:
    """What a lab did in a while: samples and messages per second, and its share of a core."""

    samples: float
    messages: float
    lab_cpu: float


def pace(folder: Path, process: int) -> Pace:
    """Watch the peers for a while."""
    _, samples, messages = statuses(folder)
    began, cpu = time.monotonic(), cpu_seconds(process)
    time.sleep(SECONDS)
    _, more_samples, more_messages = statuses(folder)
    took = time.monotonic() - began
    return Pace(
        (more_samples - samples) / took,
        (more_messages - messages) / took,
        (cpu_seconds(process) - cpu) / took,
    )


def without_page(folder: Path) -> Pace:
    """The peers' pace when nobody looks."""
    with lab(folder) as (process, _):
        time.sleep(WARM_UP_SECONDS)
        return pace(folder, process.pid)


def with_page(folder: Path) -> Pace:
    """The peers' pace when somebody looks; prints what the page costs."""
    with lab(folder, "--dashboard", "--listen", "0") as (process, said), sync_playwright() as play:
        url = re.search(r"Open (http://\S+)", said.read_text())
        assert url
        browser = play.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE_MS)
        page.goto(url[1])
        page.wait_for_selector("[data-peer]")
        time.sleep(WARM_UP_SECONDS)
        child = page_process(process.pid)
        memory = [megabytes(child)]
        began, cpu = time.monotonic(), cpu_seconds(child)
        found = pace(folder, process.pid)
        used = (cpu_seconds(child) - cpu) / (time.monotonic() - began)
        memory.append(megabytes(child))
        pace(folder, process.pid)
        memory.append(megabytes(child))
        drawn = page.evaluate(FRAMES, FRAME_SECONDS)
        took = time_to_kill(page, f"peer{PEERS - 1}")
        browser.close()
    print(f"the page's process takes {used:.1%} of a core (at most 25%)")
    in_turn = ", ".join(f"{size:.1f}" for size in memory)
    print(f"its memory: {in_turn} MB, {SECONDS:g} s apart")
    print(
        f"the browser draws {drawn:.0f} frames per second; {took:.1f} s from a click to a kill seen"
    )
    return found


def time_to_kill(page: Page, name: str) -> float:
    """Pick a peer, kill it, and wait until it is grey; how long that took."""
    began = time.monotonic()
    page.locator(f"[data-peer='{name}']").click()
    page.get_by_role("button", name=f"kill -9 {name}").click()
    page.wait_for_selector(f"[data-peer='{name}'][data-state=down]")
    return time.monotonic() - began


def main() -> None:
    """Compare."""
    print(f"{PEERS} peers, {RATE:g} samples per second each, {SECONDS:g} s each time")
    with tempfile.TemporaryDirectory() as folder:
        before = without_page(Path(folder) / "before")
        during = with_page(Path(folder) / "during")
        after = without_page(Path(folder) / "after")
    for name, found in (("without page", before), ("with page", during), ("without page", after)):
        print(
            f"{name:14} {found.samples:6.1f} samples/s {found.messages:8.1f} messages/s, "
            f"the lab itself {found.lab_cpu:.1%} of a core"
        )
    mean = (before.messages + after.messages) / 2
    print(f"messages with the page / without: {during.messages / mean:.2f}")


if __name__ == "__main__":
    main()
