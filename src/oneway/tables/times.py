"""Points in time as features: hour, weekday and season, each as a sine and a cosine.

A cell may be a date, a date with a time of day, or a time of day alone; what it does not say is 0,
the centre of a circle. A time is taken as it is written, whatever its offset from UTC: what matters
about an hour is whether people were awake.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from typing import NamedTuple, TypeAlias

import numpy as np

from oneway.tables.cells import SPACES

PARTS = ("hour", "weekday", "season")
"""What of a point in time is learned from."""
OUTPUTS = tuple(f"{part} {wave}" for part in PARTS for wave in ("sin", "cos"))

_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(:\d\d([.,]\d+)?)?(\s*(Z|UTC|[+-]\d\d(:?\d\d)?))?"
_DAY = (
    r"(?P<year>\d{4})(?P<mark>[-/])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})",
    r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
)
_FORMS = tuple(
    re.compile(form, re.ASCII) for form in (*(f"{day}([T ]+{_CLOCK})?" for day in _DAY), _CLOCK)
)

_Wave: TypeAlias = tuple[float, float]


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


def waves(moment: Moment) -> tuple[float, ...]:
    """Return the features of a point in time, in the order of `OUTPUTS`; 0 for what it lacks."""
    day, minute = moment
    hour = (0.0, 0.0) if minute is None else _HOUR[minute]
    if day is None:
        return (*hour, 0.0, 0.0, 0.0, 0.0)
    return (*hour, *_WEEKDAY[day.weekday()], *_SEASON[day.timetuple().tm_yday - 1])


def _circle(steps: int) -> list[_Wave]:
    angles = 2.0 * np.pi * np.arange(steps) / steps
    return list(zip(np.sin(angles).tolist(), np.cos(angles).tolist(), strict=True))


_HOUR, _WEEKDAY, _SEASON = _circle(24 * 60), _circle(7), _circle(366)
