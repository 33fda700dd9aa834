"""Running totals as rows: of a large model in chains, one in full and how the next ones follow.

A compact push says how its total follows from the one before. That is a million bytes where the
total has eight, so that is what is stored; numbers from one multiple of `CHAIN` to the next make
one chain, and the first total of each is stored in full. A total stays as long as one that follows
from it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from oneway.peer.store.large import is_large
from oneway.peer.store.snapshot import Snapshot
from oneway.peer.store.table import Rows, Table
from oneway.protocol.compact import Packed, flaw, unpack
from oneway.protocol.fixed_point import Fixed
from oneway.protocol.layout import Layout
from oneway.protocol.state import EdgeId, InEdge, OutEdge

Row: TypeAlias = Mapping[str, Any]
"""A row of a table by column."""

CHAIN = 16
"""How many totals one in full stands for at most."""

_encode = msgspec.msgpack.Encoder(enc_hook=lambda units: units.astype("<i8").tobytes()).encode
_decode = msgspec.msgpack.Decoder(
    Packed, dec_hook=lambda _, stored: np.frombuffer(stored, "<i8").astype(np.int64)
).decode


class Series(NamedTuple):
    """The totals of an edge by number, the first and the last that count, how the last follows."""

    totals: Mapping[int, Fixed]
    first: int
    last: int
    packed: Packed | None

    @property
    def stored(self) -> dict[int, None]:
        """The numbers that may be in the store for it."""
        start = self.first - self.first % CHAIN
        return dict.fromkeys((*range(start, self.first), *self.totals))

    def goes_on(self, before: Series | None) -> bool:
        """Whether it only adds to what was there before; otherwise all of it is written anew."""
        return (
            before is not None
            and self.first >= before.first
            and all(before.totals.get(seq, total) is total for seq, total in self.totals.items())
        )

    def link(self, before: Series) -> dict[int, Packed]:
        """The last total by number, if it is written as how it follows from one that is there."""
        packed, last = self.packed, self.last
        if packed is None or packed.base // CHAIN != last // CHAIN or last in before.totals:
            return {}
        return {last: packed} if packed.base in before.totals else {}


Both: TypeAlias = Callable[[Series | None, Series | None], tuple[dict[int, Any], dict[int, Any]]]
"""What is stored of an edge and may go, and what is to stay (None) or to be written."""


def _fulls(was: Series | None, now: Series | None) -> tuple[dict[int, Any], dict[int, Any]]:
    old = was.stored if was else {}
    if was is None or now is None or not now.goes_on(was):
        return old, dict(now.totals) if now else {}
    stay = {seq: None for seq in now.stored if seq in old}
    link = now.link(was)
    fresh = {seq: it for seq, it in now.totals.items() if seq not in old and seq not in link}
    return old, {**stay, **fresh}


def _links(was: Series | None, now: Series | None) -> tuple[dict[int, Any], dict[int, Any]]:
    old = was.stored if was else {}
    if was is None or now is None or not now.goes_on(was):
        return old, {}
    return old, {**{seq: None for seq in now.stored if seq in old}, **now.link(was)}


def _of_out(edge: OutEdge) -> Series:
    return Series(edge.totals, edge.acked, edge.seq, edge.packed)


def _of_in(edge: InEdge) -> Series:
    return Series({edge.seq: edge.heard}, edge.seq, edge.seq, edge.packed)


def _changed(
    series: Callable[[Any], Series], before: Mapping[EdgeId, Any], after: Mapping[EdgeId, Any]
) -> Iterator[tuple[EdgeId, Series | None, Series | None]]:
    if before is after:
        return
    for name, edge in after.items():
        old = before.get(name)
        if old is not edge:
            yield name, series(old) if old else None, series(edge)
    for name, edge in before.items():
        if name not in after:
            yield name, series(edge), None


def _rows(both: Both, *directions: tuple[str, Callable[[Any], Series], tuple[bool, ...]]) -> Rows:
    """The rows of a table, by peer, epoch, what else tells directions apart, and number."""

    def of_two(before: Snapshot, after: Snapshot) -> tuple[dict[Any, Any], dict[Any, Any]]:
        old: dict[Any, Any] = {}
        new: dict[Any, Any] = {}
        for where, series, mark in directions:
            edges = attrgetter(where)
            for name, was, now in _changed(series, edges(before.state), edges(after.state)):
                for rows, of_edge in zip((old, new), both(was, now), strict=True):
                    rows |= {(*name, *mark, seq): value for seq, value in of_edge.items()}
        return old, new

    return of_two


def _plain_totals(before: Snapshot, after: Snapshot) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """The totals that only one of two snapshots has: those of small models are stored as such."""
    old, new = before.state.out, after.state.out
    return _besides(old, new), _besides(new, old)


def _besides(
    edges: Mapping[EdgeId, OutEdge], others: Mapping[EdgeId, OutEdge]
) -> dict[tuple[bytes, int, int], Fixed]:
    rows = {}
    for name, edge in edges.items():
        other = others.get(name)
        if other is not edge:
            same = other.totals if other else {}
            for seq, total in edge.totals.items():
                if same.get(seq) is not total:
                    rows[(*name, seq)] = total
    return rows


def _if_large(rows: Rows, otherwise: Rows = lambda _before, _after: ({}, {})) -> Rows:
    return lambda before, after: (rows if is_large(after.state.dim) else otherwise)(before, after)


_COLUMNS = {"epoch": int, "seq": int, "units": Fixed}
TOTALS = Table(
    "total",
    {"receiver": bytes, **_COLUMNS},
    num_keys=3,
    rows=_if_large(_rows(_fulls, ("out", _of_out, ())), _plain_totals),
    values=lambda units: (units,),
    in_place=True,
)
HEARD = Table(
    "heard",
    {"sender": bytes, **_COLUMNS},
    num_keys=3,
    rows=_if_large(_rows(_fulls, ("in_", _of_in, ()))),
    values=lambda units: (units,),
    in_place=True,
)
LINKS = Table(
    "link",
    {"peer": bytes, "epoch": int, "outward": bool, "seq": int, "packed": bytes},
    num_keys=4,
    rows=_if_large(_rows(_links, ("out", _of_out, (True,)), ("in_", _of_in, (False,)))),
    values=lambda packed: (_encode(packed),),
)


class StoredTotals:
    """The totals in a store, by edge.

    Args:
        layout: Of amounts.
        fulls: The rows of one direction in `total` or `heard`; the first column is the peer.
        links: The rows of that direction in `link`.
    """

    def __init__(self, layout: Layout, fulls: Iterable[Row], links: Iterable[Row]) -> None:
        self._layout = layout
        self._fulls: dict[EdgeId, dict[int, Fixed]] = {}
        self._links: dict[EdgeId, dict[int, Packed]] = {}
        for row in fulls:
            peer, epoch, seq, units = row.values()
            self._fulls.setdefault((peer, epoch), {})[seq] = units
        for row in links:
            known = self._links.setdefault((row["peer"], row["epoch"]), {})
            known[row["seq"]] = _decode(row["packed"])

    def take(self, name: EdgeId, first: int, last: int) -> dict[int, Fixed]:
        """The totals of an edge from its first to its last number.

        Raises:
            ValueError: One of these two is not there, or does not follow from what is.
        """
        totals, links = self._fulls.pop(name, {}), self._links.pop(name, {})
        bases = [packed.base for packed in links.values()]
        for seq, packed in sorted(links.items()):
            base = totals.get(packed.base)
            if base is None or flaw(self._layout, base, packed):
                raise ValueError("a total does not follow from the one before")
            totals[seq] = unpack(self._layout, base, packed)
            bases.remove(packed.base)
            if packed.base < first and packed.base not in bases:
                del totals[packed.base]  # a chain of large models is not held all at once
        if first not in totals or last not in totals:
            raise ValueError("an edge lacks the total it stands at")
        return {seq: totals[seq] for seq in sorted(totals) if first <= seq <= last}

    def check_empty(self) -> None:
        """Make sure that every total belonged to an edge.

        Raises:
            ValueError: One did not.
        """
        if self._fulls or self._links:
            raise ValueError("there are totals of an edge that does not exist")
