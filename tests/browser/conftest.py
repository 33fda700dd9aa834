"""A real browser, and real `oneway` processes whose pages it opens."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

START_SECONDS = 60.0
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


class Served:
    """A command that serves a page, as a process.

    Attributes:
        url: Where the page is.
    """

    def __init__(self, arguments: list[str], folder: Path) -> None:
        self._lines: list[str] = []
        self._said = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "oneway", *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.url = self.wait_for(r"Open (http://\S+)")

    def wait_for(self, pattern: str, seconds: float = START_SECONDS) -> str:
        """Return the first group of a pattern in what the command says."""
        deadline = time.monotonic() + seconds
        with self._said:
            while True:
                found = re.search(pattern, self.output)
                if found:
                    return found[1] if found.groups() else found[0]
                left = deadline - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self._said.wait(0.5)):
                    raise AssertionError(f"no {pattern!r} in:\n{self.output}")
                self._said.wait(min(left, 0.5))

    @property
    def output(self) -> str:
        """All that the command has said."""
        return "".join(self._lines)

    def interrupt(self, seconds: float = START_SECONDS) -> int:
        """Press Ctrl-C, and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(seconds)

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        # At the end of what the command says the listener ends, and closes the pipe.
        self._listener.join(START_SECONDS)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                with self._said:
                    self._lines.append(line)
                    self._said.notify_all()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Start `oneway` with these arguments, in the test's folder, and wait for its page."""
    started: list[Served] = []

    def start_one(*arguments: str, folder: Path = tmp_path) -> Served:
        started.append(Served(list(arguments), folder))
        return started[-1]

    yield start_one
    for served in started:
        served.close()


# Not for the whole session: as long as Playwright is up, its event loop runs in this thread, and
# tests of other modules could not run theirs.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    named = os.environ.get("ONEWAY_CHROMIUM")
    path = named or next((found for name in _NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("there is no chromium; install it: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page; in the end no error was logged and nothing was asked of another machine."""
    complaints: list[str] = []
    contexts = []

    def watch(page: Page) -> None:
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "console",
            lambda said: said.type == "error" and complaints.append(f"console: {said.text}"),
        )
        page.on(
            "request",
            lambda asked: (
                urlsplit(asked.url).hostname not in ("127.0.0.1", "localhost", None)
                and complaints.append(f"asked elsewhere: {asked.url}")
            ),
        )

    def open_one(url: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            accept_downloads=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        watch(page)
        page.goto(url)
        return page

    yield open_one
    for context in contexts:
        context.close()
    # A server that was stopped on purpose leaves the page without a connection.
    expected = ("ERR_CONNECTION", "WebSocket")
    assert [said for said in complaints if not any(word in said for word in expected)] == []
