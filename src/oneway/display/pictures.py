"""Small SVG pictures for notebooks: a graph on a circle, a curve; bounded, and without matplotlib.

Lines have the colour of the page's text, so that they are seen on a light and on a dark ground.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from oneway.display.html import Html, text
from oneway.records import Ints, Matrix, Vector

MOST_NODES = 60
MOST_EDGES = 400
"""A larger graph is not drawn, only counted."""
_ONE_WAY, _MUTUAL = "#d55e00", "#2b8cc4"
_SIZE, _RADIUS, _DOT = 260, 96, 5.0
_POINTS = 120
_LONGEST_NAME = 10


def graph_picture(
    positions: Matrix, senders: Ints, receivers: Ints, names: Sequence[str]
) -> Html | None:
    """Nodes on a circle and arrows between them, mutual ones thicker; None if there are too many.

    Args:
        positions: x and y of each node, from 0 to 1.
        senders: One for each edge.
        receivers: Likewise.
        names: What to write beside the nodes.
    """
    if len(positions) > MOST_NODES or len(senders) > MOST_EDGES:
        return None
    centre = _SIZE / 2
    places = centre + 2.0 * _RADIUS * (np.asarray(positions) - 0.5)
    pairs = set(zip(senders.tolist(), receivers.tolist(), strict=True))
    lines = [_arrow(places[a], places[b], mutual=(b, a) in pairs) for a, b in sorted(pairs)]
    dots = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_DOT}" fill="currentColor"><title>{text(name)}'
        f"</title></circle>{_name(x, y, name) if len(places) <= 24 else ''}"
        for (x, y), name in zip(places, names, strict=True)
    ]
    label = f"{len(places)} nodes, {len(pairs)} edges"
    return Html(
        f'<svg viewBox="0 0 {_SIZE} {_SIZE}" width="{_SIZE}" height="{_SIZE}" role="img" '
        f'aria-label="{label}" style="display:block">{"".join(lines)}{"".join(dots)}</svg>'
        f'<div style="opacity:.65;font-size:11px"><span style="color:{_ONE_WAY}">■</span> one-way '
        f'<span style="color:{_MUTUAL}">■</span> mutual; an arrow points where models go</div>'
    )


def curves_picture(
    curves: Mapping[str, tuple[str, Vector]], about: str, *, skip: float = 0.1
) -> Html:
    """Curves in a small frame, with the range they cover; what is not finite is left out.

    Args:
        curves: By name, a colour and the values from left to right.
        about: What they show.
        skip: The share at the beginning that sets no scale.
    """
    heights = {name: _thinned(values) for name, (_, values) in curves.items()}
    settled = np.concatenate([it[int(len(it) * skip) :] for it in heights.values()])
    settled = settled[np.isfinite(settled)]
    if not settled.size:
        return Html("")
    low, high = float(settled.min()), float(settled.max())
    # First a pale line below each: a method's colour may be as dark as the ground.
    lines = "".join(
        f'<polyline points="{_points(values, low, high)}" fill="none" stroke="currentColor" '
        'stroke-opacity=".3" stroke-width="3.4"/>'
        f'<polyline points="{_points(values, low, high)}" fill="none" stroke="{curves[name][0]}" '
        'stroke-width="1.6"/>'
        for name, values in heights.items()
    )
    names = "".join(
        f'<span style="color:{colour}">■</span> {text(name)} '
        for name, (colour, _) in curves.items()
        if len(curves) > 1
    )
    return Html(
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" width="{_WIDTH:g}" height="{_HEIGHT:g}" '
        f'role="img" aria-label="{text(about)}" style="display:block;{_FRAME}">{lines}</svg>'
        f'<div style="opacity:.8;font-size:11px">{names}<span style="opacity:.8">{text(about)}: '
        f"{low:.4g} to {high:.4g}</span></div>"
    )


_FRAME = "border-bottom:1px solid rgba(127,127,127,.5);border-left:1px solid rgba(127,127,127,.5)"
_WIDTH, _HEIGHT = 300.0, 90.0


def _thinned(values: Vector) -> Vector:
    shown = np.linspace(0, len(values) - 1, min(_POINTS, len(values))).round().astype(int)
    thinned: Vector = np.asarray(values, float)[shown]
    return thinned


def _points(heights: Vector, low: float, high: float) -> str:
    finite = np.isfinite(heights)
    xs = np.linspace(1.0, _WIDTH - 1.0, len(heights))[finite]
    shares = np.clip((heights[finite] - low) / ((high - low) or 1.0), 0.0, 1.0)
    ys = 3.0 + (_HEIGHT - 6.0) * (1.0 - shares)
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))


def _arrow(start: Iterable[float], end: Iterable[float], *, mutual: bool) -> str:
    """A line with a head near its end, of which a mutual pair has one at each."""
    a, b = np.asarray(start, float), np.asarray(end, float)
    along = b - a
    length = float(np.hypot(*along)) or 1.0
    unit = along / length
    tip, tail = b - unit * (_DOT + 1.0), a + unit * (_DOT + 1.0)
    side = 3.0 * np.array([-unit[1], unit[0]])
    back = tip - 7.0 * unit
    colour, width = (_MUTUAL, 1.8) if mutual else (_ONE_WAY, 1.0)
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, back + side, back - side))
    return (
        f'<line x1="{tail[0]:.1f}" y1="{tail[1]:.1f}" x2="{back[0]:.1f}" y2="{back[1]:.1f}" '
        f'stroke="{colour}" stroke-width="{width}" stroke-opacity=".75"/>'
        f'<polygon points="{corners}" fill="{colour}"/>'
    )


def _name(x: float, y: float, name: str) -> str:
    """A name beside its node, outside the circle."""
    away = np.array([x, y]) - _SIZE / 2
    away = away / (float(np.hypot(*away)) or 1.0)
    at = np.array([x, y]) + 10.0 * away
    anchor = "middle" if abs(away[0]) < 0.3 else "start" if away[0] > 0 else "end"
    shown = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return (
        f'<text x="{at[0]:.1f}" y="{at[1] + 3.5:.1f}" font-size="10" text-anchor="{anchor}" '
        f'fill="currentColor">{text(shown)}</text>'
    )
