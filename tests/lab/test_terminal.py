"""What a lab shows: one line per peer while it runs, and the verdict in the end."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from builders import make_frame, make_peer_view, make_record
from rich.console import Console

from oneway.lab.audit import Audit
from oneway.lab.result import PeerResult, Result
from oneway.lab.terminal import network_table, result_table
from oneway.protocol.fixed_point import ONE
from oneway.records import PersonalRecord
from oneway.records.network import EdgeView


def rendered(shown) -> str:
    console = Console(file=StringIO(), width=120)
    console.print(shown)
    return console.file.getvalue()


def make_result(**changes) -> Result:
    """A lab of two peers in the end; keywords change it."""
    exact = Audit(
        2 * ONE,
        2 * ONE,
        np.zeros(4, int),
        np.zeros(4, int),
        unsettled=0,
        segments={"numerator": slice(0, 3)},
    )
    peers = [PeerResult("ann", 100, 0.25, ONE // 2, 3), PeerResult("bob", 0, None, 3 * ONE // 2, 0)]
    parts = {
        "peers": peers,
        "audit": exact,
        "records": {
            name: make_record(loss_sums=[loss], sample_counts=[1])
            for name, loss in (("peers", 0.21), ("ops", 0.2))
        },
        "seconds": 10.0,
        "complete": True,
        "events": ["1.0 s: ann was killed"],
        "config": {"task": {"method": "ops", "privacy": "none"}},
    }
    return Result(**parts | changes)


def test_every_peer_has_a_line_with_its_state_samples_loss_mass_and_edges():
    frame = make_frame(
        peers=[
            make_peer_view(
                name="ann",
                samples=1234,
                recent_loss=0.125,
                average_loss=0.25,
                shared_loss=0.75,
                alone_loss=0.375,
                base_loss=0.5,
                mass_units=3 * ONE // 4,
            ),
            make_peer_view(
                name="bob", state="down", samples=7, recent_loss=0.5, mass_units=5 * ONE // 4
            ),
            make_peer_view(name="cem", state="starting", mass_units=0, restarts=2),
        ],
        edges=[
            EdgeView(sender=sender, receiver=receiver, arrived=1, waiting=0, cut=cut)
            for sender, receiver, cut in (
                ("ann", "bob", False),
                ("cem", "ann", False),
                ("ann", "cem", True),
            )
        ],
        events=["1.0 s: bob was killed"],
        messages_per_second=321.4,
    )
    shown = rendered(network_table(frame, "learning"))
    lines = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    losses = ["0.1250", "0.2500", "0.7500", "0.3750", "0.5000"]
    assert lines["ann"] == ["ann", "up", "1,234", *losses, "0.750", "1", "1", "1"]
    assert lines["bob"][:9] == ["bob", "down", "7", "0.5000", *"----", "1.250"]
    assert lines["cem"] == ["cem", "starting", "0", *"-----", "0.000", "0", "1", "3"]
    assert lines["all"] == ["all", "1,241", "2.000"]
    assert "learning, 321 messages per second" in shown
    assert "1.0 s: bob was killed" in shown


def test_the_end_is_a_table_and_a_verdict():
    shown = rendered(result_table(make_result()))
    lines = [line.split() for line in shown.splitlines() if line.strip()]
    assert ["ann", "100", "0.2500", "-", "-", "-", "0.5000", "3"] in lines
    assert ["bob", "0", "-", "-", "-", "-", "1.5000", "0"] in lines
    mass, numerator, losses = make_result().sentences
    assert mass == "mass 2 x 2^40 = 2,199,023,255,552 units: exact"
    assert numerator == "numerator of 3 numbers: exact"
    assert losses == (
        "average loss: yours 0.2100; in the simulator, same graph, samples and order, yours 0.2000 "
        "(+5.0%)"
    )
    assert len(make_result(records={}).sentences) == 2


def test_personal_predictions_are_said_beside_the_others_with_a_verdict():
    rng = np.random.default_rng(1)
    alone = 0.5 + 0.01 * rng.normal(size=400)
    own = PersonalRecord(
        sums=np.column_stack([0.97 * alone, 1.2 * alone, alone, np.full(400, np.nan)]),
        counts=np.ones(400, np.int64),
        node_sums=np.zeros((1, 4)),
        node_counts=np.array([400]),
        weights=np.array([[0.1, 0.2, 0.7]]),
    )
    told = make_result()
    peers = replace(told.records["peers"], personal=own, base_sums=np.array([0.6]))
    told = replace(told, records={**told.records, "peers": peers})
    assert list(told.average_losses) == ["yours", "shared", "alone", "base_rate", "simulated"]
    assert told.average_losses["alone"] == pytest.approx(alone.mean())
    assert told.verdict.startswith("together you lose 3.0 % less than alone")
    assert told.as_dict()["verdict"] == told.verdict
    assert told.sentences[-2:] == [
        "on average the peers believe mostly the network, adapted to them",
        told.verdict,
    ]
