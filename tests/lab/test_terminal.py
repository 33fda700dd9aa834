"""What a lab shows: one line per peer while it runs, and the verdict in the end."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import numpy as np
from rich.console import Console

from oneway.lab.audit import Audit
from oneway.lab.result import PeerResult, Result
from oneway.lab.terminal import network_table, progress, result_table
from oneway.protocol.fixed_point import ONE
from oneway.records.network import EdgeView
from oneway.testing.records import make_frame, make_peer_view, make_record


def rendered(shown) -> str:
    console = Console(file=StringIO(), width=100)
    console.print(shown)
    return console.file.getvalue()


def make_result(**changes) -> Result:
    """A lab of two peers in the end; keywords change it."""
    exact = Audit(2 * ONE, 2 * ONE, np.zeros(4, int), np.zeros(4, int), unsettled=0)
    peers = [PeerResult("ann", 100, 0.25, ONE // 2, 3), PeerResult("bob", 0, None, 3 * ONE // 2, 0)]
    parts = {
        "peers": peers,
        "audit": exact,
        "records": {
            name: make_record(loss_sums=[loss], sample_counts=[1])
            for name, loss in (("peers", 0.21), ("ops", 0.2), ("local", 0.3))
        },
        "seconds": 10.0,
        "complete": True,
        "events": ["1.0 s: ann was killed"],
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
                base_loss=0.5,
                alone_loss=0.375,
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
    losses = ["0.1250", "0.2500", "0.5000", "0.3750"]
    assert lines["ann"] == ["ann", "up", "1,234", *losses, "0.750", "1", "1", "1"]
    assert lines["bob"][:8] == ["bob", "down", "7", "0.5000", "-", "-", "-", "1.250"]
    assert lines["cem"] == ["cem", "starting", "0", *"----", "0.000", "0", "1", "3"]
    assert lines["all"] == ["all", "1,241", "2.000"]
    assert "learning, 321 messages per second" in shown
    assert "1.0 s: bob was killed" in shown


def test_without_a_terminal_every_phase_is_one_line_on_stderr(capsys):
    with progress() as show:
        for doing in ("learning", "learning", "adding up"):
            show(make_frame(), doing)
    assert capsys.readouterr() == ("", "Learning ...\nAdding up ...\n")


def test_the_end_is_a_table_and_a_verdict():
    shown = rendered(result_table(make_result()))
    lines = [line.split() for line in shown.splitlines() if line.strip()]
    assert ["ann", "100", "0.2500", "-", "-", "0.5000", "3"] in lines
    assert ["bob", "0", "-", "-", "-", "1.5000", "0"] in lines
    mass, numerator, losses = make_result().sentences
    assert mass == "mass 2 x 2^40 = 2,199,023,255,552 units: exact"
    assert numerator == "numerator of 3 numbers: exact"
    assert losses == (
        "average loss 0.2100; in the simulator, same graph, samples and order, 0.2000 (+5.0%); "
        "each alone 0.3000"
    )
    assert len(make_result(records={}).sentences) == 2


def test_a_simulation_of_other_trust_is_not_called_the_same_graph():
    assert (
        make_result(is_rewired=True)
        .sentences[-1]
        .startswith(
            "average loss 0.2100; in the simulator, with the trust and the peers of the start, "
            "same samples and order, 0.2000"
        )
    )


def test_the_result_is_written_as_json(tmp_path):
    path = make_result().write(tmp_path)
    found = json.loads(path.read_text())
    assert found["audit"]["exact"] is True
    assert found["audit"]["minted_units"] == 2 * ONE
    assert found["average_loss"] == {"together": 0.21, "simulated": 0.2, "alone": 0.3}
    assert found["peers"][0] == {
        "name": "ann",
        "samples": 100,
        "average_loss": 0.25,
        "mass_units": ONE // 2,
        "mass": 0.5,
        "restarts": 3,
        "base_loss": None,
        "alone_loss": None,
        "accuracy": None,
        "alone_accuracy": None,
    }


def test_the_accuracy_of_last_models_is_said_beside_that_of_each_alone():
    told = make_result()
    ann, bob = (replace(peer, accuracy=0.9) for peer in told.peers[:2])
    lonely = [replace(ann, alone_accuracy=0.6), replace(bob, alone_accuracy=0.75)]
    [sentence] = [
        it for it in replace(told, peers=lonely, num_fresh=1597).sentences if "rows" in it
    ]
    for number in ("1,597", "90.0%", "60.0% to 75.0%"):
        assert number in sentence


def test_what_the_task_promises_is_said_while_it_runs_and_in_the_end():
    none = "none: samples can be read from what is sent"
    assert f"privacy: {none}" in rendered(network_table(make_frame(privacy=none), "learning"))
    result = make_result(privacy=none, config={"task": {"privacy": "none"}})
    assert result.sentences[-1] == f"privacy: {none}"
    assert result.as_dict()["privacy"] == "none"
    assert result.as_dict()["sentences"][-1] == f"privacy: {none}"
