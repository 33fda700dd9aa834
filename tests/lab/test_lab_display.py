"""What a lab shows: one line per peer while it runs, and the verdict in the end."""

from __future__ import annotations

import json
from io import StringIO

import numpy as np
from rich.console import Console

from oneway.lab.audit import Audit
from oneway.lab.comparison import Comparison
from oneway.lab.display import network_table, result_table
from oneway.lab.rest import Look
from oneway.lab.result import PeerResult, Result
from oneway.protocol.fixed_point import ONE

ANN, BOB = b"1" * 32, b"2" * 32


def rendered(shown) -> str:
    console = Console(file=StringIO(), width=100)
    console.print(shown)
    return console.file.getvalue()


def result(**changes) -> Result:
    exact = Audit(2 * ONE, 2 * ONE, np.zeros(4, int), np.zeros(4, int), unsettled=0)
    peers = [PeerResult("ann", 100, 0.25, ONE // 2, 3), PeerResult("bob", 0, None, 3 * ONE // 2, 0)]
    parts = {
        "peers": peers,
        "audit": exact,
        "comparison": Comparison(together=0.21, simulated=0.2, alone=0.3),
        "seconds": 10.0,
        "complete": True,
        "events": ["1.0 s: ann was killed"],
    }
    return Result(**parts | changes)


def test_every_peer_has_a_line_with_its_state_samples_loss_mass_and_edges(make_look):
    up = make_look(
        ANN, state="up", edges={BOB: {}}, samples=1234, recent_loss=0.125, mass=0.75, pid=1
    )
    down = make_look(BOB, state="down", samples=7, recent_loss=0.5, mass=1.25)
    never = Look("cem", b"3" * 32, "starting", None, restarts=0)
    shown = rendered(network_table([up, down, never], ["1.0 s: bob was killed"], "learning", 321.4))
    lines = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert lines["peer49"] == ["peer49", "up", "1,234", "0.1250", "0.750", "1", "1", "1"]
    assert lines["peer50"][:5] == ["peer50", "down", "7", "0.5000", "1.250"]
    assert lines["cem"] == ["cem", "starting", "-", "-", "-", "-", "-", "1"]
    assert lines["all"] == ["all", "1,241", "2.000"]
    assert "learning, 321 messages per second" in shown
    assert "1.0 s: bob was killed" in shown


def test_the_end_is_a_table_and_a_verdict():
    shown = rendered(result_table(result()))
    lines = [line.split() for line in shown.splitlines() if line.strip()]
    assert ["ann", "100", "0.2500", "0.5000", "3"] in lines
    assert ["bob", "0", "-", "1.5000", "0"] in lines
    mass, numerator, losses = result().sentences
    assert mass == "mass 2 x 2^40 = 2,199,023,255,552 units: exact"
    assert numerator == "numerator of 3 numbers: exact"
    assert losses == (
        "average loss 0.2100; in the simulator, same graph, samples and order, 0.2000 (+5.0%); "
        "each alone 0.3000"
    )
    assert len(result(comparison=None).sentences) == 2


def test_a_simulation_of_other_trust_is_not_called_the_same_graph():
    assert (
        result(is_rewired=True)
        .sentences[-1]
        .startswith(
            "average loss 0.2100; in the simulator, with the trust and the peers of the start, "
            "same samples and order, 0.2000"
        )
    )


def test_the_result_is_written_as_json(tmp_path):
    path = result().write(tmp_path)
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
    }
