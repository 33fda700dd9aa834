"""How the peers of a lab are drawn, and what is said about each."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec

from oneway.dashboard.components.colours import (
    BLUE,
    SERIES,
    UNKNOWN_LOSS,
    loss_colour,
    method_style,
)
from oneway.dashboard.lab.client import LabClient
from oneway.dashboard.lab.frame_text import about, arrow, circle, figures, headline, loss_lines
from oneway.dashboard.lab.watcher import LabWatcher
from oneway.methods import labels
from oneway.records.network import (
    MASS_UNITS,
    EdgeView,
    MassView,
    ReferenceCurve,
)
from oneway.testing.records import make_frame, make_peer_view

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


def test_a_peer_is_drawn_by_its_mass_lately_and_recent_loss():
    drawn = circle(ANN, 1.25, (0.3, 0.6))
    assert (drawn.x, drawn.y, drawn.mass, drawn.state) == (0.25, 0.75, 1.25, "up")
    assert drawn.colour == loss_colour(0.4, 0.3, 0.6)


def test_a_peer_is_told_with_its_accuracy_samples_and_restarts():
    assert circle(ANN, 1.25, None).title == (
        "ann: up, mass 1.500 (lately 1.250), recent loss 0.400 per sample, 87.5 % right so far, "
        "1,234 samples, restarted 2 times"
    )
    once = msgspec.structs.replace(ANN, restarts=1, accuracy=None)
    assert circle(once, 1.25, None).title.endswith(
        "recent loss 0.400 per sample, 1,234 samples, restarted once"
    )


def test_a_peer_without_samples_has_no_colour_of_a_loss():
    new = msgspec.structs.replace(ANN, recent_loss=None, samples=0, restarts=0, accuracy=None)
    assert circle(new, 1.25, (0.3, 0.6)).colour == UNKNOWN_LOSS
    assert (
        circle(new, 1.25, None).title
        == "ann: up, mass 1.500 (lately 1.250), no samples yet, 0 samples"
    )


def test_methods_look_as_registered_and_an_unknown_one_has_its_name_and_a_stable_colour():
    label, colour = method_style("ops")
    assert (label, colour) == ("Online Push-Sum", BLUE)
    assert method_style("tomorrow") == ("tomorrow", method_style("tomorrow")[1])
    assert method_style("tomorrow")[1] in SERIES


def test_a_registered_method_brings_its_label_and_its_colours(monkeypatch):
    full = SimpleNamespace(label="Tomorrow's method", meaning="", colour="#123456")
    registry = {"tomorrow": full, "bare": SimpleNamespace(label="", meaning="", colour="")}
    monkeypatch.setattr(labels, "METHODS", registry)
    label, colour = method_style("tomorrow")
    assert label == "Tomorrow's method"
    assert "#123456" in colour
    label, colour = method_style("bare")
    assert label == "bare"
    assert colour in SERIES


def test_a_method_of_a_users_own_package_has_a_line_with_its_label():
    watcher = LabWatcher(LabClient("http://127.0.0.1:1", ""))
    curve = {"arrows": 3, "one_way": 1, "samples": [1, 2], "average_loss": [0.7, 0.6]}
    watcher.references = [
        ReferenceCurve(algorithm=name, **curve) for name in ("ops", "tomorrow", "col")
    ]
    lines = loss_lines(watcher, None)
    assert [line.name for line in lines] == ["Online Push-Sum", "tomorrow", "Centralised (COL)"]
    assert [line.dash == "solid" for line in lines] == [True, False, False]


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


def test_an_arrow_is_told_with_what_passes_or_that_nothing_does():
    edge = EdgeView(sender="ann", receiver="bob", arrived=1200, waiting=3, cut=False)
    assert arrow(edge).title == "ann sends to bob: 1,200 pushes arrived, 3 on the way"
    cut = msgspec.structs.replace(edge, cut=True, waiting=0)
    assert (arrow(cut).title, arrow(cut).cut) == ("ann sends to bob: cut", True)


def test_the_headline_says_what_is_promised_and_what_to_do_next():
    none = "none: samples can be read from what is sent"
    frame = make_frame(title="flights", seconds=3.2, privacy=none)
    assert headline(frame) == f"flights, for 3 s; privacy: {none}"
    learned = msgspec.structs.replace(frame, phase="all samples are learned from", privacy="")
    assert headline(learned) == "flights, for 3 s; press Finish and audit to count every unit"
    done = msgspec.structs.replace(frame, phase="done", result=["exact"])
    assert headline(done).endswith("; Ctrl-C in the shell ends the page")


def test_the_loss_of_all_peers_stands_beside_their_baselines():
    peers = [
        make_peer_view(name="a", samples=3, average_loss=0.5, base_loss=0.7, alone_loss=0.6),
        make_peer_view(name="b", samples=1, average_loss=0.9, base_loss=0.3, alone_loss=0.2),
        make_peer_view(name="c"),
    ]
    [shown] = [it for it in figures(make_frame(peers=peers)) if it.key == "loss"]
    assert (shown.value, shown.note) == ("0.6000", "base rate 0.6000, alone 0.5000")
    assert "average 0.500 (base rate 0.700, alone 0.600)" in about(peers[0], 1.0)
    [blank] = [it for it in figures(make_frame(peers=peers[2:])) if it.key == "loss"]
    assert (blank.value, blank.note) == ("-", "no samples yet")
