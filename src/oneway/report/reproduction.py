"""One self-contained page about the whole reproduction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oneway.report.bands import Band, band_chart
from oneway.report.figures import as_svg
from oneway.report.template import render


@dataclass(frozen=True)
class Table:
    """A table with a heading row; cells are text."""

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True)
class PanelPart:
    """A panel as the page shows it."""

    name: str
    title: str
    caption: str
    bands: Sequence[Band]

    @property
    def chart(self) -> str:
        """The chart as an SVG element."""
        return as_svg(band_chart(self.bands, self.title))


@dataclass(frozen=True)
class Section:
    """A part of the page: text, panels, tables, in this order."""

    title: str
    text: Sequence[str] = ()
    panels: Sequence[PanelPart] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class FindingPart:
    """One setting's evidence for a claim, as text."""

    setting: str
    effect: str
    interval: str
    seeds: str
    verdict: str
    reading: str


@dataclass(frozen=True)
class ClaimPart:
    """A claim with its verdict."""

    text: str
    where: str
    verdict: str
    note: str
    findings: Sequence[FindingPart]


@dataclass(frozen=True)
class Reproduction:
    """What the page says."""

    title: str
    introduction: Sequence[str]
    claims: Sequence[ClaimPart]
    sections: Sequence[Section]
    facts: Mapping[str, str] = field(default_factory=dict)


def reproduction_page(reproduction: Reproduction) -> str:
    """The whole page as text: no script, nothing loaded from elsewhere."""
    return render("reproduction.html", page=reproduction)
