"""The audit has teeth where nothing is protected, and finds nothing where something is."""

from __future__ import annotations

import numpy as np
import pytest

from oneway.audit.privacy import audit
from oneway.audit.simulation import watch
from oneway.privacy.reconstruction import nearest
from oneway.records import Batch
from oneway.task.assembly import assemble
from oneway.task.settings import read_settings

OPEN = {"privacy": "none", "samples_per_push": 1}
SENDING = ["ops", "pull", "relay", "tracking"]


def settings_with(**changes):
    small = {"data": "synthetic", "nodes": 6, "rounds": 320}
    return read_settings(None, small | changes)


def test_without_batches_and_noise_the_others_read_nearly_every_row():
    found = audit(settings_with(**OPEN), canaries=500)
    score = found.worst.score
    assert found.worst.attacker == "everybody else together"
    assert score.rows == 320
    assert score.rows_read_exactly > 0.9 * score.rows
    assert all(example.exact for example in found.worst.examples)
    assert found.epsilon_promised is None
    assert found.evidence.epsilon_lower_bound > 20


@pytest.mark.parametrize(
    ("method", "model"),
    [
        *((method, "logistic") for method in ("ops", "dol-asymm", "col", "pull", "tracking")),
        *(("relay", model) for model in ("ridge", "hinge")),
    ],
)
def test_every_method_that_sends_gives_its_rows_away(model, method):
    found = audit(settings_with(**OPEN, model=model, method=method), canaries=100)
    # A hinge learns nothing from what it knows well, and so says nothing about it.
    least = 0.4 if model == "hinge" else 0.9
    assert found.worst.score.rows_read_exactly > least * found.worst.score.rows


@pytest.mark.parametrize("transform", ["momentum", "adagrad"])
@pytest.mark.parametrize("method", ["ops", "relay"])
def test_transforms_do_not_hide_rows(method, transform):
    """As long as steps are as long as the attacker thinks; curvature makes some of them shorter."""
    changes = {"method": method, "transforms": [transform], "step": "paper", "learning_rate": 0.02}
    found = audit(settings_with(**OPEN, **changes), canaries=100)
    assert found.worst.score.rows_read_exactly > 0.9 * found.worst.score.rows


@pytest.mark.parametrize("method", SENDING)
def test_batches_without_noise_hide_every_digit_and_promise_nothing(method):
    settings = settings_with(privacy="none", samples_per_push=16, method=method)
    found = audit(settings, canaries=500)
    assert found.worst.score.rows_read_exactly == 0
    assert found.is_kept is None
    assert found.evidence.epsilon_lower_bound > 20


@pytest.mark.parametrize("method", SENDING)
def test_the_defaults_let_nothing_be_read(method):
    found = audit(settings_with(method=method), canaries=2000)
    assert found.worst.score.rows_read_exactly == 0
    assert abs(found.worst.score.cosine - found.worst.score.cosine_by_chance) < 0.05
    assert found.is_kept


@pytest.mark.parametrize("samples", [1, 16])
def test_epsilon_one_is_at_most_one(samples):
    found = audit(settings_with(epsilon=1.0, samples_per_push=samples))
    assert found.worst.score.rows_read_exactly == 0
    assert 0.0 < found.evidence.epsilon_lower_bound <= 1.0


@pytest.mark.parametrize("method", SENDING)
def test_what_the_others_compute_are_the_steps_that_were_taken(method):
    parts = assemble(settings_with(**OPEN, method=method, rounds=50, step="paper"))
    _, others = watch(parts.method, parts.model, parts.stream, parts.graph, 0, 0)
    assert len(others.readings) == 1, "all segments say the same"
    (steps,) = others.readings.values()
    rows = parts.stream.rows[:, 0]
    samples = Batch(parts.stream.features[rows], parts.stream.labels[rows])
    taken = parts.method.rate(0) * parts.model.gradients(others.estimates, samples)
    np.testing.assert_allclose(steps, taken, atol=1e-9)


@pytest.mark.parametrize("method", SENDING)
def test_one_receiver_reads_the_first_sample_exactly_and_guesses_the_others(method):
    """At first it knows what the sender holds; later it must guess what others sent there."""
    first, _ = audit(settings_with(**OPEN, method=method), canaries=100).findings
    assert first.attacker == "one curious receiver"
    assert first.examples[0].exact
    assert first.score.rows_read_exactly < 5
    assert first.score.cosine > first.score.cosine_by_chance + 0.02


def test_the_receiver_of_a_light_node_guesses_better_with_relay_and_tracking():
    """They send the steps themselves; OPS sends a model that they have moved."""
    nearness = {}
    for method in ("ops", "relay", "tracking"):
        parts = assemble(settings_with(**OPEN, method=method, nodes=20, rounds=200))
        masses = np.linalg.matrix_power(parts.graph.mixing().toarray().T, 500) @ np.ones(20)
        light = int(masses.argmin())
        receiver, _ = watch(parts.method, parts.model, parts.stream, parts.graph, light, 0)
        found = receiver.candidates(parts.method, parts.model)
        rows = parts.stream.features[parts.stream.rows[:, light]]
        nearness[method] = float(np.median(nearest(found.features, rows)[1]))
    assert nearness["relay"] > nearness["ops"] + 0.05
    assert nearness["tracking"] > nearness["ops"] + 0.05
