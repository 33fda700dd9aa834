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
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from command_line import spawn

try:
    from playwright.sync_api import Browser, Page, expect, sync_playwright
except ImportError:  # the tests skip, and say so
    Browser = Page = expect = sync_playwright = None  # type: ignore[assignment, misc]

__all__ = ["spawn"]

PATIENCE_SECONDS = 240.0
"""Enough for a machine that has other things to do; what is well takes a few seconds."""
PATIENCE_MS = 1000 * PATIENCE_SECONDS
if expect is not None:
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
    """A command that serves a page, and ends with its test.

    Attributes:
        url: Where the page is, once it is ready.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.url = ""
        self.process = process
        self._lines: list[str] = []
        self._said = threading.Condition()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def wait_for(self, pattern: str) -> str:
        """Return the first group of a pattern in what the command says."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with self._said:
            while True:
                found = re.search(pattern, self.output)
                if found:
                    return found[1] if found.groups() else found[0]
                is_over = self.process.poll() is not None and not self._said.wait(0.5)
                if is_over or time.monotonic() > deadline:
                    raise AssertionError(f"no {pattern!r} in:\n{self.output}")
                self._said.wait(0.5)

    @property
    def output(self) -> str:
        """All that the command has said."""
        return "".join(self._lines)

    def interrupt(self) -> int:
        """Press Ctrl-C, and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        """End it as a user would; at the end of what it says the listener ends."""
        if self.process.poll() is None:
            self.interrupt()
        self._listener.join(PATIENCE_SECONDS)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                with self._said:
                    self._lines.append(line)
                    self._said.notify_all()


@pytest.fixture
def start(tmp_path: Path, spawn: Callable[..., Any]) -> Iterator[Callable[..., Served]]:
    """Start `oneway` with these arguments, in the test's folder, and wait for its page."""
    with ExitStack() as stack:

        def start_one(*arguments: str) -> Served:
            process = spawn(
                [sys.executable, "-m", "oneway", *arguments],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=os.environ | {"PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
            served = Served(process)
            stack.callback(served.close)
            served.url = served.wait_for(r"Open (http://\S+)")
            return served

        yield start_one


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

    try:
        yield open_one
    finally:
        for context in contexts:
            context.close()
    # A server that was stopped on purpose leaves the page without a connection.
    expected = ("ERR_CONNECTION", "WebSocket")
    assert [said for said in complaints if not any(word in said for word in expected)] == []
