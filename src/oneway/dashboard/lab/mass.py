"""The mass of a lab in words, to the last unit."""

from __future__ import annotations

from oneway.dashboard.components.stat import Mark
from oneway.records import MASS_UNITS
from oneway.records.network import MassView


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
    return (
        f"\u2713 exact to the unit: {held:.3f} held + {moving:.3f} handed over and not yet "
        "seen to arrive",
        "good",
    )
