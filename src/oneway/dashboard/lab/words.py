"""Numbers of a lab in words, with their units."""

from __future__ import annotations

from oneway.dashboard.components.stat import Mark
from oneway.records.network import MASS_UNITS, MassView

_PREFIXES = ("B", "kB", "MB", "GB")


def exact_mass(units: int) -> str:
    """A number of units as a mass, to the last unit.

    >>> exact_mass(8 * MASS_UNITS), exact_mass(8 * MASS_UNITS - 3)
    ('8', '8 - 3 units')
    """
    whole = round(units / MASS_UNITS)
    rest = units - whole * MASS_UNITS
    if rest == 0:
        return f"{whole:,}"
    return f"{whole:,} {'+' if rest > 0 else '-'} {abs(rest):,} units"


def mass_note(mass: MassView) -> tuple[str, Mark]:
    """What there is to say about the total mass, and whether it is good."""
    if not mass.is_exact:
        why = mass.problems[0] if mass.problems else "the books do not add up"
        return f"\u2717 not exact: {why}", "bad"
    if mass.brought == 0:
        return "nobody has brought mass yet", ""
    held, moving = mass.held / MASS_UNITS, mass.in_flight / MASS_UNITS
    if moving < 0.0:
        # A receiver was looked at later than its sender.
        return "\u2713 exact to the unit", "good"
    return f"\u2713 exact to the unit: {held:.4f} held + {moving:.4f} on the way", "good"


def byte_rate(bytes_per_second: float) -> tuple[str, str]:
    """A rate as a short number and its unit.

    >>> byte_rate(512.0), byte_rate(1_234_567.0)
    (('512', 'B/s'), ('1.23', 'MB/s'))
    """
    value, prefix = bytes_per_second, 0
    while value >= 1000.0 and prefix < len(_PREFIXES) - 1:
        value, prefix = value / 1000.0, prefix + 1
    return (f"{value:.0f}" if prefix == 0 else f"{value:.3g}"), f"{_PREFIXES[prefix]}/s"


def small(value: float | None) -> str:
    """A number that may be tiny.

    >>> small(0.25), small(0.000012), small(None)
    ('0.25', '1.2e-05', '-')
    """
    return "-" if value is None else f"{value:.3g}"
