"""The audit has teeth where nothing is protected, and finds nothing where something is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oneway.errors import ConfigError
from oneway.privacy.audit import audit, canary_test, page_of, watch_peers, watch_rounds
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
    assert found.score.rows == 320
    assert found.score.rows_read_exactly > 0.9 * found.score.rows
    assert all(example.exact for example in found.examples)
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
    assert found.score.rows_read_exactly > least * found.score.rows


def test_of_fewer_samples_than_a_batch_nothing_is_read():
    found = audit(settings_with(rounds=4), canaries=100)
    assert (found.score.rows, found.score.rows_read_exactly) == (4, 0)


@pytest.mark.parametrize("transform", ["momentum", "adagrad"])
@pytest.mark.parametrize("method", ["ops", "relay"])
def test_transforms_do_not_hide_rows(method, transform):
    """As long as steps are as long as the attacker thinks; curvature makes some of them shorter."""
    changes = {"method": method, "transforms": [transform], "step": "paper", "learning_rate": 0.02}
    found = audit(settings_with(**OPEN, **changes), canaries=100)
    assert found.score.rows_read_exactly > 0.9 * found.score.rows


@pytest.mark.parametrize("method", SENDING)
def test_batches_without_noise_hide_every_digit_and_promise_nothing(method):
    settings = settings_with(privacy="none", samples_per_push=16, method=method)
    found = audit(settings, canaries=500)
    assert found.score.rows_read_exactly == 0
    assert found.is_kept is None
    assert found.evidence.epsilon_lower_bound > 20


@pytest.mark.parametrize("method", SENDING)
def test_the_defaults_let_nothing_be_read(method):
    found = audit(settings_with(method=method), canaries=2000)
    assert found.score.rows_read_exactly == 0
    assert abs(found.score.cosine - found.score.cosine_by_chance) < 0.05
    assert found.is_kept


@pytest.mark.parametrize("samples", [1, 16])
def test_epsilon_one_is_at_most_one(samples):
    found = audit(settings_with(epsilon=1.0, samples_per_push=samples), canaries=2000)
    assert found.score.rows_read_exactly == 0
    assert 0.0 < found.evidence.epsilon_lower_bound <= 1.0


@pytest.mark.parametrize("method", SENDING)
def test_what_the_others_compute_are_the_steps_that_were_taken(method):
    parts = assemble(settings_with(**OPEN, method=method, rounds=50, step="paper"))
    others = watch_rounds(parts.method, parts.model, parts.stream, parts.graph, 0, 0)
    assert len(others.readings) == 1, "all segments say the same"
    (steps,) = others.readings.values()
    rows = parts.stream.rows[:, 0]
    samples = Batch(parts.stream.features[rows], parts.stream.labels[rows])
    taken = parts.method.rate(0) * parts.model.gradients(others.estimates, samples)
    np.testing.assert_allclose(steps, taken, atol=1e-9)


@pytest.mark.parametrize("method", ["ops", "relay", "dol-asymm"])
def test_the_messages_of_peers_give_away_the_rows_that_a_simulation_does(method):
    small = settings_with(**OPEN, method=method, nodes=4, rounds=40)
    found = audit(small, canaries=100, virtual=True)
    simulated = audit(small, canaries=100).score
    assert found.score.rows_read_exactly == simulated.rows_read_exactly > 30
    assert "in virtual time" in page_of(found)


def test_the_defaults_let_nothing_be_read_from_the_messages_of_peers():
    found = audit(settings_with(nodes=3), canaries=300, virtual=True)
    assert found.score.rows_read_exactly == 0
    assert abs(found.score.cosine - found.score.cosine_by_chance) < 0.05
    assert 0.5 < found.evidence.epsilon_lower_bound <= 8.0


def test_peers_whose_noise_is_too_small_are_caught_by_their_messages():
    parts = assemble(settings_with(nodes=3))
    method = parts.method
    weak = replace(method, batches=replace(method.batches, noise=0.3 * method.batches.noise))
    found = canary_test(weak, 15, parts.graph, 0, 300, 1e-5, seed=0, watch=watch_peers)
    assert found.epsilon_lower_bound > 8.0


def test_methods_that_send_copies_are_audited_in_a_simulation_only():
    with pytest.raises(ConfigError, match="pull"):
        audit(settings_with(method="pull"), virtual=True)
