"""Everything a peer ever puts on the wire, explained byte by byte.

Every field of every frame is a counter, a name, a running total of models, or a hash of one; no
sample, label or gradient occurs. That is privacy by construction and no more: it is not secrecy.
The difference of two successive totals of a peer that learned from one sample and received nothing
in between is proportional to a gradient, and for a linear model to the sample itself. The last test
shows it, and `docs/threat-model.md` says so. All this is about tasks without privacy, in which
every sample is a push of its own; what batches and noise change is in `test_noised_pushes.py`.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from plain import PLAIN
from town import Town, config, key_of

from oneway.peer.home.limits import Limits
from oneway.peer.store.snapshot import Journal, Snapshot
from oneway.peer.stream_progress import ProgressSeal
from oneway.protocol.compact import packed_total, unpack
from oneway.protocol.fixed_point import ONE, zeros
from oneway.protocol.messages import Compact, Data
from oneway.protocol.tags import NO_TAG, digest_of, sign, sign_life
from oneway.protocol.transitions import restart
from oneway.records import Batch
from oneway.tables import Number
from oneway.tables.features import make_feature
from oneway.task.privacy import parse_privacy
from oneway.task.task import Task
from oneway.transport.wire import Foreign, decode

FEATURES = (Number("u", 3.0, 2.0), Number("v", -70.0, 11.0), Number("w"))
TASKS = {
    "logistic": Task("logistic", "y", FEATURES, ("vacant", "occupied"), learning_rate=0.2, **PLAIN),
    "ridge": Task("ridge", "y", FEATURES, learning_rate=0.01, **PLAIN),
}
EDGES = {"alice": ["bob", "carol"], "bob": ["alice"], "carol": ["bob"]}
ROUNDS = 12
NO_CLIP = Limits(clip="off")
FOREIGN = Task("hinge", "y", FEATURES, ("a", "b"), **PLAIN)


class Recorded(Town):
    """A small network, and books about what was handed over, kept by hand."""

    def __init__(self, task, edges, **more):
        self.rng = np.random.default_rng(5)
        self.samples, self.gradients, self.personal = [], [], []
        super().__init__(edges, task, NO_CLIP, **more)
        nothing = (0,) * (task.dim + 1)  # by sender and receiver: running totals
        self.handed = {(one, other): [nothing] for one in EDGES for other in edges.get(one, ())}
        self.edges = edges
        self.exchange()

    def learns(self, name):
        """One distinctive sample; what is handed over afterwards is computed here once more."""
        self.time += 1.0
        node = self.nodes[name]
        node.ensure_minted()
        x = {f.name: float(self.rng.normal(f.center, f.scale)) for f in FEATURES}
        y = self.rng.choice(self.task.classes) if self.task.classes else self.rng.normal(0, 5)
        y = str(y) if self.task.classes else float(y)
        scaled, label = self.task.encoder.vector(x), self.task.encoder.label_value(y)
        batch = Batch(scaled[None], np.array([label]))
        self.samples.append((x, y, scaled, label))
        self.gradients.append(self.task.build_model().gradient(node.estimate, batch))

        before = node.snapshot.state
        node.learn(x, y)
        after = node.snapshot.state
        self.personal += [
            it for name, it in node.snapshot.measures.items() if not name.startswith("tally.scores")
        ]
        step = (after.gradient_steps - before.gradient_steps).tolist()
        self.gradients.append(np.array(step[:-1]) / ONE)
        held = [had - moved for had, moved in zip(before.holding.tolist(), step, strict=True)]
        share = 0.5 / len(self.edges[name])
        for receiver in self.edges[name]:
            totals = self.handed[name, receiver]
            part = [math.floor(number * share) for number in held]
            totals.append(tuple(t + p for t, p in zip(totals[-1], part, strict=True)))
        self.exchange()

    def tell(self):
        """Let everybody say what is overdue, and pass nothing on."""
        self.time += 40.0
        for name, node in self.nodes.items():
            self.send(name, node.overdue())
        self.exchange()


@pytest.fixture(params=TASKS)
def network(request):
    """Peers that learned, restarted, and parted: every kind of message was said."""
    network = Recorded(TASKS[request.param], EDGES | {"dave": ["bob"]}, tasks={"dave": FOREIGN})
    for round_index in range(ROUNDS):
        for name in EDGES:
            network.learns(name)
        if round_index == ROUNDS // 2:
            state, journal = network.state("carol"), network.nodes["carol"].snapshot.journal
            again = Snapshot(restart(state, 99 << 20), journal)
            network.start("carol", again, config("carol", EDGES["carol"], limits=NO_CLIP))
            for _ in range(2):
                network.tell()
    network.power_off("dave")
    network.nodes["bob"].follow(config("bob", limits=NO_CLIP))
    network.exchange()
    network.tell()
    return network


def said_by_peers(network):
    return [(name, frame) for name, frame in network.sent if name in EDGES]


def task_fields(content):
    fields = json.loads(content)
    return fields | {
        "features": tuple(make_feature(it["name"], it) for it in fields["features"]),
        "privacy": parse_privacy(fields["privacy"], "the frame"),
    }


def test_every_total_on_the_wire_is_the_sum_of_what_was_handed_over(network):
    """Portion by portion, and each portion is a share of everything the peer holds."""
    seen = 0
    for name, frame in said_by_peers(network):
        _, message = decode(frame.content)
        if isinstance(message, Data):
            receiver = frame.peer.rstrip(b"-").decode()
            totals = network.handed[name, receiver]
            assert tuple(message.total.tolist()) in totals, (name, receiver)
            seen += message.total.any()
    assert seen >= ROUNDS * 4
    for (name, receiver), totals in network.handed.items():
        heard = [
            tuple(edge.heard.tolist())
            for edge in network.nodes[receiver].snapshot.state.in_.values()
            if edge.sender == key_of(name)
        ]
        assert totals[-1] in heard


def test_every_field_of_every_frame_is_a_counter_a_name_a_total_or_a_hash_of_one(network):
    totals = {total for handed in network.handed.values() for total in handed}
    digests = {digest_of(np.array(total)) for total in totals}
    states = {name: node.snapshot.state for name, node in network.nodes.items()}
    ledgers = {0} | {state.ledger for state in states.values()}
    epochs = set(range(1, next(network.epochs)))
    tags = {NO_TAG} | {
        sign(key_of(name), states[name].ledger, key_of(receiver), epoch, seq, digest_of(total))
        for (name, receiver), handed in network.handed.items()
        for total in map(np.array, handed)
        for epoch in epochs
        for seq in range(ROUNDS + 8)
    }
    # A count of samples, and their place in the stream, sealed by whoever learned from them.
    progress = {
        (sealed.learned, sealed.mark)
        for name in EDGES
        for samples in range(len(network.samples) + 1)
        for seal in [ProgressSeal(key_of(name), network.task.fingerprint)]
        for sealed in [seal.seal(Journal(samples))]
    }
    kinds = set()
    for name, frame in said_by_peers(network):
        task, message = decode(frame.content)
        assert task == network.task.fingerprint
        kinds.add(type(message).__name__)
        for field in message.__struct_fields__:
            value = getattr(message, field)
            match field:
                case "epoch":
                    assert value in epochs
                case "ledger":
                    assert value in ledgers
                case "seq":
                    assert 0 <= value < ROUNDS + 8
                case "session" | "granted":  # starts of the process, to a millisecond
                    assert value < 200 << 20
                case "life":
                    assert value.over <= value.boot < 200 << 20
                    assert value.leaving is False
                    assert value.proof == sign_life(key_of(name), value.boot, value.over)
                case "total":
                    assert tuple(value.tolist()) in totals
                case "digest":
                    assert value in digests
                case "tag":
                    assert value in tags
                case "progress":
                    assert (value.learned, value.mark) in progress
                case "fields":
                    assert isinstance(message, Foreign)
                    assert Task(**task_fields(value)) == network.task
                case _:
                    raise AssertionError(f"{name} said {field}")
    assert kinds >= {"Data", "Hello", "Ack", "State", "Close", "Closed", "Foreign"}


def forms(number):
    """A number in every way it could stand in bytes."""
    yield np.array(number).astype("<f8").tobytes()
    yield np.array(number).astype(">f8").tobytes()
    units = round(number * ONE)
    for whole in (units, -units):
        yield whole.to_bytes(8, "little", signed=True)
        yield whole.to_bytes(8, "big", signed=True)
    for digits in (6, 17):
        yield f"{number:.{digits}g}".encode()


def test_no_feature_raw_or_scaled_no_label_and_no_gradient_occurs_in_the_bytes(network):
    everything = b"\n".join(
        frame.content
        for _, frame in said_by_peers(network)
        if not isinstance(decode(frame.content)[1], Foreign)  # the shared task, field by field
    )
    assert len(everything) > 10_000
    found = []
    for x, y, scaled, label in network.samples:
        numbers = [*x.values(), *scaled] + ([label] if network.task.model == "ridge" else [])
        found += [number for number in numbers for form in forms(number) if form in everything]
        found += [y for text in network.task.classes if text.encode() in everything]
        for name in x:
            assert f'"{name}"'.encode() not in everything
    for gradient in network.gradients:
        for number in gradient:
            found += [number for form in forms(number) if number and form in everything]
    # Nor anything of the personal predictions, their experts, weights and measures; a number of few
    # digits could be anything.
    own = {float(it) for array in network.personal for it in array.reshape(-1)}
    own = {number for number in own if len(f"{abs(number):.9g}") > 8}
    assert len(own) > 500
    found += [number for number in own for form in forms(number) if form in everything]
    assert not found
    # The search does find what is there: a total.
    total = network.handed["alice", "bob"][-1][0]
    assert total.to_bytes(8, "little", signed=True) in everything


def test_what_is_said_does_not_depend_on_what_else_a_sample_holds():
    """Columns that the task does not name never enter the peer."""
    frames = []
    for more in ({}, {"name": "Ada", "diagnosis": "secret", "x": 5.0}):
        network = Recorded(TASKS["logistic"], {"alice": ["bob"], "bob": []})
        network.time += 1.0
        network.nodes["alice"].learn({"u": 1.0, "v": 2.0, "w": 3.0, **more}, "vacant")
        network.exchange()
        frames.append([frame.content for _, frame in network.sent])
    assert frames[0] == frames[1]
    assert len(frames[0]) > 3


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_and_yet_the_first_push_of_a_lone_peer_tells_its_first_sample_up_to_a_factor(task):
    """No sample travels, but this is what a receiver can compute: trust is needed to send."""
    network = Recorded(task, {"alice": ["bob"], "bob": []})
    network.learns("alice")
    [(_, _, scaled, _)] = network.samples
    totals = [
        message.total
        for message in (decode(frame.content)[1] for _, frame in network.sent)
        if isinstance(message, Data)
    ]
    difference = (totals[-1] - zeros(task.dim))[:-1] / ONE
    direction = np.append(scaled, 1.0)
    cosine = difference @ direction / np.linalg.norm(difference) / np.linalg.norm(direction)
    assert abs(cosine) == pytest.approx(1.0, abs=1e-9)


def test_a_compact_push_says_no_more_than_the_total_that_it_leads_to(monkeypatch):
    """Codes are made of what the books say, noise and all: post-processing, which tells nothing."""
    monkeypatch.setattr("oneway.peer.home.limits._COMPACT_ABOVE", 1)
    network = Recorded(TASKS["logistic"], EDGES)
    books = {
        (name, key_of(receiver), 0): zeros(network.task.dim)
        for name in EDGES
        for receiver in EDGES[name]
    }
    books |= {(*edge, 1): nothing for (*edge, _), nothing in books.items()}
    for _ in range(ROUNDS):
        for name in EDGES:
            network.learns(name)
            for edge in network.nodes[name].snapshot.state.out.values():
                books |= {(name, edge.receiver, seq): it for seq, it in edge.totals.items()}
    seen = 0
    for name, frame in network.sent:
        _, message = decode(frame.content)
        if isinstance(message, Compact):
            base = books[name, frame.peer, message.packed.base]
            total = books[name, frame.peer, message.seq]
            layout = network.nodes[name].snapshot.state.layout
            assert np.array_equal(unpack(layout, base, message.packed), total)
            # Who knows the totals can write the same codes: there is nothing else in them.
            part = layout.with_copies(total - base, total)
            again = packed_total(layout, part, message.packed.base, base, network.task.radius)[0]
            assert np.array_equal(unpack(layout, base, again), total)
            seen += bool(message.packed.codes)
    assert seen >= ROUNDS
