"""What a lab leaves behind: every peer, the audit, and how it compares."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from oneway import store
from oneway.errors import StoreError
from oneway.lab.audit import Audit
from oneway.lab.comparison import Comparison
from oneway.protocol.fixed_point import ONE, mass_of
from oneway.records import RunRecord
from oneway.store.layout import RESULT, RUNS


@dataclass(frozen=True)
class PeerResult:
    """One peer in the end; `average_loss` is None if it learned from nothing."""

    name: str
    samples: int
    average_loss: float | None
    mass_units: int
    restarts: int

    @property
    def mass(self) -> float:
        """omega, as an ordinary number."""
        return self.mass_units / ONE


@dataclass(frozen=True, eq=False)
class Result:
    """A lab in the end.

    Attributes:
        comparison: None if nothing was learned from.
        seconds: How long the peers learned.
        complete: False if the learning ended before the samples did.
        events: What was done to the peers.
        config: What determines the samples, the graph and the faults.
        records: The real peers as a run, and the simulations on the samples they learned from, by
            the name of their folder: peers, ops, dol-symm, dol-asymm, col and local.
        is_rewired: Whether the peers' trust is no longer that of the simulations.
    """

    peers: Sequence[PeerResult]
    audit: Audit
    comparison: Comparison | None
    seconds: float
    complete: bool
    events: Sequence[str]
    config: Mapping[str, Any] = field(default_factory=dict)
    records: Mapping[str, RunRecord] = field(default_factory=dict)
    is_rewired: bool = False

    @property
    def sentences(self) -> list[str]:
        """The audit and the comparison."""
        said = list(self.audit.sentences)
        losses = self.comparison
        if losses is not None:
            more = losses.together / losses.simulated - 1.0 if losses.simulated else 0.0
            same = (
                "with the trust and the peers of the start, same samples and order"
                if self.is_rewired
                else "same graph, samples and order"
            )
            said.append(
                f"average loss {losses.together:.4f}; in the simulator, {same}, "
                f"{losses.simulated:.4f} ({more:+.1%}); each alone {losses.alone:.4f}"
            )
        return said

    def as_dict(self) -> dict[str, Any]:
        """Everything in terms JSON can hold."""
        audit = self.audit
        return {
            "complete": self.complete,
            "seconds": self.seconds,
            "sentences": self.sentences,
            "audit": {
                "exact": audit.is_exact,
                "minted_units": audit.minted_units,
                "held_units": audit.held_units,
                "stranded_units": mass_of(audit.stranded),
                "mass_discrepancy": mass_of(audit.discrepancy),
                "numerator_discrepancy": audit.discrepancy[:-1].tolist(),
                "unsettled_edges": audit.unsettled,
                "verdict": audit.sentences,
            },
            "average_loss": None if self.comparison is None else asdict(self.comparison),
            "peers": [asdict(peer) | {"mass": peer.mass} for peer in self.peers],
            "events": list(self.events),
            "config": dict(self.config),
        }

    def write(self, folder: Path) -> Path:
        """Write it as JSON beside the peers' folders, and its records as stored runs.

        Raises:
            StoreError: If it cannot be written.
        """
        path = folder / RESULT
        try:
            path.write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}") from error
        for name, record in self.records.items():
            store.save(record, folder / RUNS / name)
        return path
