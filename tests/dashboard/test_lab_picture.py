"""How the peers of a lab are drawn, and what is said about each."""

from __future__ import annotations

import msgspec

from oneway.dashboard.components.colours import UNKNOWN_LOSS, loss_colour
from oneway.dashboard.lab.picture import arrow, circle
from oneway.records.network import MASS_UNITS, EdgeView, PeerView

ANN = PeerView(
    name="ann",
    state="up",
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


def test_an_arrow_is_told_with_what_passes_or_that_nothing_does():
    edge = EdgeView(sender="ann", receiver="bob", arrived=1200, waiting=3, cut=False)
    assert arrow(edge).title == "ann sends to bob: 1,200 pushes arrived, 3 on the way"
    cut = msgspec.structs.replace(edge, cut=True, waiting=0)
    assert (arrow(cut).title, arrow(cut).cut) == ("ann sends to bob: cut", True)
