"""How the peers of a lab are drawn, and what is said about each."""

from __future__ import annotations

import msgspec
from builders import make_frame, make_peer_view

from oneway.dashboard.lab.frame_text import about, figures
from oneway.records.network import (
    MASS_UNITS,
    MassView,
)

ANN = make_peer_view(
    x=0.25,
    y=0.75,
    samples=1234,
    average_loss=0.5,
    recent_loss=0.4,
    accuracy=0.875,
    mass_units=3 * MASS_UNITS // 2,
    restarts=2,
)


def test_the_headline_of_a_lab_tells_who_is_down_and_what_is_lost():
    down = msgspec.structs.replace(ANN, name="bob", state="down")
    mass = MassView(held=MASS_UNITS, in_flight=MASS_UNITS, brought=2 * MASS_UNITS, is_exact=True)
    frame = make_frame(
        peers=[ANN, down],
        mass=mass,
        messages_per_second=12.4,
        bytes_per_second=2048.0,
        loss_rate=0.2,
    )
    shown = {figure.key: figure for figure in figures(frame)}
    assert (shown["mass"].value, shown["mass"].mood) == ("2", "good")
    assert (shown["peers"].value, shown["peers"].note) == ("1 of 2", "1 down")
    assert shown["disagreement"].value == "-"
    assert (shown["bytes"].value, shown["bytes"].unit) == ("2.05", "kB/s")
    assert "20%" in shown["messages"].note
    over = msgspec.structs.replace(frame, result=["exact"])
    assert {figure.key: figure.value for figure in figures(over)}["peers"] == "0 of 2"


def test_the_loss_of_all_peers_stands_beside_their_baselines():
    peers = [
        make_peer_view(name="a", samples=3, average_loss=0.5, base_loss=0.7, alone_loss=0.6),
        make_peer_view(name="b", samples=1, average_loss=0.9, base_loss=0.3, alone_loss=0.2),
        make_peer_view(name="c"),
    ]
    [shown] = [it for it in figures(make_frame(peers=peers)) if it.key == "loss"]
    assert (shown.value, shown.note) == ("0.6000", "alone 0.5000, base rate 0.6000")
    assert "average 0.500 (alone 0.600, base rate 0.700)" in about(peers[0], 1.0)
    [blank] = [it for it in figures(make_frame(peers=peers[2:])) if it.key == "loss"]
    assert (blank.value, blank.note) == ("-", "no samples yet")
