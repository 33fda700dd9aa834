"""Layout of an amount: where each segment of a method's payload lies, and what kind it is.

An amount is one int64 vector `(segments..., mass)`. Books, totals, tags and acknowledgements are
about whole amounts; only handing over, taking in and checking look at segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from oneway.protocol.fixed_point import ONE, Fixed, portion
from oneway.records import Segment, Vector


@dataclass(frozen=True)
class Layout:
    """Which numbers of an amount are what. Without arguments: all but the mass is one numerator.

    Attributes:
        model: The first segment: the numerator of the model, or the model itself if copied.
        places: Every segment by name, the mass aside.
        forwarded: Segments of which nothing is kept.
        copied: Segments that travel as values: they are in no books.
        momenta: Where the segments lie that track a memory of the method, by that memory's name.
        carried: Booked segments beside the model that are as long as it, parcels and trackers: they
            move models later.
    """

    model: slice = field(default_factory=lambda: slice(0, -1))
    places: Mapping[str, slice] = field(default_factory=dict)
    forwarded: tuple[slice, ...] = ()
    copied: tuple[slice, ...] = ()
    momenta: Mapping[str, slice] = field(default_factory=dict)
    carried: tuple[slice, ...] = ()

    @classmethod
    def of(cls, payload: Iterable[Segment], dim: int) -> Layout:
        """The layout of a payload for models of `dim` parameters.

        >>> Layout.of([Segment("numerator", "split"), Segment("count", "forwarded", False)], 3)
        Layout(model=slice(0, 3, None), places={'numerator': slice(0, 3, None), \
'count': slice(3, 4, None)}, forwarded=(slice(3, 4, None),), copied=(), momenta={}, \
carried=())
        """
        rows: dict[str, tuple[str, int, int]] = {}
        momenta: dict[str, slice] = {}
        carried: list[slice] = []
        start = 0
        for segment in payload:
            if segment.name != "mass":
                end = start + (dim if segment.is_vector else 1)
                rows[segment.name] = (segment.kind, start, end)
                if segment.tracks:
                    momenta[segment.tracks] = slice(start, end)
                if start and segment.is_vector and segment.kind != "copied":
                    carried.append(slice(start, end))
                start = end
        if not rows:
            return cls(model=slice(0, 0))
        return replace(cls.from_rows(rows), momenta=momenta, carried=tuple(carried))

    @classmethod
    def from_rows(cls, rows: Mapping[str, tuple[str, int, int]]) -> Layout:
        """The layout with these `rows`, as they are stored; without any, one numerator."""
        if not rows:
            return cls()
        places = {name: slice(start, stop) for name, (_, start, stop) in rows.items()}
        forwarded, copied = (
            tuple(places[name] for name, (kind, _, _) in rows.items() if kind == wanted)
            for wanted in ("forwarded", "copied")
        )
        return cls(next(iter(places.values())), places, forwarded, copied)

    @cached_property
    def rows(self) -> dict[str, tuple[str, int, int]]:
        """Every segment by name: its kind, where it starts and where it stops."""
        return {
            name: (
                "forwarded"
                if place in self.forwarded
                else "copied"
                if place in self.copied
                else "split",
                place.start,
                place.stop,
            )
            for name, place in self.places.items()
        }

    @cached_property
    def parcel(self) -> tuple[slice, slice] | None:
        """Where steps travel on, and where it says how many they are; None if steps do not."""
        steps, count = self.places.get("parcel"), self.places.get("count")
        return (steps, count) if steps in self.forwarded and count in self.forwarded else None

    @property
    def width(self) -> int:
        """How many numbers an amount has besides its mass; only known with segments by name."""
        return max((place.stop for place in self.places.values()), default=0)

    @property
    def copies_model(self) -> bool:
        """Whether models travel as values, and are averaged by receivers."""
        return self.model in self.copied

    def booked(self, amount: Fixed) -> Fixed:
        """An amount without what is in no books: copied segments are 0."""
        return self.with_copies(amount, np.zeros_like(amount)) if self.copied else amount

    def with_copies(self, amount: Fixed, source: Fixed) -> Fixed:
        """An amount with the copied segments of another."""
        if not self.copied:
            return amount
        joined = amount.copy()
        for place in self.copied:
            joined[place] = source[place]
        return joined

    def model_in(self, amount: Fixed) -> Vector:
        """The model that an amount carries: x = z / omega, or the value itself if copied."""
        divisor = float(ONE) if self.copies_model else float(amount[-1])
        model: Vector = amount[self.model] / divisor
        return model

    def model_limit(self, amount: Fixed, radius: float) -> float:
        """How large the numbers of the model's segment may be for the model to be in a radius."""
        return radius * (ONE if self.copies_model else int(amount[-1]))

    def beside(self, amount: Fixed) -> Iterator[Fixed]:
        """The segments besides the model's."""
        return (amount[place] for place in self.places.values() if place != self.model)

    def start(self, model: Vector, dim: int) -> Vector:
        """The numbers that a unit of mass is minted with: the model, and zeros beside it."""
        start = np.zeros(dim + 1)
        if start[self.model].size:
            start[self.model] = model
        return start[:-1]

    def portion(self, amount: Fixed, share: float, of_all: float) -> Fixed:
        """What a push hands over: the floor of a share; copied segments as they are.

        Args:
            amount: What is held.
            share: Of all that is held.
            of_all: What all receivers' shares add up to; forwarded segments go to them entirely.
        """
        units = np.empty_like(amount)
        start = 0
        for place in self.forwarded:
            portion(amount[start : place.start], share, units[start : place.start])
            portion(amount[place], share / of_all, units[place])
            start = place.stop
        portion(amount[start:], share, units[start:])
        return self.booked(units)
