"""Points in time as features: hour, weekday and season, each as a sine and a cosine.

A cell may be a date, a date with a time of day, or a time of day alone; what it does not say is 0,
the centre of a circle. A time is taken as it is written, whatever its offset from UTC: what matters
about an hour is whether people were awake.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from oneway.tables.cells import SPACES

TimePart: TypeAlias = Literal["hour", "weekday", "season"]
PARTS: tuple[TimePart, ...] = get_args(TimePart)
"""What of a point in time can be learned from."""

_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(:\d\d([.,]\d+)?)?(\s*(Z|UTC|[+-]\d\d(:?\d\d)?))?"
_DAY = (
    r"(?P<year>\d{4})(?P<mark>[-/])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})",
    r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
)
_FORMS = tuple(
    re.compile(form, re.ASCII) for form in (*(f"{day}([T ]+{_CLOCK})?" for day in _DAY), _CLOCK)
)

_Wave: TypeAlias = tuple[float, float]
_UNKNOWN: _Wave = (0.0, 0.0)


class Moment(NamedTuple):
    """What a cell says about a point in time.

    Attributes:
        day: The date; None if there is none.
        minute: Of the day; None if there is none.
    """

    day: date | None
    minute: int | None


def parse_time(raw: object) -> Moment | None:
    """Return the point in time that a cell stands for; None if it is none.

    >>> parse_time("2026-03-01 14:30")
    Moment(day=datetime.date(2026, 3, 1), minute=870)
    >>> parse_time("1.3.2026"), parse_time("7:05"), parse_time("03/01/2026")
    (Moment(day=datetime.date(2026, 3, 1), minute=None), Moment(day=None, minute=425), None)
    """
    if isinstance(raw, np.datetime64):
        raw = raw.astype("datetime64[us]").item()
    if isinstance(raw, datetime):
        return Moment(raw.date(), 60 * raw.hour + raw.minute)
    if isinstance(raw, date):
        return Moment(raw, None)
    if isinstance(raw, time):
        return Moment(None, 60 * raw.hour + raw.minute)
    return _parse_text(raw.strip(SPACES)) if isinstance(raw, str) else None


def _parse_text(text: str) -> Moment | None:
    for form in _FORMS:
        found = form.fullmatch(text)
        if found is None:
            continue
        said = found.groupdict()
        day, minute = None, None
        try:
            if "day" in said:
                day = date(int(said["year"]), int(said["month"]), int(said["day"]))
            if said["hour"] is not None:
                clock = time(int(said["hour"]), int(said["minute"]))
                minute = 60 * clock.hour + clock.minute
        except ValueError:
            return None
        return Moment(day, minute)
    return None


def wave_names(parts: Sequence[TimePart]) -> tuple[str, ...]:
    """Return the names of the features of these parts, in the order of `waves`."""
    return tuple(f"{part} {wave}" for part in parts for wave in ("sin", "cos"))


def waves(moment: Moment, parts: Sequence[TimePart] = PARTS) -> tuple[float, ...]:
    """Return sine and cosine of every part of a point in time; 0 for what it lacks."""
    day, minute = moment
    known: dict[TimePart, _Wave] = {}
    if minute is not None:
        known["hour"] = _HOUR[minute]
    if day is not None:
        known["weekday"] = _WEEKDAY[day.weekday()]
        known["season"] = _SEASON[day.timetuple().tm_yday - 1]
    return tuple(number for part in parts for number in known.get(part, _UNKNOWN))


def told_parts(moment: Moment) -> set[TimePart]:
    """Return the parts that a point in time tells something about.

    Midnight is none: that is how dates without a time of day are written by programs that know
    only both together.
    """
    told: set[TimePart] = set() if moment.day is None else {"weekday", "season"}
    return told | {"hour"} if moment.minute else told


def _circle(steps: int) -> list[_Wave]:
    angles = 2.0 * np.pi * np.arange(steps) / steps
    return list(zip(np.sin(angles).tolist(), np.cos(angles).tolist(), strict=True))


_HOUR, _WEEKDAY, _SEASON = _circle(24 * 60), _circle(7), _circle(366)
