"""The frame of every page: heading, colours, light and dark, and words for empty places."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

from nicegui import ui

_CSS = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
_MODE_KEY = "oneway-dark"


@contextmanager
def page_frame(heading: str) -> Iterator[ui.element]:
    """Lay out a page; what is made inside the block becomes its content.

    Args:
        heading: What the page is about.

    Yields:
        A place in the heading for more, such as a state.
    """
    ui.page_title(f"{heading} - oneway")
    ui.add_css(_CSS)
    ui.colors(primary="#0072b2", positive="#00704f", negative="#b3261e")
    with ui.header(elevated=False, fixed=False).classes("ow-header row items-center no-wrap"):
        with ui.row().classes("items-center gap-x-4 gap-y-1 grow min-w-0"):
            ui.html(f"<h1>{escape(heading)}</h1>", sanitize=False)
            beside = ui.row().classes("items-center gap-2")
        _mode_button()
    with ui.column().classes("ow-main"):
        yield beside


@contextmanager
def card(heading: str) -> Iterator[ui.element]:
    """A part of a page with a heading; yields a place beside the heading."""
    with ui.element("section").classes("ow-card"):
        with ui.row().classes("items-center w-full gap-2"):
            ui.html(f"<h2>{escape(heading)}</h2>", sanitize=False)
            beside = ui.row().classes("items-center gap-2 ml-auto")
        yield beside


def empty(sentence: str) -> ui.element:
    """What stands where there is nothing yet: what to do next."""
    with ui.element("p").classes("ow-empty") as element:
        ui.label(sentence)
    return element


def _mode_button() -> None:
    """Light, dark, or as the system has it; the browser remembers."""
    # In the browser alone, so that it works at once and costs the server nothing.
    ui.add_body_html(
        f"""<script>window.owMode = (next) => {{
          const modes = ["auto", "light", "dark"];
          let mode = localStorage.getItem("{_MODE_KEY}") || "auto";
          if (next) mode = modes[(modes.indexOf(mode) + 1) % 3];
          localStorage.setItem("{_MODE_KEY}", mode);
          Quasar.Dark.set(mode === "auto" ? "auto" : mode === "dark");
          const button = document.querySelector("[data-mode]");
          if (button) {{
            button.dataset.mode = mode;
            button.setAttribute("aria-label", "Colours: " + mode + "; press to change");
            button.title = "Colours: " + mode;
          }}
        }};
        window.addEventListener("load", () => setTimeout(() => window.owMode(false), 50));
        </script>"""
    )
    button = ui.button(icon="contrast").props('flat round dense data-mode="auto"')
    button.props('aria-label="Colours: light, dark or as the system has it"')
    button.on("click", js_handler="() => window.owMode(true)")
