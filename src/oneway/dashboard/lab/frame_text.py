"""Presentation of a lab's frame: figures, circles and arrows, curves, and the mass to the unit."""

from __future__ import annotations

from oneway.dashboard.components.chart import Dash, Line
from oneway.dashboard.components.colours import (
    AMBER,
    INK,
    UNKNOWN_LOSS,
    loss_colour,
    method_style,
)
from oneway.dashboard.components.elements import Figure, Mood
from oneway.dashboard.components.numbers import number, size
from oneway.dashboard.components.trust_picture import Arrow, Circle
from oneway.dashboard.lab.watcher import LabWatcher
from oneway.methods import DEFAULT_METHOD, METHODS
from oneway.metrics.measure_rows import ALONE, BASE_RATE, SHARED, beside
from oneway.records import MASS_UNITS
from oneway.records.measures import Baselines, Measures
from oneway.records.network import EdgeView, MassView, NetworkFrame, PeerView


def headline(frame: NetworkFrame) -> str:
    """What the lab is about, for how long it has run, what is promised, and what to do next."""
    privacy = f"; privacy: {frame.privacy}" if frame.privacy else ""
    next_step = ""
    if frame.phase == "all samples are learned from":
        next_step = "; press Finish and audit to count every unit"
    elif frame.result:
        next_step = "; Ctrl-C in the shell ends the page"
    return f"{frame.title}, for {frame.seconds:.0f} s{privacy}{next_step}"


def figures(frame: NetworkFrame) -> list[Figure]:
    """The headline numbers of a lab."""
    note, mood = mass_note(frame.mass)
    total, down = len(frame.peers), sum(peer.state == "down" for peer in frame.peers)
    peers = (f"{total - down} of {total}", f"{down} down" if down else "all processes run")
    if frame.result:
        peers = (f"0 of {total}", "stopped, to be counted")
    rate, unit = size(frame.bytes_per_second)
    lost = f"{100 * frame.loss_rate:g}%" if frame.loss_rate else "none"
    apart, between = number(frame.disagreement), "between the peers' models"
    messages = f"{frame.messages_per_second:,.0f}"
    brought = f"of {exact_mass(frame.mass.brought)} brought"
    losses = network_losses(frame)
    average = number(losses.loss if losses else None, ".4f")
    known = beside(Measures(so_far=losses)) if losses else "no samples yet"
    return [
        Figure("loss", "Average loss", average, "per sample", known),
        Figure("mass", "Total mass", exact_mass(frame.mass.total), brought, note, mood),
        Figure("peers", "Peers", peers[0], "up", peers[1]),
        Figure("disagreement", "Disagreement", apart, "squared distance", between),
        Figure("messages", "Messages", messages, "per second", f"{lost} lost on purpose"),
        Figure("bytes", "Traffic", rate, f"{unit}/s", "sent by all peers"),
    ]


def network_losses(frame: NetworkFrame) -> Baselines | None:
    """Mean losses of all peers, by their samples; None before somebody has measured something."""
    known = [peer for peer in frame.peers if None not in (peer.average_loss, peer.base_loss)]
    samples = sum(peer.samples for peer in known)
    if not samples:
        return None

    def mean(name: str) -> float:
        return float(sum(peer.samples * getattr(peer, name) for peer in known)) / samples

    def known_mean(name: str) -> float | None:
        return mean(name) if all(getattr(peer, name) is not None for peer in known) else None

    return Baselines(
        samples=samples,
        loss=mean("average_loss"),
        shared_loss=known_mean("shared_loss"),
        alone_loss=known_mean("alone_loss"),
        base_loss=mean("base_loss"),
    )


def exact_mass(units: int) -> str:
    """A number of units as a mass, to the last unit.

    >>> exact_mass(8 * MASS_UNITS), exact_mass(8 * MASS_UNITS - 3)
    ('8', '8 - 3 units')
    """
    whole = round(units / MASS_UNITS)
    rest = units - whole * MASS_UNITS
    if rest == 0:
        return f"{whole:,}"
    return f"{whole:,} {'+' if rest > 0 else '-'} {abs(rest):,} units"


