"""HTML fragments for notebooks: escaped text, no script, nothing loaded, readable on any ground.

What is not `Html` is text: it is escaped wherever it is put in, so that a column name, a label or a
peer's name cannot become markup. Colours are the page's own, at half strength where something is
less important, so that light and dark themes both work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

MOST_ROWS = 12
"""A table shows no more; a line says how many there are."""
_LONGEST_CELL, _LONGEST_SENTENCE = 60, 300

_STYLE = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.5;max-width:60em"
_QUIET = "opacity:.65"
_NAME = "text-align:left;padding:0 1em 0 0;white-space:nowrap;vertical-align:top"
_RULE = "border-bottom:1px solid rgba(127,127,127,.35)"


class Html(str):
    """Markup that is safe to put into a page as it is."""

    __slots__ = ()


def text(value: object, longest: int = _LONGEST_CELL) -> Html:
    """A value as text: escaped, and cut where it is longer; `Html` stays as it is."""
    if isinstance(value, Html):
        return value
    shown = str(value)
    return Html(escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…"))


def sentence(value: object) -> Html:
    """A line of its own."""
    return Html(f"<div>{text(value, _LONGEST_SENTENCE)}</div>")


def card(title: object, *parts: Html, quiet: object = "") -> Html:
    """A fragment with a title, and something less important beside it."""
    aside = f'<span style="{_QUIET};margin-left:.8em">{text(quiet)}</span>' if quiet else ""
    inside = "".join(parts)
    return Html(
        f'<div style="{_STYLE}"><div style="{_RULE};padding-bottom:2px;margin-bottom:4px">'
        f"<b>{text(title)}</b>{aside}</div>{inside}</div>"
    )


def facts(pairs: Mapping[str, object]) -> Html:
    """Names and values, one pair a line."""
    rows = "".join(
        f'<tr style="background:none"><td style="{_QUIET};{_NAME}">'
        f'{text(name)}</td><td style="text-align:left;padding:0">'
        f"{text(value, _LONGEST_SENTENCE)}</td></tr>"
        for name, value in pairs.items()
    )
    return Html(f'<table style="border:none;border-collapse:collapse;margin:0">{rows}</table>')


def grid(
    columns: Sequence[object], rows: Iterable[Sequence[object]], *, total: int | None = None
) -> Html:
    """A table with headings; numbers stand to the right, and rows beyond `MOST_ROWS` are counted.

    Args:
        columns: The headings.
        rows: As many as there are; only the first are looked at.
        total: How many rows there are, where `rows` are only some of them.
    """
    shown: list[Sequence[object]] = []
    more = 0
    for row in rows:
        if len(shown) < MOST_ROWS:
            shown.append(row)
        else:
            more += 1
    count = total if total is not None else len(shown) + more
    cell = "padding:1px 1.2em 1px 0"
    head = "".join(
        f'<th style="{cell};{_RULE};font-weight:600;text-align:{_side(shown, place)}">'
        f"{text(name)}</th>"
        for place, name in enumerate(columns)
    )
    body = "".join(
        '<tr style="background:none">'
        + "".join(
            f'<td style="{cell};text-align:{_side(shown, place)}">{text(value)}</td>'
            for place, value in enumerate(row)
        )
        + "</tr>"
        for row in shown
    )
    rest = count - len(shown)
    below = f'<div style="{_QUIET}">and {rest:,} more</div>' if rest > 0 else ""
    return Html(
        '<table style="border:none;border-collapse:collapse;margin:4px 0">'
        f'<thead><tr style="background:none">{head}</tr></thead><tbody>{body}</tbody></table>'
        f"{below}"
    )


def _side(rows: Sequence[Sequence[object]], place: int) -> str:
    """Numbers stand to the right, and text that begins with a digit or a sign."""
    values = [str(row[place]) for row in rows]
    is_number = all(value[:1] in "0123456789-+.∞" or value == "diverged" for value in values)
    return "right" if rows and place and is_number else "left"