def mass_note(mass: MassView) -> tuple[str, Mood]:
    """What there is to say about the total mass, and whether it is good."""
    if not mass.is_exact:
        why = mass.problems[0] if mass.problems else "the books do not add up"
        return f"\u2717 not exact: {why}", "bad"
    if mass.brought == 0:
        return "nobody has brought mass yet", ""
    if mass.in_flight < 0:
        # A receiver was looked at later than its sender.
        return "\u2713 exact to the unit", "good"
    held, moving = mass.held / MASS_UNITS, mass.in_flight / MASS_UNITS
    return (
        f"\u2713 exact to the unit: {held:.3f} held + {moving:.3f} handed over and not yet "
        "seen to arrive",
        "good",
    )


def circle(peer: PeerView, usual_mass: float, losses: tuple[float, float] | None) -> Circle:
    """A peer in the picture: its area is its mass lately, its colour its recent loss.

    Args:
        peer: With its place.
        usual_mass: Its mean over some seconds.
        losses: The losses at the ends of the colour scale; None while nobody has one.
    """
    loss = peer.recent_loss
    colour = UNKNOWN_LOSS if loss is None or losses is None else loss_colour(loss, *losses)
    title = about(peer, usual_mass)
    return Circle(peer.name, peer.x, peer.y, usual_mass, colour, title, peer.state)


def arrow(edge: EdgeView) -> Arrow:
    """An edge in the picture."""
    state = "cut" if edge.cut else f"{edge.arrived:,} pushes arrived"
    waiting = f", {edge.waiting:,} on the way" if edge.waiting else ""
    title = f"{edge.sender} sends to {edge.receiver}: {state}{waiting}"
    return Arrow(edge.sender, edge.receiver, title, edge.arrived, edge.waiting, edge.cut)


def about(peer: PeerView, usual_mass: float) -> str:
    """One line about a peer: state, mass, loss, accuracy, samples and restarts."""
    loss, right, restarts = peer.recent_loss, peer.accuracy, peer.restarts
    said = [
        peer.state,
        f"mass {peer.mass:.3f} (lately {usual_mass:.3f})",
        "no samples yet" if loss is None else f"recent loss {loss:.3f} per sample",
        _against(peer),
        "" if right is None else f"{100 * right:.1f} % right so far",
        f"{peer.samples:,} samples",
        "restarted once" if restarts == 1 else f"restarted {restarts:,} times" if restarts else "",
    ]
    return f"{peer.name}: {', '.join(filter(None, said))}"


def _against(peer: PeerView) -> str:
    """The average loss beside its baselines, if it was measured."""
    if peer.average_loss is None or peer.base_loss is None:
        return ""
    others = {SHARED: peer.shared_loss, ALONE: peer.alone_loss, BASE_RATE: peer.base_loss}
    known = [f"{name} {loss:.3f}" for name, loss in others.items() if loss is not None]
    believes = f", believes {peer.believes}" if peer.believes else ""
    return f"average {peer.average_loss:.3f} ({', '.join(known)}){believes}"


def loss_lines(watcher: LabWatcher, picked: str | None) -> list[Line]:
    """The curves of all peers, the picked one thick, and behind them those of the simulator."""
    lines = []
    for place, curve in enumerate(watcher.references or []):
        label, colour = method_style(curve.method)
        points = list(zip(curve.samples, curve.average_loss, strict=True))
        # Only the first is solid: the others may lie over it, and must let it be seen.
        dash: Dash = ("dotted", "dashed")[place % 2] if place else "solid"
        lines.append(Line(label, points, colour, dash, width=3, opacity=0.75, behind=True))
    if watcher.losses:
        # One entry of the legend stands for them all.
        lines.append(Line("each peer", [], INK))
    faint = 0.7 if len(watcher.losses) <= 40 else 0.3
    lines += [
        Line(name, curve.points, INK, width=1.2, opacity=faint, in_legend=False)
        for name, curve in watcher.losses.items()
        if name != picked
    ]
    if picked in watcher.losses:
        lines.append(Line(picked, watcher.losses[picked].points, AMBER, width=4))
    return lines


def worth_of_one_way(watcher: LabWatcher) -> str:
    """What one-way trust is good for, on these samples; nothing before that is known."""
    ends = {curve.method: curve for curve in watcher.references or []}
    name = next((name for name in (DEFAULT_METHOD, "ops") if name in ends), "")
    if not (name and "dol-symm" in ends):
        return ""
    ours, mutual = ends[name], ends["dol-symm"]
    return (
        f"{ours.one_way} of the {ours.arrows} arrows at the start go one way. Mutual gossip can "
        f"use only the others, and ends at a loss of {mutual.average_loss[-1]:.3f} per sample; "
        f"{METHODS[name].label} uses all: {ours.average_loss[-1]:.3f}."
    )
